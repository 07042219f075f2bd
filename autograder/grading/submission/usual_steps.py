"""nbgrader's steps of grading as plain functions: what its preprocessors and ours do to a notebook, in the same order.

nbgrader copies and checks a notebook after each of fourteen preprocessors, and asks the gradebook for every cell. For a
course whose configuration leaves them as they are, these functions do the same on plain data, in a seventh of the
processor time; a test compares both. They need neither nbgrader nor a gradebook.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import nbformat
from nbformat import NotebookNode

from autograder.grading.submission.assignments import Assignment
from autograder.grading.submission.result import Graded
from autograder.judge import Source, judge_apart
from autograder.nbgrader_plugins.configuration import Settings
from autograder.notebooks.cells import grade_id, is_untouched
from autograder.notebooks.known_cells import (
    KnownCell,
    add_missing_cells,
    cells_in_rows,
    in_order,
    repair_metadata,
    restore_sources,
)
from autograder.notebooks.verdicts import (
    NO_RESPONSE,
    CellVerdict,
    SolutionTrial,
    earned_points,
    messages_by_answer,
    verdict,
)
from autograder.sandbox.process.limits import Limits

MOST_LINES, MOST_TRACEBACK = 1000, 100  # nbgrader's LimitOutput


@dataclass(frozen=True)
class KnownNotebook:
    """The instructor's notebook: its cells in the gradebook, and its source with the files beside it."""

    name: str
    kernelspec: dict[str, Any] | None
    cells: Mapping[str, KnownCell]
    source: Source

    @cached_property
    def order(self) -> list[str]:
        return in_order(self.cells, self.source.notebook)

    @property
    def graded(self) -> list[KnownCell]:
        return [cell for cell in self.cells.values() if cell.grade or cell.task]

    @property
    def commented(self) -> list[KnownCell]:
        return [cell for cell in self.cells.values() if cell.solution or cell.task]


def known_notebooks(rows: Mapping[str, list[dict[str, Any]]], files: Mapping[str, bytes]) -> dict[str, KnownNotebook]:
    """The notebooks of an assignment, from its rows of the gradebook and the files of its source folder."""
    found = {}
    for row in rows["notebook"]:
        raw = files.get(f"{row['name']}.ipynb")
        source = None if raw is None else nbformat.reads(raw.decode(), as_version=4)
        kernelspec = json.loads(row["kernelspec"]) if row["kernelspec"] else None
        cells = cells_in_rows(rows, row["id"])
        found[row["name"]] = KnownNotebook(row["name"], kernelspec, cells, Source(source, files))
    return found


def run(
    notebooks: Mapping[str, NotebookNode],
    known: Mapping[str, KnownNotebook],
    assignment: Assignment,
    files: Mapping[str, bytes],
    student: str,
) -> Graded:
    """Run all steps on these notebooks, in place. `files`: those beside them."""
    cells: list[CellVerdict] = []
    said: list[tuple[str, str, str | None]] = []
    for name, notebook in notebooks.items():
        instructors = known[name]
        restore(notebook, instructors)
        judge(notebook, instructors, assignment, files, student)
        for cell in notebook.cells:
            if cell.cell_type == "code":
                limit_streams(cell)
                limit_tracebacks(cell)
        cells += verdicts(notebook, instructors)
        said += [(name, cell, text) for cell, text in comments(notebook, instructors).items()]
        nbformat.validate(notebook, relax_add_props=True)
    return Graded(notebooks, cells, said, penalties=[(name, None) for name in notebooks])


def restore(notebook: NotebookNode, known: KnownNotebook) -> None:
    """Remove the student's outputs, and put back everything that is the instructor's."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
            for name in ("collapsed", "scrolled"):
                cell.metadata.pop(name, None)
    repair_metadata(notebook, known.cells)
    if known.kernelspec:
        notebook.metadata["kernelspec"] = known.kernelspec
    restore_sources(notebook, known.cells)
    add_missing_cells(notebook, known.cells, known.order)


def judge(
    notebook: NotebookNode,
    known: KnownNotebook,
    assignment: Assignment,
    files: Mapping[str, bytes],
    student: str,
) -> None:
    """Run the notebook and its tests. The trial of the solution says which of them run inside."""
    settings, trial = assignment.settings, assignment.trials.get(known.name, SolutionTrial())
    judged = judge_apart(
        notebook,
        source=known.source,
        secret=settings.secret,
        limits=limits_of(settings),
        files=files,
        unsafe=settings.unsafe,
        inside=tuple(trial.inside),
        undecided=tuple(trial.failed),
        student=student,
    )
    notebook.metadata["autograder"] = {**notebook.metadata.get("autograder", {}), "isolation": judged.isolation}


def limits_of(settings: Settings) -> Limits:
    return Limits(cell_seconds=settings.cell_seconds, query_seconds=settings.query_seconds)


def verdicts(notebook: NotebookNode, known: KnownNotebook) -> Iterator[CellVerdict]:
    """The verdicts on the graded cells, in the order of the notebook. A person has to grade those without points."""
    for cell in notebook.cells:
        there = known.cells.get(grade_id(cell))
        if there is not None and (there.grade or there.task):
            points = None if there.task else earned_points(cell)
            yield replace(verdict(cell), notebook=known.name, points=points, max_points=there.points or 0.0)


def comments(notebook: NotebookNode, known: KnownNotebook) -> dict[str, str | None]:
    """The automatic comment on each answer: that there is no response, or why its tests cost points."""
    found: dict[str, str | None] = {cell.name: None for cell in known.commented}
    messages = messages_by_answer(notebook)
    for cell in notebook.cells:
        name = grade_id(cell)
        if name in found and not known.cells[name].task and is_untouched(cell):
            found[name] = NO_RESPONSE
        elif name in messages:
            found[name] = "\n\n".join(messages[name])
    return found


def limit_streams(cell: NotebookNode) -> None:
    length, kept = 0, []
    for output in cell.outputs:
        if output.output_type == "stream":
            if length == MOST_LINES:
                continue
            lines = output.text.split("\n")
            if len(lines) + length > MOST_LINES:
                lines = [*lines[: MOST_LINES - length - 1], "... Output truncated ..."]
            length += len(lines)
            output.text = "\n".join(lines)
        kept.append(output)
    cell.outputs = kept


def limit_tracebacks(cell: NotebookNode) -> None:
    for output in cell.outputs:
        if output.output_type == "error" and len(output.traceback) > MOST_TRACEBACK:
            half = MOST_TRACEBACK // 2
            rest = MOST_TRACEBACK - half - 1
            output.traceback = [*output.traceback[:half], "... Traceback truncated ...", *output.traceback[-rest:]]
