"""The result of a submission that could not be graded, for both ways of grading."""

from __future__ import annotations

from autograder.grading.submission.assignments import Assignment
from autograder.grading.submission.class_records import Status
from autograder.grading.submission.result import GradedCell, Result


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
        cells=tuple(GradedCell(*cells[row["id"]], 0.0, row["max_score"]) for row in graded),
        comments=tuple((*cells[row["id"]], f"Not graded: {reason}") for row in commented),
        penalties=tuple((name, None) for name in names.values()),
    )
