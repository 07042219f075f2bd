"""What a card says of a `backward` that raises an error: the rules, which are right, are not blamed for it."""

from __future__ import annotations

import pytest

from autograder.student import check_gradients
from tests.course.planting import solved

BACKWARD = """
def backward(self, gradient=1.0):
    pending = {{self: gradient}}
    for node in {order}:
        grad = pending.pop(node)
        node.grad += grad
        if node.rule is not None:
            for source, share in zip(node.inputs, node.rule(grad)):
                {adds}
MiniTensor.backward = backward
"""
ADDS = "pending[source] = pending.get(source, 0.0) + share"
ORDER = "topological_order(self)"
SLIPS = {
    "nothing is pending at first": BACKWARD.format(order=ORDER, adds="pending[source] += share"),
    "from the leaves on": BACKWARD.format(order=f"{ORDER}[::-1]", adds=ADDS),
    "what is added is thrown away": BACKWARD.format(order=ORDER, adds="pending.get(source, 0.0) + share"),
}


def report_after(change, expressions):
    names = solved("02_scalar_engine")
    exec(change, names)
    return check_gradients(expressions, [(), ()], points=1, engine=names["MiniTensor"]).reports[0]


@pytest.mark.parametrize("slip", SLIPS)
def test_an_error_of_every_operation_is_one_of_backward(slip):
    report = report_after(SLIPS[slip], {"a + b": lambda a, b: a + b, "(a * b).tanh()": lambda a, b: (a * b).tanh()})
    assert report.place.startswith("Every operation that was tried alone raises this error")
    assert report.operations == ("backward",)
    assert not report.diagnosis
    assert not any("rule" in hint for hint in (report.hints[0], report.hints[-1]))


def test_an_error_of_one_rule_stays_where_it_is():
    change = "MiniTensor.__mul__ = lambda a, b: MiniTensor(a.data * b.data, (a, b), '*', lambda grad: {}[grad])"
    report = report_after(change, {"a + b": lambda a, b: a + b, "a * b": lambda a, b: a * b})
    assert report.place.startswith("`*` fails already when it is tried alone")
    assert report.operations == ("*",)
