"""`autograder watch`: grade what arrives and release its feedback within seconds, until it is stopped.

Without a lesson, it starts itself once for each lesson for which something arrives.
"""

from __future__ import annotations

import argparse
import math
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from autograder.course_folder import COURSE

if TYPE_CHECKING:
    from autograder.grading.submission.class_records import SubmissionRecord


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("lesson", nargs="?", help="the assignment, as nbgrader names it (default: all in the course)")
    parser.add_argument("--course", type=Path, default=COURSE, metavar="DIR", help="an nbgrader course directory")
    parser.add_argument(
        "--attempts-per-day", type=int, metavar="N", help="collect at most N attempts per student and day"
    )
    parser.add_argument(
        "--workers", type=int, default=os.cpu_count() or 1, metavar="N", help="processes (default: one per processor)"
    )
    parser.add_argument(
        "--until-quiet", type=float, default=math.inf, metavar="S", help="stop after S seconds without a submission"
    )
    parser.add_argument("--end-with", type=int, metavar="PID", help=argparse.SUPPRESS)  # by a watch of the whole course
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
    """Watch until SIGINT or SIGTERM, or until nobody reads the output any more. Returns 0 then, and 2 for a request
    that cannot be met.
    """
    from autograder.grading.errors import CourseError, faults_said
    from autograder.grading.watching.output import Output
    from autograder.grading.workers.early_forkserver import needs_of, warm_up
    from autograder.sandbox.process.parent import end_with

    if arguments.end_with:
        end_with(arguments.end_with)
    stop = threading.Event()
    try:
        _check(arguments)
        if arguments.lesson:
            needs = needs_of(arguments.course, arguments.lesson)
            warm_up(needs, feedback=True, unsafe=arguments.unsafe_no_sandbox, apart=True)
        with faults_said():
            (_watch if arguments.lesson else _watch_all)(arguments, stop)
    except CourseError as error:
        print(f"autograder watch: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        stop.set()
    if stop.is_set():
        said = "autograder watch: stopped. Nothing is lost; run the same command again to continue."
        print(said, file=Output(sys.stderr, stop))
    return 0


def _watch(arguments: argparse.Namespace, stop: threading.Event) -> None:
    from autograder.grading.quick_imports import quick_imports

    with quick_imports():
        from autograder.grading.run import Request
        from autograder.grading.watching.watch import Events, watched

    request = Request(
        assignment=arguments.lesson,
        course=arguments.course,
        workers=arguments.workers,
        unsafe=arguments.unsafe_no_sandbox,
        ignore_failing_solution=arguments.ignore_failing_solution,
    )
    with _Screen(arguments.lesson, stop) as screen:
        events = Events(screen.answered, screen.notice, screen.looking)
        with watched(request, arguments.attempts_per_day, events) as watch:
            _stop_on_signals(stop)
            screen.started()
            watch.until(stop, arguments.until_quiet)


def _watch_all(arguments: argparse.Namespace, stop: threading.Event) -> None:
    from autograder.grading.course import open_course
    from autograder.grading.watching.lessons import QUIET, Lessons
    from autograder.grading.watching.output import Output

    root, output = arguments.course.resolve(), Output(sys.stdout, stop)

    def command(lesson: str) -> list[str]:
        options = ["--course", str(root), "--workers", str(arguments.workers), "--until-quiet", str(QUIET)]
        options += ["--end-with", str(os.getpid())]
        if arguments.attempts_per_day is not None:
            options += ["--attempts-per-day", str(arguments.attempts_per_day)]
        if arguments.ignore_failing_solution:
            options += ["--ignore-failing-solution"]
        if arguments.unsafe_no_sandbox:
            options += ["--unsafe-no-sandbox"]
        return [sys.executable, "-u", "-m", "autograder.cli", "watch", *options, "--", lesson]

    with open_course(root) as course:
        _stop_on_signals(stop)
        print(f"watching all lessons of {root}. Ctrl-C stops it.", file=output, flush=True)
        Lessons(course, command, lambda line: print(line, file=output, flush=True)).until(stop, arguments.until_quiet)


def _stop_on_signals(stop: threading.Event) -> None:
    """On a signal, stop after finishing and answering what is being graded; on a second signal, stop at once."""

    def asked(number: int, frame: FrameType | None) -> None:
        stop.set()
        on_signals(signal.default_int_handler)  # which raises KeyboardInterrupt

    def on_signals(handler: Callable[[int, FrameType | None], None]) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, handler)

    on_signals(asked)


class _Screen:
    """One line per answer and per notice, and in a terminal a last line that says what is being waited for."""

    def __init__(self, lesson: str, stop: threading.Event) -> None:
        from rich.text import Text

        from autograder.grading.report.progress_display import wide_console
        from autograder.grading.watching.output import Output

        self.lesson, self.console = lesson, wide_console()
        self.console.file = Output(sys.stdout, stop)  # type: ignore[assignment]
        self.status = self.console.status(Text(f"{lesson}: starting"))  # a plain text would be read for styles

    def __enter__(self) -> _Screen:
        if self.console.is_terminal:
            self.status.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.status.stop()

    def started(self) -> None:
        self._line(f"watching {self.lesson}. Ctrl-C stops it.")

    def answered(self, record: SubmissionRecord, released: bool) -> None:
        where = "feedback released" if released else "feedback in feedback/" if record.status != "missing" else ""
        points = f"{record.points:g} of {record.max_points:g}{record.what_is_open}"
        reason = f": {record.reason}" if record.reason else ""
        late = f", {record.lateness}" if record.lateness else ""
        by_hand = f"  {record.by_hand}" if record.by_hand else ""
        self._line(f"{record.student}  {points}{late}  {record.status}{reason}{by_hand}  {where}".rstrip())

    def notice(self, text: str) -> None:
        self._line(text)

    def looking(self, submissions: int, waiting: int) -> None:
        from rich.text import Text

        waits = f", {waiting} arriving" if waiting else ""
        self.status.update(Text(f"{self.lesson}: {submissions} submissions{waits}"))

    def _line(self, text: str) -> None:
        from datetime import datetime

        from autograder.grading.report.progress_display import shown_name

        shown = " ".join(map(shown_name, text.splitlines()))  # a refusal has a line for each reason
        self.console.print(f"{datetime.now():%H:%M:%S}  {shown}", soft_wrap=True)


def _check(arguments: argparse.Namespace) -> None:
    from autograder.grading.errors import CourseError

    if arguments.workers < 1:
        raise CourseError("--workers needs a number of at least 1.")
    if arguments.attempts_per_day is not None and arguments.attempts_per_day < 1:
        raise CourseError("--attempts-per-day needs a number of at least 1.")
