"""Grades an assignment with stock nbgrader and with the judge, on two harmless submissions: the solution, and the
release as it was handed out.

nbgrader runs them without a sandbox, in folders and with a gradebook apart from the course's.
"""

from __future__ import annotations

import contextlib
import copy
import os
import shutil
from collections.abc import Iterator

from nbgrader.utils import temp_attrs

from autograder.grading.converting import converted
from autograder.grading.course import Course, CourseError, released_apart
from autograder.grading.run import OpenClass, Request, require_isolation
from autograder.grading.workers.spool import Spool

SOLUTION, RELEASE = "the-solution", "the-release"
IN_WORDS = {SOLUTION: "the solution", RELEASE: "the untouched release"}
Marks = dict[tuple[str, str, str], float]  # by student, notebook and cell


def differences(course: Course, assignment: str) -> list[str]:
    """Return a sentence for each cell of the solution or the release on whose points nbgrader and the judge disagree.
    Raises CourseError if nbgrader cannot grade them.
    """
    request = Request(assignment, course.root, workers=1, ignore_failing_solution=True)
    require_isolation(request)
    with released_apart(course, assignment) as folder:
        for student, step in ((SOLUTION, "source"), (RELEASE, "release")):
            handed_in = course.folder("submitted", student, assignment)
            shutil.copytree(course.folder(step, ".", assignment), handed_in)
            _autograde(course, assignment, student)
        theirs = _marks(course, assignment)
        opened = OpenClass(request, course, Spool.of(folder, assignment))
        with opened.spool.held():
            found = {
                (record.student, *cell.place): (cell.points, cell.message)
                for record in opened.grade([SOLUTION, RELEASE])
                for cell in record.cells
            }
    return list(_told(theirs, found))


def _autograde(course: Course, assignment: str, student: str) -> None:
    """Grade as nbgrader does in this course without our judge. Raises CourseError with nbgrader's reason."""
    from nbgrader.converters import Autograde  # and nbconvert, which most commands do without

    config = copy.deepcopy(course.app.config)
    config.pop("Autograde", None)
    with temp_attrs(course.coursedir, assignment_id=assignment, student_id=student), _quiet_kernels():
        reason = converted(Autograde(coursedir=course.coursedir, parent=course.app, config=config))
    if reason:
        raise CourseError(f"nbgrader cannot grade {IN_WORDS[student]} of {assignment!r}. {reason}")


@contextlib.contextmanager
def _quiet_kernels() -> Iterator[None]:
    """Keep the log of Jupyter's kernels off the terminal: they write where this process writes its errors."""
    kept = os.dup(2)
    try:
        with open(os.devnull, "w") as nothing:
            os.dup2(nothing.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _told(theirs: Marks, found: dict[tuple[str, str, str], tuple[float | None, str]]) -> Iterator[str]:
    for (student, notebook, cell), points in theirs.items():
        ours, message = found.get((student, notebook, cell), (None, "The judge did not find this cell."))
        if (ours or 0.0) != points:
            place = f"the cell {cell!r} of {notebook}.ipynb"
            marks = (
                f"nbgrader gives {IN_WORDS[student]} {points:g} points for {place}, and the judge gives {ours or 0:g}."
            )
            yield f"{marks} {message}".rstrip()


def _marks(course: Course, assignment: str) -> Marks:
    with course.gradebook() as gradebook:
        return {
            (submission.student.id, notebook.name, grade.name): grade.auto_score or 0.0
            for submission in gradebook.assignment_submissions(assignment)
            for notebook in submission.notebooks
            for grade in notebook.grades
        }
