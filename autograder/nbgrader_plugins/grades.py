"""Marks for a feedback page, and which of them are still open: a person has to give those points."""

from __future__ import annotations

from typing import Any

from nbformat import NotebookNode
from nbgrader import preprocessors
from traitlets import List

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
        cell.metadata.nbgrader["waiting"] = is_waiting(grade.needs_manual_grade, grade.auto_score, grade.manual_score)
