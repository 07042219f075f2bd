"""What the cell of each exercise did last in this kernel: a check must not speak about code that did not run.

A test cell belongs to the exercises before it. Before it runs, one line says if such a cell raised an error, was not
run, was changed since, is gone, or does not define what it should: then the names that the test uses are older than
the cell, or somebody else's. A kernel sees what runs; the rest is read from the notebook as last saved. After a test
that is right, one line says what comes next.
"""

from __future__ import annotations

import ast
import html
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from autograder.cards.check_report import ended
from autograder.cards.style import RIGHT, SANS, TEXT, UNDECIDED
from autograder.notebooks.cells import (
    defined_names,
    grade_id,
    is_code,
    is_code_solution,
    is_test,
    source_of,
    tested_by,
)
from autograder.notebooks.headings import headings
from autograder.notebooks.statements import bound_names, parse

RAISED = "it stopped with {error} when it last ran"
NOT_RUN = "it was not run since the kernel started"
CHANGED = "it was changed after it last ran"
GONE = "it is no longer in your notebook"
OTHER_NAME = "it ran, but did not define `{name}`{instead}"
DO = {
    RAISED: "Correct that first, run the cell, then this one.",
    NOT_RUN: "Run it, then this one.",
    CHANGED: "Run it again, then this one.",
    GONE: "Choose Edit, Undo Cell Operation, or copy it from a fresh copy of the lesson.",
    OTHER_NAME: "Give it the name from the exercise, run the cell, then this one.",
}
STALE = (
    "First look at the cell of the exercise `{exercise}`: {what}. What is checked here is not what the cell says. {do}"
)
ENGINE = "start_lesson("
EARLIER = "Note on the earlier exercise `{exercise}`: {what}. {do}"


@dataclass(frozen=True)
class LastRun:
    """The last run of a cell: its source, when it ended, what it raised (empty: nothing), and the names that it should
    have defined and did not, each with the similar name that it did define, or an empty text."""

    source: str
    ended: float
    error: str = ""
    undefined: tuple[tuple[str, str], ...] = ()


class Exercises:
    """Watches the cells of a kernel. `before` and `after` are called around each."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self.runs: dict[str, LastRun] = {}
        self.stale = ""
        self.next_step = ""
        self.running: tuple[str, dict[str, int]] | None = None
        self._read: tuple[Any, list[Any]] = (None, [])

    def before(self, info: Any) -> None:
        """Note which exercise runs; if it is a test, show what there is to say of the exercises before it."""
        self.stale, self.next_step, self.running = "", "", None
        cells = self.cells()
        cell = _found(info, cells)
        if cell is None:
            return
        if is_code_solution(cell):
            names = _names_of(grade_id(cell), cells)
            self.running = grade_id(cell), {name: id(self.shell.user_ns.get(name)) for name in names}
        elif is_test(cell):
            self.stale, earlier = self.said_of(cell, cells)
            for text in filter(None, (self.stale, earlier)):
                _display(text, UNDECIDED)
            self.next_step = "" if self.stale else next_after(cell, self._read[1])

    def after(self, result: Any) -> None:
        """Note what the exercise did that has just run. After a test that is right, say what comes next."""
        if self.next_step and result.success and getattr(result.result, "is_whole", True):
            _display(self.next_step, RIGHT)
        if self.running is None or result.info is None:
            return
        (name, ids), self.running = self.running, None
        error = result.error_before_exec or result.error_in_exec
        source, namespace = result.info.raw_cell, self.shell.user_ns
        undefined = [] if error else [each for each in ids if each not in _stored(source)]
        undefined = [each for each in undefined if id(namespace.get(each)) == ids[each]]
        similar = ((each, next(iter(get_close_matches(each, _stored(source), 1)), "")) for each in undefined)
        self.runs[name] = LastRun(source, time.time(), _shown(error), tuple(similar))

    def said_of(self, test: Any, cells: Sequence[Any]) -> tuple[str, str]:
        """What to say first of the exercises of a test cell, and of exercises before these; empty if nothing."""
        own = _exercises_of(test, cells)
        if not own or any(map(_is_quiz, own)):
            return "", ""
        stale = next(filter(None, (self._said(STALE, name, cells) for name in own)), "")
        before = [grade_id(cell) for cell in cells[: cells.index(test)] if is_code_solution(cell)]
        earlier = (self._said(EARLIER, name, cells) for name in before if name in self.runs and name not in own)
        return stale, next(filter(None, earlier), "")

    def _said(self, form: str, name: str, cells: Sequence[Any]) -> str:
        for what, details in self._states(name, cells):
            return form.format(exercise=name, what=what.format(**details), do=DO[what])
        return ""

    def _states(self, name: str, cells: Sequence[Any]) -> Iterator[tuple[str, dict[str, str]]]:
        """What is wrong with the last run of an exercise."""
        run = self.runs.get(name)
        saved = next((source_of(cell) for cell in cells if grade_id(cell) == name), None)
        if saved is None:
            yield GONE, {}
        if run is None:
            yield NOT_RUN, {}
            return
        if run.error:
            yield RAISED, {"error": run.error}
        if saved is not None and self._saved > run.ended and saved.strip() != run.source.strip():
            yield CHANGED, {}
        for missing, instead in run.undefined:
            yield OTHER_NAME, {"name": missing, "instead": f", only `{instead}`" if instead else ""}

    def cells(self) -> list[Any]:
        """The cells of this kernel's notebook as last saved; none if it is not known or cannot be read."""
        path = notebook_path(os.environ, Path.cwd())
        try:
            stamp = None if path is None else (path, path.stat().st_mtime_ns)
            if path is not None and stamp != self._read[0]:
                self._read = stamp, json.loads(path.read_text(encoding="utf-8"))["cells"]
            return [cell for cell in self._read[1] if is_code(cell)] if path is not None else []
        except (OSError, ValueError, TypeError, KeyError, RecursionError):
            return []

    def not_run(self, name: str) -> str:
        """The first line of a cell before the running one that has not run since the kernel started: one that would
        bind a name, else the one that brings the engine, whose text does not say what it defines. Empty if none is so.
        """
        *ran, running = (source.strip() for source in self.shell.history_manager.input_hist_raw)
        sources = [source_of(cell).strip() for cell in self.cells()]
        before = sources[: sources.index(running)] if running in sources else sources
        waiting = [source for source in before if source not in ran]
        binding = [source for source in waiting if name in bound_names(parse(source))]
        for source in (*binding, *(source for source in waiting if ENGINE in source)):
            return source.partition("\n")[0][:60]
        return ""

    @property
    def _saved(self) -> float:
        stamp = self._read[0]
        return stamp[1] / 1e9 if stamp else 0.0


def notebook_path(environment: Mapping[str, str], folder: Path) -> Path | None:
    """The notebook of a kernel that runs in `folder`: as Jupyter says, else the one with the folder's name."""
    said = Path(environment.get("JPY_SESSION_NAME", ""))
    places = (said, folder / said.name, folder / f"{folder.name}.ipynb")
    return next((path for path in places if path.suffix == ".ipynb" and path.is_file()), None)


def _found(info: Any, cells: Sequence[Any]) -> Any:
    """The cell that runs: by its id, else by its text, else the exercise that defines the same function or class."""
    if info is None or not getattr(info, "store_history", True):
        return None
    by_id = (cell for cell in cells if cell.get("id") and cell.get("id") == getattr(info, "cell_id", None))
    by_text = (cell for cell in cells if source_of(cell).strip() == info.raw_cell.strip())
    if found := next(by_id, None) or next(by_text, None):
        return found
    defined = set(defined_names(info.raw_cell))
    similar = (cell for cell in cells if is_code_solution(cell) and defined & set(defined_names(source_of(cell))))
    return next(similar, None)


def _exercises_of(test: Any, cells: Sequence[Any]) -> list[str]:
    """The exercises that a test cell is about: as the lesson says, else the last ones before it."""
    if said := tested_by(test):
        return list(said)
    found: list[str] = []
    for cell in reversed(cells[: cells.index(test)]):
        if is_code_solution(cell):
            found.append(grade_id(cell))
        elif found:
            break
    return found[::-1]


def next_after(test: Any, cells: Sequence[Any]) -> str:
    """What comes after a test cell among all cells of a lesson, in the words of its headings.

    Empty after the check of a quiz, which does not say whether all is right, and if another check of the same exercise
    follows.
    """
    own, section, heading = tested_by(test), "", ""
    if any(map(_is_quiz, own)):
        return ""
    for cell in cells[cells.index(test) + 1 :]:
        found = headings(source_of(cell)) if cell["cell_type"] == "markdown" else []
        section, heading = section or "".join(found[:1]), (found or [heading])[-1]
        if is_test(cell) and tested_by(cell).keys() & own.keys():
            return ""
        if is_code_solution(cell):
            return f"Next: {ended(section)}" + (f" Then: {ended(heading)}" if heading != section else "")
    return "That was the last exercise of this lesson." + (f" Next: {ended(section)}" if section else "")


def _names_of(exercise: str, cells: Sequence[Any]) -> Sequence[str]:
    """The functions and classes that an exercise has to define."""
    return next((tested_by(cell)[exercise] for cell in cells if exercise in tested_by(cell)), ())


def _is_quiz(exercise: str) -> bool:
    return exercise.endswith("_answers")


def _stored(source: str) -> set[str]:
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except SyntaxError:
        return set()
    names = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return names | {node.name for node in nodes if isinstance(node, kinds)}


def _shown(error: BaseException | None) -> str:
    if error is None:
        return ""
    if isinstance(error, SyntaxError):
        return f"{type(error).__name__}: {error.msg}" + (f" (line {error.lineno})" if error.lineno else "")
    text = (str(error).strip().splitlines() or [""])[0][:200].rstrip(".")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _display(text: str, color: str) -> None:
    from IPython.display import display

    style = f"font-family:{SANS};font-size:13px;color:{TEXT};border-left:4px solid {color};padding-left:10px"
    display({"text/plain": text, "text/html": f'<div style="{style}">{html.escape(text)}</div>'}, raw=True)
