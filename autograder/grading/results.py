"""Reads what grading has left behind: marks from the gradebook, messages and reasons from the autograded notebooks."""

from __future__ import annotations

from collections.abc import Iterator

import nbformat
from nbformat import NotebookNode
from nbgrader.api import MissingEntry, SubmittedNotebook

from autograder.grading.courses import Course
from autograder.grading.records import CellRecord, Status, SubmissionRecord
from autograder.nbgrader_plugins.auto_comments import verdict
from autograder.nbgrader_plugins.context import grade_id
from autograder.nbgrader_plugins.submissions import note_of


def record_of(
    course: Course, assignment: str, student: str, status: Status, seconds: float, reason: str = ""
) -> SubmissionRecord:
    """The record of one submission. One of which a notebook could not be read is `unreadable`, with that reason."""
    with course.gradebook() as gradebook:
        try:
            submission = gradebook.find_submission(assignment, student)
        except MissingEntry:
            return SubmissionRecord(student, assignment, "failed", seconds=seconds, reason="No result was recorded.")
        notebooks = graded_notebooks(course, assignment, student, [entry.name for entry in submission.notebooks])
        problems = [problem for notebook in notebooks.values() if (problem := note_of(notebook, "problem"))]
        if problems and status == "graded":
            status, reason = "unreadable", problems[0]
        cells = [cell for entry in submission.notebooks for cell in _cells(entry, notebooks.get(entry.name))]
        return SubmissionRecord(
            student=student,
            assignment=assignment,
            status=status,
            points=submission.score,
            max_points=submission.max_score,
            seconds=round(seconds, 3),
            cells=tuple(cells),
            reason=reason,
            isolation=next((note_of(notebook, "isolation") for notebook in notebooks.values()), ""),
            late_penalty=submission.late_submission_penalty or 0.0,
        )


def graded_notebooks(course: Course, assignment: str, student: str, names: list[str]) -> dict[str, NotebookNode]:
    """The autograded notebooks of a submission, by name; those that were not handed in are left out."""
    folder = course.folder("autograded", student, assignment)
    paths = {name: folder / f"{name}.ipynb" for name in names}
    return {name: nbformat.read(path, as_version=4) for name, path in paths.items() if path.is_file()}


def _cells(entry: SubmittedNotebook, graded: NotebookNode | None) -> Iterator[CellRecord]:
    """The graded cells of one notebook, in its order."""
    notes = {grade_id(cell): verdict(cell) for cell in graded.cells} if graded else {}
    order = list(notes)
    for grade in sorted(entry.grades, key=lambda grade: order.index(grade.name) if grade.name in notes else -1):
        points = None if grade.auto_score is None and grade.manual_score is None else grade.score
        message = str(notes.get(grade.name, {}).get("message") or "")
        yield CellRecord(grade.name, points, grade.max_score, message, entry.name)
