"""The engine of the game on the front page, right and with each of its bugs, beside mini_autograd."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from contextlib import nullcontext
from typing import Any

import pytest

from autograder.bugs.bank import BY_NAME
from autograder.runs.reference_patch import wrong_rules
from docs.site import game
from mini_autograd.numerics.dtypes import float64
from mini_autograd.tensors.creation import tensor
from mini_autograd.tensors.tensor import Tensor

GRAPHS = 1000
ENGINE = {
    "Add": lambda a, b: a + b,
    "Subtract": lambda a, b: a - b,
    "Multiply": lambda a, b: a * b,
    "Divide": lambda a, b: a / b,
    "Exp": Tensor.exp,
    "Tanh": Tensor.tanh,
}
PLAY = """
const { computed, roundOf, WRONG } = require(process.argv[1]);
const { cases, graphs, bugs } = JSON.parse(require("fs").readFileSync(0, "utf8"));
const engines = cases.map(({ nodes, leaves, bug }) => {
  const wrong = bug ? { operation: bug[1], slopes: WRONG[bug[0]][bug[1]] } : {};
  const { values, gradients } = computed(nodes, leaves, wrong);
  return [values.at(-1), ...gradients.filter((_, at) => !nodes[at].operation)];
});
const rounds = [...Array(200).keys()].map((seed) => roundOf(seed, graphs, bugs));
console.log(JSON.stringify({ engines, rounds }));
"""


def play(cases: list[dict[str, Any]]) -> dict[str, Any]:
    """What the script computes for these cases, and its first rounds."""
    if shutil.which("node") is None:
        pytest.skip("there is no node")
    told = [game.told(*each) for each in game.wrong_rules()]
    given = json.dumps({"cases": cases, "graphs": [game.graph_of(text) for text in game.EXPRESSIONS], "bugs": told})
    ran = subprocess.run(["node", "-e", PLAY, str(game.SCRIPT)], input=given, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return dict(json.loads(ran.stdout))


def random_case(number: int) -> dict[str, Any]:
    """A random graph in which each node is used, perhaps twice, with the numbers of its leaves; every second one has a
    bug, in an operation that occurs."""
    draw = random.Random(number)
    nodes: list[dict[str, Any]] = [{"operation": "", "inputs": []} for _ in range(3)]
    bug = game.wrong_rules()[number // 2 % len(game.wrong_rules())] if number % 2 else None
    for step in range(draw.randint(3, 7)):
        operation = bug[1] if bug and step == 0 else draw.choice(list(ENGINE))
        others = [draw.randrange(len(nodes)) for _ in range(operation not in ("Exp", "Tanh"))]
        nodes.append({"operation": operation, "inputs": [len(nodes) - 1, *others]})
    leaves = [draw.uniform(0.3, 1.5) * draw.choice((-1, 1)) for _ in range(3)]
    return {"nodes": nodes, "leaves": leaves, "bug": bug}


def in_the_engine(case: dict[str, Any]) -> list[float]:
    """The value and the gradients of the leaves from mini_autograd, with the bank's wrong rule."""
    leaves = [tensor(value, dtype=float64, requires_grad=True) for value in case["leaves"]]
    bug = case["bug"]
    with wrong_rules({bug[1]: BY_NAME[bug[0]].rules[bug[1]]}) if bug else nullcontext():
        found = list(leaves)
        for node in case["nodes"][len(leaves) :]:
            found.append(ENGINE[node["operation"]](*(found[place] for place in node["inputs"])))
        found[-1].backward()
    return [found[-1].item(), *(0.0 if leaf.grad is None else leaf.grad.item() for leaf in leaves)]


def test_it_computes_what_the_engine_computes_and_its_bugs_are_the_bank_s() -> None:
    known = [(case, in_the_engine(case)) for case in map(random_case, range(2 * GRAPHS))]
    known = [(case, right) for case, right in known if all(abs(number) < 1e6 for number in right)][:GRAPHS]
    assert len(known) == GRAPHS
    assert {tuple(case["bug"]) for case, _ in known if case["bug"]} == {*game.wrong_rules()}
    for (case, right), found in zip(known, play([case for case, _ in known])["engines"], strict=True):
        assert found == pytest.approx(right, rel=1e-9, abs=1e-9), case


def test_every_round_has_a_bug_that_shows_and_rounds_differ() -> None:
    rounds = play([])["rounds"]
    assert rounds == play([])["rounds"], "a link leads to the same round"
    assert {(each["bug"]["name"], each["bug"]["operation"]) for each in rounds} == {*game.wrong_rules()}
    assert len({json.dumps(each["graph"]["nodes"]) for each in rounds}) == len(game.EXPRESSIONS)
