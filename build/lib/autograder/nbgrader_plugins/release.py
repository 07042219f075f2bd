"""What we add to nbgrader's steps of a release, which `configuration.RELEASE` lists."""

from __future__ import annotations

import re

from nbconvert.exporters.exporter import ResourcesDict
from nbformat import NotebookNode
from nbgrader.preprocessors import NbGraderPreprocessor

from autograder.notebooks.cells import grade_id, is_code_solution, is_test
from autograder.notebooks.unclaimed import unclaimed_points

QUIZ_ANSWERS = re.compile(r"\A\w+_answers = \{\n(?:    .*\n)*\}\n")


class ReleaseError(Exception):
    """The student's version would show something that students must not see, or give marks for nothing."""


class RefuseUnclaimedPoints(NbGraderPreprocessor):
    """Refuses a test cell that would give full marks to everybody, because it forgets what its checks gave."""

    def preprocess_cell(
        self, cell: NotebookNode, resources: ResourcesDict, cell_index: int
    ) -> tuple[NotebookNode, ResourcesDict]:
        """Raises ReleaseError with the cell's name, the line, and what to write there."""
        if is_test(cell) and (lost := unclaimed_points(cell.source)):
            raise ReleaseError(f"test cell {grade_id(cell)!r}, line {lost[0]}: {lost[1]}")
        return cell, resources


class QuizStubs(NbGraderPreprocessor):
    """Removes nbgrader's stub from a quiz's answer cell, whose empty answers are stub enough. After ClearSolutions."""

    def preprocess_cell(
        self, cell: NotebookNode, resources: ResourcesDict, cell_index: int
    ) -> tuple[NotebookNode, ResourcesDict]:
        """Leave the dictionary of empty answers only."""
        if is_code_solution(cell):
            answers = QUIZ_ANSWERS.match(cell.source)
            if answers and "raise NotImplementedError" in cell.source[answers.end() :]:
                cell.source = answers[0].rstrip()
        return cell, resources
