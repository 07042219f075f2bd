"""A course's own steps of grading: nbgrader's preprocessors and the course's, called one after another in this process.

They find what they need in a course directory of this process's own, and in a gradebook in memory.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime

import cloudpickle
import nbformat
from nbformat import NotebookNode
from nbgrader.api import Gradebook, SubmittedNotebook
from nbgrader.apps.baseapp import NbGrader
from nbgrader.converters import Autograde
from nbgrader.coursedir import CourseDirectory

from autograder.files import write_file
from autograder.grading.course import quieted
from autograder.grading.submission.assignments import Assignment, Submission, WorkFolders, read_submission
from autograder.grading.submission.private_gradebook import URL, PrivateGradebook
from autograder.grading.submission.result import Graded
from autograder.nbgrader_plugins.course_secret import secret_path
from autograder.notebooks.cells import grade_id
from autograder.notebooks.verdicts import CellVerdict, verdict

EMPTY = "empty"


class OwnSteps:
    """The steps as a course configures them, set up once for all submissions of an assignment."""

    def __init__(self, assignment: Assignment, folders: WorkFolders) -> None:
        warnings.filterwarnings("ignore", module=r"nbgrader|nbformat|sqlalchemy|nbconvert")
        os.environ["NBGRADER_EXECUTION"] = "autograde"  # as nbgrader tells everything that runs while it grades
        self.assignment, self.folders = assignment, folders
        self.gradebook = PrivateGradebook(assignment.rows)
        app = quieted(NbGrader())
        app.load_cwd_config = False
        app.initialize([], root=str(folders.root))
        quieted(app)
        app.update_config(cloudpickle.loads(assignment.config))
        app.config.JudgeNotebook.unsafe = assignment.settings.unsafe
        trials = assignment.trials.items()
        app.config.JudgeNotebook.inside = {name: list(trial.inside) for name, trial in trials}
        app.config.JudgeNotebook.undecided = {name: list(trial.failed) for name, trial in trials}
        self.coursedir = app.coursedir = CourseDirectory(parent=app)
        self._arrange()
        (folders.root / EMPTY).touch()
        secret_path(self.coursedir).write_bytes(assignment.settings.secret)
        for name, content in assignment.files.items():
            write_file(folders.folder("source", ".") / name, content)
        self.settings = Autograde(coursedir=self.coursedir, parent=app)  # only read: it converts nothing

    def _arrange(self) -> None:
        """Give this course nbgrader's usual folders and nothing outside its root, whatever the real course is like."""
        root = str(self.folders.root)
        steps = {f"{step}_directory": step for step in ("source", "submitted", "autograded")}
        settings = {"root": root, "db_url": URL, "assignment_id": self.assignment.name, "notebook_id": "*"}
        structure = {"directory_structure": os.path.join("{nbgrader_step}", "{student_id}", "{assignment_id}")}
        for name, value in {**steps, **settings, **structure}.items():
            setattr(self.coursedir, name, value)

    @property
    def not_overwritten(self) -> list[str]:
        """The course's files that do not replace a student's."""
        return list(self.settings.exclude_overwriting.get(self.assignment.name, ()))

    def hand_in(self, submission: Submission) -> Submission:
        """Put a submission where steps look for it. Returns what the course's hook makes of it."""
        self.coursedir.student_id = submission.student
        folder = self.folders.folder("submitted", submission.student)
        folder.mkdir(parents=True)
        for name, content in submission.files.items():
            write_file(folder / name, content)
        for name in submission.links:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).symlink_to(self.folders.root / EMPTY)
        if self.settings.pre_convert_hook is None:
            return submission
        self.settings.notebooks = sorted(str(path) for path in folder.glob("*.ipynb"))
        self.settings.run_pre_convert_hook()
        return replace(read_submission(folder, submission.student), earlier=submission.earlier)

    def run(self, notebooks: Mapping[str, NotebookNode], submission: Submission, timestamp: datetime | None) -> Graded:
        """Run the steps on these notebooks."""
        with self.gradebook.opened():
            self._enter(submission, timestamp)
            graded = {name: self._run(name, notebook, submission) for name, notebook in notebooks.items()}
            with Gradebook(URL) as gradebook:
                entry = gradebook.find_submission(self.assignment.name, submission.student)
                entries = [own for own in entry.notebooks if own.name in graded]
                return Graded(
                    graded,
                    cells=[cell for own in entries for cell in _cells(own, graded[own.name])],
                    comments=[(own.name, said.name, said.auto_comment) for own in entries for said in own.comments],
                    penalties=[(own.name, own.late_submission_penalty) for own in entries],
                )

    def _enter(self, submission: Submission, timestamp: datetime | None) -> None:
        """Enter what graders have entered before: it is part of the score that a late penalty is taken from."""
        earlier = submission.earlier
        self.gradebook.clear()
        with Gradebook(URL) as gradebook:
            gradebook.add_student(submission.student)
            entry = gradebook.add_submission(self.assignment.name, submission.student, timestamp=timestamp)
            entry.extension = earlier.extension
            for notebook in entry.notebooks:
                for grade in notebook.grades:
                    points = earlier.manual.get((notebook.name, grade.name), (None, None))
                    grade.manual_score, grade.extra_credit = points
            gradebook.db.commit()

    def _run(self, name: str, notebook: NotebookNode, submission: Submission) -> NotebookNode:
        exporter = self.settings.exporter_class(parent=self.settings, config=self.settings.config)
        for step in (*self.settings.sanitize_preprocessors, *self.settings.autograde_preprocessors):
            exporter.register_preprocessor(step)
        place = {"student": submission.student, "assignment": self.assignment.name, "notebook": name, "db_url": URL}
        about = {"name": name, "path": str(self.folders.folder("submitted", submission.student))}
        resources = {"unique_key": name, "output_files_dir": f"{name}_files", "nbgrader": place, "metadata": about}
        text, _ = exporter.from_notebook_node(notebook, resources=resources)
        return nbformat.reads(text, as_version=4)

    def finish(self, submission: Submission) -> None:
        """Give the files the course's permissions, and run its hook."""
        self.settings.set_permissions(self.assignment.name, submission.student)
        self.settings.run_post_convert_hook()


def _cells(entry: SubmittedNotebook, graded: NotebookNode) -> Iterator[CellVerdict]:
    """The verdicts on the graded cells of one notebook, with the points in the gradebook."""
    notes = {grade_id(cell): verdict(cell) for cell in graded.cells}
    for grade in entry.grades:
        noted = notes.get(grade.name, CellVerdict(grade.name, None, 0.0))
        yield replace(noted, notebook=entry.name, points=grade.auto_score, max_points=grade.max_score)
