"""A listed mistake that tests nothing is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.lessons.mistakes.listed import KnownMistake
from autograder.lessons.mistakes.planting import run_lesson

TEXT = Path(__file__).parents[3] / "course" / "lessons" / "00_start_here" / "00_start_here.py"
RIGHT = "return gradient * b, gradient * a"


@pytest.mark.parametrize(
    ("right", "wrong", "error"),
    [(RIGHT, "return (", SyntaxError), ("no such line", "return None", ValueError)],
    ids=["not Python", "fits nowhere"],
)
def test_a_mistake_that_cannot_be_planted_is_refused(right: str, wrong: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        run_lesson(TEXT, lambda cell, names: None, KnownMistake("a mistake", right, wrong))
