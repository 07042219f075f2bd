"""Grades one submission: its files go where nbgrader would put them, and its notebooks through the steps of grading.

The steps are plain functions, unless a course has set others or a submission is late where that costs points.
"""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import cached_property
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import nbformat
from nbformat import NotebookNode

from autograder.files import write_file
from autograder.grading.submission import usual_steps
from autograder.grading.submission.assignments import Assignment, Submission, WorkFolders
from autograder.grading.submission.result import Graded, Result, nothing
from autograder.judge import rehearse_apart
from autograder.nbgrader_plugins.times import TIMESTAMP, read_time, seconds_late
from autograder.notebooks.reading import NO_FILE, note_of, read_submission, stand_in

if TYPE_CHECKING:
    from autograder.grading.submission.own_steps import OwnSteps

READ_ONLY = 0o444


class Grader:
    """An assignment read once, and submissions graded against it."""

    def __init__(self, assignment: Assignment, folders: WorkFolders) -> None:
        self.assignment, self.folders = assignment, folders
        self.notebooks = usual_steps.known_notebooks(assignment.rows, assignment.files)
        self.ignored = (*assignment.ignored, "*.ipynb")

    @cached_property
    def own_steps(self) -> OwnSteps:
        """The course's own steps. nbgrader takes a second to import, so they wait until they are needed."""
        from autograder.grading.submission.own_steps import OwnSteps

        return OwnSteps(self.assignment, self.folders)

    def grade(self, submission: Submission) -> Result:
        """Return the result, and leave the graded notebooks in the autograded folder."""
        timestamp = read_time(submission.files.get(TIMESTAMP, b""), self.assignment.settings.zone)
        own = self.own_steps if self._needs_own_steps(timestamp, submission) else None
        if own is not None:
            submission = own.hand_in(submission)
        folder = self.folders.folder("autograded", submission.student)
        folder.mkdir(parents=True)
        beside = self._beside(submission, own.not_overwritten if own else ())
        for name, content in beside.items():
            write_file(folder / name, content)
        notebooks = dict(self._handed_in(submission))
        if own is not None:
            graded = own.run(notebooks, submission, timestamp)
        else:
            graded = usual_steps.run(notebooks, self.notebooks, self.assignment, beside, submission.student)
        for name in self._kept(submission.links):
            if not (folder / name).exists():
                write_file(folder / name, b"")  # a link is not followed: it becomes an empty file
        for name, notebook in graded.notebooks.items():
            write_file(folder / f"{name}.ipynb", f"{nbformat.v4.writes(notebook)}\n".encode())
        if own is not None:
            own.finish(submission)
        else:
            for directory, _, names in os.walk(folder):
                for name in names:
                    os.chmod(os.path.join(directory, name), READ_ONLY)
        return self._result(submission, timestamp, graded)

    def rehearse(self) -> None:
        """Prepare this process to judge many submissions."""
        settings = self.assignment.settings
        for known in self.notebooks.values():
            limits = usual_steps.limits_of(settings)
            rehearse_apart(known.source, secret=settings.secret, limits=limits, unsafe=settings.unsafe)

    def _result(self, submission: Submission, timestamp: datetime | None, graded: Graded) -> Result:
        """The result of a submission. A notebook that was not handed in has no points and no comments."""
        noted = {name: note_of(notebook, "problem") for name, notebook in graded.notebooks.items()}
        one = len(self.notebooks) == 1
        problems = [problem if one else f"{name}.ipynb: {problem}" for name, problem in noted.items() if problem]
        absent = [known for name, known in self.notebooks.items() if name not in graded.notebooks]
        lost = [nothing(known.name, cell.name, cell.points or 0.0) for known in absent for cell in known.graded]
        comments = ((known.name, cell.name, None) for known in absent for cell in known.commented)
        return Result(
            submission.student,
            self.assignment.name,
            "unreadable" if problems else "graded",
            reason=" ".join(problems),
            isolation=next((note_of(notebook, "isolation") for notebook in graded.notebooks.values()), ""),
            timestamp=timestamp.isoformat() if timestamp else None,
            cells=(*graded.cells, *lost),
            comments=(*graded.comments, *comments),
            penalties=(*graded.penalties, *((known.name, None) for known in absent)),
            notebooks=tuple(graded.notebooks),
        )

    def _needs_own_steps(self, timestamp: datetime | None, submission: Submission) -> bool:
        """Whether the course has steps of its own, or one that takes points from this submission for being late."""
        late = seconds_late(timestamp, self.assignment.due, submission.earlier.extension) > 0
        return not self.assignment.usual or (self.assignment.penalties and late)

    def _handed_in(self, submission: Submission) -> Iterator[tuple[str, NotebookNode]]:
        """The notebooks that were handed in, by name. A stand-in says why one cannot be read."""
        for name in self.notebooks:
            file = f"{name}.ipynb"
            if file in submission.files:
                yield name, read_submission(submission.files[file])
            elif file in submission.links or any(
                other.startswith(f"{file}/") for other in (*submission.files, *submission.links)
            ):
                yield name, stand_in(NO_FILE)

    def _beside(self, submission: Submission, not_overwritten: Iterable[str] = ()) -> dict[str, bytes]:
        """What a submission may read: its own files, and the course's, which replace them."""
        course = {name: content for name, content in self.assignment.files.items() if name not in not_overwritten}
        both = {**submission.files, **course}
        return {name: both[name] for name in self._kept(both)}

    def _kept(self, names: Iterable[str]) -> Iterator[str]:
        """The names of which no part matches a pattern that the course ignores."""
        for name in names:
            parts = (self.assignment.name, *PurePosixPath(name).parts)
            if not any(_matches(part, pattern) for part in parts for pattern in self.ignored):
                yield name


def _matches(name: str, pattern: str) -> bool:
    """Match as in a shell, where a pattern that begins with a wildcard does not match hidden files."""
    hidden = name.startswith(".") and not pattern.startswith(".")
    return not hidden and fnmatch.fnmatchcase(name, pattern)
