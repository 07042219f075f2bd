"""The lifetime demo: counts come from real objects, and agree with what is known of graphs, lists and `del`."""

import gc
import re

import pytest

import mini_autograd as ma
from mini_autograd.widgets import lifetime
from mini_autograd.widgets.census import Census
from mini_autograd.widgets.demos.lifetime import BATCH, WIDTH, demo, ends, program, show, watched

LAYER = BATCH * WIDTH * 8  # the bytes of the output of a tanh layer
PER_STEP = 8  # nodes of one training step
SAVED = 2 * LAYER + BATCH * 8  # two tanh outputs, and the differences that are squared


@pytest.mark.parametrize(
    ("retain_graph", "kept", "delete", "nodes", "size"),
    [
        (False, "nothing", False, [PER_STEP] * 3, [0] * 3),
        (False, "nothing", True, [0] * 3, [0] * 3),
        (True, "nothing", False, [PER_STEP] * 3, [SAVED] * 3),
        (True, "nothing", True, [0] * 3, [0] * 3),
        (True, "losses.append(loss.item())", True, [0] * 3, [0] * 3),
        (False, "losses.append(loss)", True, [8, 16, 24], [0] * 3),
        (True, "losses.append(loss)", True, [8, 16, 24], [SAVED, 2 * SAVED, 3 * SAVED]),
    ],
)
def test_what_is_alive_at_the_end_of_each_step(retain_graph, kept, delete, nodes, size):
    gc.disable()  # reference counting alone must do it
    try:
        last = ends(watched(program(retain_graph, kept, delete)).samples)
    finally:
        gc.enable()
    assert [sample.nodes for sample in last] == nodes
    assert [sample.size for sample in last] == size


def test_backward_gives_memory_back_node_by_node():
    census = watched(program(False, "nothing", False))
    sizes = [sample.size for sample in census.samples if sample.round == 0 and "backward reaches" in sample.event]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] == SAVED
    assert len(set(sizes)) >= 3


def test_a_census_sees_what_a_program_holds_and_holds_nothing_itself():
    x = ma.tensor([1.0, 2.0], requires_grad=True)
    census = Census({"x": x}, [x.array])
    census.run(["y = x.exp()", "z = y.exp()", "del y", "z.sum().backward()", "del z"], 1)
    after = {sample.line: (sample.nodes, sample.size) for sample in census.samples if not sample.event}
    assert after == {0: (1, 8), 1: (2, 16), 2: (2, 16), 3: (2, 8), 4: (0, 0)}
    assert [node.name for node in census.seen] == ["Exp", "Exp", "Sum"]
    assert all(node.gone is not None for node in census.seen)


def test_words_and_steps_are_those_of_the_census():
    shown = show(True, "losses.append(loss)", True)
    assert "8, 16, 24 nodes and 33 kB, 67 kB, 100 kB" in shown.words[0]
    assert "The number grows" in shown.words[1]
    assert shown.steps[-1].startswith("Step 3: del prediction, loss is done. Alive: 24 nodes, 100 kB")
    assert max(int(step) for step in re.findall(r'id="(?:from|only)-(\d+)"', shown.svg)) == len(shown.steps) - 1


def test_every_preset_is_a_setting_and_the_still_picture_travels_along():
    for state in demo().presets.values():
        assert demo().checked({**demo().start, **state})
    bundle = lifetime(kept="losses.append(loss)")._repr_mimebundle_()
    data = bundle[0] if isinstance(bundle, tuple) else bundle
    assert "losses.append(loss)" in data["image/svg+xml"]
    with pytest.raises(ValueError, match="not a setting of 'kept'"):
        lifetime(kept="everything")
