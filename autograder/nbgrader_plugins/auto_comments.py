"""What the judge found, as nbgrader's automatic comment on the student's answer.

nbgrader keeps comments for solution cells only, so a test cell's message goes to the answer it tests: the last solution
cell before it. Runs after SaveAutoGrades, which resets these comments.
"""

from __future__ import annotations

from typing import Any

from nbformat import NotebookNode
from nbgrader import utils
from nbgrader.api import Gradebook
from nbgrader.preprocessors import NbGraderPreprocessor

from autograder.nbgrader_plugins.context import grade_id

NO_RESPONSE = "No response."


class AutoComments(NbGraderPreprocessor):
    """Writes the messages of the tests that cost points into the comments of the answers."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        place = resources["nbgrader"]
        with Gradebook(place["db_url"]) as gradebook:
            for name, messages in messages_by_answer(nb).items():
                comment = gradebook.find_comment(name, place["notebook"], place["assignment"], place["student"])
                if comment.auto_comment != NO_RESPONSE:
                    comment.auto_comment = "\n\n".join(messages)
            gradebook.db.commit()
        return nb, resources


def messages_by_answer(nb: NotebookNode) -> dict[str, list[str]]:
    """The messages of the tests that cost points, by the grade_id of the answer that they are about."""
    found: dict[str, list[str]] = {}
    answer: str | None = None
    for cell in nb.cells:
        if utils.is_solution(cell):
            answer = grade_id(cell)
        elif utils.is_grade(cell) and answer is not None:
            note = verdict(cell)
            message, points = note.get("message"), note.get("points")
            if message and (points is None or points < float(cell.metadata.nbgrader["points"])):
                found.setdefault(answer, []).append(str(message))
    return found


def verdict(cell: NotebookNode) -> dict[str, Any]:
    """What the judge noted in the outputs of a test cell: `message`, `points`, `bugs`. Empty where it noted nothing."""
    for output in cell.get("outputs", []):
        note = output.get("metadata", {}).get("autograder")
        if isinstance(note, dict):
            return note
    return {}
