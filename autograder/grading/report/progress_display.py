"""Shows a class run on a terminal: a progress bar, then a table. Without a terminal, it prints plain lines."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from autograder.grading.submission.class_records import ABSENT, NEEDS_A_LOOK, Standing, SubmissionRecord

WIDTH_OF_FILES = 120
LONGEST_LINE = 160
MOST_NAMED = 10
SAY_EVERY = 10.0  # seconds
WIDEST_NAME = 32  # a longer name is wrapped, which leaves room for the points


def wide_console() -> Console:
    """The terminal as it is; a file or a log gets lines wide enough for the tables. Text is printed as it is: names may
    contain what Rich would read as a style (`[a]`) or an emoji (`:a:`).
    """
    as_it_is: dict[str, Any] = {"markup": False, "emoji": False, "highlight": False}
    console = Console(**as_it_is)
    return console if console.is_terminal else Console(width=WIDTH_OF_FILES, **as_it_is)


class Reporter:
    """Receives the records of a run as they come. Without a bar, a line now and then says how far it is."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.done = 0
        self.said_at = time.monotonic()
        self.total = 0
        self.notices: list[str] = []
        self.absent: list[str] = []
        self.remarks: list[str] = []

    def warning(self, text: str) -> None:
        """Print a notice at once, and keep it for the end as well."""
        self.console.print(text, soft_wrap=True)
        self.notice(text)

    def missing(self, students: list[str]) -> None:
        """Take the students who have handed in nothing."""
        self.absent = students

    def start(self, total: int) -> None:
        self.total = total

    def record(self, record: SubmissionRecord) -> None:
        self.done += 1
        if record.status in NEEDS_A_LOOK:
            self.console.print(summary(record), soft_wrap=True)
        if time.monotonic() - self.said_at >= SAY_EVERY and self.done < self.total:
            self.said_at = time.monotonic()
            self.console.print(f"{self.done}/{self.total}")

    def notice(self, text: str) -> None:
        """Keep a notice for the end, where it is not scrolled away."""
        self.notices.append(text)

    def remark(self, text: str) -> None:
        """Keep a remark for the end as well. Unlike a notice, it reports nothing wrong."""
        self.remarks.append(text)


class BarReporter(Reporter):
    """A reporter for terminals: one progress bar, and a line only for what a person should look at."""

    def __init__(self, console: Console, progress: Progress) -> None:
        super().__init__(console)
        self.progress = progress
        self.bar = progress.add_task("grading", total=None)

    def start(self, total: int) -> None:
        super().start(total)
        self.progress.update(self.bar, total=total)

    def record(self, record: SubmissionRecord) -> None:
        self.progress.update(self.bar, advance=1)
        if record.status in NEEDS_A_LOOK:
            self.progress.console.print(summary(record))


@contextmanager
def reporter(console: Console) -> Iterator[Reporter]:
    """A progress bar on a terminal, lines elsewhere."""
    if not console.is_terminal:
        yield Reporter(console)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        yield BarReporter(console, progress)


def summary(record: SubmissionRecord) -> str:
    """One record in one line."""
    note = f"  {record.finding}".rstrip()
    line = f"{shown_name(record.student)}  {record.status}  {shown_points(record)}  {record.seconds:.1f} s{note}"
    return line if len(line) <= LONGEST_LINE else f"{line[: LONGEST_LINE - 3]}..."


def shown_name(name: str) -> str:
    """A name that is safe to print on a terminal: a folder's name can contain control characters."""
    return "".join(character if character.isprintable() else "?" for character in name)


def shown_points(record: SubmissionRecord) -> str:
    if record.points is None:
        return "-"
    return f"{record.points:g} / {record.max_points:g}{record.what_is_open}"


def results_table(records: Sequence[SubmissionRecord], assignment: str) -> Table:
    """Student, points, time, when it was handed in if that is known, and the first thing that cost points."""
    table = Table(title=assignment, title_justify="left")
    table.add_column("student", overflow="fold", max_width=WIDEST_NAME)
    table.add_column("points", justify="right", no_wrap=True)
    table.add_column("seconds", justify="right", no_wrap=True)
    timed = any(record.handed_in for record in records)
    if timed:
        table.add_column("handed in (UTC)", no_wrap=True)
    table.add_column("first finding", overflow="fold")
    for record in records:
        status = "" if record.status == "graded" else f"{record.status}: "
        about = [shown_name(record.student), shown_points(record), f"{record.seconds:.1f}"]
        table.add_row(*about, *[record.handed_in.removesuffix(" UTC")] * timed, f"{status}{record.finding}")
    return table


def standing_lines(standing: Standing) -> Iterator[str]:
    """Where a class stands, a line for each kind of student that an instructor looks for."""
    if standing.mean is not None:
        final, all_of_them = len(standing.final), len(standing.records)
        some = f", over {final} of {all_of_them}" if final < all_of_them else ""
        before = ", before late penalties" if any(record.late_penalty for record in standing.records) else ""
        yield f"mean {standing.mean:.1f} of {standing.max_points:g}{some}{before}"
    for what, students in standing.people.items():
        most = len(students) if what == ABSENT else MOST_NAMED  # the table does not name them
        named = ", ".join(shown_name(" ".join(filter(None, one))) for one in students[:most])
        yield f"{what}: {len(students)} ({named}{', ...' * (len(students) > most)})"
