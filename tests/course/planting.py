"""Tests that every lesson has: its solution gets full marks, and each listed mistake costs points where it was made."""

from __future__ import annotations

import doctest
import re
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any, ClassVar

import pytest

from autograder.lessons.builder.lesson_files import STYLES
from autograder.lessons.builder.text import STYLE_TAG, TextCell
from autograder.lessons.mistakes import planting
from autograder.lessons.mistakes.listed import KnownMistake, mistakes_of
from autograder.lessons.mistakes.planting import LessonMarks
from autograder.lessons.mistakes.signatures import shows

LESSONS = Path(__file__).parents[2] / "course" / "lessons"
sys.path.extend(map(str, LESSONS.glob("*/")))  # lessons find the helpers next to their notebooks
FIRST_LINE = re.compile(r"^# %% .*", re.MULTILINE)


def text_of(lesson: str) -> Path:
    """The text of a lesson."""
    return LESSONS / lesson / f"{lesson}.py"


def marks(lesson: str, mistake: KnownMistake | None = None, again: Sequence[TextCell] = ()) -> LessonMarks:
    """The points that a lesson's test cells give: see `planting.marks`."""
    return planting.marks(text_of(lesson), mistake, again)


def cells_that_define(lesson: str, tests: bool = False) -> tuple[TextCell, ...]:
    """The code cells of a lesson that later cells may need: see `planting.cells_that_define`."""
    return planting.cells_that_define(text_of(lesson), tests)


class LessonTests:
    """The tests that every lesson with planted mistakes has; a lesson's test file derives `TestLesson` from this."""

    lesson: ClassVar[str]
    test_cells: ClassVar[int]
    examples: ClassVar[int]
    """The minimum number of examples in the docstrings."""
    visible: ClassVar[bool] = False
    """Whether each mistake must show in a visible check: students who learn alone have no other checks."""
    own_examples: ClassVar[bool] = False
    """Whether only the lesson's own functions count: the lesson changes what those of earlier lessons show."""
    replaced_later: ClassVar[frozenset[str]] = frozenset()
    """Exercises whose function a later exercise replaces on purpose, so that running them again undoes it."""

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """One test for each mistake, named after it."""
        if "mistake" in metafunc.fixturenames:
            metafunc.parametrize("mistake", mistakes_of(text_of(self.lesson)), ids=lambda mistake: mistake.name)

    def test_the_solution_has_full_marks(self) -> None:
        found = marks(self.lesson)
        assert len(found.points) == self.test_cells
        assert not found.lost

    @pytest.mark.slow
    def test_a_mistake_costs_points_where_it_was_made_and_is_named(self, mistake: KnownMistake) -> None:
        found = marks(self.lesson, mistake)
        assert found.lost - set(mistake.may) == set(mistake.costs)
        assert not mistake.bug or mistake.bug in found.bugs
        assert found.seen or not self.visible
        old = f"if the signatures are old, run `autograder build {self.lesson[:2]}`"
        assert mistake.said in found.said or not shows(text_of(self.lesson), mistake), old

    @pytest.mark.slow
    def test_a_solution_that_runs_again_undoes_no_later_one(self) -> None:
        """All run again in one go, the last one first: so each runs after every later one, as it would alone."""
        solutions = [cell for cell in cells_that_define(self.lesson) if cell.nbgrader]
        again = [cell for cell in reversed(solutions) if cell.grade_id not in self.replaced_later]
        lost = marks(self.lesson, again=again).lost
        assert not lost, [cell.grade_id for cell in again if marks(self.lesson, again=[cell]).lost]

    def test_examples_in_the_docstrings_are_true(self) -> None:
        wrong, tried = untrue_examples(self.lesson)
        if self.own_examples:
            text = text_of(self.lesson).read_text(encoding="utf-8")
            wrong = sorted(set(wrong) & set(re.findall(r"^(?:def|class) (\w+)", text, re.MULTILINE)))
        assert wrong == []
        assert tried >= self.examples


def solved(lesson: str, style: str = "") -> dict[str, Any]:
    """The names that a solved lesson defines, with the solutions or with one style. Demonstrations do not run."""
    others = {
        cell.exercise: cell.source for cell in planting.cells_of(text_of(lesson)) if style and cell.style == style
    }
    assert others or not style, f"{lesson} has no style {style!r}"
    names: dict[str, Any] = {"__name__": lesson}
    for cell in cells_that_define(lesson):
        exec(_code(others.get(cell.grade_id, cell.source)), names)
    return names


def styles(lesson: str) -> list[str]:
    """The names of a lesson's alternative styles, from the first lines of its cells: every worker collects the tests,
    and would otherwise have to read each lesson completely."""
    path = LESSONS / lesson / STYLES
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return sorted({name for line in FIRST_LINE.findall(text) for name in STYLE_TAG.findall(line)})


def untrue_examples(lesson: str) -> tuple[list[str], int]:
    """The functions of a solved lesson whose docstrings show a wrong result, and how many examples were tried."""
    names = solved(lesson)
    wrong, tried = [], 0
    for name, thing in list(names.items()):
        if not getattr(thing, "__doc__", None) or getattr(thing, "__module__", "") != lesson:
            continue
        for test in doctest.DocTestFinder(recurse=False).find(thing, name, module=False, globs=dict(names)):
            results = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test)
            tried += results.attempted
            wrong += [name] if results.failed else []
    return wrong, tried


@cache
def _code(source: str) -> CodeType:
    return compile(source, "<cell>", "exec", dont_inherit=True)
