"""The engine of numbers in the browser, right and with each bug of the game on the front page, beside mini_autograd."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from contextlib import nullcontext
from itertools import count, islice
from typing import Any

import numpy as np
import pytest

from autograder.bugs.bank import BY_NAME
from autograder.runs.reference_patch import wrong_rules
from docs.site import game
from mini_autograd.numerics.dtypes import float64
from mini_autograd.tensors.creation import tensor
from mini_autograd.tensors.tensor import Tensor
from mini_autograd.widgets.scripts import EVALUATOR

GRAPHS = 1000
BINARY = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "**": lambda a, b: a**b,
}
UNARY = {
    **{f"**{power}": (lambda a, power=float(power): a**power) for power in ("2", "3", "-1", "0.5")},
    **{name: getattr(Tensor, name) for name in ("neg", "abs", "exp", "log", "sqrt", "sin", "cos")},
    **{name: getattr(Tensor, name) for name in ("tanh", "sigmoid", "relu")},
}
ENGINE = BINARY | UNARY
PLAY = """
Object.assign(global, require(process.argv[1]));
const { roundOf, WRONG } = require(process.argv[2]);
const { cases, graphs, bugs } = JSON.parse(require("fs").readFileSync(0, "utf8"));
const engines = cases.map(({ nodes, leaves, bug }) => {
  const wrong = bug ? { operation: bug[1], slopes: WRONG[bug[0]][bug[1]] } : {};
  const { v, g } = computed(nodes, leaves, { wrong });
  return [v.at(-1), ...g];
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
    ran = subprocess.run(
        ["node", "-e", PLAY, str(EVALUATOR), str(game.SCRIPT)], input=given, capture_output=True, text=True
    )
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
        others = [draw.randrange(len(nodes)) for _ in range(operation in BINARY)]
        nodes.append({"operation": operation, "inputs": [len(nodes) - 1, *others]})
    leaves = [draw.uniform(0.3, 1.5) * draw.choice((-1, 1)) for _ in range(3)]
    return {"nodes": nodes, "leaves": leaves, "bug": bug}


def in_the_engine(case: dict[str, Any]) -> list[float]:
    """The value and the gradients of all nodes from mini_autograd, with the bank's wrong rule."""
    leaves = [tensor(value, dtype=float64, requires_grad=True) for value in case["leaves"]]
    bug = case["bug"]
    name = game.OPERATIONS[bug[1]] if bug else ""
    with wrong_rules({name: BY_NAME[bug[0]].rules[name]}) if bug else nullcontext():
        found = list(leaves)
        for node in case["nodes"][len(leaves) :]:
            found.append(ENGINE[node["operation"]](*(found[place] for place in node["inputs"])))
            found[-1].retain_grad()
        found[-1].backward()
    return [found[-1].item(), *(0.0 if node.grad is None else node.grad.item() for node in found)]


def test_it_computes_what_the_engine_computes_and_its_bugs_are_the_bank_s() -> None:
    with np.errstate(all="ignore"):
        cases = ((case, in_the_engine(case)) for case in map(random_case, count()))
        finite = (each for each in cases if all(abs(number) < 1e6 for number in each[1]))
        known = list(islice(finite, GRAPHS))
    assert {tuple(case["bug"]) for case, _ in known if case["bug"]} == {*game.wrong_rules()}
    for (case, right), found in zip(known, play([case for case, _ in known])["engines"], strict=True):
        assert found == pytest.approx(right, rel=1e-9, abs=1e-9), case


def test_every_round_has_a_bug_that_shows_and_rounds_differ() -> None:
    rounds = play([])["rounds"]
    assert rounds == play([])["rounds"], "a link leads to the same round"
    assert {(each["bug"]["name"], each["bug"]["operation"]) for each in rounds} == {*game.wrong_rules()}
    assert len({json.dumps(each["graph"]["nodes"]) for each in rounds}) == len(game.EXPRESSIONS)
