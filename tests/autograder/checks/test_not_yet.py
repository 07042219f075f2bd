"""An exercise that has not been begun is neither right nor wrong."""

from __future__ import annotations

import pytest

from autograder.cards.style import UNDECIDED, WRONG
from autograder.student import Credit, check_function, check_gradients
from tests.course.planting import solved


def unwritten(*arguments: object) -> float:
    raise NotImplementedError


def checked_function() -> Credit:
    credit = check_function(unwritten, lambda a: a, [()], points=1)
    assert credit is not None
    return credit


def checked_engine() -> Credit:
    engine = solved("02_scalar_engine")["MiniTensor"]
    engine.tanh = unwritten
    credit = check_gradients(lambda a: a.tanh(), [()], points=1, engine=engine)
    assert credit is not None
    return credit


@pytest.mark.parametrize("check", [checked_function, checked_engine])
def test_a_card_says_not_yet_and_is_not_red(check: object) -> None:
    credit = check()  # type: ignore[operator]
    (report,) = credit.reports
    assert credit == 0
    assert report.verdict == "not yet"
    assert UNDECIDED in report.html()
    assert WRONG not in report.html()
    assert "not yet" in report.text()
