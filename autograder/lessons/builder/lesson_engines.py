"""The engine after a lesson, made from the texts of the lessons, and its place in the next lesson's notebook.

The cells tagged `engine`, with their solutions, make up a lesson's part of the engine. A lesson that calls
`start_lesson()` continues the engine of the lessons before it; any other lesson starts a new engine. Every engine is
run before it is used, so that a lesson whose engine does not run by itself is not built.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from autograder.lessons.builder.expansion import expanded
from autograder.lessons.builder.further import start_of_further, with_parts
from autograder.lessons.builder.lesson_files import LessonTextError, lesson_texts
from autograder.lessons.builder.names import is_of_course, missing_names, names_bound_by
from autograder.lessons.builder.rules import Owner
from autograder.lessons.builder.text import NBGRADER_DEFAULTS, TextCell, read_lesson, syntax_tree
from autograder.notebooks.statements import parse
from autograder.sandbox.inside.engine_file import EngineCell, SealedEngine, seal_engine

FIRST_LINE = "# Run this cell: it loads the engine that this lesson continues with."  # all that a folded cell shows
CALL = re.compile(r"^start_lesson\(\)[ \t]*$", re.MULTILINE)
REGION_MARK = re.compile(r"^[ \t]*### (BEGIN|END) SOLUTION[ \t]*\n?", re.MULTILINE)


def engine_before(text: Path) -> SealedEngine:
    """The reference engine that a lesson starts from. Raises LessonTextError if the lessons before it make none."""
    engine = engine_after(text, itself=False)
    if engine is None:
        raise LessonTextError(f"{text.name}: no lesson before this one has cells tagged engine")
    return engine


def engine_after(text: Path, itself: bool = True) -> SealedEngine | None:
    """The reference engine after a lesson, or (not `itself`) after the lessons before it; None if there is none yet."""
    engine = None
    for path in lesson_texts(text.parents[2]):
        if path.name == text.name and not itself:
            break
        engine = _with_lesson(engine, path, path.stat().st_mtime_ns)
        if path.name == text.name:
            break
    return engine and replace(engine, start_of=text.stem if not itself else "")


def owners_of_names(engine: SealedEngine) -> dict[str, Owner]:
    """The names that the cells of an engine define at their top level, with the last cell that does."""
    found = {}
    for cell in engine.cells:
        for statement in parse(cell.source):
            imported = isinstance(statement, ast.Import | ast.ImportFrom)
            found.update(dict.fromkeys(names_bound_by(statement), Owner(cell.lesson, cell.cell, imported)))
    return found


def with_engine(cell: TextCell, text: Path, engine: SealedEngine | None = None) -> TextCell:
    """The cell with an engine, by default the one before the lesson, sealed in its call of `start_lesson`, if it has
    one. Raises LessonTextError.
    """
    if not calls_start(cell):
        return cell
    sealed = json.dumps(seal_engine(engine or engine_before(text)))
    source = CALL.sub(lambda match: f"start_lesson({sealed})", cell.source)
    source = f"{FIRST_LINE}\n{source}" if CALL.match(cell.source) else source
    # Locked, so that grading uses the instructor's cell, whatever a release or a submission made of it.
    marks = NBGRADER_DEFAULTS | {"grade_id": f"engine_{text.stem[:2]}", "locked": True}
    return replace(cell, source=source, metadata={**cell.metadata, "nbgrader": dict(sorted(marks.items()))})


def calls_start(cell: TextCell) -> bool:
    return cell.kind == "code" and CALL.search(cell.source) is not None


@lru_cache(maxsize=64)
def _with_lesson(engine: SealedEngine | None, path: Path, changed: int) -> SealedEngine | None:
    """The engine after one more lesson."""
    cells = read_lesson(path)
    goes_on = [cell for cell in cells if calls_start(cell)]
    if goes_on and engine is None:
        raise goes_on[0].error("no lesson before this one has cells tagged engine")
    every = expanded(cells)
    own = [(cell, name) for cell, name in every if "engine" in cell.tags]
    if not own:
        return engine
    checks = _checks(cells)
    optional = {name for _, name in every[start_of_further([(cell.kind, cell.source) for cell, _ in every]) :]}
    optional |= {cell.grade_id for cell, is_further in with_parts(cells) if is_further and cell.is_solution}
    added = [
        EngineCell(path.stem, name, cell.is_solution, _script(cell), checks.get(name, ()), name in optional)
        for cell, name in own
    ]
    before = engine.cells if engine and goes_on else ()
    _try_out(before, [cell for cell, _ in own], added)
    needed = tuple(check for name, tests in checks.items() if name not in optional for check in tests)
    return SealedEngine(path.stem, "", (*before, *added), needed)


def _checks(cells: Sequence[TextCell]) -> dict[str, tuple[str, ...]]:
    """The exercises that belong to the engine, each with its test cells."""
    found: dict[str, tuple[str, ...]] = {}
    exercise = ""  # the last one, if it belongs to the engine
    for cell in cells:
        if cell.is_solution:
            exercise = cell.grade_id if "engine" in cell.tags else ""
        elif cell.is_test and cell.kind == "code" and "quiz" not in cell.tags and exercise:
            found[exercise] = (*found.get(exercise, ()), cell.grade_id)
    return found


def _script(cell: TextCell) -> str:
    """An engine cell's source with the solution, without BEGIN and END lines and without the course's own helpers."""
    lines = REGION_MARK.sub("", cell.source).splitlines()
    for statement in reversed(ast.parse("\n".join(lines)).body if syntax_tree(cell) else []):
        if is_of_course(statement) or _is_start(statement):
            del lines[statement.lineno - 1 : statement.end_lineno]
    return "\n".join(lines).strip("\n")


def _is_start(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and ast.unparse(statement) == "start_lesson()"


def _try_out(before: Sequence[EngineCell], cells: Sequence[TextCell], added: Sequence[EngineCell]) -> None:
    """Raise LessonTextError for a cell that does not run after the engine cells before it, or needs other names."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        for earlier in before:
            exec(compile(earlier.source, f"<{earlier.lesson}>", "exec", dont_inherit=True), namespace)
        for cell, part in zip(cells, added, strict=True):
            try:
                exec(compile(part.source, f"<{part.lesson}>", "exec", dont_inherit=True), namespace)
            except Exception as error:
                raise cell.error(f"the engine does not run by itself: {type(error).__name__}: {error}") from error
    for cell, part in zip(cells, added, strict=True):
        if missing := missing_names(part.source, namespace):
            raise cell.error(f"the engine does not run by itself: no engine cell defines {missing[0]!r}")
