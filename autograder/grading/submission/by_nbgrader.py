"""Grades one submission with nbgrader's own converter, for unusual courses and submissions.

It works in a course directory of its own, with a gradebook in memory.
"""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Iterator

import cloudpickle
import nbformat
from nbformat import NotebookNode
from nbgrader.api import Gradebook, MissingEntry, SubmittedAssignment, SubmittedNotebook
from nbgrader.apps.baseapp import NbGrader
from nbgrader.converters import Autograde
from nbgrader.coursedir import CourseDirectory

from autograder.files import write_file
from autograder.grading.converting import converted, in_one_line
from autograder.grading.course import exactly, put_environment_on_path, quieted
from autograder.grading.submission.assignments import Assignment, Earlier, Submission
from autograder.grading.submission.graded_notebooks import cell_result, result_of
from autograder.grading.submission.private_gradebook import URL, PrivateGradebook
from autograder.grading.submission.result import GradedCell, Result
from autograder.grading.submission.ungraded import ungraded
from autograder.grading.submission.work_folders import WorkFolders
from autograder.nbgrader_plugins.course_secret import secret_path
from autograder.nbgrader_plugins.judge_notebook import JudgeNotebook
from autograder.notebooks.cells import grade_id
from autograder.notebooks.verdicts import verdict

EMPTY = "empty"
PROBE = 1_000_000


class NbgraderWay:
    """nbgrader's converter, set up once for all submissions of an assignment."""

    def __init__(self, assignment: Assignment, folders: WorkFolders) -> None:
        warnings.filterwarnings("ignore", module=r"nbgrader|nbformat|sqlalchemy|nbconvert")
        put_environment_on_path()
        self.assignment, self.folders = assignment, folders
        self.gradebook = PrivateGradebook(assignment.rows)
        self.app = quieted(NbGrader())
        self.app.load_cwd_config = False
        self.app.initialize([], root=str(folders.root))
        quieted(self.app)
        self.app.update_config(cloudpickle.loads(assignment.config))
        self.app.config.JudgeNotebook.unsafe = assignment.settings.unsafe
        trials = assignment.trials.items()
        self.app.config.JudgeNotebook.inside = {name: list(trial.inside) for name, trial in trials}
        self.app.config.JudgeNotebook.undecided = {name: list(trial.failed) for name, trial in trials}
        self.coursedir = self.app.coursedir = CourseDirectory(parent=self.app)
        self._arrange()
        (folders.root / EMPTY).touch()
        secret_path(self.coursedir).write_bytes(assignment.settings.secret)
        for name, content in assignment.files.items():
            write_file(folders.folder("source", ".") / name, content)

    def _arrange(self) -> None:
        """Give this course nbgrader's usual folders and nothing outside its root, whatever the real course is like."""
        root = str(self.folders.root)
        steps = {f"{step}_directory": step for step in ("source", "submitted", "autograded")}
        settings = {"root": root, "db_url": URL, "assignment_id": self.assignment.name, "notebook_id": "*"}
        structure = {"directory_structure": os.path.join("{nbgrader_step}", "{student_id}", "{assignment_id}")}
        for name, value in {**steps, **settings, **structure}.items():
            setattr(self.coursedir, name, value)

    def grade(self, submission: Submission) -> Result:
        student = submission.student
        self.gradebook.clear()
        folder = self.folders.folder("submitted", student)
        folder.mkdir(parents=True)
        for name, content in submission.files.items():
            write_file(folder / name, content)
        for name in submission.links:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).symlink_to(self.folders.root / EMPTY)
        with self.gradebook.opened():
            self._tell(submission)
            self.coursedir.student_id = exactly(student)
            converter = Autograde(coursedir=self.coursedir, parent=self.app)
            converter.force = True
            JudgeNotebook.failure = None
            reason = converted(converter)
            if JudgeNotebook.failure is not None:
                raise JudgeNotebook.failure
            if reason:
                self._probe()
                return ungraded(self.assignment, student, "failed", in_one_line(reason))
            return self._result(student)

    def _probe(self) -> None:
        """Raise OSError if nothing can be written: nbgrader says only that the submission failed."""
        for folder in (self.folders.root, None):
            with tempfile.TemporaryFile(dir=folder) as file:
                file.write(bytes(PROBE))
                file.flush()

    def _tell(self, submission: Submission) -> None:
        """Enter what graders have entered before: it is part of the score that a late penalty is taken from."""
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
                return ungraded(self.assignment, student, "failed", "nbgrader left no result.")
            return self._read(student, entry)

    def _read(self, student: str, entry: SubmittedAssignment) -> Result:
        folder = self.folders.folder("autograded", student)
        names = [notebook.name for notebook in entry.notebooks if (folder / f"{notebook.name}.ipynb").is_file()]
        graded = {name: nbformat.read(folder / f"{name}.ipynb", as_version=4) for name in names}
        return result_of(
            student,
            self.assignment.name,
            graded,
            timestamp=entry.timestamp,
            cells=(cell for notebook in entry.notebooks for cell in _cells(notebook, graded.get(notebook.name))),
            comments=(
                (notebook.name, comment.name, comment.auto_comment)
                for notebook in entry.notebooks
                for comment in notebook.comments
            ),
            penalties=((notebook.name, notebook.late_submission_penalty) for notebook in entry.notebooks),
        )


def _cells(entry: SubmittedNotebook, graded: NotebookNode | None) -> Iterator[GradedCell]:
    """The graded cells of one notebook, in its order."""
    notes = {grade_id(cell): verdict(cell) for cell in graded.cells} if graded else {}
    order = list(notes)
    for grade in sorted(entry.grades, key=lambda grade: order.index(grade.name) if grade.name in notes else -1):
        yield cell_result(entry.name, grade.name, grade.auto_score, grade.max_score, notes.get(grade.name, {}))
