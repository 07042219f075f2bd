"""The result of one submission: everything that the gradebook and a report need, as JSON.

A result is self-contained. Writing it into the gradebook twice is the same as writing it once, which is what makes a
run resumable.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from autograder.grading.submission.assignments import Assignment
from autograder.grading.submission.class_records import Status
from autograder.notebooks.verdicts import CellVerdict

if TYPE_CHECKING:
    from nbformat import NotebookNode


EARLIER_NAMES = {"name": "grade_id", "auto": "points"}
"""Names in results that an earlier version has kept in the gradebook."""


@dataclass(frozen=True)
class Graded:
    """What the steps of grading make of the notebooks that were handed in: these with outputs, by name, and their marks
    and comments. `penalties`: the points that lateness takes from each.
    """

    notebooks: Mapping[str, NotebookNode]
    cells: list[CellVerdict]
    comments: list[tuple[str, str, str | None]]
    penalties: list[tuple[str, float | None]]


@dataclass(frozen=True)
class Result:
    """The outcome of grading one submission. `comments` and `penalties` are nbgrader's, by notebook and cell.

    `fingerprint` covers the submission, the tests and the grader; it is empty if the result must not be reused.
    `handed_in` is the digest of the submission alone.
    """

    student: str
    assignment: str
    status: Status
    fingerprint: str = ""
    handed_in: str = ""
    seconds: float = 0.0
    reason: str = ""
    isolation: str = ""
    timestamp: str | None = None
    cells: tuple[CellVerdict, ...] = ()
    comments: tuple[tuple[str, str, str | None], ...] = ()
    penalties: tuple[tuple[str, float | None], ...] = ()
    notebooks: tuple[str, ...] = ()

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Result:
        """Raises ValueError or TypeError for a text that is not a result."""
        found: dict[str, Any] = json.loads(text)
        result = cls(**found)
        return replace(
            result,
            cells=tuple(_cell(cell) for cell in found["cells"]),
            comments=tuple((notebook, cell, text) for notebook, cell, text in found["comments"]),
            penalties=tuple((notebook, penalty) for notebook, penalty in found["penalties"]),
            notebooks=tuple(found["notebooks"]),
        )


def _cell(found: Mapping[str, Any]) -> CellVerdict:
    renamed = {EARLIER_NAMES.get(name, name): value for name, value in found.items()}
    return CellVerdict(**{**renamed, "bugs": tuple(found["bugs"])})


def nothing(notebook: str, grade_id: str, max_points: float) -> CellVerdict:
    """The verdict on a cell that was not handed in, or not graded."""
    return CellVerdict(grade_id, 0.0, max_points, notebook=notebook)


def ungraded(assignment: Assignment, student: str, status: Status, reason: str) -> Result:
    """A result without a graded notebook: no points, and the reason as every comment."""
    names = {row["id"]: row["name"] for row in assignment.rows["notebook"]}
    cells = {row["id"]: (names[row["notebook_id"]], row["name"]) for row in assignment.rows["base_cell"]}
    graded = [*assignment.rows["grade_cells"], *assignment.rows["task_cells"]]
    commented = [*assignment.rows["solution_cells"], *assignment.rows["task_cells"]]
    return Result(
        student,
        assignment.name,
        status,
        reason=reason,
        cells=tuple(nothing(*cells[row["id"]], row["max_score"]) for row in graded),
        comments=tuple((*cells[row["id"]], f"Not graded: {reason}") for row in commented),
        penalties=tuple((name, None) for name in names.values()),
    )
