"""Lesson 00: its failing check names the mistake in the given rule, and mistakes in the exercise cost points."""

from __future__ import annotations

from typing import Any

import pytest

from autograder.student import between, check_gradients
from tests.course.planting import LessonTests, cells_that_define, solved, styles

LESSON = "00_start_here"


class TestLesson(LessonTests):
    lesson = LESSON
    test_cells = 1
    visible = True
    examples = 1


@pytest.mark.parametrize("style", styles(LESSON))
def test_a_style_gives_the_right_gradients(style: str) -> None:
    assert solved(LESSON, style)["product_rule"](2.0, 3.0, 10.0) == (30.0, 20.0)


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
