"""A card says what wrong results have in common: a factor, an order or too few digits; otherwise nothing."""

from __future__ import annotations

import numpy as np
import pytest

from autograder.localize import rule_patterns
from autograder.runs.context import check_context
from autograder.runs.expected import DRAWS
from autograder.student import between, check_function, check_gradients, check_handwritten_gradient
from tests.autograder import student_engines_arrays as arrays
from tests.autograder.student_engines_operations import WRONG

NEGATIVE = between(-3.0, -1.0)


def right(x, y):
    s = x * y + x
    return 2 * s * (y + 1), 2 * s * x


def estimated(x, y, h=1e-5):
    value = lambda x, y: (x * y + x) ** 2  # noqa: E731
    return (value(x + h, y) - value(x - h, y)) / (2 * h), (value(x, y + h) - value(x, y - h)) / (2 * h)


def one_sided(x, y, h=1e-6):
    value = lambda x, y: (x * y + x) ** 2  # noqa: E731
    return (value(x + h, y) - value(x, y)) / h, (value(x, y + h) - value(x, y)) / h


SLIPS = {
    "a factor of 2 is forgotten": (lambda x, y: [g / 2 for g in right(x, y)], "`x` and `y` have half the right size"),
    "one is counted twice": (lambda x, y: (right(x, y)[0], 2 * right(x, y)[1]), "for `y` has twice the right size"),
    "a sign": (lambda x, y: (-right(x, y)[0], right(x, y)[1]), "for `x` has the right size and the wrong sign"),
    "nothing arrives": (lambda x, y: (right(x, y)[0], 0.0), "for `y` has the value 0 at every input that was tried"),
    "another factor": (lambda x, y: (3 * right(x, y)[0], right(x, y)[1]), "for `x` has 3 times the right size"),
    "another order": (lambda x, y: right(x, y)[::-1], "in the wrong order: `x` got that of `y`, `y` got that of `x`."),
    "an estimate": (estimated, "digits. Possible causes: an estimate by central differences, too large a step, or"),
    "a coarse estimate": (one_sided, "only about 5 digits. Possible causes: an estimate by one-sided"),
}
OTHERS = {
    "two factors": lambda x, y: (2 * right(x, y)[0], 3 * right(x, y)[1]),
    "one and the same for both": lambda x, y: (right(x, y)[0], right(x, y)[0]),
    "too few": lambda x, y: right(x, y)[:1],
    "no number": lambda x, y: (float("nan"), right(x, y)[1]),
    "an error": lambda x, y: right(x, None),
}


def check(function):
    credit = check_handwritten_gradient(function, lambda x, y: (x * y + x) ** 2, [NEGATIVE, NEGATIVE], points=2)
    return credit, credit.reports[0]


@pytest.mark.parametrize("name", SLIPS)
def test_what_all_wrong_gradients_have_in_common_is_said(name):
    slip, said = SLIPS[name]
    credit, report = check(slip)
    assert credit < 2
    assert said in report.diagnosis


@pytest.mark.parametrize("name", OTHERS)
def test_nothing_is_said_where_they_have_nothing_in_common(name):
    credit, report = check(OTHERS[name])
    assert credit < 2
    assert report.diagnosis == ""


def test_right_gradients_may_come_in_an_array_and_nothing_is_said_of_them():
    for function in (right, lambda x, y: np.array(right(x, y)), lambda x, y: list(right(x, y))):
        credit, report = check(function)
        assert credit == 2
        assert report.diagnosis == ""


def test_a_hidden_check_says_nothing_of_the_numbers():
    with check_context(seed=1, hidden=True):
        _, report = check(SLIPS["a sign"][0])
    assert not report.passed
    assert report.diagnosis == ""


@pytest.mark.parametrize(("factor", "said"), [(2.0, "twice the right size"), (1e-10, "1e-10 times the right size")])
def test_the_result_of_a_function_may_be_wrong_by_a_factor_too(factor, said):
    report = check_function(lambda x: factor * x**3, lambda x: x**3, [(2, 3)], points=1).reports[0]
    assert report.diagnosis == f"the result has {said} at every input that was tried."


def test_a_result_that_is_wrong_at_some_inputs_only_has_no_factor():
    report = check_function(np.abs, lambda x: x, [(2, 3)], points=1).reports[0]
    assert not report.passed
    assert report.diagnosis == ""


@pytest.mark.parametrize("excess", [3e-7, 1e-3])
def test_a_factor_of_1_is_none(excess):
    def estimate(x, y):
        return 2 * x * (1 + excess), 2 * y

    credit = check_handwritten_gradient(estimate, lambda x, y: x**2 + y**2, [NEGATIVE, NEGATIVE], points=2)
    said = credit.reports[0].text()
    assert "1 times" not in said
    assert ("is right to only about" in said) == (excess < 1e-6)


def test_one_number_is_no_evidence_of_a_factor():
    report = check_function(lambda x: 7.0 * x, lambda x: x, [np.array(2.0)], points=1).reports[0]
    assert not report.passed
    assert report.diagnosis == ""


def test_no_minus_is_shown_before_a_zero():
    points = [[between(0.5, 2.0)], [NEGATIVE]]
    credit = check_handwritten_gradient(lambda x: -1.0, lambda x: -x.relu(), points, points=1)
    assert "expected 0, got -1" in credit.reports[0].text()


@pytest.mark.parametrize(("scale", "named"), [(1.0, True), (1e-16, False)])
def test_only_numbers_that_are_not_rounding_errors_are_called_a_limit(scale: float, named: bool) -> None:
    right = np.array([3.0, -2.0, 0.5])
    wrong = rule_patterns.Wrong("a", [scale * np.clip(right, -1, 1)], [right], [np.ones(3)], {})
    assert ("cut off there" in rule_patterns._cut_off(wrong)) is named


@pytest.mark.parametrize("number", range(DRAWS))
def test_what_holds_at_all_draws_but_one_is_not_said_of_all(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float] = []

    def rule(g, y, o, x):
        if float(x) not in seen:
            seen.append(float(x))
        is_right = seen[number : number + 1] == [float(x)]
        return [g * (1 - y**2) * (1 if is_right else -1)]

    monkeypatch.setitem(WRONG, ("a sign", "tanh"), rule)
    engine = arrays.closures(("a sign", "tanh"))
    report = check_gradients(lambda a: a.tanh() * a, [()], engine=engine, points=1).reports[0]
    assert not report.passed
    assert len(seen) >= DRAWS
    assert "the wrong sign" not in report.text()


def test_a_rule_that_is_wrong_by_a_factor_is_said_to_be_so_where_it_was_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WRONG, ("twice", "relu"), lambda g, y, o, x: [2 * g * (x > 0)])
    engine = arrays.closures(("twice", "relu"))
    report = check_gradients(lambda a: a.relu() * a, [(2, 3)], engine=engine, points=1).reports[0]
    assert f"twice the right size in each of {DRAWS} trials, with inputs of shape (2, 3)." in report.place
