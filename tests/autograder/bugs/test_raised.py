"""An error in a student's rule is the cause. A bug of the bank explains it only if it raises the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from autograder.runs.errors import Raised
from autograder.student import check_gradients
from tests.autograder import student_engines_arrays as arrays
from tests.autograder.bugs.planted import CHECKS, STYLES
from tests.autograder.student_engines_operations import OPERATIONS, WRONG

MEANINGLESS = {
    "shapes": lambda: np.ones(2) + np.ones(3),
    "axes": lambda: np.sum(np.ones((2, 2)), axis=2),
    "sizes": lambda: np.ones(6).reshape(4, 2),
}
MADE_OF_OTHERS = ("sub", "div")  # in one of the engines


@pytest.mark.parametrize("error", MEANINGLESS)
@pytest.mark.parametrize("operation", [name for name in OPERATIONS if name in CHECKS and name not in MADE_OF_OTHERS])
def test_an_error_that_has_nothing_to_do_with_a_bug_is_none(
    operation: str, error: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rule(*given: Any) -> Any:
        return MEANINGLESS[error]()

    monkeypatch.setitem(WRONG, ("an error", operation), rule)
    check = CHECKS[operation]
    for make in STYLES.values():
        engine = make(("an error", operation))
        report = check_gradients(check.expressions, check.inputs, engine=engine, points=1).reports[0]
        assert "your code raised" in report.text()
        assert report.diagnosis == ""
        assert "np.ones(" in report.text(), "the line"


SLIPS = {
    "@ for *": lambda g, y, o, x: [g @ y],
    "/ for *, transposed": lambda g, y, o, x: [g / y.T],
    "a sum": lambda g, y, o, x: [g * y.sum(2)],
}


@pytest.mark.parametrize("slip", SLIPS)
def test_a_slip_in_a_rule_that_raises_gets_no_other_name(slip: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WRONG, (slip, "exp"), SLIPS[slip])
    engine = arrays.closures((slip, "exp"))
    report = check_gradients(lambda a: a.exp() * a, [(3, 4)], engine=engine, points=1).reports[0]
    assert report.diagnosis == ""
    assert "exp" in report.place


def test_errors_are_alike_whatever_the_order_of_the_inputs() -> None:
    said = "operands could not be broadcast together with shapes {} {} "
    error = Raised("ValueError", said.format("(2,3)", "(4,)"))
    assert error.is_like(Raised("ValueError", said.format("(4,)", "(2,3)")))
    assert not error.is_like(Raised("ValueError", said.format("(4,)", "(3,2)")))
    assert not error.is_like(Raised("IndexError", error.message))
    assert not error.is_like(Raised("ValueError", "matmul: (2,3) (4,)"))
