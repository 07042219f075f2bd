"""Be the engine: moves in the right order lead to the engine's gradients, and mistakes are named."""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
from typing import Any

import pytest

from mini_autograd.widgets import be_the_engine
from mini_autograd.widgets.demos.be_the_engine import EXAMPLES, PRESETS, WIDGETS, example, told
from mini_autograd.widgets.scripts import EVALUATOR

PLAY = """
const fs = require("fs");
const [evaluator, game] = process.argv.slice(1).map((name) => fs.readFileSync(name, "utf8"));
const parts = "return { Play, questionOf, readMoves, wordsOf };";
const { Play, questionOf, readMoves, wordsOf } = new Function(evaluator + game.replace(/export default.*/, parts))();
console.log(JSON.stringify(JSON.parse(fs.readFileSync(0, "utf8")).map(([graph, text]) => {
  const moves = readMoves(text);
  const play = new Play(graph, moves);
  if (play.refused) return { refused: play.refused };
  const { right, reasons } = moves.length ? questionOf(graph, moves, moves.length - 1) : { reasons: new Map() };
  const early = [...play.early.keys()].map((at) => graph.nodes[at].name);
  const totals = graph.nodes.map((_, at) => play.total(at));
  const ready = play.ready().map((at) => graph.nodes[at].name);
  return { totals, early, ready, right, wrong: [...reasons.keys()], words: wordsOf(graph, moves) };
})));
"""


def played(games: list[tuple[str, str]]) -> list[dict[str, Any]]:
    """What the browser makes of games: the name of a graph and the moves."""
    if shutil.which("node") is None:
        pytest.skip("there is no node")
    given = json.dumps([(told(name), moves) for name, moves in games])
    command = ["node", "-e", PLAY, str(EVALUATOR), str(WIDGETS / "be_the_engine.js")]
    ran = subprocess.run(command, input=given, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    return list(json.loads(ran.stdout))


def operations(name: str) -> list[str]:
    return [node.name for node in example(name).nodes if node.kind == "operation"]


def test_backward_order_gives_the_gradients_of_the_engine() -> None:
    for name, game in zip(
        EXAMPLES, played([(name, " ".join(operations(name)[::-1])) for name in EXAMPLES]), strict=True
    ):
        assert (game["early"], game["ready"]) == ([], [])
        for node, total in zip(example(name).nodes, game["totals"], strict=True):
            assert node.kind == "constant" or total == node.incoming
        assert game["words"][0].startswith("All gradients are right")


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_order_is_right_exactly_if_nobody_sends_early(name: str) -> None:
    orders = [" ".join(order) for order in itertools.permutations(operations(name))]
    leaves = [node for node in example(name).nodes if node.kind == "leaf"]
    seen = set()
    for game in played([(name, order) for order in orders]):
        if "refused" in game:
            assert game["refused"].startswith("Nothing has arrived at ")
            continue
        right = all(game["totals"][leaf.index] == leaf.incoming for leaf in leaves)
        assert right == (not game["early"])
        assert all(f"{early} sent when" in " ".join(game["words"]) for early in game["early"])
        seen.add(right)
    assert seen == ({True, False} if name in ("a diamond", "a shortcut") else {True})


def test_the_node_that_sent_early_is_named_with_those_that_came_too_late() -> None:
    (game,) = played([("a diamond", PRESETS[0][1]["moves"])])
    assert game["words"][0] == "c has 9; the right gradient is 19.5."
    assert game["words"][1].startswith("d sent when 1 of its 2 shares had arrived: the share from q came too late.")


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_answer_is_judged_and_all_right_ones_are_counted(name: str) -> None:
    moves: list[str] = []
    while ready := played([(name, " ".join(moves))])[0]["ready"]:
        (asked,) = played([(name, " ".join([*moves, ready[0]]))])
        offers = [asked["right"], *asked["wrong"]]
        assert len(set(offers)) == len(offers) >= 3
        replies = played([(name, " ".join([*moves, f"{ready[0]}={offer!r}"])) for offer in offers])
        assert [reply["words"][0].split()[0] for reply in replies] == ["Right:", *["Not"] * len(asked["wrong"])]
        moves.append(f"{ready[0]}={asked['right']!r}")
    (game,) = played([(name, " ".join(moves))])
    assert game["words"][1].startswith("All gradients are right")
    assert game["words"][-1] == f"Right answers: {len(moves)} of {len(moves)}."


def test_what_is_no_move_gets_a_sentence() -> None:
    for text, said in (
        ("t=x", r"'t=x' is not a move\. Write a node"),
        ("z", r"No operation is called 'z'\. The operations are s, t\."),
        ("t t", "t has already sent its gradients"),
    ):
        with pytest.raises(ValueError, match=said):
            be_the_engine(moves=text)
    with pytest.raises(ValueError, match="There is no graph 'a tree'"):
        be_the_engine("a tree")


def test_a_call_in_a_lesson_and_what_an_exported_page_shows() -> None:
    widget = be_the_engine(example_name="a diamond", moves="r=3 p")
    assert (widget.example_name, widget.moves) == ("a diamond", "r=3 p")
    bundle = widget._repr_mimebundle_()
    data = bundle[0] if isinstance(bundle, tuple) else bundle
    assert data["image/svg+xml"].startswith("<svg")
    assert "gradient of c: 19.5" in data["text/plain"]
