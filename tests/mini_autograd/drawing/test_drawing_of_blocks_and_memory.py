"""Repeated blocks folded into one node each, and what nodes say about saved tensors, freeing and hooks."""

import re

import numpy as np
import pytest
import torch

import mini_autograd as ma
from mini_autograd.drawing import read_graph, render
from mini_autograd.drawing.folding import fold, repeated_blocks
from mini_autograd.drawing.graph import Memory
from mini_autograd.drawing.svg import bytes_text
from mini_autograd.widgets import explore
from mini_autograd.widgets.steps import details, factors, story

ENGINES = pytest.mark.parametrize("engine", [ma, torch], ids=["ours", "torch"])


def stacked(engine, layers, residual=False):
    weights = [engine.tensor(np.eye(3) * 0.5 + k / 10, requires_grad=True) for k in range(layers)]
    x = engine.tensor(np.arange(6.0).reshape(2, 3), requires_grad=True)
    h = x
    for weight in weights:
        out = (h @ weight).tanh()
        h = out + h if residual else out
    return x, weights, (h * h).sum()


@ENGINES
@pytest.mark.parametrize("residual", [False, True])
def test_layers_are_found_and_folded_with_their_weights(engine, residual):
    x, _, loss = stacked(engine, 5, residual)
    graph = read_graph(loss, {"x": x})
    blocks = repeated_blocks(graph)
    assert [len(block) for block in blocks] == [3 + residual] * 5
    folded = fold(graph, blocks)
    assert len(folded.nodes) == len(graph.nodes) - 5 * (2 + residual)
    assert [node.formula for node in folded.nodes if "block of" in node.operation] == [
        f"block {k}" for k in range(1, 6)
    ]
    for edge in folded.edges:
        assert edge.source < edge.target
        assert edge.source in folded.nodes[edge.target].inputs


@ENGINES
def test_what_goes_into_a_folded_block_adds_up_to_the_gradient(engine):
    x, _, loss = stacked(engine, 4, residual=True)
    graph = read_graph(loss, {"x": x})
    loss.backward()
    folded = fold(graph, repeated_blocks(graph))
    (leaf,) = (node for node in folded.nodes if node.kind == "leaf")
    assert leaf.name == "x"
    sent = sum(edge.contribution for edge in folded.edges if edge.source == leaf.index)
    np.testing.assert_allclose(sent, np.asarray(x.grad.numpy()), atol=1e-12)
    assert story(folded)[-1].phase == "end"
    assert "Recorded as @, tanh, +." in details(folded.nodes[-3], folded)["forward"]


def test_a_graph_without_repetition_is_left_alone():
    a, b = ma.tensor(2.0, requires_grad=True), ma.tensor(3.0, requires_grad=True)
    graph = read_graph((a * b + a).exp() * b)
    assert repeated_blocks(graph) == []
    assert fold(graph, []) == graph


def test_no_block_hands_on_more_than_one_result():
    h = x = ma.tensor(2.0, requires_grad=True)
    results = []
    for _ in range(4):
        results += [h.exp(), h.exp().tanh()]
        h = results[-2].tanh()
        results.append(h)
    total = h
    for number, item in enumerate(results):
        total = total - item if number % 2 else total * item
    graph = read_graph(total, {"x": x})
    for block in repeated_blocks(graph):
        inside = set(block)
        used = {e.source for e in graph.edges if e.source in inside and e.target not in inside}
        assert len(used) == 1


def test_large_graphs_start_folded_unless_told_not_to():
    assert not explore(stacked(ma, 5)[2]).folded
    assert explore(stacked(ma, 5)[2], fold=True).folded
    loss = stacked(ma, 30)[2]
    widget = explore(loss)
    assert widget.folded
    few = len(widget.details)
    widget.folded = False
    assert len(widget.details) == len(read_graph(loss).nodes) > 2.5 * few
    assert widget.picture.count('class="ma-node') == len(widget.details)
    assert not explore(loss, fold=False).folded


@ENGINES
def test_memory_of_nodes_before_and_after_backward(engine):
    x = engine.tensor([1.0, 2.0], requires_grad=True)
    y = (x * 3).exp()
    z = (y * y).sum()
    x.register_hook(lambda grad: None)
    y.register_hook(lambda grad: None)
    names = {"x": x, "y": y}
    assert [node.memory for node in read_graph(z, names).nodes if node.kind != "constant"] == [
        Memory(hooks=1), Memory(8), Memory(8, hooks=1), Memory(8), Memory(),
    ]  # fmt: skip
    z.backward()
    after = read_graph(z, names)
    assert [node.memory.freed for node in after.nodes if node.kind == "operation"] == [True, True, True, False]
    assert render(after).count('ma-freed"') == 3
    assert "The values it saved for backward have been freed." in details(after.nodes[-2], after)["forward"]


def test_hooks_and_saved_bytes_are_drawn_and_told():
    x = ma.tensor([1.0, 2.0], requires_grad=True)
    y = x.exp()
    y.register_hook(lambda grad: None)
    graph = read_graph(y, {"x": x, "y": y})
    assert 'class="ma-hook"' in render(graph)
    assert ">saved 8 B</text>" in render(graph)
    assert details(graph.output, graph)["forward"][-2:] == ["Saved for backward: 8 B.", "1 hook registered here."]


@pytest.mark.parametrize(("size", "text"), [(8, "8 B"), (9_999, "9,999 B"), (65_536, "66 kB"), (12_000_000, "12.0 MB")])
def test_bytes_are_short(size, text):
    assert bytes_text(size) == text


def test_small_arrays_are_called_values_and_larger_ones_shapes():
    bias, matrix = ma.tensor([0.5, -0.5], requires_grad=True), ma.tensor(np.ones((3, 2)), requires_grad=True)
    picture = render(read_graph(matrix + bias, {"bias": bias, "matrix": matrix}))
    rows = re.findall(r'>(value|shape)</text><text class="ma-value"[^>]*>([^<]+)<', picture)
    assert sorted(rows) == [("shape", "(3, 2)"), ("shape", "(3, 2)"), ("value", "[0.5, -0.5]")]


def test_factors_are_those_of_the_product():
    a, b = ma.tensor(2.0, requires_grad=True), ma.tensor(-3.0, requires_grad=True)
    graph = read_graph(a * b, {"a": a, "b": b}, gradient=4.0)
    assert [factors(edge, graph) for edge in graph.edges] == ["4 \u00d7 (-3)", "4 \u00d7 2"]
