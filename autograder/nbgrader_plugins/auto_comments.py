"""What the judge found, as nbgrader's automatic comment on the student's answer.

nbgrader keeps comments for solution cells only, so a test cell's message goes to the answer it tests: the last solution
cell before it. Runs after SaveAutoGrades, which resets these comments.
"""

from __future__ import annotations

from typing import Any

from nbformat import NotebookNode
from nbgrader.api import Gradebook
from nbgrader.preprocessors import NbGraderPreprocessor

from autograder.notebooks.verdicts import NO_RESPONSE, messages_by_answer


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
