"""`autograder extension`: more time for one student, in nbgrader's own field of the gradebook.

nbgrader keeps an extension as a span after the due date. So if the due date moves, the extension moves with it.
"""

from __future__ import annotations

import argparse
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.course_folder import COURSE

if TYPE_CHECKING:
    from autograder.grading.course import Course

NO_DUE_DATE = (
    "{0!r} has no due date, so there is nothing to extend. Set one first: nbgrader db assignment add {1} --duedate "
    '"2026-11-30 12:00 UTC"'
)
NOT_LATER = "{} is not after the due date of {!r}, {}. Give the student's new due date."
NO_STUDENT = (
    "The gradebook has no student {0!r}, and submitted/ has no such folder. If the name is right: nbgrader db student "
    "add {1}"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("lesson", help="the assignment, as nbgrader names it")
    parser.add_argument("student", nargs="?", help="the student's name in the gradebook (default: show all extensions)")
    parser.add_argument(
        "date", nargs="?", help="the student's own due date, such as '2026-12-07 12:00 UTC' (default: show it)"
    )
    parser.add_argument("--remove", action="store_true", help="take the student's extension back")
    parser.add_argument("--course", type=Path, default=COURSE, metavar="DIR", help="an nbgrader course directory")


def run(arguments: argparse.Namespace) -> int:
    """Set, take back or show. Returns 2 for a request that cannot be met."""
    from autograder.grading.quick_imports import quick_imports

    with quick_imports():
        from autograder.grading.course import open_course
        from autograder.grading.errors import CourseError, faults_said

    try:
        with faults_said(), open_course(arguments.course) as course:
            for line in _said(course, arguments):
                print(line)
    except CourseError as error:
        print(f"autograder extension: {error}", file=sys.stderr)
        return 2
    return 0


def _said(course: Course, arguments: argparse.Namespace) -> list[str]:
    """Do what is asked for. Returns the lines that say what holds now. Raises `CourseError`."""
    from shlex import quote

    from autograder.grading.course import CourseError, deadlines, is_in_gradebook, require_source
    from autograder.grading.report.progress_display import shown_name
    from autograder.nbgrader_plugins.times import shown_time

    lesson, student = arguments.lesson, arguments.student
    if not is_in_gradebook(course, lesson):
        require_source(course, lesson)
        raise CourseError(f"{lesson!r} is not released yet: run nbgrader generate_assignment {quote(lesson)} first.")
    if arguments.remove and (arguments.date or not student):
        raise CourseError("--remove takes a student, and no date.")
    due, _ = deadlines(course, lesson)
    if due is None:
        raise CourseError(NO_DUE_DATE.format(lesson, quote(lesson)))
    if student:
        _require_student(course, lesson, student)
    if arguments.date or arguments.remove:
        _set(course, lesson, student, _until(course, lesson, arguments.date, due) if arguments.date else None)
    _, extensions = deadlines(course, lesson)
    shown = {name: due + span for name, span in extensions.items() if student in (None, name)}
    lines = [f"{shown_name(name)}: until {shown_time(moment)}" for name, moment in sorted(shown.items())]
    if not lines:
        lines = [f"{student or 'nobody'}: no extension"]
    if arguments.date or arguments.remove:
        lines.append(f"To apply this to what is already graded: autograder grade {quote(lesson)}")
    return [f"{lesson}: due {shown_time(due)}", *lines]


def _until(course: Course, lesson: str, text: str, due: datetime) -> timedelta:
    from autograder.grading.course import CourseError
    from autograder.nbgrader_plugins.times import NoTimeError, read_time, shown_time, zone_of

    try:
        moment = read_time(text, zone_of(course.app.config))
    except NoTimeError as error:
        raise CourseError(f"{error}.") from error
    if moment is None or moment <= due:
        raise CourseError(NOT_LATER.format(shown_time(moment) if moment else "That", lesson, shown_time(due)))
    return moment - due


def _require_student(course: Course, lesson: str, student: str) -> None:
    """Raise `CourseError` for a name that nobody has: an extension for it would help nobody, and go unnoticed."""
    from shlex import quote

    from autograder.grading.course import CourseError, submitted_students

    with course.gradebook() as gradebook:
        known = {one.id for one in gradebook.students}
    if student not in known | set(submitted_students(course, lesson)):
        raise CourseError(NO_STUDENT.format(student, quote(student)))


def _set(course: Course, lesson: str, student: str, span: timedelta | None) -> None:
    """Enter the extension. Rows of a submission that has not arrived yet wait for no person: nbgrader's would."""
    from nbgrader.api import MissingEntry

    with course.gradebook() as gradebook:
        gradebook.update_or_create_student(student)
        try:
            submission = gradebook.find_submission(lesson, student)
        except MissingEntry:
            submission = gradebook.add_submission(lesson, student)
            for grade in (grade for notebook in submission.notebooks for grade in notebook.grades):
                grade.needs_manual_grade = False
        submission.extension = span
        gradebook.db.commit()
