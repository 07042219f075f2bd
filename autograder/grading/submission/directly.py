"""Grades one submission without nbgrader's converter, but with the same resulting files, marks and comments.

The files of a submission and of the course go where nbgrader would put them; `nbgrader_plugins.direct` processes the
notebooks.
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import PurePosixPath

from nbformat import NotebookNode

from autograder.files import write_file
from autograder.grading.submission.assignments import Assignment, Submission
from autograder.grading.submission.graded_notebooks import cell_result, result_of
from autograder.grading.submission.result import GradedCell, Result
from autograder.grading.submission.work_folders import WorkFolders
from autograder.judge import rehearse_apart
from autograder.nbgrader_plugins.direct import (
    KnownNotebook,
    Unusual,
    as_text,
    comments,
    graded_notebook,
    known_notebooks,
    limits_of,
    scores,
)
from autograder.nbgrader_plugins.times import TIMESTAMP, read_time
from autograder.notebooks.cells import grade_id
from autograder.notebooks.verdicts import SolutionTrial, verdict

READ_ONLY = 0o444


class DirectWay:
    """An assignment read once, and submissions graded against it."""

    def __init__(self, assignment: Assignment, folders: WorkFolders) -> None:
        self.assignment, self.folders = assignment, folders
        self.notebooks = known_notebooks(assignment.rows, assignment.files)
        self.ignored = (*assignment.ignored, "*.ipynb")
        self.due: datetime | None = assignment.rows["assignment"][0]["duedate"]

    def grade(self, submission: Submission) -> Result:
        """Return the result, and leave the graded notebooks in the autograded folder. Raises `Unusual`."""
        student, files = submission.student, submission.files
        folder = self.folders.folder("autograded", student)
        folder.mkdir(parents=True)
        timestamp = read_time(files.get(TIMESTAMP, b""), self.assignment.settings.zone)
        if self.assignment.penalties and self._is_late(timestamp, submission):
            raise Unusual
        beside = self._beside(submission)
        for name, content in beside.items():
            write_file(folder / name, content)
        graded = {
            name: graded_notebook(raw, known, self.assignment.settings, beside, self.trial(name), student)
            for name, known in self.notebooks.items()
            for raw in self._handed_in(submission, name)
        }
        for name in self._kept(submission.links):
            path = folder / name
            if not path.exists():
                write_file(path, b"")  # a link is not followed: it becomes an empty file
        for name, notebook in graded.items():
            write_file(folder / f"{name}.ipynb", as_text(notebook).encode())
        for directory, _, names in os.walk(folder):
            for name in names:
                os.chmod(os.path.join(directory, name), READ_ONLY)
        return self._result(student, timestamp, graded)

    def rehearse(self) -> None:
        """Prepare this process to judge many submissions."""
        settings = self.assignment.settings
        for known in self.notebooks.values():
            rehearse_apart(known.source, secret=settings.secret, limits=limits_of(settings), unsafe=settings.unsafe)

    def trial(self, notebook: str) -> SolutionTrial:
        """What the trial of a notebook's solution has found; nothing if there was none."""
        return self.assignment.trials.get(notebook, SolutionTrial())

    def _handed_in(self, submission: Submission, name: str) -> Iterator[bytes | None]:
        """Yield the file of a notebook, None for a link, or nothing if it was not handed in."""
        file = f"{name}.ipynb"
        if any(other.startswith(f"{file}/") for other in (*submission.files, *submission.links)):
            raise Unusual  # a folder that is named like a notebook
        if file in submission.links:
            yield None
        elif file in submission.files:
            yield submission.files[file]

    def _beside(self, submission: Submission) -> dict[str, bytes]:
        """What a submission may read: its own files, and the course's, which replace them."""
        both = {**submission.files, **self.assignment.files}
        return {name: both[name] for name in self._kept(both)}

    def _kept(self, names: Iterable[str]) -> Iterator[str]:
        """The names of which no part matches a pattern that the course ignores."""
        for name in names:
            parts = (self.assignment.name, *PurePosixPath(name).parts)
            if not any(_matches(part, pattern) for part in parts for pattern in self.ignored):
                yield name

    def _is_late(self, timestamp: datetime | None, submission: Submission) -> bool:
        extension = submission.earlier.extension or timedelta()
        return timestamp is not None and self.due is not None and timestamp > self.due + extension

    def _result(self, student: str, timestamp: datetime | None, graded: dict[str, NotebookNode]) -> Result:
        said = {
            name: comments(graded[name], known) if name in graded else {cell.name: None for cell in known.commented}
            for name, known in self.notebooks.items()
        }
        return result_of(
            student,
            self.assignment.name,
            graded,
            timestamp=timestamp,
            cells=(cell for name, known in self.notebooks.items() for cell in _cells(known, graded.get(name))),
            comments=((name, cell, text) for name, texts in said.items() for cell, text in texts.items()),
            penalties=((name, None) for name in self.notebooks),
        )


def _cells(known: KnownNotebook, graded: NotebookNode | None) -> Iterator[GradedCell]:
    """The graded cells of one notebook, in its order. Without the notebook, all of them have no points."""
    if graded is None:
        for cell in known.graded:
            yield GradedCell(known.name, cell.name, 0.0, cell.points or 0.0)
        return
    notes = {grade_id(cell): verdict(cell) for cell in graded.cells}
    for cell, points in scores(graded, known):
        yield cell_result(known.name, cell.name, points, cell.points or 0.0, notes[cell.name])


def _matches(name: str, pattern: str) -> bool:
    """Match as in a shell, where a pattern that begins with a wildcard does not match hidden files."""
    hidden = name.startswith(".") and not pattern.startswith(".")
    return not hidden and fnmatch.fnmatchcase(name, pattern)
