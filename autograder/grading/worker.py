"""What one worker process does: grade one submission after another with nbgrader's own converter and our preprocessors.

It works in a course directory of its own, with a gradebook in memory. What comes of a submission is a `Result` and the
folder that nbgrader calls autograded; marks become marks when the one process that writes has put both in place.
"""

from __future__ import annotations

import glob
import os
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import cloudpickle
import nbformat
from nbformat import NotebookNode
from nbgrader.api import Gradebook, MissingEntry, SubmittedAssignment, SubmittedNotebook
from nbgrader.apps.baseapp import NbGrader
from nbgrader.converters import Autograde
from nbgrader.coursedir import CourseDirectory
from nbgrader.utils import capture_log

from autograder.grading.assignments import Assignment, Earlier, Submission
from autograder.grading.courses import complaint, put_environment_on_path, quieted
from autograder.grading.diagnoses import bugs_of
from autograder.grading.private_gradebook import URL, PrivateGradebook
from autograder.grading.records import Status
from autograder.grading.results import CellResult, Result
from autograder.nbgrader_plugins.auto_comments import verdict
from autograder.nbgrader_plugins.context import grade_id
from autograder.nbgrader_plugins.course_secret import secret_path
from autograder.nbgrader_plugins.submissions import note_of

EMPTY = "empty"
PROBE = 1_000_000
PATTERN = "nbgrader takes names with *, ? or [ for patterns and would grade somebody else's notebook."


class Workshop:
    """A private course directory for one assignment, in which submissions are graded one at a time."""

    def __init__(self, assignment: Assignment, folder: Path | None = None) -> None:
        warnings.filterwarnings("ignore", module=r"nbgrader|nbformat|sqlalchemy|nbconvert")
        put_environment_on_path()
        self.assignment = assignment
        self.root = Path(tempfile.mkdtemp(prefix="workshop-", dir=folder))
        self.gradebook = PrivateGradebook(assignment.rows)
        self.app = quieted(NbGrader())
        self.app.load_cwd_config = False
        self.app.initialize([], root=str(self.root))
        quieted(self.app)
        self.app.update_config(cloudpickle.loads(assignment.config))
        self.app.config.JudgeNotebook.unsafe = assignment.unsafe
        self.coursedir = self.app.coursedir = CourseDirectory(parent=self.app)
        self._arrange()
        (self.root / EMPTY).touch()
        secret_path(self.coursedir).write_bytes(assignment.secret)
        for name, content in assignment.files.items():
            _write(self.folder("source", ".") / name, content)

    def _arrange(self) -> None:
        """Whatever the real course is like, this one has nbgrader's usual folders, and nothing outside its root."""
        steps = {f"{step}_directory": step for step in ("source", "submitted", "autograded")}
        settings = {"root": str(self.root), "db_url": URL, "assignment_id": self.assignment.name, "notebook_id": "*"}
        structure = {"directory_structure": os.path.join("{nbgrader_step}", "{student_id}", "{assignment_id}")}
        for name, value in {**steps, **settings, **structure}.items():
            setattr(self.coursedir, name, value)

    def folder(self, step: str, student: str) -> Path:
        return Path(self.coursedir.format_path(step, student, self.assignment.name))

    def close(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)

    def grade(self, submission: Submission) -> tuple[Result, Path | None]:
        """The result and the autograded folder, which is the caller's to take away before the next submission.

        Never raises for what a student did. What fails on our side raises OSError or is a result that says `failed`.
        """
        started = time.perf_counter()
        try:
            self._empty()
            result = self._grade(submission)
        except OSError:
            raise  # the machine's fault: no disk left, no memory; not a result of this submission
        except Exception as error:
            result = self._failed(submission, f"{type(error).__name__}: {error}".splitlines()[0][:300])
        folder = self.folder("autograded", submission.student)
        seconds = round(time.perf_counter() - started, 3)
        fingerprint = submission.fingerprint(self.assignment) if result.status not in ("failed", "died") else ""
        kept = folder if folder.is_dir() and result.status != "failed" else None
        return replace(result, seconds=seconds, fingerprint=fingerprint), kept

    def _empty(self) -> None:
        self.gradebook.clear()
        for step in ("submitted", "autograded"):
            shutil.rmtree(self.root / step, ignore_errors=True)

    def _grade(self, submission: Submission) -> Result:
        student = submission.student
        if glob.escape(student) != student:
            return self._failed(submission, PATTERN)
        if not any(f"{name}.ipynb" in (*submission.files, *submission.links) for name in self.assignment.notebooks):
            reason = "No notebook of this assignment was handed in."
            return replace(failure(self.assignment, student, "missing", reason), comments=())
        folder = self.folder("submitted", student)
        folder.mkdir(parents=True)
        for name, content in submission.files.items():
            _write(folder / name, content)
        for name in submission.links:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).symlink_to(self.root / EMPTY)
        with self.gradebook.opened():
            self._tell(submission)
            self.coursedir.student_id = student
            converter = Autograde(coursedir=self.coursedir, parent=self.app)
            converter.force = True
            outcome = capture_log(converter)
            if not outcome["success"]:
                self._probe()
                return self._failed(submission, complaint(outcome))
            return self._result(student)

    def _probe(self) -> None:
        """Raises OSError where nothing can be written: nbgrader says only that the submission failed."""
        for folder in (self.root, None):
            with tempfile.TemporaryFile(dir=folder) as file:
                file.write(bytes(PROBE))
                file.flush()

    def _failed(self, submission: Submission, reason: str) -> Result:
        return failure(self.assignment, submission.student, "failed", reason)

    def _tell(self, submission: Submission) -> None:
        """What graders have said before belongs to the score that a late penalty is taken from."""
        earlier = submission.earlier
        if earlier == Earlier():
            return
        with Gradebook(URL) as gradebook:
            gradebook.update_or_create_student(submission.student)
            entry = gradebook.update_or_create_submission(self.assignment.name, submission.student)
            entry.extension = earlier.extension
            for notebook in entry.notebooks:
                for grade in notebook.grades:
                    points = earlier.manual.get((notebook.name, grade.name), (None, None))
                    grade.manual_score, grade.extra_credit = points
            gradebook.db.commit()

    def _result(self, student: str) -> Result:
        with Gradebook(URL) as gradebook:
            try:
                entry = gradebook.find_submission(self.assignment.name, student)
            except MissingEntry:
                return failure(self.assignment, student, "failed", "nbgrader left no result.")
            return self._read(student, entry)

    def _read(self, student: str, entry: SubmittedAssignment) -> Result:
        folder = self.folder("autograded", student)
        names = [notebook.name for notebook in entry.notebooks if (folder / f"{notebook.name}.ipynb").is_file()]
        graded = {name: nbformat.read(folder / f"{name}.ipynb", as_version=4) for name in names}
        problems = [problem for notebook in graded.values() if (problem := note_of(notebook, "problem"))]
        return Result(
            student,
            self.assignment.name,
            "unreadable" if problems else "graded",
            reason=problems[0] if problems else "",
            isolation=next((note_of(notebook, "isolation") for notebook in graded.values()), ""),
            timestamp=entry.timestamp.isoformat() if entry.timestamp else None,
            cells=tuple(cell for notebook in entry.notebooks for cell in _cells(notebook, graded.get(notebook.name))),
            comments=tuple(
                (notebook.name, comment.name, comment.auto_comment)
                for notebook in entry.notebooks
                for comment in notebook.comments
            ),
            penalties=tuple((notebook.name, notebook.late_submission_penalty) for notebook in entry.notebooks),
            notebooks=tuple(names),
        )


def failure(assignment: Assignment, student: str, status: Status, reason: str) -> Result:
    """A result without a graded notebook: no points, and the reason in the place of every comment."""
    names = {row["id"]: row["name"] for row in assignment.rows["notebook"]}
    cells = {row["id"]: (names[row["notebook_id"]], row["name"]) for row in assignment.rows["base_cell"]}
    graded = [*assignment.rows["grade_cells"], *assignment.rows["task_cells"]]
    commented = [*assignment.rows["solution_cells"], *assignment.rows["task_cells"]]
    return Result(
        student,
        assignment.name,
        status,
        reason=reason,
        cells=tuple(CellResult(*cells[row["id"]], 0.0, row["max_score"]) for row in graded),
        comments=tuple((*cells[row["id"]], f"Not graded: {reason}") for row in commented),
        penalties=tuple((name, None) for name in names.values()),
    )


def _cells(entry: SubmittedNotebook, graded: NotebookNode | None) -> Iterator[CellResult]:
    """The graded cells of one notebook, in its order."""
    notes = {grade_id(cell): verdict(cell) for cell in graded.cells} if graded else {}
    order = list(notes)
    for grade in sorted(entry.grades, key=lambda grade: order.index(grade.name) if grade.name in notes else -1):
        note = notes.get(grade.name, {})
        message = str(note.get("message") or "")
        yield CellResult(entry.name, grade.name, grade.auto_score, grade.max_score, message, bugs_of(note))


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def on_path(folder: Path) -> None:
    """Modules beside a course's nbgrader_config.py can be named in it."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
