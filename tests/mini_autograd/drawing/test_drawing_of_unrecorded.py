"""Operations under `no_grad`: drawn with their inputs if they were watched; no gradient passes through them."""

import pytest
import torch

import mini_autograd as ma
from mini_autograd.drawing import read_graph, render, watching
from mini_autograd.widgets import explore
from mini_autograd.widgets.steps import details, story

ENGINES = {"ours": ma, "PyTorch": torch}


def target_and_loss(engine):
    """A loss whose target is computed without recording, from the weight that is trained."""
    weight, x = engine.tensor(3.0, requires_grad=True), engine.tensor(2.0)

    def loss():
        with engine.no_grad():
            target = (weight * x).tanh() + 1.0
        return (weight * x - target) ** 2

    return loss, {"weight": weight, "x": x}


@pytest.fixture(params=ENGINES)
def graph(request):
    loss, names = target_and_loss(ENGINES[request.param])
    with watching() as trace:
        output = loss()
    return read_graph(output, names, trace=trace)


def test_unrecorded_operations_stand_between_their_inputs_and_where_they_are_used(graph):
    found = [(node.kind, f"{node.name} = {node.formula}") for node in graph.nodes if node.formula]
    assert found == [
        ("operation", "v1 = weight \u00d7 x"),
        ("unrecorded", "u1 = weight \u00d7 x"),
        ("unrecorded", "u2 = tanh(u1)"),
        ("unrecorded", "u3 = u2 + 1"),
        ("operation", "v2 = v1 \u2212 u3"),
        ("operation", "v3 = v2**2"),
    ]
    assert next(node for node in graph.nodes if node.name == "u3").value == pytest.approx(2.0, abs=1e-4)


def test_no_gradient_passes_them(graph):
    by_name = {node.name: node for node in graph.nodes}
    assert all(by_name[name].incoming is None for name in ("u1", "u2", "u3"))
    assert by_name["weight"].incoming == pytest.approx(2 * (6 - 2) * 2, abs=1e-3)  # as if the target were a number
    backward = [line for step in story(graph) if step.phase == "backward" for line in step.lines]
    assert not [line for line in backward if "u1" in line or "u3 receives" in line or "not known" in line]
    assert not [line for line in backward if "weight receives" in line and "sum so far" in line]


def test_they_are_marked_in_the_picture_and_in_words(graph):
    picture = render(graph, interactive=True, replay=True)
    assert picture.count("ma-node ma-unrecorded") == 3
    assert picture.count("ma-edge ma-silent") == 6
    forward = [step.lines for step in story(graph) if step.phase == "forward"]
    assert [lines[0] for lines in forward if len(lines) > 1] == [
        f"{start} = {value}"
        for start, value in (
            ("u1 = weight \u00d7 x", "3 \u00d7 2 = 6"),
            ("u2 = tanh(u1)", "tanh(6) = 1"),
            ("u3 = u2 + 1", "1 + 1 = 2"),
        )
    ]
    told = details(next(node for node in graph.nodes if node.name == "u1"), graph)["forward"]
    assert "Computed without recording (no_grad, or detached): backward does not pass through here." in told
    assert "No gradient came through u1, u2, u3: computed without recording." in story(graph)[-1].lines


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
def test_the_explorer_watches_a_function(engine):
    loss, names = target_and_loss(engine)
    assert explore(loss, names).picture.count("ma-node ma-unrecorded") == 3
    assert "ma-node ma-unrecorded" not in explore(loss(), names).picture


@pytest.mark.parametrize("engine", ENGINES.values(), ids=ENGINES)
def test_a_watch_ends_and_changes_nothing(engine):
    loss, names = target_and_loss(engine)
    before = loss()
    with watching() as trace:
        after = loss()
    with engine.no_grad():
        late = names["weight"] * names["x"]
    assert trace.maker_of(late) is None
    assert loss() == after == before
    before.backward()
    assert names["weight"].grad.item() == pytest.approx(16.0, abs=1e-3)


def test_a_detached_result_of_pytorch_is_marked_too():
    w = torch.tensor(2.0, requires_grad=True)
    with watching() as trace:
        out = (w * 3.0).detach() * w
    graph = read_graph(out, {"w": w}, trace=trace)
    assert [(node.kind, node.formula) for node in graph.nodes if node.formula] == [
        ("operation", "w \u00d7 3"),
        ("unrecorded", "detach(v1)"),
        ("operation", "u1 \u00d7 w"),
    ]
    backward = [step.lines[0] for step in story(graph) if step.phase == "backward"]
    assert [line for line in backward if "Backward through v1" in line] == []
