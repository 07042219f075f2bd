"""`autograder import`: the submissions of an archive that was downloaded from Canvas or Moodle, or a student's own."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.course_folder import COURSE

if TYPE_CHECKING:
    from autograder.grading.lms.importing import Imported


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("lesson", help="the assignment, as nbgrader names it")
    parser.add_argument("archive", type=Path, metavar="DOWNLOAD.zip", help="all submissions, downloaded from the LMS")
    parser.add_argument(
        "--from", dest="platform", choices=("canvas", "moodle"), help="default: detected from the file names"
    )
    parser.add_argument("--course", type=Path, default=COURSE, metavar="DIR", help="an nbgrader course directory")
    parser.add_argument(
        "--roster",
        type=Path,
        metavar="FILE.csv",
        help="Canvas's exported gradebook, or Moodle's grading worksheet: says which number is whose",
    )
    parser.add_argument(
        "--student", default="", metavar="ID", help="the archive is this student's own, made with pack() in a notebook"
    )
    parser.add_argument(
        "--replace", action="store_true", help="replace existing submissions that differ; the old ones are kept"
    )


def run(arguments: argparse.Namespace) -> int:
    """Import, and say what came of it. Returns 1 if nothing was imported or a person has to look at something, 2 for a
    bad request.
    """
    from autograder.grading.quick_imports import quick_imports

    with quick_imports():
        from autograder.grading.course import open_course
        from autograder.grading.errors import CourseError, faults_said
        from autograder.grading.lms.archives import open_archive
        from autograder.grading.lms.importing import import_archive

    path, table = arguments.archive.resolve(), arguments.roster and arguments.roster.resolve()
    try:
        with faults_said(), open_course(arguments.course) as course, open_archive(path) as archive:
            options = (arguments.platform, table, arguments.replace, arguments.student)
            done = import_archive(course, arguments.lesson, archive, *options)
    except CourseError as error:
        print(f"autograder import: {error}", file=sys.stderr)
        return 2
    for line in said(done, table, course.root):
        print(line)
    return 1 if done.unknown or done.kept or not (done.taken or done.unchanged) else 0


def said(done: Imported, roster: Path | None, course: Path) -> list[str]:
    """The outcome of an import, in lines for a terminal."""
    from autograder.grading.lms.roster import roster_advice
    from autograder.grading.report.progress_display import shown_name

    taken = f"{len(done.taken)} submission" + "s" * (len(done.taken) != 1)
    counts = f"{taken} taken, {len(done.unchanged)} the same as before, in {course}"
    lines = [f"{done.platform.capitalize() or 'Archive'}: {counts}", *done.remarks]
    kept = "kept the existing submission; the archive has a different one (--replace takes it)"
    lines += [f"{student}: {kept}" for student in done.kept]
    lines += [f"not imported: {text}" for text in done.unknown]
    if done.unlisted:
        lines.append(roster_advice(done.platform, "--roster", roster is not None))
    return [shown_name(line) for line in lines]
