"""What the graph explorer says in the browser after a leaf was moved, beside what Python says of the same graph."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from typing import Any

import pytest

from mini_autograd.drawing import read_graph
from mini_autograd.drawing.formatting import short
from mini_autograd.numerics.dtypes import float64
from mini_autograd.tensors.creation import tensor
from mini_autograd.widgets.graph_explorer import GraphExplorer
from mini_autograd.widgets.rerun import Engine, Workbench
from mini_autograd.widgets.scripts import EVALUATOR
from mini_autograd.widgets.steps import details, factors, numbers_of, story, with_places

TOLD = """
const { computed, filled, short, sumsOf } = require(process.argv[1]);
const { graphs, numbers } = JSON.parse(require("fs").readFileSync(0, "utf8"));
const texts = graphs.map(({ nodes, leaves, text }) => {
  const found = computed(nodes, leaves);
  return filled(text, { ...found, s: sumsOf(nodes, found.c) });
});
console.log(JSON.stringify({ texts, numbers: numbers.map(short) }));
"""
EXPRESSIONS = {
    "(a * b - c).tanh() * b": lambda a, b, c: (a * b - c).tanh() * b,
    "a / b - (c + a) * a": lambda a, b, c: a / b - (c + a) * a,
    "a * a * a": lambda a, b, c: a * a * a,
    "-(a**2) + b**3 * c": lambda a, b, c: -(a**2) + b**3 * c,
    "(a.exp() + b).sigmoid() - c.sin() / 3": lambda a, b, c: (a.exp() + b).sigmoid() - c.sin() / 3,
    "a": lambda a, b, c: a,
}


def graph_of(build: Any, values: tuple[float, ...]) -> Any:
    names = {name: tensor(value, dtype=float64, requires_grad=True) for name, value in zip("abc", values, strict=True)}
    return read_graph(build(**names), names)


def texts(graph: Any) -> str:
    """All that the browser is told of a graph."""
    told = [step.to_json() | {"questions": [q.reason for q in step.questions]} for step in story(graph)]
    parts = [told, [details(node, graph) for node in graph.nodes], [factors(edge, graph) for edge in graph.edges]]
    return json.dumps(parts, ensure_ascii=False)  # as the browser has it


def in_the_browser(graphs: list[dict[str, Any]], numbers: list[float]) -> dict[str, Any]:
    if shutil.which("node") is None:
        pytest.skip("there is no node")
    given = json.dumps({"graphs": graphs, "numbers": numbers})
    ran = subprocess.run(["node", "-e", TOLD, str(EVALUATOR)], input=given, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return dict(json.loads(ran.stdout))


def test_after_a_move_the_browser_says_what_python_says() -> None:
    draw, moved, right = random.Random(0), [], []
    for build in EXPRESSIONS.values():
        before = graph_of(build, (1.5, -0.5, 2.0))
        for _ in range(20):
            after = graph_of(build, tuple(draw.uniform(-2, 2) for _ in range(3)))
            leaves = [None if node.inputs else node.value for node in after.nodes]
            moved.append({"nodes": numbers_of(before)["nodes"], "leaves": leaves, "text": texts(with_places(before))})
            right.append(texts(after))
    for found, said in zip(in_the_browser(moved, [])["texts"], right, strict=True):
        assert json.loads(found) == json.loads(said)


def test_a_number_is_written_as_in_python() -> None:
    draw = random.Random(1)
    numbers = [draw.choice((-1, 1)) * 10 ** draw.uniform(-12, 12) for _ in range(2000)]
    numbers += [0.0, -0.0, 1.0, -3.0, 0.5, 999_999.0, 1e6, 1e-4, 9.9996e-5, 99995.0, 0.9996, 9999.6, 1e21, 2.0**70]
    assert in_the_browser([], numbers)["numbers"] == [short(number) for number in numbers]


def test_a_graph_with_something_else_than_finite_numbers_has_its_texts_from_python() -> None:
    for expression, values in (("(x * 2).sum()", {"x": [1.0, 2.0]}), ("a / b", {"a": 1.0, "b": 0.0})):
        bench = Workbench(graph_of(lambda a, b, c: a, (1.0, 1.0, 1.0)), Engine(tensor(0.0)))
        bench.compute(expression, values)
        shown = GraphExplorer(bench)
        assert shown.numbers == {}
        assert "{" not in json.dumps(shown.steps).replace('{"', "")
