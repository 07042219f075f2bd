"""The folders that a worker works in, and what it says where it cannot work: shared by both ways of grading."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from autograder.grading.assignments import Assignment
from autograder.grading.records import Status
from autograder.grading.results import CellResult, Result


@dataclass(frozen=True)
class Places:
    """Folders as nbgrader names them, below a root of the worker's own."""

    root: Path
    assignment: str

    def folder(self, step: str, student: str) -> Path:
        return self.root / step / student / self.assignment

    def empty(self) -> None:
        """Take away what the last submission has left."""
        for step in ("submitted", "autograded"):
            shutil.rmtree(self.root / step, ignore_errors=True)


def write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def failure(assignment: Assignment, student: str, status: Status, reason: str) -> Result:
    """A result without a graded notebook: no points, and the reason in the place of every comment."""
    names = {row["id"]: row["name"] for row in assignment.rows["notebook"]}
    cells = {row["id"]: (names[row["notebook_id"]], row["name"]) for row in assignment.rows["base_cell"]}
    graded = [*assignment.rows["grade_cells"], *assignment.rows["task_cells"]]
    commented = [*assignment.rows["solution_cells"], *assignment.rows["task_cells"]]
    return Result(
        student,
        assignment.name,
        status,
        reason=reason,
        cells=tuple(CellResult(*cells[row["id"]], 0.0, row["max_score"]) for row in graded),
        comments=tuple((*cells[row["id"]], f"Not graded: {reason}") for row in commented),
        penalties=tuple((name, None) for name in names.values()),
    )
