"""A failing check shows its expression on the graph, at the edge that is wrong, for several engines."""

import numpy as np
import pytest

from autograder.checks.gradients import gradients_report
from autograder.runs.context import check_context, current
from mini_autograd.drawing.formatting import TIMES
from tests.autograder import student_engines as students


class Odd(students.closures()):
    def tanh(self):
        return self._unary("tanh", np.tanh, lambda a, out: 0.9 - out * out)


def chain(a, b):
    return ((a * b).tanh() + a).exp()


def product(a, b):
    return a * b + a


FAILURES = {
    "two operands swapped": (students.closures(("operands_swapped", "*")), product, [(), ()], f"a {TIMES} b"),
    "a rule of its own": (Odd, chain, [(), ()], "tanh(v1)"),
    "a gradient that is overwritten": (
        students.closures(("assigned_not_accumulated", "all")),
        product,
        [(), ()],
        "v1 + a",
    ),
    "arrays that are not summed back": (
        students.arrays(("broadcast_not_summed", "all")),
        lambda a, b: a * b,
        [(2, 3), (3,)],
        "?(a, b)",
    ),
}


def shown_for(engine, expression, inputs):
    report = gradients_report(engine, expression, inputs, current(), points=None, name=None, accumulates=True)
    return report, report.on_the_graph()


@pytest.mark.parametrize("name", FAILURES)
def test_the_graph_opens_where_the_gradient_goes_wrong(name):
    engine, expression, inputs, where = FAILURES[name]
    report, shown = shown_for(engine, expression, inputs)
    assert not report.passed
    lines = shown.steps[shown.step]["lines"]
    assert lines[0].startswith("Backward through")
    assert f"= {where}. " in lines[0]
    assert lines[-1].startswith("This is where it goes wrong: ")
    assert shown.wrong
    assert shown.opened_by.startswith("Show on the graph: ")


def keeps_leaves_alone(engine):
    """The engine, which afterward keeps the gradients of leaves alone, as PyTorch does."""
    backward = engine.backward

    def forgetting(self, *gradient):
        backward(self, *gradient)
        nodes = [self]
        while nodes:
            node = nodes.pop()
            nodes += node.inputs
            if node.inputs:
                node.grad = None

    engine.backward = forgetting
    return engine


def test_an_inner_gradient_that_nobody_knows_may_be_the_wrong_one():
    engine = keeps_leaves_alone(students.pending_dict(("assigned_not_accumulated", "pending")))
    _, shown = shown_for(engine, lambda a, b: (h := a * b).exp() * h, [(), ()])
    said = [line for step in shown.steps for line in step["lines"] if "it goes wrong" in line.lower()]
    assert said
    assert all(line.startswith("It goes wrong here or in a step before: ") for line in said)


def test_the_numbers_can_be_checked_on_paper():
    _, shown = shown_for(students.closures(("operands_swapped", "*")), product, [(), ()])
    numbers = [abs(value) for _, _, value in shown.computed["leaves"]]
    assert numbers
    assert all(2 * number == int(2 * number) for number in numbers)


def test_a_right_engine_has_no_wrong_edge():
    report, shown = shown_for(students.closures(), chain, [(), ()])
    assert report.passed
    assert shown is None


def test_grading_makes_no_graph():
    with check_context(3, graded=True):
        report = gradients_report(Odd, chain, [(), ()], current(), points=2, name=None, accumulates=True)
    assert report.on_the_graph is None
