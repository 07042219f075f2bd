"""Lesson 00: its failing check names the mistake in the given rule, and mistakes in the exercise cost points."""

from __future__ import annotations

from typing import Any

import pytest

from autograder.student import between, check_gradients
from tests.course.planting import Planted, cells_that_define, marks, solved, styles, untrue_examples

LESSON = "00_start_here"
RIGHT = "return gradient * b, gradient * a"


def planted(name: str, bug: str, wrong: str) -> Planted:
    return Planted(name, bug, RIGHT, wrong, ("test_product_rule",))


PLANTED = [
    planted("each its own value", "operands_swapped", "return gradient * a, gradient * b"),
    planted("incoming gradient ignored", "upstream_ignored", "return b, a"),
    planted("a minus sign too many", "", "return gradient * b, -gradient * a"),
    planted("shares of a sum", "", "return gradient, gradient"),
    planted("shares of a quotient", "", "return gradient / b, -gradient * a / b**2"),
    planted("both get the product", "", "return gradient * a * b, gradient * a * b"),
    planted("the second gets nothing", "", "return gradient * b, 0.0"),
    planted("gradient squared", "", "return gradient**2 * b, gradient**2 * a"),
    planted("added to the other factor", "", "return gradient + b, gradient + a"),
    planted("right where it was tried", "", "return 4 * gradient, 4 * gradient"),
]


def test_the_solution_and_the_styles_have_full_marks() -> None:
    assert not marks(LESSON).lost
    for style in styles(LESSON):
        assert solved(LESSON, style)["product_rule"](2.0, 3.0, 10.0) == (30.0, 20.0)


@pytest.mark.parametrize("planted", PLANTED, ids=lambda planted: planted.name)
def test_a_mistake_costs_points_and_is_named(planted: Planted) -> None:
    found = marks(LESSON, planted)
    assert found.lost == {found.seen} == set(planted.costs)
    assert not planted.bug or planted.bug in found.bugs


def test_the_rule_of_the_colleague_is_right_where_it_was_tried_and_fails_the_check() -> None:
    names: dict[str, Any] = {"__name__": LESSON}
    for cell in cells_that_define(LESSON):
        if not cell.metadata.get("nbgrader"):
            exec(cell.source, names)
    engine = names["MiniTensor"]
    a, b = engine(4.0), engine(4.0)
    (a * b).backward()
    assert (a.grad, b.grad) == (4.0, 4.0)
    credit = check_gradients({"a * b": lambda a, b: a * b}, [between(-3.0, 3.0)] * 2, points=1, engine=engine)
    assert credit == 0
    assert "operands_swapped" in credit.reports[0].bugs


def test_examples_in_the_docstrings_are_true() -> None:
    assert untrue_examples(LESSON) == ([], 1)
