"""Runs a lesson's cells as plain Python, without a notebook or a sandbox, and plants classic mistakes in its solutions.

The lesson's own test cells, hidden regions included, do the checking: `marks` returns the points of each. Examples
between the exercises are left out, because a planted mistake may keep them busy forever. `LessonTests` turns this into
tests of the mistakes that are listed beside the lesson.
"""

from __future__ import annotations

import ast
import doctest
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any, ClassVar

import pytest

from autograder.judge.outside.steps import test_code as taken_apart
from autograder.lessons.build.lesson_files import STYLES
from autograder.lessons.build.text import STYLE_TAG, TextCell, read_lesson
from autograder.lessons.mistakes.listed import KnownMistake, mistakes_of
from autograder.notebooks.regions import without_hidden_tests
from autograder.runs.context import check_context

LESSONS = Path(__file__).parents[2] / "course" / "lessons"
sys.path.extend(map(str, LESSONS.glob("*/")))  # lessons find the helpers next to their notebooks
STARTS = re.compile(r"^start_lesson\(", re.MULTILINE)
FIRST_LINE = re.compile(r"^# %% .*", re.MULTILINE)
DEFINITIONS = (ast.Import, ast.ImportFrom, ast.ClassDef, ast.FunctionDef, ast.Assign)


@dataclass(frozen=True)
class Marks:
    """grade_id -> (points given, points of the cell) of every test cell, and the bugs that the cards named."""

    points: dict[str, tuple[float, float]]
    bugs: set[str]
    seen: str
    """The first test cell whose visible part alone did not give all its points; empty if there is none."""

    @property
    def lost(self) -> set[str]:
        """The test cells that did not give all their points."""
        return {name for name, (earned, most) in self.points.items() if earned < most}


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


def marks(lesson: str, planted: KnownMistake | None = None, again: Sequence[TextCell] = ()) -> Marks:
    """The points that a lesson's test cells give for its solutions; with a planted mistake, only those of the cells
    after it.

    `again` are cells that run a second time, after all others and before the test cells. Causes are looked for only
    until a card has named the bug that it must name: that takes longer than finding that answers are wrong.
    """
    names: dict[str, Any] = {"__name__": lesson}
    points: dict[str, tuple[float, float]] = {}
    bugs: set[str] = set()
    seen = ""
    replaced = 0
    cells = cells_that_define(lesson, tests=True)
    if again:
        tests = tuple(cell for cell in cells if cell.nbgrader.get("grade"))
        cells = (*(cell for cell in cells if cell not in tests), *again, *tests)
    for cell in cells:
        source, nbgrader = cell.source, cell.nbgrader
        if nbgrader.get("grade"):
            if planted and not replaced:  # before the mistake nothing differs from the solved notebook
                for definition in _definitions(source):
                    with suppress(NameError):  # it needs a name that only a loop of the cell assigns
                        exec(definition, names)
                continue
            with check_context(explained=planted is not None and bool(planted.bug) and planted.bug not in bugs):
                credit = _credit(source, names)
            bugs |= {bug for report in getattr(credit, "reports", ()) for bug in report.bugs}
            name, most = nbgrader["grade_id"], nbgrader["points"]
            points[name] = (most if credit is None else float(credit), most)
            if points[name][0] < most and not seen and _is_seen(lesson, name, source, names):
                seen = name
            continue
        if planted and nbgrader:
            source, times = planted.into(source)
            replaced += times
        with suppress(Exception):  # a wrong engine may break a cell; the notebook continues
            exec(_code(source), names)
    assert planted is None or replaced == 1, f"the mistake belongs in exactly one place, not in {replaced}"
    return Marks(points, bugs, seen)


def _is_seen(lesson: str, name: str, source: str, names: dict[str, Any]) -> bool:
    """Whether the visible part of a test cell gives less credit than for the solution."""
    with check_context(explained=False):
        credit = _credit(without_hidden_tests(source), names)
    return credit is not None and (credit == 0 or credit < (_visible_credits(lesson)[name] or 0))


@cache
def _visible_credits(lesson: str) -> dict[str, float | None]:
    """The credit of the visible part of each test cell for the solution; None if all its assertions hold."""
    names: dict[str, Any] = {"__name__": lesson}
    credits: dict[str, float | None] = {}
    for cell in cells_that_define(lesson, tests=True):
        if cell.nbgrader.get("grade"):
            credits[cell.nbgrader["grade_id"]] = _credit(without_hidden_tests(cell.source), names)
        else:
            with suppress(Exception):  # a demonstration of an error
                exec(_code(cell.source), names)
    return credits


def solved(lesson: str, style: str = "") -> dict[str, Any]:
    """The names that a solved lesson defines, with the solutions or with one style. Demonstrations do not run."""
    others = {cell.exercise: cell.source for cell in _cells(lesson) if style and cell.style == style}
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


def secret_by_name(lesson: str) -> set[str]:
    """Names, except `credit`, that visible statements of test cells use after hidden ones have bound them: of such a
    statement the judge says only that a hidden test failed."""
    bound: set[str] = set()
    found: set[str] = set()
    for cell in cells_that_define(lesson, tests=True):
        if not cell.nbgrader.get("grade"):
            continue
        test = taken_apart(cell.source, cell.grade_id)
        for step in test.steps:
            if test.hidden.isdisjoint(step.lines):
                found |= step.uses & bound
            else:
                bound |= step.binds
    return found - {"credit"}


@cache
def cells_that_define(lesson: str, tests: bool = False) -> tuple[TextCell, ...]:
    """The code cells of a lesson that later cells may need: engine, solutions, definitions; the tests if asked for.

    The engine cells of earlier lessons replace `start_lesson()`.
    """
    return tuple(_defining(lesson, tests))


def _defining(lesson: str, tests: bool) -> Iterator[TextCell]:
    for cell in _cells(lesson):
        if cell.kind != "code" or set(cell.tags) - {"engine"}:
            continue
        if cell.nbgrader.get("grade"):
            if tests:
                yield cell
        elif STARTS.search(cell.source):
            yield from _engine_before(lesson)
        elif cell.nbgrader or "engine" in cell.tags or _only_defines(cell.source):
            yield cell


def _engine_before(lesson: str) -> Iterator[TextCell]:
    """The engine cells of the last lesson before this one, after those with which that lesson itself started.

    A planted mistake belongs in its own lesson, so these cells are no longer marked as exercises.
    """
    before = max(path.name for path in LESSONS.iterdir() if path.name[:2] < lesson[:2])
    for cell in _cells(before):
        if STARTS.search(cell.source):
            yield from _engine_before(before)
        elif "engine" in cell.tags:
            yield replace(cell, metadata={"tags": ["engine"]})


def text_of(lesson: str) -> Path:
    """The text of a lesson."""
    return LESSONS / lesson / f"{lesson}.py"


@cache
def _cells(lesson: str) -> list[TextCell]:
    return read_lesson(text_of(lesson))


def _only_defines(source: str) -> bool:
    """Whether a cell consists of imports, definitions and assignments; others only try things out."""
    return all(isinstance(statement, DEFINITIONS) for statement in ast.parse(source).body)


@cache
def _definitions(source: str) -> list[CodeType]:
    """The statements of a test cell that define what later ones may use, and check nothing."""
    kept = [statement for statement in ast.parse(source).body if isinstance(statement, DEFINITIONS)]
    return [_code(ast.unparse(statement)) for statement in kept if not ast.unparse(statement).startswith("credit = ")]


@cache  # most cells of a lesson are the same in all its tests
def _code(source: str) -> CodeType:
    return compile(source, "<cell>", "exec", dont_inherit=True)


def _credit(source: str, names: dict[str, Any]) -> float | None:
    """The credit that a test cell gives; None if it sets no credit because all its assertions hold."""
    names.pop("credit", None)
    try:
        exec(_code(source), names)
    except Exception:
        return 0.0
    return names.get("credit")
