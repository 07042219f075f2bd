"""`autograder export`: the marks of a course as CSV for Canvas, for Moodle, or as nbgrader writes them, and feedback
pages in an archive that Canvas and Moodle take.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from autograder.course_folder import COURSE

if TYPE_CHECKING:
    from nbgrader.api import Assignment, Gradebook

    from autograder.grading.course import Course
    from autograder.grading.gradebook.tables import Entries

MOST_NAMED = 5
NOTHING_GRADED = (
    "nothing is graded in {}, so there are no marks. If that is your course, run autograder grade there; otherwise "
    "name your course with --course."
)
# Options that name a file of the LMS, and the platforms that they go with.
TABLES = {"canvas_gradebook": ("canvas",), "moodle_worksheet": ("moodle",), "feedback": ("canvas", "moodle")}


WITHOUT_ROW = {
    "Canvas": "Canvas's gradebook has no row for {}, or more than one that fits, so their marks are not in the file. "
    "Export the gradebook again, with all students: a row is found by the SIS Login ID, the SIS User ID or the ID.",
    "Moodle": "no row of the worksheet could be matched with certainty: {}.",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("lessons", nargs="*", metavar="LESSON", help="the assignments (default: all in the course)")
    parser.add_argument(
        "--for",
        dest="platform",
        choices=("canvas", "moodle", "nbgrader", "questions"),
        default="nbgrader",
        help="which table to write: one for the LMS, nbgrader's, or the marks of each question (default: nbgrader)",
    )
    parser.add_argument("--course", type=Path, default=COURSE, metavar="DIR", help="an nbgrader course directory")
    parser.add_argument("--to", type=Path, metavar="FILE", help="where to write it (default: PLATFORM.csv)")
    parser.add_argument(
        "--canvas-gradebook", type=Path, metavar="FILE", help="a gradebook exported from Canvas, to fill in"
    )
    parser.add_argument(
        "--moodle-worksheet",
        type=Path,
        metavar="FILE",
        help="Moodle's grading worksheet of one assignment, to fill in with marks and comments",
    )
    parser.add_argument(
        "--feedback",
        type=Path,
        metavar="DOWNLOAD.zip",
        help="also write feedback pages, with the names that this download of one assignment's submissions uses",
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the files and say where they are. Returns 1 if there are no marks, or if a student is left out, has no mark
    yet, or has a 0 for a notebook that could not be read, 2 for a bad request.
    """
    from autograder.grading.quick_imports import quick_imports

    with quick_imports():
        from autograder.grading.course import open_course
        from autograder.grading.errors import CourseError, faults_said

    target = (arguments.to or Path(f"{arguments.platform}.csv")).resolve()
    for name in TABLES:
        if path := getattr(arguments, name):
            setattr(arguments, name, path.resolve())
    try:
        with faults_said(), open_course(arguments.course) as course, _gradebook_of(course) as gradebook:
            _check(arguments, gradebook)
            remarks: list[str] = []
            entries = _write_marks(arguments, course, gradebook, target, remarks)
            print(target, flush=True)
            notes: list[str] = []
            if entries is not None:
                platform = arguments.platform.capitalize()
                _show_changes(entries, platform)
                notes += _about_entries(entries, platform, remarks)
            if arguments.feedback:
                notes += _write_feedback(arguments, course, target.with_name(f"{arguments.lessons[0]}-feedback.zip"))
            notes += _failed(gradebook, arguments.lessons)
            notes += _waiting(gradebook, arguments.lessons)
            notes += _without_notebook(course, gradebook, arguments.lessons)
            notes += _nothing_graded(course, gradebook, arguments.lessons)
            complaints = [*remarks, *notes, *unfinished(course, gradebook, arguments.lessons)]
    except CourseError as error:
        print(f"autograder export: {error}", file=sys.stderr)
        return 2
    for note in complaints:
        print(f"autograder export: {note}", file=sys.stderr)
    return int(bool(notes))


@contextmanager
def _gradebook_of(course: Course) -> Iterator[Gradebook]:
    """Open the gradebook of a course. Raises `CourseError` if there is none yet, and makes none."""
    from autograder.grading.course import has_gradebook
    from autograder.grading.errors import CourseError

    if not has_gradebook(course):
        raise CourseError(NOTHING_GRADED.format(course.root))
    with course.gradebook() as gradebook:
        yield gradebook


def _check(arguments: argparse.Namespace, gradebook: Gradebook) -> None:
    """Raise `CourseError` if options and lessons do not go together."""
    from autograder.grading.errors import CourseError

    for name, platform in TABLES.items():
        path, option = getattr(arguments, name), f"--{name.replace('_', '-')}"
        if path and arguments.platform not in platform:
            raise CourseError(f"{option} goes with --for {' or '.join(platform)}, not with {arguments.platform}.")
        if path and not path.is_file():
            raise CourseError(f"{option}: there is no file {path}.")
        if path and name != "canvas_gradebook" and len(arguments.lessons) != 1:
            raise CourseError(f"{option} is about one assignment: name exactly one.")
    if unknown := set(arguments.lessons) - {assignment.name for assignment in gradebook.assignments}:
        there = ", ".join(sorted(assignment.name for assignment in gradebook.assignments)) or "none"
        raise CourseError(f"The gradebook has no assignment {', '.join(sorted(unknown))}. It has: {there}.")


def _write_marks(
    arguments: argparse.Namespace, course: Course, gradebook: Gradebook, target: Path, remarks: list[str]
) -> Entries | None:
    """Write the table of marks. Returns what it changes in a table of the LMS, if one was given. What an instructor
    should know before uploading it goes to `remarks`.
    """
    from autograder.files import atomic_write
    from autograder.grading.gradebook.exporters import CanvasExportPlugin, HarmlessCsvExportPlugin, MoodleExportPlugin
    from autograder.grading.gradebook.question_table import write_questions
    from autograder.grading.lms.answering import fill_worksheet

    if arguments.platform == "questions":
        write_questions(course, gradebook, [it.name for it in _chosen(gradebook, arguments.lessons)], target)
        return None
    if arguments.moodle_worksheet:
        return fill_worksheet(course, gradebook, arguments.lessons[0], arguments.moodle_worksheet, target, remarks)
    plugins: dict[str, Any] = {
        "canvas": CanvasExportPlugin,
        "moodle": MoodleExportPlugin,
        "nbgrader": HarmlessCsvExportPlugin,
    }
    plugin = plugins[arguments.platform](parent=course.app)
    plugin.assignment = arguments.lessons
    if arguments.canvas_gradebook:
        plugin.gradebook = str(arguments.canvas_gradebook)
    with atomic_write(target) as draft:
        plugin.to = str(draft)
        plugin.export(gradebook)
    remarks += getattr(plugin, "remarks", ())
    return plugin.entries if arguments.canvas_gradebook else None


def _show_changes(entries: Entries, platform: str) -> None:
    """Print what uploading the file changes: who, from what to what."""
    from rich.markup import escape
    from rich.table import Table

    from autograder.grading.report.progress_display import shown_name, wide_console

    console = wide_console()
    if entries.changes:
        table = Table(title=f"what the file changes in {platform}", title_justify="left")
        for name in ("student", "column", f"in {platform} now", "in the file"):
            table.add_column(name, overflow="fold")
        for change in sorted(entries.changes, key=lambda it: (it.column, it.student)):
            texts = (change.student, change.column, change.before, change.after)
            table.add_row(*(escape(shown_name(text)) for text in texts))
        console.print(table)
    new = sum(not change.before for change in entries.changes)
    changed = len(entries.changes) - new
    console.print(f"{platform}: {new} new, {changed} changed; everything else stays as it is.", highlight=False)


def _about_entries(entries: Entries, platform: str, remarks: list[str]) -> Iterator[str]:
    """Name the students whose marks are not in the file. Those whose entry stays as it is go to `remarks`."""
    if entries.kept:
        kept = (f"{it.student} ({it.before}, not {it.after})" for it in entries.kept)
        remarks.append(f"entries that are no number stay as they are in {platform}: {', '.join(sorted(kept))}.")
    if entries.without_row:
        yield WITHOUT_ROW[platform].format(_named(entries.without_row, "student"))


def _write_feedback(arguments: argparse.Namespace, course: Course, target: Path) -> Iterator[str]:
    """Write the feedback pages, and name the students who have none."""
    from autograder.grading.lms.answering import write_feedback_archive
    from autograder.grading.lms.archives import open_archive
    from autograder.grading.lms.roster import roster_advice

    lesson, table = arguments.lessons[0], arguments.canvas_gradebook or arguments.moodle_worksheet
    with open_archive(arguments.feedback) as download:
        done = write_feedback_archive(course, lesson, download, arguments.platform, table, target)
    print(target)
    if done.without:
        again = f"Run autograder grade {quote(lesson)} --feedback, and export again."
        yield f"no feedback page: {_named(set(done.without))}. {again}"
    if done.no_notebook:
        yield f"no notebook of {lesson} handed in, so there is no feedback page: {_named(set(done.no_notebook))}."
    if done.unknown:
        option = "--canvas-gradebook" if arguments.platform == "canvas" else "--moodle-worksheet"
        more = f" {roster_advice(arguments.platform, option, table is not None)}" if done.unlisted else ""
        yield f"uploads that match no known student: {', '.join(done.unknown[:MOST_NAMED])}.{more}"


def _failed(gradebook: Gradebook, lessons: Sequence[str]) -> Iterator[str]:
    """Name the students whose submissions could not be graded, lesson by lesson."""
    from autograder.grading.gradebook.zeros import states

    for assignment in _chosen(gradebook, lessons):
        name = assignment.name
        if students := states(gradebook, name).failed:
            yield (
                f"{name}: grading failed, so there is no mark and no feedback page: {_named(students)}. Run autograder "
                f"grade {quote(name)}, which says why, and export again."
            )


def _nothing_graded(course: Course, gradebook: Gradebook, lessons: Sequence[str]) -> Iterator[str]:
    """Say which course this is about if it has no marks."""
    from nbgrader.api import SubmittedAssignment

    chosen = [assignment.id for assignment in _chosen(gradebook, lessons)]
    if not gradebook.db.query(SubmittedAssignment).filter(SubmittedAssignment.assignment_id.in_(chosen)).count():
        yield NOTHING_GRADED.format(course.root)


def _without_notebook(course: Course, gradebook: Gradebook, lessons: Sequence[str]) -> Iterator[str]:
    """Name the students who have a 0 because there was no notebook to read, lesson by lesson."""
    from autograder.grading.gradebook.zeros import without_notebook

    for assignment in _chosen(gradebook, lessons):
        if students := without_notebook(course, gradebook, assignment.name):
            yield (
                f"{assignment.name}: a notebook could not be read or was not handed in under its name, so it counts 0: "
                f"{_named(students)}. autograder grade {quote(assignment.name)} says why."
            )


def _chosen(gradebook: Gradebook, lessons: Sequence[str]) -> list[Assignment]:
    """The assignments with these names; all of them if none is named."""
    return [assignment for assignment in gradebook.assignments if not lessons or assignment.name in lessons]


def _waiting(gradebook: Gradebook, lessons: Sequence[str]) -> Iterator[str]:
    """Name the students who have no mark because a person has to give some of its points, lesson by lesson."""
    from autograder.grading.gradebook.zeros import states

    for assignment in _chosen(gradebook, lessons):
        if students := states(gradebook, assignment.name).waiting:
            yield (
                f"{assignment.name}: waiting for a person, so these marks are left out: {_named(students)}. Grade them "
                "in Formgrader, and export again."
            )


def unfinished(course: Course, gradebook: Gradebook, lessons: Sequence[str]) -> Iterator[str]:
    """Name the students who are absent, late or not graded, and those whose mark in the file may still change, lesson
    by lesson.
    """
    from nbgrader.api import SubmittedAssignment

    from autograder.grading.course import absent_students, submitted_students
    from autograder.grading.gradebook.zeros import states
    from autograder.nbgrader_plugins.times import seconds_late, span

    for assignment in _chosen(gradebook, lessons):
        name, found = assignment.name, states(gradebook, assignment.name)
        own = SubmittedAssignment.assignment_id == assignment.id
        submissions = gradebook.db.query(SubmittedAssignment).filter(own).all()
        known = {it.student_id for it in submissions}
        if absent := set(absent_students(course, name)) - (known - found.unscored):
            yield f"{name}: handed in nothing: {_named(absent, 'student')}."
        seconds = {it.student_id: seconds_late(it.timestamp, assignment.duedate, it.extension) for it in submissions}
        if late := {f"{student} by {span(after)}" for student, after in seconds.items() if after}:
            yield f"{name}: late: {_named(late)}."
        if ungraded := set(submitted_students(course, name)) - (known - found.unscored):
            yield f"{name}: not graded yet: {_named(ungraded)}. Run autograder grade {quote(name)}, and export again."
        if found.looked_at:
            yield (
                f"{name}: marks in the file that are not final, because a person has to look at them in Formgrader: "
                f"{_named(found.looked_at)}."
            )


def _named(students: set[str], what: str = "submission") -> str:
    """The number of students or of what they handed in, and the names of the first few."""
    count = f"{len(students)} {what}" + "s" * (len(students) != 1)
    more = ", ..." if len(students) > MOST_NAMED else ""
    return f"{count} ({', '.join(sorted(students)[:MOST_NAMED])}{more})"
