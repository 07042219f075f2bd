"""What a feedback page needs from the gradebook: marks, which of them are still open (a person has to give those
points), whose they are, and when the work was handed in and due.
"""

from __future__ import annotations

from typing import Any

from nbformat import NotebookNode
from nbgrader import preprocessors
from nbgrader.api import SubmittedAssignment
from traitlets import List

from autograder.nbgrader_plugins.times import seconds_late, shown_time, span
from autograder.notebooks.verdicts import is_waiting


class GetGrades(preprocessors.GetGrades):
    """nbgrader's step, which writes scores and comments from the gradebook into a notebook's metadata. Notes `waiting`
    beside a score.
    """

    # Of no use here; without it nbgrader warns at each page, since the exporter sets it for all preprocessors.
    display_data_priority: Any = List(config=True)

    def _get_score(self, cell: NotebookNode, resources: Any) -> None:
        super()._get_score(cell, resources)
        about = cell.metadata["nbgrader"]["grade_id"], self.notebook_id, self.assignment_id, self.student_id
        grade = self.gradebook.find_grade(*about)
        resources["nbgrader"].setdefault("whose", whose(grade.notebook.assignment))
        cell.metadata.nbgrader["waiting"] = is_waiting(grade.needs_manual_grade, grade.auto_score, grade.manual_score)


def whose(submission: SubmittedAssignment) -> str:
    """The student, when the work was handed in, and when it was due, with an extension; as far as they are known."""
    student, due = submission.student, submission.assignment.duedate
    name = " ".join(filter(None, (student.first_name, student.last_name)))
    said = [f"{name} ({student.id})" if name else str(student.id)]
    if submission.timestamp is not None:
        said.append(f"handed in {shown_time(submission.timestamp)}")
    if due is not None:
        said.append(f"due {shown_time(due + submission.extension if submission.extension else due)}")
    late = seconds_late(submission.timestamp, due, submission.extension)
    return ", ".join(said + [f"late by {span(late)}"] * (late > 0))
