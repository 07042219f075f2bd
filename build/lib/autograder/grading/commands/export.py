"""`autograder export`: the marks of a course as CSV for Canvas, for Moodle, or as nbgrader writes them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autograder.files import COURSE

if TYPE_CHECKING:
    from nbgrader.api import Gradebook

    from autograder.grading.course import Course

MOST_NAMED = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("lessons", nargs="*", help="the assignments (default: all of the course)")
    parser.add_argument("--for", dest="platform", choices=("canvas", "moodle", "nbgrader"), default="nbgrader")
    parser.add_argument("--course", type=Path, default=COURSE, metavar="DIR", help="an nbgrader course directory")
    parser.add_argument("--to", type=Path, metavar="FILE", help="where to write it (default: PLATFORM.csv)")
    parser.add_argument(
        "--canvas-gradebook", type=Path, metavar="FILE", help="a gradebook exported from Canvas, to be filled in"
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the file and say where it is. Returns 2 for a request that cannot be met."""
    from autograder.files import atomic_write
    from autograder.grading.course import open_course
    from autograder.grading.errors import CourseError, faults_said
    from autograder.grading.gradebook.exporters import CanvasExportPlugin, HarmlessCsvExportPlugin, MoodleExportPlugin

    plugins: dict[str, Any] = {
        "canvas": CanvasExportPlugin,
        "moodle": MoodleExportPlugin,
        "nbgrader": HarmlessCsvExportPlugin,
    }
    target = (arguments.to or Path(f"{arguments.platform}.csv")).resolve()
    roster = arguments.canvas_gradebook and arguments.canvas_gradebook.resolve()
    try:
        with faults_said(), open_course(arguments.course) as course:
            if roster and (arguments.platform != "canvas" or not roster.is_file()):
                raise CourseError(
                    f"--canvas-gradebook goes with --for canvas and needs a file; {roster} is none of it."
                )
            plugin = plugins[arguments.platform](parent=course.app)
            plugin.assignment = arguments.lessons
            if roster:
                plugin.gradebook = str(roster)
            with course.gradebook() as gradebook:
                unknown = set(arguments.lessons) - {assignment.name for assignment in gradebook.assignments}
                if unknown:
                    raise CourseError(f"The gradebook has no assignment {', '.join(sorted(unknown))}.")
                with atomic_write(target) as draft:
                    plugin.to = str(draft)
                    plugin.export(gradebook)
                for note in unfinished(course, gradebook, arguments.lessons):
                    print(f"autograder export: {note}", file=sys.stderr)
    except CourseError as error:
        print(f"autograder export: {error}", file=sys.stderr)
        return 2
    print(target)
    return 0


def unfinished(course: Course, gradebook: Gradebook, lessons: Sequence[str]) -> Iterator[str]:
    """Whose marks are not final yet, lesson by lesson: they stand in the file all the same."""
    from nbgrader.api import Grade, SubmittedAssignment, SubmittedNotebook

    from autograder.grading.course import submitted_students

    for assignment in gradebook.assignments:
        name = assignment.name
        if lessons and name not in lessons:
            continue
        own = SubmittedAssignment.assignment_id == assignment.id
        graded = gradebook.db.query(SubmittedAssignment.student_id).filter(own)
        joined = graded.join(SubmittedNotebook, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
        by_hand = joined.join(Grade, Grade.notebook_id == SubmittedNotebook.id).filter(Grade.needs_manual_grade)
        if waiting := set(submitted_students(course, name)) - {student for (student,) in graded}:
            yield f"{name}: not graded yet: {_named(waiting)}. Run autograder grade {name}, and export again."
        if waiting := {student for (student,) in by_hand.distinct()}:
            yield f"{name}: cells that a person has to look at, in Formgrader: {_named(waiting)}."


def _named(students: set[str]) -> str:
    """The number of students, and the names of the first few."""
    count = f"{len(students)} submission" + "s" * (len(students) != 1)
    more = ", ..." if len(students) > MOST_NAMED else ""
    return f"{count} ({', '.join(sorted(students)[:MOST_NAMED])}{more})"
