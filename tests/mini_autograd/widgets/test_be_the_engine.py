"""Be the engine: moves in the right order lead to the engine's gradients, and mistakes are named."""

import itertools
import json
import re
from html import unescape

import pytest

from mini_autograd.widgets import be_the_engine
from mini_autograd.widgets.demos.be_the_engine import EXAMPLES, demo, example, moves_in, played, question, show


def operations(name):
    return [node.name for node in example(name).nodes if node.kind == "operation"]


def presses(shown):
    """The state that each part of the picture sets when it is pressed, by its label."""
    found = re.findall(r'aria-label="([^"]*)" data-press="([^"]*)"', shown.svg)
    return {unescape(label): json.loads(unescape(data)) for label, data in found}


@pytest.mark.parametrize("name", EXAMPLES)
def test_backward_order_gives_the_gradients_of_the_engine(name):
    graph = example(name)
    play = played(graph, moves_in(" ".join(reversed(operations(name)))))
    assert play.finished()
    assert play.early == {}
    for node in graph.nodes:
        if node.kind != "constant":
            assert play.total(node) == node.incoming
    assert show(name, " ".join(reversed(operations(name)))).words[0].startswith("All gradients are right")


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_order_is_right_exactly_if_nobody_sends_early(name):
    graph, seen = example(name), set()
    leaves = [node for node in graph.nodes if node.kind == "leaf"]
    for order in itertools.permutations(operations(name)):
        try:
            play = played(graph, moves_in(" ".join(order)))
        except ValueError:
            continue  # nothing had arrived at a node: the reader is told so, and the order cannot be played
        right = all(play.total(leaf) == leaf.incoming for leaf in leaves)
        assert right == (not play.early)
        seen.add(right)
        words = " ".join(show(name, " ".join(order)).words)
        assert right or all(f"{graph.nodes[index].name} sent when" in words for index in play.early)
    assert seen == ({True, False} if name in ("a diamond", "a shortcut") else {True})


def test_the_node_that_sent_early_is_named_with_those_that_came_too_late():
    words = show("a diamond", "r p d q").words
    assert words[0] == "c has 9; the right gradient is 19.5."
    assert words[1].startswith("d sent when 1 of its 2 shares had arrived: the share from q came too late.")


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_whole_game_can_be_played_by_the_parts_of_the_picture(name):
    state = {"moves": ""}
    for _ in range(20):
        parts = presses(show(name, **state))
        if "Show me" not in parts:
            break
        state = parts["Show me"]
    words = show(name, **state).words
    assert words[0].startswith("All gradients are right")
    assert words[1] == f"Right answers: {len(operations(name)) - 1} of {len(operations(name)) - 1}."
    while state["moves"]:
        state = presses(show(name, **state))["Undo"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_answer_is_not_shown_before_it_is_given_and_one_offer_is_right(name):
    output = operations(name)[-1]
    before, asking = show(name, ""), show(name, output)
    asked = question(played(example(name), moves_in(output)), moves_in(output)[0])
    offers = [state["moves"] for label, state in presses(asking).items() if label.startswith("It sends")]
    assert 3 <= len(offers) <= 4
    assert f"{output}={asked.right:g}" in offers
    assert asking.svg.count("arrived:") == before.svg.count("arrived:")
    replies = [show(name, offer).words[0] for offer in offers]
    assert sorted(reply.split()[0] for reply in replies) == ["Not"] * (len(offers) - 1) + ["Right:"]


def test_what_is_no_move_gets_a_sentence():
    with pytest.raises(ValueError, match=r"'t=x' is not a move\. Write a node"):
        show("a leaf used twice", "t=x")
    with pytest.raises(ValueError, match=r"No operation is called 'z'\. The operations are s, t\."):
        show("a leaf used twice", "z")
    with pytest.raises(ValueError, match="t has already sent its gradients"):
        show("a leaf used twice", "t t")
    assert show("a diamond", "t s").words == show("a diamond", "").words, "the moves are of the graph before"


def test_presets_and_a_call_in_a_lesson():
    for state in demo().presets.values():
        demo().show(**demo().checked({**demo().start, **state}))
    widget = be_the_engine(example_name="a diamond", moves="r=3 p")
    assert widget.state == {"example_name": "a diamond", "moves": "r=3 p"}
