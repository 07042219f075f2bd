"""`autograder class`: runs the instructor's whole loop on a pretend class, and checks the results.

Builds and releases a lesson, collects twelve submissions, grades them in parallel, writes feedback, exports the marks.
Each pretend student states the expected result; the exit status says whether all results are as expected.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from autograder.course_folder import BUILT_IN, HOME

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from autograder.grading.pretend_class.students import Pretender
    from autograder.grading.submission.class_records import SubmissionRecord

STOPPED = 130  # a shell's exit status for a command that was interrupted


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--class",
        dest="members",
        type=Path,
        default=BUILT_IN / "pretend_class.py",
        metavar="FILE",
        help="a module with the pretend students (default: the course's)",
    )
    parser.add_argument(
        "--build", type=Path, default=HOME / ".build" / "class", help="folder in which to create the course"
    )
    parser.add_argument(
        "--workers", type=int, default=os.cpu_count() or 1, metavar="N", help="processes (default: one per processor)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the loop and print the table. Returns 1 if any result is not as expected, 2 if the loop cannot run, and
    STOPPED after Ctrl-C.
    """
    from autograder.grading.workers.early_forkserver import Needs, warm_up

    warm_up(Needs(), feedback=True)
    from autograder.grading.quick_imports import quick_imports

    with quick_imports():
        from autograder.grading.course import CourseError
        from autograder.grading.report import progress_display

    console = progress_display.wide_console()
    try:
        with _alone(arguments.build):
            return _loop(arguments, console)
    except CourseError as error:
        print(f"autograder class: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("autograder class: stopped. The next run starts over.", file=sys.stderr)
        return STOPPED


def _loop(arguments: argparse.Namespace, console: Console) -> int:
    from autograder.grading.course import open_course
    from autograder.grading.pretend_class import pretend_course
    from autograder.grading.report import progress_display
    from autograder.grading.run import Request, grade_class

    members = loaded(arguments.members)
    lesson = arguments.members.resolve().parent / "lessons" / members.LESSON / f"{members.LESSON}.py"
    root = (arguments.build / "course").resolve()
    with _step(console, f"build and release {lesson.stem}"):
        pretend_course.make_course(root, lesson)
    with _step(console, f"collect {len(members.CLASS)} submissions"):
        pretend_course.hand_in(root, lesson, members.CLASS)
        pretend_course.collect(root, lesson.stem)
    before = pretend_course.files_of(root)
    with _step(console, f"grade with {arguments.workers} workers, and write feedback"):
        request = Request(lesson.stem, root, workers=arguments.workers, feedback=True)
        with progress_display.reporter(console) as reporter:
            records = grade_class(request, reporter.start, reporter.record, reporter.notice)
    with _step(console, "export the marks"), open_course(root) as course:
        pretend_course.export(course, root / "grades.csv")
        marks = pretend_course.marks_of(course, lesson.stem)
    after = pretend_course.files_of(root)
    after.pop("grades.csv", None)
    problems = judged(members.CLASS, records)
    damage = pretend_course.changed(before, after) + pretend_course.disagreements(records, marks)
    console.print(results(members.CLASS, records, problems))
    for notice in reporter.notices:
        console.print(f"{lesson.stem}: {notice}", soft_wrap=True)
    for line in damage:
        console.print(f"changed by a submission: {line}")
    console.print(f"feedback: {root}/feedback/STUDENT/{lesson.stem}/{lesson.stem}.html", soft_wrap=True)
    console.print(f"marks:    {root}/grades.csv", soft_wrap=True)
    return 1 if damage or any(problems.values()) else 0


def judged(members: tuple[Pretender, ...], records: list[SubmissionRecord]) -> dict[str, list[str]]:
    """What is wrong with each student's result."""
    from autograder.grading.pretend_class.students import faults

    by_student = {record.student: record for record in records}
    return {
        member.student: faults(member, by_student[member.student]) if member.student in by_student else ["no result"]
        for member in members
    }


def results(members: tuple[Pretender, ...], records: list[SubmissionRecord], problems: dict[str, list[str]]) -> Table:
    """The table of students, with their points, the bugs that were named and the bugs that were expected."""
    from rich.table import Table

    from autograder.grading.pretend_class.students import diagnoses
    from autograder.grading.report.progress_display import shown_points

    by_student = {record.student: record for record in records}
    table = Table(title="the pretend class", title_justify="left")
    for name in ("student", "what it is", "points", "bug named", "bug expected", "result"):
        table.add_column(name, justify="right" if name == "points" else "left", overflow="fold")
    for member in members:
        record = by_student.get(member.student)
        found = ", ".join(diagnoses(record)) if record else ""
        points = shown_points(record) if record else "-"
        verdict = "; ".join(problems[member.student])
        row = (member.student, member.what, points, found, member.bug, f"not ok: {verdict}" if verdict else "ok")
        table.add_row(*row)
    return table


@contextmanager
def _alone(build: Path) -> Iterator[None]:
    """Allow no second run in the same folder: it would delete the course under this one."""
    from autograder.grading.course import CourseError

    try:
        build.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CourseError(f"{build} cannot be created: {error.strerror}. Name another folder with --build.") from error
    with open(build / "lock", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise CourseError(f"another run is using {build}; wait for it, or choose a folder with --build.") from error
        yield


@contextmanager
def _step(console: Console, what: str) -> Iterator[None]:
    started = time.perf_counter()
    yield
    console.print(f"{what}: {time.perf_counter() - started:.1f} s")


def loaded(path: Path) -> ModuleType:
    """The module that holds the class, loaded by its path: a course is data to this package, not a dependency."""
    from autograder.grading.course import CourseError

    if not path.is_file():
        raise CourseError(f"There is no pretend class {path}.")
    module = ModuleType("pretend_class")
    exec(compile(path.read_bytes(), path, "exec"), module.__dict__)  # unlike an import, it leaves no bytecode there
    return module
