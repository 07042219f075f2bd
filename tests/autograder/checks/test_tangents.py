"""`check_tangents` accepts a right forward mode, names likely mistakes, and is not deceived by differences."""

import numpy as np
import pytest

from autograder.judge.judge import judge_notebook
from autograder.runs.context import check_context
from autograder.runs.errors import CheckFailed
from autograder.student import check_tangents, positive
from tests.autograder.judge.notebooks import notebook

PAIRS = [(2, 3), (2, 3)]


class Dual:
    """A number or array and its tangent, complete enough for the expressions below."""

    def __init__(self, value, tangent):
        self.value, self.tangent = np.asarray(value, dtype=float), np.asarray(tangent, dtype=float)

    def __add__(self, other):
        return type(self)(self.value + other.value, self.tangent + other.tangent)

    def __mul__(self, other):
        return type(self)(self.value * other.value, self.tangent * other.value + self.value * other.tangent)

    def tanh(self):
        value = np.tanh(self.value)
        return type(self)(value, (1 - value**2) * self.tangent)

    def log(self):
        return type(self)(np.log(self.value), self.tangent / self.value)

    def sum(self, dim=None):
        return type(self)(self.value.sum(dim), self.tangent.sum(dim))


def jvp_with(kind, changed=lambda value, tangent: (value, tangent)):
    def jvp(function, inputs, tangents):
        output = function(*map(kind, inputs, tangents))
        return changed(output.value, output.tangent)

    return jvp


def by_differences(function, inputs, tangents):
    """A central difference instead of forward mode."""

    def value(step):
        return function(*(Dual(x + step * v, v * 0) for x, v in zip(inputs, tangents, strict=True))).value

    h = 1e-5
    return value(0), (value(h) - value(-h)) / (2 * h)


class SecondConstant(Dual):
    def __mul__(self, other):
        return SecondConstant(self.value * other.value, self.tangent * other.value)


class Swapped(Dual):
    def __mul__(self, other):
        return Swapped(self.value * other.value, self.tangent * self.value + other.value * other.tangent)


class TanhNotSquared(Dual):
    def tanh(self):
        value = np.tanh(self.value)
        return TanhNotSquared(value, (1 - value) * self.tangent)


def product(a, b):
    return a * b


def squashed(a, b):
    return (a * b).tanh()


def changing(function, inputs, tangents):
    output = function(*map(Dual, inputs, tangents))
    tangents[0][...] = 0.0
    return output.value, output.tangent


WRONG = {
    "one input constant": (jvp_with(SecondConstant), product, "the tangent of `b` has no effect"),
    "slopes swapped": (jvp_with(Swapped), product, "the slopes, or the tangents, of the two inputs"),
    "sign": (jvp_with(Dual, lambda v, t: (v, -t)), squashed, "the sign of the tangent is wrong"),
    "value twice": (jvp_with(Dual, lambda v, t: (v, v)), squashed, "the value was returned instead of the tangent"),
    "direction ignored": (jvp_with(lambda x, v: Dual(x, np.ones_like(x))), product, "moves at rate 1"),
    "unknown": (jvp_with(TanhNotSquared), squashed, ""),
    "a wrong value": (jvp_with(Dual, lambda v, t: (v + 1e-6, t)), squashed, ""),
    "a wrong shape": (jvp_with(Dual, lambda v, t: (v, t.sum(0))), squashed, ""),
    "differences": (by_differences, squashed, ""),
    "an input changed": (changing, product, ""),
    "no pair": (jvp_with(Dual, lambda v, t: t), squashed, ""),
    "NaN": (jvp_with(Dual, lambda v, t: (v, t * np.nan)), squashed, ""),
    "objects": (lambda function, inputs, tangents: (object(), {"a": 1}), product, ""),
    "exit": (lambda *given: exit(), product, ""),
    "nothing": (lambda *given: None, product, ""),
}


@pytest.mark.parametrize("seed", range(10))
def test_a_right_forward_mode_passes(seed):
    expressions = {"a * b": product, "tanh": squashed, "reduced": lambda a, b: (a * b + a).sum(0)}
    with check_context(seed):
        for inputs in (PAIRS, [(3, 1), (4,)], [(), ()]):
            some = expressions if inputs == PAIRS else {"a * b": product, "tanh": squashed}
            assert check_tangents(jvp_with(Dual), some, inputs, points=3) == 3
        assert check_tangents(jvp_with(Dual), lambda a: a.log() * a, [positive((3,))], points=1) == 1


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_one_gets_nothing_and_a_likely_mistake_is_named(name):
    jvp, expression, said = WRONG[name]
    with check_context(1) as context:
        assert check_tangents(jvp, expression, PAIRS, points=2) == 0
    (report,) = context.reports
    assert said in report.diagnosis
    assert bool(report.diagnosis) == bool(said)
    with check_context(1, graded=True, hidden=True) as context:
        check_tangents(jvp, expression, PAIRS, points=2)
    text = context.reports[0].text()
    assert expression.__name__ not in text
    assert "tangent of" not in text.replace(said, "")


def test_each_expression_is_worth_the_same_and_without_points_a_check_raises():
    expressions = {"a * b": product, "tanh": squashed}
    assert check_tangents(jvp_with(TanhNotSquared), expressions, PAIRS, points=4) == 2
    with pytest.raises(CheckFailed):
        check_tangents(jvp_with(TanhNotSquared), squashed, PAIRS)


@pytest.mark.sandbox
@pytest.mark.parametrize(
    ("tangent", "shows"), [(lambda t: 2 * t, True), (lambda t: None, False), (lambda t: [[1.0], [1.0, 2.0]], False)]
)
def test_a_wrong_tangent_is_shown_if_it_is_an_array_of_numbers(tangent, shows):
    credit = check_tangents(jvp_with(Dual, lambda v, t: (v, tangent(t))), product, PAIRS, points=1)
    assert credit == 0
    assert ("tangent, yours" in credit.reports[0].text()) == shows


@pytest.mark.parametrize(("slope", "points"), [("2 * value", 2), ("1 + value", 0)])
def test_a_submission_is_checked_in_its_sandbox(slope, points):
    solution = f"""class Dual:
    def __init__(self, value, tangent): self.value, self.tangent = value, tangent
    def square(self):
        value = self.value
        return Dual(value * value, {slope} * self.tangent)
def jvp(function, inputs, tangents):
    output = function(*map(Dual, inputs, tangents))
    return output.value, output.tangent"""
    test = "# test\nfrom autograder.student import check_tangents\n"
    test += "credit = check_tangents(jvp, lambda a: a.square(), [(3,)], points=2)\ncredit"
    assert judge_notebook(notebook(solution, test)).cells[0].points == points
