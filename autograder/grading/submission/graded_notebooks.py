"""Turns graded notebooks into a `Result`, for both ways of grading."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from nbformat import NotebookNode

from autograder.grading.submission.result import GradedCell, Result
from autograder.notebooks.reading import note_of


def result_of(
    student: str,
    assignment: str,
    graded: Mapping[str, NotebookNode],
    *,
    timestamp: datetime | None,
    cells: Iterable[GradedCell],
    comments: Iterable[tuple[str, str, str | None]],
    penalties: Iterable[tuple[str, float | None]],
) -> Result:
    """The result of a submission with these graded notebooks, by name."""
    problems = [problem for notebook in graded.values() if (problem := note_of(notebook, "problem"))]
    return Result(
        student,
        assignment,
        "unreadable" if problems else "graded",
        reason=problems[0] if problems else "",
        isolation=next((note_of(notebook, "isolation") for notebook in graded.values()), ""),
        timestamp=timestamp.isoformat() if timestamp else None,
        cells=tuple(cells),
        comments=tuple(comments),
        penalties=tuple(penalties),
        notebooks=tuple(graded),
    )


def cell_result(
    notebook: str, name: str, points: float | None, max_points: float, note: Mapping[str, Any]
) -> GradedCell:
    """A graded cell, with what the judge has noted on it."""
    said = str(note.get("message") or "")
    return GradedCell(notebook, name, points, max_points, said, bugs_of(note), note.get("inside") is True)


def bugs_of(note: Mapping[str, Any]) -> tuple[str, ...]:
    """The bugs that a judge's note on a test cell is certain of, by name."""
    names = note.get("bugs")
    return tuple(name for name in names if isinstance(name, str)) if isinstance(names, list | tuple) else ()
