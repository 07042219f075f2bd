"""Finds what an instructor should know about an assignment as a whole before trusting its marks. Changes no mark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from shlex import quote

import nbformat
from nbformat import NotebookNode

from autograder.grading.submission.assignments import Assignment
from autograder.notebooks.cells import grade_id, is_grade, is_task, marks
from autograder.notebooks.known_cells import Known, cells_in_rows

CHANGED = (
    "The gradebook's version is the one that was graded. If the source is right, run "
    "`nbgrader generate_assignment {assignment} --force`, and then `autograder grade {assignment}`. A running "
    "`autograder watch` grades again by itself."
)
OTHER_CELLS = (
    "nbgrader does not add or remove cells once an assignment has submissions: put such a test into a cell that the "
    "gradebook has."
)

OTHER_KERNEL = "{} is for {}, and the judge runs Python only. Grade this assignment with nbgrader itself."
PYTHON = "python"
EXPANDED = "AUTOTEST"  # nbgrader writes a test in place of such a line


def notices(assignment: Assignment, *, as_written: bool = True) -> list[str]:
    """Sentences, each about one cell, with what to do after each kind; none if all is well. `as_written`: the course's
    release leaves the text of test cells as it is.
    """
    other: list[str] = []
    for row in sorted(assignment.rows["notebook"], key=lambda row: row["name"]):
        name, known = row["name"], cells_in_rows(assignment.rows, row["id"])
        if source := _source(assignment, name):
            other += _other_cells(name, _marked(source), known)
    changed = differences(assignment, as_written=as_written)
    return [*changed, *_with_advice(other, OTHER_CELLS, assignment.name)]


def differences(assignment: Assignment, *, as_written: bool = True) -> list[str]:
    """Sentences about marked cells that differ between source and gradebook, then what to do; none if all agree."""
    found: list[str] = []
    for row in sorted(assignment.rows["notebook"], key=lambda row: row["name"]):
        if source := _source(assignment, row["name"]):
            known = cells_in_rows(assignment.rows, row["id"])
            found += _changed(row["name"], _marked(source), known, as_written)
    return _with_advice(found, CHANGED, assignment.name)


def other_kernels(assignment: Assignment) -> list[str]:
    """A sentence for each notebook that is not for Python. Judging it says nothing about it."""
    found = []
    for name in assignment.notebooks:
        about = (_source(assignment, name) or NotebookNode(metadata={})).metadata
        kernel = about.get("kernelspec", {})
        language = kernel.get("language") or about.get("language_info", {}).get("name") or PYTHON
        if language.casefold() != PYTHON:
            found.append(OTHER_KERNEL.format(f"{name}.ipynb", kernel.get("display_name") or language))
    return found


def _with_advice(found: list[str], advice: str, assignment: str) -> list[str]:
    return [*found, advice.format(assignment=quote(assignment))] if found else []


def _source(assignment: Assignment, name: str) -> NotebookNode | None:
    """The instructor's notebook as it is now; None if it is gone or cannot be read."""
    raw = assignment.files.get(f"{name}.ipynb")
    try:
        return None if raw is None else nbformat.reads(raw.decode(), as_version=4)
    except Exception:  # half saved, or in conflict: grading does not depend on it
        return None


def _marked(source: NotebookNode) -> dict[str, NotebookNode]:
    return {grade_id(cell): cell for cell in source.cells if is_grade(cell) or is_task(cell)}


def _changed(notebook: str, in_source: dict[str, NotebookNode], known: Known, as_written: bool) -> Iterator[str]:
    """Sentences about marked cells that are in both the source and the gradebook, but differ."""
    for name in [name for name in in_source if name in known]:
        cell, where = in_source[name], f"cell {name!r} of {notebook}.ipynb"
        points, there = marks(cell).get("points"), known[name].points
        if isinstance(points, int | float) and there is not None and points != there:
            yield f"{where} has {points:g} points in the source and {there:g} in the gradebook."
        same = not known[name].locked or EXPANDED in cell.source or cell.source == known[name].source
        if as_written and not same:
            yield f"{where} differs between the source and the gradebook."


def _other_cells(notebook: str, in_source: Iterable[str], known: Known) -> Iterator[str]:
    """Sentences about marked cells that are only in the source or only in the gradebook."""
    marked = {cell.name for cell in known.values() if cell.grade or cell.task}
    for name in in_source:
        if name not in marked:
            yield f"cell {name!r} of {notebook}.ipynb is in the source and not in the gradebook, so it is not graded."
    for name in sorted(marked - set(in_source)):
        yield f"cell {name!r} of {notebook}.ipynb is in the gradebook and not in the source; it is still graded."
