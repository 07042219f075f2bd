"""The game of the front page, "find the bug in this engine", as data: graphs with their pictures, and the words of the
bug bank. `static/game.js` computes and plays.
"""

from __future__ import annotations

import json
import re
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from autograder.bugs.bank import BY_NAME
from autograder.runs.reference_patch import symbol
from mini_autograd.drawing import read_graph, render
from mini_autograd.drawing.svg import title
from mini_autograd.tensors.creation import tensor
from mini_autograd.widgets.expressions import computed, names_used, parsed

OPERATIONS = {symbol(name): name for name in ("Add", "Subtract", "Multiply", "Divide", "Exp", "Tanh")}
"""Those of the game: the name of a class of the engine by the sign in a graph."""

SCRIPT = Path(__file__).parent / "static" / "game.js"
EXPRESSIONS = (
    "(a * b - c).tanh() * b",
    "(a + b) * (a - c)",
    "(a - b).exp() / c + a",
    "a * b + (b - c).tanh()",
    "(a / b + c) * b",
    "(a * b).tanh() - (a + c)",
)
NUMBER = 0.5
"""Of every leaf, while a picture is drawn; the page writes others."""


def wrong_rules() -> list[tuple[str, str]]:
    """The bugs that the page can plant, each with the sign of its operation: WRONG of the script."""
    table = re.search(r"const WRONG = \{(.*?)\n\};", SCRIPT.read_text(encoding="utf-8"), re.DOTALL)
    rows = re.findall(r"^  (\w+): \{(.*)\},$", table[1] if table else "", re.MULTILINE)
    return [(bug, sign) for bug, rules in rows for sign in re.findall(r'"?([^\s"{]+)"?: \(', rules)]


def place() -> str:
    """The part of the page in which the script plays."""
    graphs, bugs = [graph_of(text) for text in EXPRESSIONS], [told(*each) for each in wrong_rules()]
    data = json.dumps({"graphs": graphs, "bugs": bugs}).replace("</", "<\\/")
    return f'<div class="find-the-bug"><script type="application/json">{data}</script></div>'


def told(name: str, operation: str) -> dict[str, str]:
    """A bug in the rule of an operation, which is given by its sign, in the words of the bank."""
    bug = BY_NAME[name]
    words = {"sentence": bug.sentence((OPERATIONS[operation],)), "hint": bug.hint, "misconception": bug.misconception}
    return {"name": name, "operation": operation, **words}


def graph_of(text: str) -> dict[str, Any]:
    """The graph of an expression: its nodes in the order of computation, and pictures to the right and downward."""
    tree = parsed(text)
    leaves = {name: tensor(NUMBER, requires_grad=True) for name in names_used(tree)}
    graph = read_graph(computed(tree, leaves, nullcontext), leaves)
    nodes = [
        {
            "name": node.name,
            "title": title(node),
            "operation": node.operation,
            "inputs": node.inputs,
        }
        for node in graph.nodes
    ]
    pictures = {
        name: render(graph, direction=direction, interactive=True, replay=True)
        for name, direction in (("picture", "right"), ("upright", "down"))
    }
    return {"nodes": nodes, **pictures}
