"""Runs a lesson's cells as plain Python, without a notebook or a sandbox, with a listed mistake in its solutions.

Examples between the exercises are left out, because a mistake may keep them busy forever.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from types import CodeType
from typing import Any

from autograder.lessons.builder.lesson_files import MISTAKES, LessonTextError, lesson_texts
from autograder.lessons.builder.text import TextCell, read_lesson
from autograder.lessons.mistakes.listed import KnownMistake
from autograder.lessons.mistakes.reach import CallRecord, functions_changed
from autograder.notebooks.regions import without_hidden_tests
from autograder.runs.context import check_context

STARTS = re.compile(r"^start_lesson\(", re.MULTILINE)
DEFINITIONS = (ast.Import, ast.ImportFrom, ast.ClassDef, ast.FunctionDef, ast.Assign)

AtTest = Callable[[TextCell, dict[str, Any]], None]
"""What to do at a test cell, with the names that the lesson has defined so far."""


@dataclass(frozen=True)
class LessonMarks:
    """grade_id -> (points given, points of the cell) of every test cell, and the bugs that the cards named."""

    points: dict[str, tuple[float, float]]
    bugs: set[str]
    seen: str
    """The first test cell whose visible part alone did not give all its points; empty if there is none."""
    said: str
    """The cause that the first card with a cause gives."""

    @property
    def lost(self) -> set[str]:
        """The test cells that did not give all their points."""
        return {name for name, (earned, most) in self.points.items() if earned < most}


def run_lesson(
    text: Path, at_test: AtTest, mistake: KnownMistake | None = None, again: Sequence[TextCell] = ()
) -> None:
    """Run the solved lesson, and `at_test` at each of its test cells; with a mistake, only at those that it reaches:
    they come after it, and call what it changes.

    `again` are cells that run a second time, after all others and before the test cells. Raises LessonTextError
    if the mistake does not fit in exactly one place, or if what it leaves is not Python.
    """
    sys.path.insert(0, str(text.parent))  # lessons find helpers and cases beside their notebooks
    names: dict[str, Any] = {"__name__": text.stem}
    cells = cells_that_define(text, tests=True)
    if again:
        tests = tuple(cell for cell in cells if cell.is_test)
        cells = (*(cell for cell in cells if cell not in tests), *again, *tests)
    replaced, changed = 0, None
    where = f"{text.parent.name}/{MISTAKES}: {mistake.name!r}" if mistake else text.name
    try:
        for cell in cells:
            source = cell.source
            if cell.is_test:
                if mistake is None or (replaced and _is_reached(text, cell, changed)):
                    at_test(cell, names)
                    continue
                for definition in _definitions(source):  # nothing else of it differs from the solved notebook
                    with suppress(NameError):  # it needs a name that only a loop of the cell assigns
                        exec(definition, names)
                continue
            if mistake is not None and cell.nbgrader:
                source, times = mistake.into(source)
                replaced += times
            try:
                code = _code(source)
                if source != cell.source:
                    changed = cell.source, functions_changed(cell.source, source)
            except SyntaxError as error:  # would pass for an exercise that did not run
                raise LessonTextError(f"{where}: with it the solution is not Python: {error.msg}") from error
            with suppress(Exception):  # a wrong engine may break a cell; the notebook continues
                exec(code, names)
    finally:
        sys.path.remove(str(text.parent))
    if mistake is not None and replaced != 1:
        raise LessonTextError(f"{where}: the text after `-` stands {replaced} times in the solutions, not once")


def _is_reached(text: Path, cell: TextCell, changed: tuple[str, set[str] | None] | None) -> bool:
    """Whether a mistake can make a difference in a test cell. What happens in a cell that is no check, or what a cell
    of the lesson does while it defines, is not followed any further.
    """
    if changed is None or changed[1] is None or "check" not in cell.metadata:
        return True
    functions = {(changed[0], name) for name in changed[1]}
    calls = _calls(text)
    return bool(functions & (calls[""] | calls[cell.grade_id]))


@cache
def _calls(text: Path) -> dict[str, set[tuple[str, str]]]:
    """grade_id of a test cell -> what it calls in the solved lesson: (source of a cell, function). Under "" is what
    the cells call that define."""
    calls = CallRecord()
    names: dict[str, Any] = {"__name__": text.stem}
    sys.path.insert(0, str(text.parent))
    try:
        for cell in cells_that_define(text, tests=True):
            if cell.is_test:
                with calls.of(cell.grade_id), check_context(explained=False):
                    credit_of(cell.source, names)
            else:
                code = _code(cell.source)
                calls.follow(code, cell.source)
                with calls.of(""), suppress(Exception):
                    exec(code, names)
    finally:
        sys.path.remove(str(text.parent))
    return calls.by


def marks(text: Path, mistake: KnownMistake | None = None, again: Sequence[TextCell] = ()) -> LessonMarks:
    """The points that a lesson's test cells give for its solutions, as `run_lesson` runs them.

    Causes are looked for only until a card has given one, and named the bug that it must name: that takes longer than
    finding that answers are wrong.
    """
    points: dict[str, tuple[float, float]] = {}
    bugs: set[str] = set()
    seen = said = ""

    def at_test(cell: TextCell, names: dict[str, Any]) -> None:
        nonlocal seen, said
        unnamed = mistake is not None and bool(mistake.bug) and mistake.bug not in bugs
        with check_context(explained=unnamed or (mistake is not None and "check" in cell.metadata and not said)):
            credit = credit_of(cell.source, names)
        reports = getattr(credit, "reports", ())
        bugs.update(bug for report in reports for bug in report.bugs)
        said = said or next((report.diagnosis for report in reports if report.diagnosis), "")
        name, most = cell.grade_id, cell.nbgrader["points"]
        points[name] = (most if credit is None else float(credit), most)
        if points[name][0] < most and not seen and _is_seen(text, cell, credit, names):
            seen = name

    run_lesson(text, at_test, mistake, again)
    return LessonMarks(points, bugs, seen, said)


def credit_of(source: str, names: dict[str, Any]) -> float | None:
    """The points that a test cell gives; None if it gives none by itself because all its assertions hold."""
    first, last = _parts(source)
    try:
        exec(first, names)
        value = eval(last, names) if last is not None else None
    except Exception:
        return 0.0
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _is_seen(text: Path, cell: TextCell, credit: float | None, names: dict[str, Any]) -> bool:
    """Whether the visible part of a test cell gives less credit than for the solution. The cards of a check tell the
    parts apart; the visible part of any other cell runs once more, alone.
    """
    if "check" in cell.metadata and (reports := getattr(credit, "reports", ())):
        return not all(report.passed for report in reports if not report.hidden)
    with check_context(explained=False):
        alone = credit_of(without_hidden_tests(cell.source), names)
    return alone is not None and (alone == 0 or alone < (_visible_credits(text)[cell.grade_id] or 0))


@cache
def _visible_credits(text: Path) -> dict[str, float | None]:
    """The credit of the visible part of each test cell for the solution; None if all its assertions hold."""
    credits: dict[str, float | None] = {}

    def at_test(cell: TextCell, names: dict[str, Any]) -> None:
        credits[cell.grade_id] = credit_of(without_hidden_tests(cell.source), names)

    run_lesson(text, at_test)
    return credits


@cache
def cells_that_define(text: Path, tests: bool = False) -> tuple[TextCell, ...]:
    """The code cells of a lesson that later cells may need: engine, solutions, definitions; the tests if asked for.

    The engine cells of earlier lessons replace `start_lesson()`.
    """
    return tuple(_defining(text, tests))


def _defining(text: Path, tests: bool) -> Iterator[TextCell]:
    for cell in cells_of(text):
        if cell.kind != "code" or set(cell.tags) - {"engine"}:
            continue
        if cell.nbgrader.get("grade"):
            if tests:
                yield cell
        elif STARTS.search(cell.source):
            yield from engine_cells_before(text)
        elif cell.nbgrader or "engine" in cell.tags or _only_defines(cell.source):
            yield cell


def engine_cells_before(text: Path) -> Iterator[TextCell]:
    """The engine cells of the last lesson before this one, after those with which that lesson itself started.

    A mistake belongs in its own lesson, so these cells are no longer marked as exercises.
    """
    before = [path for path in lesson_texts(text.parents[2]) if path.name < text.name][-1]
    for cell in cells_of(before):
        if STARTS.search(cell.source):
            yield from engine_cells_before(before)
        elif "engine" in cell.tags:
            yield replace(cell, metadata={"tags": ["engine"]})


@cache
def cells_of(text: Path) -> list[TextCell]:
    """The cells of a lesson's text."""
    return read_lesson(text)


def _only_defines(source: str) -> bool:
    """Whether a cell consists of imports, definitions and assignments; others only try things out."""
    return all(isinstance(statement, DEFINITIONS) for statement in ast.parse(source).body)


@cache
def _definitions(source: str) -> list[CodeType]:
    """The statements of a test cell that define what later ones may use, and check nothing."""
    kept = [statement for statement in ast.parse(source).body if isinstance(statement, DEFINITIONS)]
    return [_code(ast.unparse(statement)) for statement in kept if not ast.unparse(statement).startswith("credit = ")]


@lru_cache(maxsize=4096)  # most cells of a lesson are the same with all its mistakes
def _code(source: str) -> CodeType:
    return compile(source, "<cell>", "exec", dont_inherit=True)


@lru_cache(maxsize=512)
def _parts(source: str) -> tuple[CodeType, CodeType | None]:
    """The code of a test cell before the expression at its end, and that of the expression; None if there is none."""
    *before, last = ast.parse(source).body
    if not isinstance(last, ast.Expr):
        return _code(source), None
    first = compile(ast.Module(before, []), "<cell>", "exec", dont_inherit=True)
    return first, compile(ast.Expression(last.value), "<cell>", "eval", dont_inherit=True)
