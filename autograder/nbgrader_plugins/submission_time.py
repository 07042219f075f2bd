"""Corrects the time of a submission in the gradebook before nbgrader calculates late penalties.

nbgrader's converter has read it from `timestamp.txt` by then, with a reader that is hours off for most zones.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nbformat import NotebookNode
from nbgrader.api import Gradebook
from nbgrader.preprocessors import NbGraderPreprocessor

from autograder.nbgrader_plugins.converter_context import course_directory
from autograder.nbgrader_plugins.times import TIMESTAMP, read_time, zone_of


class SubmissionTime(NbGraderPreprocessor):
    """Writes the time in `timestamp.txt`, as `read_time` understands it. Runs before AssignLatePenalties."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        coursedir, place = course_directory(self), resources["nbgrader"]
        folder = coursedir.format_path(coursedir.submitted_directory, place["student"], place["assignment"])
        file = Path(folder, TIMESTAMP)
        moment = read_time(file.read_bytes(), zone_of(self.config)) if file.is_file() else None
        if moment is not None:
            with Gradebook(place["db_url"]) as gradebook:
                gradebook.find_submission(place["assignment"], place["student"]).timestamp = moment
                gradebook.db.commit()
        return nb, resources
