"""Graphs are read from every kind of tensor without changing it, and drawn so that nothing overlaps or is clipped."""

import math
import random
import re
from itertools import pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

import mini_autograd as ma
from mini_autograd.drawing import GraphTooLargeError, draw, read_graph
from mini_autograd.drawing.formatting import describe, operation_formula, short, symbol, text_width
from mini_autograd.drawing.layout import assign_layers, count_crossings, fit, lay_out


class MiniTensor:
    """A student's engine in a few lines; `rule` returns what goes to each input."""

    def __init__(self, data, inputs=(), operation="", rule=None):
        self.data, self.grad, self.inputs, self.operation = data, 0.0, inputs, operation
        if rule is not None:
            self.rule = rule

    def __add__(self, other):
        return MiniTensor(self.data + other.data, (self, other), "+", lambda g: (g, g))

    def __mul__(self, other):
        return MiniTensor(self.data * other.data, (self, other), "*", lambda g: (g * other.data, g * self.data))

    def tanh(self):
        t = math.tanh(self.data)
        return MiniTensor(t, (self,), "tanh", lambda g: (g * (1 - t * t),))


class Micrograd:
    """The same engine with micrograd's names, sets for inputs and no rule that can be called."""

    def __init__(self, data, prev=(), op=""):
        self.data, self.grad, self._prev, self._op = data, 0.0, prev, op


def by_name(graph):
    return {node.name: node for node in graph.nodes}


def fan_out():
    a, b = MiniTensor(2.0), MiniTensor(3.0)
    return (a + b) * a, {"a": a, "b": b}


def test_a_leaf_used_twice_is_one_node_and_inputs_come_before_results():
    output, names = fan_out()
    graph = read_graph(output, names)
    assert [node.name for node in graph.nodes] == ["a", "b", "v1", "v2"]
    assert [(edge.source, edge.target) for edge in graph.edges] == [(0, 2), (1, 2), (2, 3), (0, 3)]
    assert [node.formula for node in graph.nodes] == ["", "", "a + b", "v1 \u00d7 a"]
    assert all(source < node.index for node in graph.nodes for source in node.inputs)


def test_backward_is_replayed_with_the_students_own_rules():
    output, names = fan_out()
    graph = read_graph(output, names)
    assert {name: node.incoming for name, node in by_name(graph).items()} == {"a": 7.0, "b": 2.0, "v1": 2.0, "v2": 1.0}
    assert [(edge.local, edge.contribution) for edge in graph.edges_into(3)] == [(2.0, 2.0), (5.0, 5.0)]
    assert by_name(graph)["a"].stored == 0.0, "what the object holds is kept apart"


def test_a_wrong_rule_shows_as_what_it_is():
    a, b = MiniTensor(2.0), MiniTensor(3.0)
    swapped = MiniTensor(6.0, (a, b), "*", lambda g: (g * a.data, g * b.data))
    assert [edge.contribution for edge in read_graph(swapped).edges] == [2.0, 3.0]


@pytest.mark.parametrize(
    "rule",
    [
        pytest.param(lambda g: 1 / 0, id="raises"),
        pytest.param(lambda g: (g,), id="too few gradients"),
        pytest.param(lambda g: ("x", None), id="no numbers"),
        pytest.param(lambda: None, id="takes no gradient"),
    ],
)
def test_a_broken_rule_leaves_numbers_out(rule):
    a, b = MiniTensor(2.0), MiniTensor(3.0)
    a.grad = 4.0
    graph = read_graph(MiniTensor(6.0, (a, b), "*", rule), {"a": a})
    assert [edge.contribution for edge in graph.edges] == [None, None]
    assert by_name(graph)["a"].gradient == 4.0


def test_a_rule_that_adds_into_grad_leaves_no_trace():
    a = MiniTensor(2.0)
    output = MiniTensor(4.0, (a,), "double")
    output.rule = lambda g: setattr(a, "grad", a.grad + 2 * g)
    read_graph(output)
    assert a.grad == 0.0


def test_micrograds_names_are_understood_and_the_textbook_fills_in():
    a, b = Micrograd(2.0), Micrograd(3.0)
    c = Micrograd(8.0, {a}, "**3")
    graph = read_graph(Micrograd(24.0, (c, b), "*"), {"a": a, "b": b, "c": c})
    assert by_name(graph)["a"].incoming == pytest.approx(36.0)
    assert by_name(graph)["c"].formula == "a**3"


@pytest.mark.parametrize(
    ("operation", "inputs", "out", "expected"),
    [
        ("+", (2.0, 3.0), 5.0, (1.0, 1.0)),
        ("-", (2.0, 3.0), -1.0, (1.0, -1.0)),
        ("*", (2.0, 3.0), 6.0, (3.0, 2.0)),
        ("/", (3.0, 2.0), 1.5, (0.5, -0.75)),
        ("-", (2.0,), -2.0, (-1.0,)),
        ("neg", (2.0,), -2.0, (-1.0,)),
        ("relu", (-2.0,), 0.0, (0.0,)),
        ("tanh", (0.5,), math.tanh(0.5), (1 - math.tanh(0.5) ** 2,)),
        ("exp", (1.0,), math.e, (math.e,)),
        ("**", (3.0,), 9.0, (6.0,)),
        ("**", (1.0,), 1.0, (None,)),
        ("**-1", (2.0,), 0.5, (-0.25,)),
        ("**", (2.0, 3.0), 8.0, (12.0, 8 * math.log(2))),
        ("mystery", (2.0,), 5.0, (None,)),
    ],
)
def test_textbook_derivatives(operation, inputs, out, expected):
    leaves = tuple(MiniTensor(value) for value in inputs)
    edges = read_graph(MiniTensor(out, leaves, operation)).edges
    assert [edge.local for edge in edges] == [value if value is None else pytest.approx(value) for value in expected]


@pytest.mark.parametrize(
    ("base", "exponent", "formula"),
    [
        (-1.5, 2, "x**2"),
        (4.0, 0.5, "x**0.5"),
        (2.0, -1, "x**(-1)"),
        (1.0, 3, "x**n"),
        (0.0, 2, "x**n"),
        (3.0, 0, "x**0"),
    ],
)
def test_the_exponent_is_found_from_base_and_result(base, exponent, formula):
    x = MiniTensor(base)
    assert read_graph(MiniTensor(base**exponent, (x,), "**"), {"x": x}).output.formula == formula


def test_numbers_among_the_inputs_become_constants():
    graph = read_graph(MiniTensor(9.0, (MiniTensor(3.0), 3.0), "*"))
    assert [node.kind for node in graph.nodes] == ["leaf", "constant", "operation"]


@pytest.mark.parametrize("library", [torch, ma], ids=["torch", "mini_autograd"])
def test_a_constant_has_the_name_of_the_tensor_whose_array_was_saved(library):
    weight = library.ones(2, 3, requires_grad=True)
    x, same_numbers = library.ones(4, 2), library.ones(4, 2)
    graph = read_graph((x @ weight).tanh() * library.ones(4, 3), {"same": same_numbers, "x": x, "weight": weight})
    assert [node.name for node in graph.nodes if node.kind == "constant"] == ["x", "const1"]
    assert graph.nodes[2].formula == "x @ weight"


def torch_cases():
    a, b = torch.tensor(2.0, requires_grad=True), torch.tensor(-3.0, requires_grad=True)
    yield "scalars", (a + b) * a, {"a": a, "b": b}
    yield "constants", (a * b + 3).tanh() * a**2 / 7 - 1, {"a": a, "b": b}
    generator = torch.Generator().manual_seed(0)
    x, w = torch.randn(5, 4, generator=generator), torch.randn(4, 3, generator=generator, requires_grad=True)
    bias = torch.randn(3, generator=generator, requires_grad=True)
    yield "broadcast", torch.relu(x @ w + bias).sum(), {"w": w, "bias": bias}
    yield "repeated", (w[[0, 0, 1]] * bias).exp().mean(), {"w": w, "bias": bias}
    yield "linear", torch.nn.functional.linear(x, w.T, bias).pow(2).mean(), {"w": w, "bias": bias}
    yield "unbound", w.unbind(0)[1].sum() * w.unbind(0)[2].prod(), {"w": w}
    yield "bfloat16", (w.bfloat16() * 2).float().sum(), {"w": w}


@pytest.mark.parametrize(("output", "names"), [pytest.param(o, n, id=i) for i, o, n in torch_cases()])
def test_pytorch_gradients_agree_with_autograd_and_leave_no_trace(output, names):
    graph = by_name(read_graph(output, names))
    assert all(leaf.grad is None for leaf in names.values())
    expected = torch.autograd.grad(output, list(names.values()), retain_graph=True)
    for name, gradient in zip(names, expected, strict=True):
        np.testing.assert_allclose(graph[name].incoming, gradient.numpy(), rtol=1e-5, atol=1e-6)


def test_pytorch_values_are_found_where_they_can_be():
    a, b = torch.tensor(2.0, requires_grad=True), torch.tensor(-3.0, requires_grad=True)
    graph = read_graph((a * b + 3).tanh() * a**2, {"a": a, "b": b})
    values = {node.formula or node.name: node.value for node in graph.nodes}
    assert values["a \u00d7 b"] == -6.0
    assert values["v1 + 3"] == pytest.approx(-3.0, abs=1e-4)
    assert values["a**2"] == 4.0
    assert None not in values.values()


@pytest.mark.parametrize("name", ["sin", "log1p", "sqrt", "square", "floor", "expm1", "abs"])
def test_functions_that_numpy_has_are_computed(name):
    a = torch.tensor(2.0, requires_grad=True)
    middle = getattr(a * 3, name)()
    graph = read_graph(middle + 1.0, {"a": a})
    assert graph.nodes[graph.nodes[-1].inputs[0]].value == pytest.approx(middle.item())


def test_pytorch_retained_gradients_and_hooks_are_left_alone():
    a = torch.tensor(2.0, requires_grad=True)
    calls = []
    c = a * 3
    c.retain_grad()
    c.register_hook(calls.append)
    read_graph(c * c)
    assert c.grad is None
    assert calls == []


def test_pytorch_graph_that_was_freed_still_gives_a_picture():
    a = torch.tensor(2.0, requires_grad=True)
    output = (a * a).exp()
    output.backward()
    graph = read_graph(output, {"a": a})
    assert by_name(graph)["a"].gradient == pytest.approx(4 * math.exp(4))
    assert "a \u00d7 a" in draw(graph)


def own_cases():
    a, b = ma.tensor(2.0, requires_grad=True), ma.tensor(-3.0, requires_grad=True)
    yield "scalars", (a + b) * a, {"a": a, "b": b}
    a, b = a.detach().requires_grad_(), b.detach().requires_grad_()
    yield "constants", (a * b + 3).tanh() * a**2 / 7 - 1, {"a": a, "b": b}
    x, w = ma.tensor(np.linspace(-1, 1, 20).reshape(5, 4)), ma.tensor(np.ones((4, 3)), requires_grad=True)
    bias = ma.tensor(np.array([0.1, -0.2, 0.3]), requires_grad=True)
    yield "broadcast", (x @ w + bias).relu().sum(), {"w": w, "bias": bias}


@pytest.mark.parametrize("case", ["scalars", "constants", "broadcast"])
def test_graphs_of_mini_autograd_agree_with_its_backward(case):
    output, names = next((output, names) for name, output, names in own_cases() if name == case)
    graph = by_name(read_graph(output, names))
    assert all(leaf.grad is None for leaf in names.values())
    output.backward()
    for name, leaf in names.items():
        np.testing.assert_allclose(graph[name].incoming, leaf.grad.numpy(), rtol=1e-6)


def test_a_students_graph_of_arrays():
    a, b = MiniTensor(np.array([1.0, 2.0])), MiniTensor(np.array([3.0, 5.0]))
    graph = by_name(read_graph(a * b, {"a": a, "b": b}))
    assert graph["a"].incoming.tolist() == [3.0, 5.0]
    assert graph["v1"].shape == (2,)


def test_a_rule_that_writes_into_what_it_is_given_changes_nothing_else():
    x = MiniTensor(np.array([1.0, 2.0]))

    def rule(grad):
        grad *= 3.0
        return (grad,)

    gradient = np.array([1.0, 10.0])
    graph = read_graph(MiniTensor(x.data * 3.0, (x,), "*3", rule), {"x": x}, gradient=gradient)
    assert gradient.tolist() == [1.0, 10.0], "a check draws its failing expression with numbers that it keeps"
    assert graph.nodes[-1].incoming.tolist() == [1.0, 10.0]
    assert graph.nodes[0].incoming.tolist() == [3.0, 30.0]


def test_named_intermediates_of_pytorch_get_their_name():
    a = torch.tensor(2.0, requires_grad=True)
    c = a + 1
    assert "c = a + 1" in draw(c * a, {"a": a, "c": c})


def test_a_vector_output_needs_a_cotangent():
    a = torch.tensor([1.0, 2.0], requires_grad=True)
    assert by_name(read_graph(a * 2, {"a": a}))["a"].incoming.tolist() == [2.0, 2.0]
    given = read_graph(a * 2, {"a": a}, gradient=torch.tensor([1.0, -1.0]))
    assert by_name(given)["a"].incoming.tolist() == [2.0, -2.0]


def test_a_tensor_without_numbers_beside_a_graph_does_no_harm():
    a = torch.tensor(2.0, requires_grad=True)
    names = {"a": a, "empty": torch.ones(3, device="meta")}
    assert by_name(read_graph(a * 3, names))["a"].value == 2.0
    assert read_graph(names["empty"]).nodes[0].value is None


@pytest.mark.parametrize("leaf", [MiniTensor(2.0), torch.tensor(2.0, requires_grad=True), torch.tensor(2.0)])
def test_a_lone_leaf_is_a_graph(leaf):
    assert "<svg" in draw(leaf, {"x": leaf})


@pytest.mark.parametrize("thing", [3.0, "text", None, np.ones(3)])
def test_other_objects_are_refused(thing):
    with pytest.raises(TypeError, match="no graph behind"):
        read_graph(thing)


def test_a_cycle_is_refused():
    a = MiniTensor(1.0)
    b = MiniTensor(1.0, (a,), "neg")
    a.inputs = (b,)
    with pytest.raises(ValueError, match="depends on itself"):
        read_graph(b)


@pytest.mark.slow
def test_a_hundred_thousand_nodes_are_read_but_not_drawn():
    node = MiniTensor(1.0)
    for _ in range(100_000):
        node = MiniTensor(1.0, (node,), "neg")
    assert len(read_graph(node).nodes) == 100_001
    with pytest.raises(GraphTooLargeError, match="100,001 nodes"):
        draw(node)
    while node.inputs:  # freeing a long chain of references in one go would overflow the C stack
        node = node.inputs[0]


@pytest.mark.parametrize(
    ("value", "text"),
    [(1 / 3, "0.333"), (12.0, "12"), (-0.0, "0"), (12.3456, "12.35"), (1.2346e-7, "1.23e-7"), (math.nan, "nan")],
)
def test_short_numbers(value, text):
    assert short(value) == text


@pytest.mark.parametrize(
    ("name", "sign"), [("MulBackward0", "*"), ("Multiply", "*"), ("**2", "**2"), ("ReluBackward0", "relu"), ("-", "-")]
)
def test_signs(name, sign):
    assert symbol(name) == sign


def test_formulas_and_descriptions():
    assert operation_formula("cat", ["a", "b", "c", "d"]) == "cat(a, \u2026, d)"
    assert describe(np.array([[1.0, 2.0], [3.0, 1 / 3]])) == "[[1, 2], [3, 0.333]]"
    assert describe(np.ones((9, 9))) == "an array of shape (9, 9) with norm 9"


def random_graph(count, seed):
    rng = random.Random(seed)
    edges = [(source, node) for node in range(3, count) for source in rng.sample(range(max(0, node - 9), node), 2)]
    return [(rng.uniform(60, 150), 64.0)] * count, edges


def points(route, steps=12):
    start = route.start
    for first, second, end in route.pieces:
        for step in range(steps + 1):
            t = step / steps
            weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
            yield tuple(
                sum(w * p[axis] for w, p in zip(weights, (start, first, second, end), strict=True)) for axis in (0, 1)
            )
        start = end


@pytest.mark.parametrize("direction", ["right", "down"])
@pytest.mark.parametrize("seed", range(6))
def test_boxes_do_not_overlap_and_no_line_runs_through_a_box(seed, direction):
    sizes, edges = random_graph(30, seed)
    layout = lay_out(sizes, edges, direction=direction)
    for i, a in enumerate(layout.boxes):
        assert a.x >= 0
        assert a.y >= 0
        assert a.x + a.width <= layout.width
        assert a.y + a.height <= layout.height
        for b in layout.boxes[:i]:
            apart = a.x + a.width <= b.x or b.x + b.width <= a.x or a.y + a.height <= b.y or b.y + b.height <= a.y
            assert apart
    for (source, target), route in zip(edges, layout.routes, strict=True):
        on_the_line = list(points(route))
        for number, box in enumerate(layout.boxes):
            slack = 1.0 if number in (source, target) else 0.0
            for x, y in on_the_line:
                inside_x = box.x + slack < x < box.x + box.width - slack
                assert not (inside_x and box.y + slack < y < box.y + box.height - slack)


def test_leaves_stand_next_to_their_consumer_and_lines_point_forward():
    edges = [(0, 1), (1, 2), (2, 3), (3, 5), (4, 5)]
    assert assign_layers(6, edges) == [0, 1, 2, 3, 3, 4]
    _, edges = random_graph(60, 1)
    layers = assign_layers(60, edges)
    assert all(layers[source] < layers[target] for source, target in edges)


def test_crossings_are_removed_where_they_can_be():
    sizes = [(80.0, 60.0)] * 6
    layout = lay_out(sizes, [(0, 5), (1, 4), (2, 3)])
    order = [sorted(range(3), key=lambda n: layout.boxes[n].y), sorted(range(3), key=lambda n: layout.boxes[5 - n].y)]
    assert order[0] == order[1]
    assert count_crossings([], []) == 0


def test_fit_keeps_gaps_and_moves_as_little_as_it_can():
    assert fit([(0.0, 1.0), (10.0, 1.0)], [5.0]) == [0.0, 10.0]
    assert fit([(0.0, 1.0), (0.0, 1.0)], [4.0]) == [-2.0, 2.0]
    random_wishes = [(random.Random(n).uniform(-50, 50), 1.0) for n in range(20)]
    assert all(b - a >= 7.0 - 1e-9 for a, b in pairwise(fit(random_wishes, [7.0] * 19)))


def test_svg_is_well_formed_self_contained_and_text_fits_its_box():
    hostile = MiniTensor(1e-7)
    output = MiniTensor(-0.123456, (hostile,), "<script>&'\"")
    output.grad = -123456.789
    svg = draw(output, {"a_very_long_name_that_nobody_should_use & <b>": hostile})
    root = ElementTree.fromstring(svg)
    assert "<script>" not in svg
    assert not re.search(r"(href|src|url\()", svg)
    for group in root.iter("{http://www.w3.org/2000/svg}g"):
        boxes = [item for item in group if item.get("class") == "ma-box"]
        if not boxes:
            continue
        width = float(boxes[0].get("width"))
        for text in group.iter("{http://www.w3.org/2000/svg}text"):
            length, at = (
                text_width(text.text or "", 12.5 if text.get("class") == "ma-title" else 12),
                float(text.get("x")),
            )
            left = {"ma-title": at - length / 2, "ma-label": at}.get(text.get("class"), at - length)
            assert left >= 0
            assert left + length <= width


def test_a_broadcast_that_a_rule_leaves_to_the_backward_pass_is_summed_back():
    x, bias, factor = MiniTensor(np.ones((3, 2))), MiniTensor(np.ones(2)), MiniTensor(np.array(2.0))
    graph = read_graph(
        x * factor + bias, {"x": x, "bias": bias, "factor": factor}, gradient=np.arange(6.0).reshape(3, 2)
    )
    nodes = by_name(graph)
    assert nodes["bias"].incoming.tolist() == [6.0, 9.0]
    assert nodes["factor"].incoming == 15.0
    assert [np.shape(edge.contribution) for edge in graph.edges_into(nodes["v2"].index)] == [(3, 2), (2,)]
