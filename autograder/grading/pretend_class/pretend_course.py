"""Makes the course of a pretend class in a build folder, releases it, hands in as a learning platform would, and
exports the marks.

Everything is done with nbgrader's own classes in this process; each of its commands would spend two seconds on imports.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

import nbformat
from nbgrader.apps.zipcollectapp import ZipCollectApp
from nbgrader.plugins import CsvExportPlugin

from autograder.grading.course import Course, CourseError, generate_assignment, open_course, quieted
from autograder.grading.pretend_class.students import Pretender, notebook_of
from autograder.grading.submission.class_records import SubmissionRecord
from autograder.lessons.builder.notebook import build_lesson, styles

CONFIGURATION = '''"""The course of the pretend class, made by `autograder class`."""

from autograder.nbgrader_plugins import configure

c = get_config()

c.CourseDirectory.course_id = "pretend-class"
# The file names of the platform from which the submissions are downloaded.
c.FileNameCollectorPlugin.named_regexp = r".*/(?P<student_id>[a-z]+)__(?P<file_id>.+)"
# A submission that hangs should not keep a demonstration waiting.
c.JudgeNotebook.cell_seconds = 2
c.JudgeNotebook.query_seconds = 1

configure(c)
'''
CONFIG_FILE = "nbgrader_config.py"
# What grading writes; everything else in a course must stay as it is.
WRITTEN = ("autograded", "feedback", "gradebook.db", "gradebook.db-journal", ".autograder", ".autograder_secret")


def make_course(root: Path, lesson: Path) -> Path:
    """A fresh course with one lesson of another course, built and released. Returns the instructor's notebook."""
    if root.exists():
        if not (root / CONFIG_FILE).exists():
            raise CourseError(f"{root} is not a course that an earlier run has made, so it is left alone.")
        shutil.rmtree(root)
    root.mkdir(parents=True)
    (root / CONFIG_FILE).write_text(CONFIGURATION)
    notebook = build_lesson(lesson, root, files_of=lesson.parents[2])
    with open_course(root) as course:
        generate_assignment(course, lesson.stem)
    return notebook


def hand_in(root: Path, lesson: Path, pretenders: Iterable[Pretender]) -> None:
    """Put the class's notebooks into an archive, as an instructor downloads them from a learning platform."""
    name = lesson.stem
    released, source = (
        nbformat.read(root / step / name / f"{name}.ipynb", as_version=4) for step in ("release", "source")
    )
    archive = root / "downloaded" / name / "archive"
    archive.mkdir(parents=True)
    alternatives = styles(lesson)
    with zipfile.ZipFile(archive / "submissions.zip", "w", zipfile.ZIP_DEFLATED) as file:
        for pretender in pretenders:
            notebook = notebook_of(pretender, released, source, alternatives, root)
            file.writestr(f"{pretender.student}__{name}.ipynb", nbformat.writes(notebook))


def collect(root: Path, assignment: str) -> None:
    """What `nbgrader zip_collect` does: unpack the archive and sort its files into `submitted/`."""
    with contextlib.chdir(root):
        app = quieted(ZipCollectApp())
        app.initialize([assignment])
        quieted(app)
        try:
            app.start()
        except SystemExit as error:
            raise CourseError(f"nbgrader could not collect the submissions of {assignment!r}.") from error


def export(course: Course, target: Path) -> None:
    """What `nbgrader export` does: all marks as CSV."""
    with course.gradebook() as gradebook:
        plugin = CsvExportPlugin(parent=course.app)
        plugin.to = str(target)
        plugin.export(gradebook)


def files_of(root: Path) -> dict[str, str]:
    """A hash of every file that grading must not change, by name."""
    hashes = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root)
        if path.is_file() and name.parts[0] not in WRITTEN:
            hashes[str(name)] = hashlib.sha256(path.read_bytes()).hexdigest()
    return hashes


def changed(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """The names of the files that were changed, added or removed."""
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


def marks_of(course: Course, assignment: str) -> dict[str, float]:
    """Each student's marks as the gradebook has them at the end."""
    with course.gradebook() as gradebook:
        return {
            submission.student_id: submission.score for submission in gradebook.find_assignment(assignment).submissions
        }


def disagreements(records: Iterable[SubmissionRecord], marks: Mapping[str, float]) -> list[str]:
    """The students whose mark in the gradebook at the end is not the mark that was recorded right after grading."""
    return [
        f"the mark of {record.student} ({record.points} when graded, {marks.get(record.student)} at the end)"
        for record in records
        if record.points != marks.get(record.student)
    ]
