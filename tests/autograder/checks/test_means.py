"""Right gradients that were found by other means than the chain rule do not count, and the report says why."""

import sys

import numpy as np
import pytest

from autograder.checks import means
from autograder.checks.context import check_context
from autograder.student import check_gradients

RULES = {
    "chain rule": lambda f, derivative, x: derivative(x),
    "central differences": lambda f, derivative, x: (f(x + 1e-5) - f(x - 1e-5)) / 2e-5,
    "differences of fourth order": lambda f, derivative, x: (
        (8 * (f(x + 1e-3) - f(x - 1e-3)) - f(x + 2e-3) + f(x - 2e-3)) / 12e-3
    ),
    "complex step": lambda f, derivative, x: f(x + 1e-30j).imag / 1e-30,
    "forward once more for every number": lambda f, derivative, x: np.reshape(
        [derivative(number) + 0 * f(number) for number in np.repeat(np.ravel(x), 3)][::3], np.shape(x)
    ),
    "forward once more": lambda f, derivative, x: derivative(x) + 0 * f(x),
    "complex step, by its name": lambda f, derivative, x: np.imag(f(np.asarray(x, np.complex128) + COMPLEX)) / 1e-30,
}
COMPLEX = 1e-30j


def forward(x):
    return np.tanh(x)


PASSES = {"chain rule", "forward once more"}
REASONS = {
    "forward once more for every number": "a difference quotient",
    "complex step": "complex numbers",
    "complex step, by its name": "complex numbers",
}


def engine_with(rule):
    """An engine of arrays whose rule for tanh is found in this way."""

    class MiniTensor:
        def __init__(self, data, requires_grad=False, inputs=()):
            self.data, self.grad, self.inputs = np.asarray(data, dtype=float), None, inputs

        def tanh(self):
            x = self.data
            return MiniTensor(
                forward(x), inputs=[(self, lambda g: g * rule(forward, lambda x: 1 - np.tanh(x) ** 2, x))]
            )

        def __mul__(self, other):
            a, b = self.data, other.data
            return MiniTensor(a * b, inputs=[(self, lambda g: g * b), (other, lambda g: g * a)])

        def backward(self, gradient=1.0):
            self.grad = gradient if self.grad is None else self.grad + gradient
            for source, share in self.inputs:
                source.backward(share(np.asarray(gradient)))

    return MiniTensor


def checked(engine):
    reports = []
    with check_context(12345, graded=True, hidden=False, reports=reports):
        credit = check_gradients({"tanh": lambda a, b: a.tanh() * b}, [(5, 3), (5, 3)], points=2, engine=engine)
    return float(credit), reports[0].message


@pytest.mark.parametrize("name", RULES)
def test_only_the_chain_rule_counts(name):
    points, message = checked(engine_with(RULES[name]))
    assert points == (2 if name in PASSES else 0), message
    assert REASONS.get(name, "") in message
    if name in REASONS:
        assert "backpropagation did not find them" in message


@pytest.mark.parametrize("entry", [None, [], {}, {"forward": "x"}, {"forward": 1, "repeated": None}, {"forward": -1}])
def test_what_the_student_s_process_says_of_itself_may_be_anything(entry):
    assert means._reason(entry, 30) == ""


def test_an_engine_that_takes_the_profiler_away_is_refused():
    kind = engine_with(RULES["chain rule"])
    before = kind.backward

    def backward(self, gradient=1.0):
        sys.setprofile(None)
        before(self, gradient)

    kind.backward = backward
    points, message = checked(kind)
    assert points == 0
    assert "profiler" in message
