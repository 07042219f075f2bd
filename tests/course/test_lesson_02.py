"""Plants classic mistakes in the solutions of lesson 02: each costs points on the cells of its rule, and on no others.

The lesson's own test cells do the checking, in a plain namespace, without a notebook or a sandbox.
"""

from __future__ import annotations

import re
from typing import Any

from autograder.lessons.builder.text import TextCell
from autograder.lessons.mistakes.listed import mistakes_of
from autograder.lessons.mistakes.planting import credit_of, run_lesson
from tests.course.planting import LESSONS, LessonTests, text_of

LESSON = "02_scalar_engine"
DRAWN = re.compile(r"-?\d+\.\d+")
"""A number that depends on the draw."""


class TestLesson(LessonTests):
    lesson = LESSON
    test_cells = 7
    visible = True
    examples = 5


def test_the_cards_in_readme_are_those_of_its_mistake() -> None:
    """Line by line and in this order; README leaves lines out, and ends of lines."""
    readme = (LESSONS.parents[1] / "README.md").read_text(encoding="utf-8")
    shown = readme.partition("these cards appear (as text, shortened):\n")[2].partition("\nThe first is")[0]
    swapped = next(mistake for mistake in mistakes_of(text_of(LESSON)) if "gets its own value" in mistake.name)
    cards: list[str] = []

    def at_test(cell: TextCell, names: dict[str, Any]) -> None:
        if cell.grade_id == "test_add_and_multiply":
            cards.extend(report.text() for report in credit_of(cell.source, names).reports)  # type: ignore[union-attr]

    run_lesson(text_of(LESSON), at_test, swapped)
    rest = DRAWN.sub("#", "\n".join(cards))
    lines = [DRAWN.sub("#", line.strip().removesuffix("...")) for line in shown.splitlines() if line.strip()]
    assert len(lines) > 15
    for line in lines:
        assert line in rest
        rest = rest.partition(line)[2]
