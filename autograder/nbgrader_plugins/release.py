"""The steps that we add to nbgrader's release, as listed in `configuration.RELEASE`."""

from __future__ import annotations

import re

from nbconvert.exporters.exporter import ResourcesDict
from nbformat import NotebookNode
from nbgrader.preprocessors import ClearMarkScheme, NbGraderPreprocessor
from traitlets import Bool

from autograder.notebooks.cells import grade_id, is_code_solution, is_locked, is_task
from autograder.quizzes import sealing
from autograder.sandbox.inside import engine_file

QUIZ_ANSWERS = re.compile(r"\A\w+_answers = \{\n(?:    .*\n)*\}\n")


class ReleaseError(Exception):
    """The student's version would show something that students must not see, or give marks for nothing."""


class HoldBack(NbGraderPreprocessor):
    """Takes the reference engine and the answers of quizzes out of what students get. After SaveCells: the gradebook
    has the whole cells, and puts them back for grading."""

    enabled = Bool(False, help="Keep the reference engine and quiz answers out of the release.").tag(config=True)

    def preprocess_cell(
        self, cell: NotebookNode, resources: ResourcesDict, cell_index: int
    ) -> tuple[NotebookNode, ResourcesDict]:
        """Raises ReleaseError for a cell that grading could not restore because it is not locked."""
        source = engine_file.SEALED_ENGINE.sub(_without_solutions, cell.source)
        source = sealing.SEALED_TEXT.sub(_without_records, source)
        if source != cell.source and not is_locked(cell):
            raise ReleaseError(f"cell {grade_id(cell) or cell.id!r} must be locked, or its answers cannot be held back")
        cell.source = source
        return cell, resources


class ClearMarkSchemes(ClearMarkScheme):
    """Removes mark schemes also from a locked cell above the cell for the answer: nbgrader restores it for grading, so
    that the person who grades the answer sees the scheme. An untouched answer then needs nobody, unlike a task.
    """

    enforce_metadata = Bool(False, help="Allow mark schemes in tasks alone.").tag(config=True)

    def preprocess_cell(
        self, cell: NotebookNode, resources: ResourcesDict, cell_index: int
    ) -> tuple[NotebookNode, ResourcesDict]:
        """Raises ReleaseError for a cell that grading could not restore because it is not locked."""
        removed = self._remove_mark_scheme_region(cell)
        if removed and not (is_task(cell) or is_locked(cell)):
            raise ReleaseError(f"cell {grade_id(cell) or cell.id!r} must be locked, or its mark scheme is lost")
        return cell, resources


def _without_solutions(call: re.Match[str]) -> str:
    engine = engine_file.held_back(engine_file.open_engine(call[1]))
    return call[0].replace(call[1], engine_file.seal_engine(engine))


def _without_records(text: re.Match[str]) -> str:
    return f'"{sealing.held_back(text[1])}"' if text[1].startswith("quiz") else text[0]


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
