"""Plants classic mistakes in the solutions of lesson 09: each costs points where it was made, and on no other cell."""

from __future__ import annotations

from tests.course.planting import marks, untrue_examples

LESSON = "09_in_place_and_views"


def test_the_solution_has_full_marks() -> None:
    points = marks(LESSON).points
    assert len(points) == 5
    assert all(earned == most for earned, most in points.values())


def test_examples_in_the_docstrings_are_true() -> None:
    wrong, tried = untrue_examples(LESSON)
    assert wrong == []
    assert tried >= 20
