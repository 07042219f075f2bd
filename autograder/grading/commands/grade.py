"""`autograder grade`: grade the submissions of a class, with the marks that `nbgrader autograde` and our judge give."""

from __future__ import annotations

import argparse
import contextlib
import glob
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.course_folder import COURSE

if TYPE_CHECKING:
    from autograder.grading.run import Request
    from autograder.grading.submission.class_records import SubmissionRecord
    from autograder.grading.workers.cluster_connection import Connection

MOST_MOVES = 12  # lines that are printed; the file has all of them
STOPPED = 130  # a shell's exit status for a command that was interrupted


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("lesson", nargs="?", help="the assignment, as nbgrader names it")
    parser.add_argument("--course", type=Path, default=COURSE, metavar="DIR", help="an nbgrader course directory")
    parser.add_argument("--student", default="*", metavar="GLOB", help="grade only these students, such as 'a*'")
    parser.add_argument(
        "--workers", type=int, default=os.cpu_count() or 1, metavar="N", help="processes (default: one per processor)"
    )
    parser.add_argument("--force", action="store_true", help="grade unchanged submissions again")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write one record per submission to this file")
    parser.add_argument("--sandbox", action="store_true", help="say how submissions are isolated on this machine")
    parser.add_argument(
        "--cluster", default="", metavar="tcp://HOST:PORT", help="grade on the workers of this Dask cluster"
    )
    parser.add_argument("--feedback", action="store_true", help="generate the feedback pages as well")
    parser.add_argument(
        "--ignore-failing-solution",
        action="store_true",
        help="grade even if the solution in the source notebook fails its own tests",
    )
    parser.add_argument(
        "--unsafe-no-sandbox",
        action="store_true",
        help="run submissions without isolation: they can then do whatever you can do on this machine",
    )


def run(arguments: argparse.Namespace) -> int:
    """Grade, print the table, write the JSON.

    Returns 0 if every submission has a result, 1 if some submissions or the assignment itself need a look, 2 for a
    request that cannot be met, and STOPPED after Ctrl-C.
    """
    if arguments.sandbox:
        print(f"sandbox: {_isolation(arguments)}", flush=True)
        if not arguments.lesson:
            return 0
    from autograder.grading.errors import CourseError, faults_said

    try:
        _check(arguments)
        with faults_said(), _workers(arguments) as cluster:
            return _grade(arguments, cluster)
    except CourseError as error:
        print(f"autograder grade: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        said = "autograder grade: stopped. What was graded is kept; run the same command again to continue."
        print(said, file=sys.stderr)
        return STOPPED


@contextlib.contextmanager
def _workers(arguments: argparse.Namespace) -> Iterator[Connection | None]:
    """Make workers ready (on a cluster, if one is given) while this process imports what it needs itself."""
    from autograder.grading.workers.early_forkserver import needs_of, warm_up

    needs = needs_of(arguments.course, arguments.lesson)
    if not arguments.cluster:
        if not _all_graded_before(arguments):
            warm_up(needs, arguments.feedback, arguments.unsafe_no_sandbox)
        yield None
        return
    from autograder.grading.workers.cluster_connection import Connection

    cluster = Connection(arguments.cluster)
    try:
        cluster.open(needs.checks)
        yield cluster
    finally:
        cluster.close()


def _grade(arguments: argparse.Namespace, cluster: Connection | None) -> int:
    from autograder.grading.quick_imports import quick_imports

    with quick_imports():
        from autograder.files import atomic_write
        from autograder.grading.report import progress_display
        from autograder.grading.run import grade_class
        from autograder.grading.submission.class_records import NEEDS_A_LOOK, Standing
        from autograder.notebooks.reading import UNPROTECTED
    request = _request(arguments, cluster)
    console = progress_display.wide_console()
    started = time.perf_counter()
    with progress_display.reporter(console) as reporter:
        told = (reporter.start, reporter.record, reporter.notice, reporter.remark, reporter.missing, reporter.warning)
        records = grade_class(request, *told)
    console.print(progress_display.results_table(records, arguments.lesson))
    for notice in [*reporter.notices, *reporter.remarks]:
        console.print(f"{arguments.lesson}: {progress_display.shown_name(notice)}", soft_wrap=True)
    if any(record.move for record in records):
        for line in _moves(request):
            console.print(progress_display.shown_name(line), soft_wrap=True)
    for line in progress_display.standing_lines(Standing(records, absent=reporter.absent)):
        console.print(line, soft_wrap=True)
    console.print(_summary(request, records, time.perf_counter() - started))
    if request.unsafe:
        console.print(UNPROTECTED)
    if arguments.json:
        with atomic_write(arguments.json) as draft:
            draft.write_text(json.dumps([record.as_json() for record in records], indent=1) + "\n")
    return 1 if reporter.notices or any(record.status in NEEDS_A_LOOK for record in records) else 0


def _moves(request: Request) -> Iterator[str]:
    """Write whose marks moved into a file for an announcement, and say the first ones."""
    from autograder.files import atomic_write
    from autograder.grading import moves
    from autograder.grading.course import open_course
    from autograder.grading.questions import titles_in_order
    from autograder.grading.workers.spool import Spool

    with open_course(request.course) as course:
        titles = {name: title for (_, name), title in titles_in_order(course, request.assignment).items()}
        found = moves.read(Spool.of(course.root, request.assignment).root / moves.NAME)
        target = course.root / "reports" / f"{request.assignment}-moved.txt"
    text = moves.announcement(request.assignment, [it for it in found if it.version == found[-1].version], titles)
    target.parent.mkdir(exist_ok=True)
    with atomic_write(target) as draft:
        draft.write_text(text, "utf-8")
    lines = [line for line in text.splitlines() if line]
    yield from lines[:MOST_MOVES]
    yield f"{'... ' * (len(lines) > MOST_MOVES)}All of this, for an announcement: {target}"


def _request(arguments: argparse.Namespace, cluster: Connection | None) -> Request:
    from autograder.grading.run import Request

    return Request(
        assignment=arguments.lesson,
        course=arguments.course,
        student=arguments.student,
        workers=arguments.workers,
        unsafe=arguments.unsafe_no_sandbox,
        feedback=arguments.feedback,
        force=arguments.force,
        cluster=cluster,
        ignore_failing_solution=arguments.ignore_failing_solution,
    )


def _summary(request: Request, records: Sequence[SubmissionRecord], seconds: float) -> str:
    unchanged = sum(record.unchanged for record in records)
    workers = f"with {request.workers} worker" + "s" * (request.workers != 1)
    where = f"on {request.cluster.address}" if request.cluster else workers
    count = f"{len(records)} submission" + "s" * (len(records) != 1)
    done = f"{count} in {seconds:.1f} s {where}"
    return done + (f", {unchanged} of them unchanged since they were graded" if unchanged else "")


def _all_graded_before(arguments: argparse.Namespace) -> bool:
    """Whether there seems to be nothing to do: workers are then made ready only when one is needed."""
    course, lesson = glob.escape(str(arguments.course)), glob.escape(arguments.lesson)
    submitted, graded = (
        len(glob.glob(os.path.join(course, step, arguments.student, lesson))) for step in ("submitted", "autograded")
    )
    return not arguments.force and 0 < submitted <= graded


def _isolation(arguments: argparse.Namespace) -> str:
    """The isolation in force, or why there is none."""
    from autograder.sandbox.process.isolation import isolation_available
    from autograder.sandbox.process.process import isolation_in_force

    if arguments.unsafe_no_sandbox:
        return "none (--unsafe-no-sandbox)"
    available = isolation_available()
    return isolation_in_force() if available else f"none, so nothing is graded. {available.description}"


def _check(arguments: argparse.Namespace) -> None:
    from autograder.grading.errors import CourseError

    if not arguments.lesson:
        raise CourseError("Name the assignment to grade, as in `autograder grade 02_scalar_engine`.")
    if arguments.workers < 1:
        raise CourseError("--workers needs a number of at least 1.")
    if arguments.json and not arguments.json.resolve().parent.is_dir():
        raise CourseError(f"There is no folder {arguments.json.parent} to write {arguments.json.name} into.")
