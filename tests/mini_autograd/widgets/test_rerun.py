"""Numbers that are changed in the graph explorer, and expressions that are typed: the engine itself computes them."""

import gc
import weakref

import numpy as np
import pytest
import torch

import mini_autograd
from mini_autograd.drawing import read_graph
from mini_autograd.widgets import explore
from mini_autograd.widgets.expressions import ExpressionError, names_used, parsed
from mini_autograd.widgets.faults import faults_of
from mini_autograd.widgets.graph_explorer import EXAMPLES
from mini_autograd.widgets.rerun import Engine, Workbench

ENGINES = [mini_autograd, torch]


class Flipped:
    """A student's engine whose product forgets one factor: the picture must keep the mistake."""

    def __init__(self, data, inputs=(), operation="", rule=None):
        self.data, self.grad, self.inputs, self.operation, self.rule = data, 0.0, inputs, operation, rule

    def __add__(self, other):
        return Flipped(self.data + other.data, (self, other), "+", lambda g: (g, g))

    def __mul__(self, other):
        print("a student's debugging")
        return Flipped(self.data * other.data, (self, other), "*", lambda g: (g * other.data, g))


@pytest.mark.parametrize(
    ("operation", "value", "sent", "faults"), [("floor", 2.0, 1.0, 0), ("sin", np.sin(2.5), 1.0, 1)]
)
def test_a_gradient_through_a_step_is_no_fault(operation, value, sent, faults):
    x = Flipped(2.5)
    y = Flipped(value, (x,), operation, lambda g: (g * sent,))
    assert len(faults_of(read_graph(y, {"x": x}))) == faults


def bench_of(engine, build=lambda a, b: (a * b + a).tanh(), a=0.5, b=-0.5):
    inputs = {name: engine.tensor(value, requires_grad=True) for name, value in (("a", a), ("b", b))}
    output = build(**inputs)
    return Workbench(read_graph(output, inputs), Engine(output))


def gradients(bench):
    return {node.name: node.incoming for node in bench.graph.nodes if node.kind == "leaf"}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_graph_with_another_number_is_what_the_engine_computes(engine):
    bench = bench_of(engine)
    assert bench.numbers == {"a": 0.5, "b": -0.5}
    bench.compute("", {"a": 1.25})
    a, b = (torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in (1.25, -0.5))
    (a * b + a).tanh().backward()
    assert gradients(bench) == pytest.approx({"a": float(a.grad), "b": float(b.grad)}, rel=1e-5)
    assert bench.numbers == {"a": 1.25, "b": -0.5}


@pytest.mark.parametrize("engine", ENGINES)
def test_a_number_of_float32_stands_there_as_it_was_written(engine):
    assert bench_of(engine, a=0.9).numbers == {"a": 0.9, "b": -0.5}


def test_a_student_s_mistake_stays_and_what_he_prints_is_not_repeated(capsys):
    inputs = {"a": Flipped(2.0), "b": Flipped(3.0)}
    output = inputs["a"] * inputs["b"] + inputs["a"]
    capsys.readouterr()
    bench = Workbench(read_graph(output, inputs), Engine(output))
    bench.compute("", {"a": 5.0})
    assert gradients(bench) == {"a": 4.0, "b": 1.0}  # a right rule would give 5 for b
    bench.compute("a * b * c", {})
    assert bench.numbers == {"a": 5.0, "b": 3.0, "c": 2.0}
    with pytest.raises(ExpressionError, match="The engine refuses this: TypeError"):
        bench.compute("a - b", {})
    assert bench.expression == "a * b * c"
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("label", EXAMPLES)
def test_examples_are_computed_by_both_engines(engine, label):
    expression, values = EXAMPLES[label]
    bench = bench_of(engine)
    bench.compute(expression, values)
    leaves = {name: torch.tensor(value, dtype=torch.float64, requires_grad=True) for name, value in values.items()}
    tree = {"no_grad": lambda value: value.detach()}
    eval(expression, tree | leaves).backward()
    for name, gradient in gradients(bench).items():
        np.testing.assert_allclose(gradient, leaves[name].grad.numpy(), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(
    "build",
    [
        lambda a, b: (a * b).clamp(min=2.0),
        lambda a, b: mini_autograd.nn.functional.leaky_relu(a * b, 0.3),  # at 6 it looks like any other slope
        lambda a, b: (a * b).reshape(1, 1).sum(),
    ],
)
def test_a_graph_whose_operations_have_options_is_not_offered(build):
    assert bench_of(mini_autograd, build, 3.0, 2.0).numbers == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a +", "not an expression"),
        ("a = 2", "not an expression"),
        ("__import__('os')", "cannot be used"),
        ("a.__class__", "cannot be used"),
        ("(lambda: a)()", "cannot be used"),
        ("a.data", "cannot be used"),
        ("'text' * a", "cannot be used"),
        ("a.no_such()", "no operation 'no_such'"),
        ("2 + 3", "not a tensor"),
        ("a^2", "is not a power here: write a"),
        ("a[3]", "The engine refuses this: IndexError"),
        ("", "not an expression"),
        ("(" * 500 + "a" + ")" * 500, "not an expression"),
    ],
)
def test_what_is_no_expression_is_refused_and_changes_nothing(text, said):
    with pytest.raises(ExpressionError, match=said):
        explore(text)
    shown = explore("a * b")
    before = shown.picture
    shown.wanted = {"expression": text, "values": {}}
    if text:
        assert said in shown.computed["problem"]
    assert shown.picture == before


def test_names_are_taken_in_the_order_of_reading():
    assert names_used(parsed("tanh(w * x) + b.exp() - w[0] + x.sum(axis)")) == ("w", "x", "b", "axis")


def test_other_numbers_leave_the_boxes_and_another_expression_starts_anew():
    shown = explore("(a * b + a).tanh()", {"a": 0.5, "b": -0.5}, predict=True)
    picture, shown.step = shown.picture, 6
    shown.predictions = {"5": ["1"]}
    shown.wanted = {"expression": "(a * b + a).tanh()", "values": {"a": 2.0}}
    assert (shown.picture, shown.step, shown.predictions) == (picture, 6, {})
    assert shown.numbers["v"] == pytest.approx([2, -0.5, -1, 1, np.tanh(1)], rel=1e-6)
    assert shown.computed["leaves"] == [[0, "a", 2.0], [1, "b", -0.5]]
    shown.wanted = {"expression": "a / b", "values": {}}
    assert shown.picture != picture
    assert (shown.step, shown.numbers["v"]) == (0, [2, -0.5, -4])


def test_the_explorer_keeps_no_tensor_of_the_graph_alive():
    a = mini_autograd.tensor(2.0, requires_grad=True)
    b = a * a
    watched = weakref.ref(b)
    shown = explore(b, {"a": a})
    del b
    gc.collect()
    assert watched() is None
    assert shown.computed["leaves"] == [[0, "a", 2.0]]
