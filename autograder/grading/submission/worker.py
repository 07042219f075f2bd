"""The work of one worker process: grading one submission after another, in a folder of its own.

The outcome is a `Result` and the folder that nbgrader calls autograded; the marks count once the one process that
writes has put both in place.
"""

from __future__ import annotations

import gc
import glob
import shutil
import tempfile
import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from autograder.grading.errors import MACHINE_FAULTS
from autograder.grading.submission.assignments import Assignment, Submission, WorkFolders
from autograder.grading.submission.class_records import NEEDS_A_LOOK
from autograder.grading.submission.grader import Grader
from autograder.grading.submission.result import Result, ungraded
from autograder.grading.submission.usual_steps import known_notebooks
from autograder.judge import JUDGE, REHEARSED_BEFORE, JudgeDied
from autograder.nbgrader_plugins.times import TIMESTAMP, NoTimeError, read_time
from autograder.notebooks.libraries import kind_for, libraries_in
from autograder.sandbox.process.forkserver import preload
from autograder.sandbox.process.kind import OF_OTHER_COURSES, STUDENT
from autograder.sandbox.process.limits import SandboxLost, SandboxUnavailable

MOST_NAMES, LONGEST_NAME = 3, 60
NO_TIME = "`timestamp.txt` contains no time that is certain: {}. Correct or delete the file, and grade again."
DIED = "Judging this submission failed twice: {}. Other students' marks are not affected."
PATTERN = (
    "nbgrader reads a name with *, ? or [ as a pattern and would grade another student's notebook. Rename the folder, "
    "and grade again."
)


class Workshop:
    """A private course directory for one assignment, in which submissions are graded one at a time."""

    def __init__(self, assignment: Assignment, folder: Path | None = None) -> None:
        warnings.filterwarnings("ignore", module=r"nbformat")
        self.assignment = assignment
        prepare(assignment)
        self.graded = 0
        self.folders = WorkFolders(Path(tempfile.mkdtemp(prefix="workshop-", dir=folder)), assignment.name)
        self.grader = Grader(assignment, self.folders)

    def close(self) -> None:
        shutil.rmtree(self.folders.root, ignore_errors=True)

    def grade(self, submission: Submission) -> tuple[Result, Path | None]:
        """Return the result and the autograded folder, which the caller has to move away before the next submission.

        Never raises for what a student did. A fault of this machine raises OSError; any other failure on our side gives
        a result with the status `failed`.
        """
        started = time.perf_counter()
        self.graded += 1
        if self.graded == REHEARSED_BEFORE:
            self.grader.rehearse()
        try:
            self.folders.empty()
            result = self._with_what_is_missing(self._grade_undisturbed(submission), submission)
        except SandboxUnavailable as error:
            result = ungraded(self.assignment, submission.student, "not graded", str(error))
        except JudgeDied as error:
            result = ungraded(self.assignment, submission.student, "died", DIED.format(error))
        except Exception as error:
            if isinstance(error, OSError) and error.errno in MACHINE_FAULTS:
                raise  # no disk left, no memory: not a result of this submission
            result = self._failed(submission, f"{type(error).__name__}: {error}".splitlines()[0][:300])
        folder = self.folders.folder("autograded", submission.student)
        seconds = round(time.perf_counter() - started, 3)
        fingerprint = submission.fingerprint(self.assignment) if result.status not in NEEDS_A_LOOK else ""
        kept = folder if folder.is_dir() and result.status not in NEEDS_A_LOOK else None
        return replace(result, seconds=seconds, fingerprint=fingerprint, handed_in=submission.digest), kept

    def _grade_undisturbed(self, submission: Submission) -> Result:
        """Grade once more if this machine ended the submission's process."""
        try:
            return self._grade(submission)
        except SandboxLost:
            self.folders.empty()
            return self._grade(submission)

    def _grade(self, submission: Submission) -> Result:
        student = submission.student
        if glob.escape(student) != student:
            return self._failed(submission, PATTERN)
        try:
            read_time(submission.files.get(TIMESTAMP, b""), self.assignment.settings.zone)
        except NoTimeError as error:
            return self._failed(submission, NO_TIME.format(error))
        if not any(f"{name}.ipynb" in (*submission.files, *submission.links) for name in self.assignment.notebooks):
            reason = missing(self.assignment.notebooks, submission)
            return replace(ungraded(self.assignment, student, "missing", reason), comments=())
        return self.grader.grade(submission)

    def _with_what_is_missing(self, result: Result, submission: Submission) -> Result:
        """Mention missing notebooks in a result. Each costs its points, and one of several must not go unmentioned."""
        if result.status not in ("graded", "unreadable"):
            return result
        gone = [name for name in self.assignment.notebooks if name not in result.notebooks]
        said = {name: missing([name], submission, result.notebooks) for name in gone}
        cells = (replace(cell, message=said.get(cell.notebook, cell.message)) for cell in result.cells)
        return replace(result, cells=tuple(cells), reason=" ".join(filter(None, (result.reason, *said.values()))))

    def _failed(self, submission: Submission, reason: str) -> Result:
        return ungraded(self.assignment, submission.student, "failed", reason)


def prepare(assignment: Assignment) -> None:
    """Let the processes from which submissions' processes and judges are forked load what an assignment's notebooks
    import.
    """
    if not assignment.settings.unsafe:
        known = known_notebooks(assignment.rows, assignment.files).values()
        sources = [notebook.source.notebook for notebook in known if notebook.source.notebook is not None]
        for kind in (STUDENT, OF_OTHER_COURSES):
            if alike := [source for source in sources if kind_for(source) is kind]:
                preload(libraries_in(alike), kind)
        preload([], JUDGE)  # what judges need, a branch loads, if the one that it is forked from has not
    gc.freeze()  # a collection in a fork would touch, and so copy, every page


def missing(notebooks: Sequence[str], submission: Submission, there: Sequence[str] = ()) -> str:
    """Why these notebooks are not graded. A file under another name, such as a browser's "(1)", is mentioned. `there`:
    the other notebooks of the assignment, which were handed in.
    """
    wanted = " or ".join(f"{name}.ipynb" for name in notebooks)
    names = sorted(name for name in submission.files if name not in (TIMESTAMP, *(f"{one}.ipynb" for one in there)))
    candidates = [name for name in names if name.endswith(".ipynb")] or ([] if there else names)
    if not candidates:
        return f"No {wanted} was handed in." if there else "No notebook of this assignment was handed in."
    shown = ["".join(c if c.isprintable() else "?" for c in name)[:LONGEST_NAME] for name in candidates[:MOST_NAMES]]
    more = f" and {len(candidates) - MOST_NAMES} more" if len(candidates) > MOST_NAMES else ""
    found = ", ".join(shown) + more
    advice = f" If that is it, rename it to {wanted} to have it graded." if candidates[0].endswith(".ipynb") else ""
    return f"No {wanted} was handed in, {'but' if there else 'only'} {found}.{advice}"
