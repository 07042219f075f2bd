"""Watches one assignment: looks for what has arrived, grades it, answers it, and looks again.

The whole state of a run is on disk: attempts in the exchange, submissions, marks, and the journal, which says what was
answered. So a killed run loses nothing, and the next run repeats nothing.
"""

from __future__ import annotations

import dataclasses
import html
import math
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import chain, islice, takewhile
from pathlib import Path
from threading import Event

from nbgrader.exchange import ExchangeError

from autograder.grading.course import deadlines, notebooks_of
from autograder.grading.errors import CourseError, faults_said
from autograder.grading.journal import NAME, Journal, day, now
from autograder.grading.run import FailingSolutionError, OpenClass, Request, has_a_name, opened_class
from autograder.grading.submission.class_records import SubmissionRecord
from autograder.grading.watching.copying import Notebooks, RefusedError
from autograder.grading.watching.inbound import SECRET, TIMESTAMP, Attempt, Copy, Inbound
from autograder.grading.workers.pool import KeptPools

EVERY, AFTER_A_FAULT = 1.0, 30.0  # seconds between two looks
TOGETHER = 8  # submissions to grade before answering them, so that the first need not wait for the last
LEFT_OUT_EVERY = 10.0  # seconds
CLAIMED = "says that it was handed in at {:%Y-%m-%d %H:%M:%S} UTC, but its files are from {:%Y-%m-%d %H:%M:%S} UTC."
LATER = "The later time counts. If you have put the files there, write the earlier time into {}."
COPIED = "So are those of others: the exchange looks copied. The earlier time counts."
MOST_PAGES = 20  # for notebooks under other names
MOST_TRIED = 20  # attempts of a student, of which the last ones may be unusable
ONE_UNCHANGED, UNCHANGED = (
    "1 submission unchanged since it was graded",
    "{} submissions unchanged since they were graded",
)
NOT_GRADED = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{lesson}</title></head><body>
<h1>{lesson}</h1>
<p>{found} was not graded: {why}.</p>
<p>{advice}</p>
</body></html>
"""
MISNAMED = "its name is not that of this assignment's notebook"
SUBMIT_AGAIN = "What you submitted before still counts. Save the notebook, and submit again."
RENAME = "Rename it to {} and submit again."
NOT_COLLECTED = "{attempt.student}: the attempt {attempt.folder.name} is not collected: {why}."
Signature = tuple[tuple[str, int, int], ...]
DUE = ""  # in a signature: the due date and the extension, in seconds


@dataclass(frozen=True)
class Events:
    """Callbacks for a submission that was answered, for a notice, and for the end of each look."""

    answered: Callable[[SubmissionRecord, bool], None]
    notice: Callable[[str], None]
    looking: Callable[[int, int], None] = lambda submissions, waiting: None


@contextmanager
def watched(request: Request, attempts_per_day: int | None, events: Events) -> Iterator[Watch]:
    """Open the assignment for watching. Raises `CourseError` if it cannot be graded here. At the end, workers finish
    what they are grading; a KeyboardInterrupt ends them at once.
    """
    pools = KeptPools()
    try:
        with opened_class(dataclasses.replace(request, pools=pools), waiting=True) as opened:
            try:
                yield Watch(opened, attempts_per_day, events)
            except KeyboardInterrupt:
                pools.kill()
                raise
    finally:
        pools.close()


@dataclass
class Watch:
    """The state of an assignment while it is watched."""

    opened: OpenClass
    attempts_per_day: int | None
    events: Events
    inbound: Inbound | None = None
    settled: dict[str, Attempt] = field(default_factory=dict)
    everybody: bool = True
    seen: dict[str, Signature] = field(default_factory=dict)
    moving: dict[str, Signature] = field(default_factory=dict)
    said: set[str] = field(default_factory=set)
    left_out_at: float = 0.0
    assignment: Signature | None = None
    new_assignment: bool = False
    unchanged: int = 0  # submissions of this look about which there is nothing to say

    def __post_init__(self) -> None:
        self.journal = Journal.read(self.opened.spool.root / NAME)
        for sentence in self.journal.complaints():
            self._say(sentence)
        try:
            self.inbound = Inbound(self.opened.course, self.opened.request.assignment)
        except CourseError as error:
            self._say(f"only submitted/ is watched. {error}")

    def until(self, stop: Event, quiet: float = math.inf) -> None:
        """Keep looking until told to stop, or until nothing has arrived for `quiet` seconds. If the machine or the
        assignment is at fault, say so and try again later; but a solution that fails at the first look ends the watch.
        """
        busy = self._look_if_possible(stop, first=True)
        last = time.monotonic()
        while not stop.wait(EVERY):
            if busy:
                last = time.monotonic()
            if time.monotonic() - last >= quiet:
                return
            busy = self._look_if_possible(stop)

    def _look_if_possible(self, stop: Event, first: bool = False) -> bool:
        """Look, or say why that cannot be done and wait. Returns whether there was anything."""
        try:
            with faults_said():
                return self.look()
        except CourseError as error:
            if first and isinstance(error, FailingSolutionError):
                raise
            self._say(f"{error} Trying again every {AFTER_A_FAULT:.0f} s.")
            self.everybody = True
            stop.wait(AFTER_A_FAULT)
            return True

    def look(self) -> bool:
        """Collect, grade and answer what has arrived since the last look. Returns whether there was anything."""
        taken, again = self._collect(), self.everybody
        self._say_left_out(again)
        self.unchanged = 0
        changed = self._changed(taken)
        for start in range(0, len(changed), TOGETHER):
            self._grade(changed[start : start + TOGETHER])
        if again and self.unchanged:
            self._say(ONE_UNCHANGED if self.unchanged == 1 else UNCHANGED.format(self.unchanged))
        self.events.looking(len(self.seen), len(self.moving))
        return bool(changed or self.moving)

    def _say_left_out(self, now: bool) -> None:
        """Say what lies among the submissions but is not graded. Looking for it takes longer than for submissions."""
        if now or time.monotonic() - self.left_out_at >= LEFT_OUT_EVERY:
            self.left_out_at = time.monotonic()
            for sentence in self.opened.left_out():
                self._say(sentence)

    def _collect(self) -> set[str]:
        """Take over the newest attempts that may be graded now. Returns their students."""
        if self.inbound is None:
            return set()
        taken, attempts_of = set(), self.inbound.attempts()
        for sentence in self.inbound.unclear:
            self._say(sentence)
        for student, attempts in sorted(attempts_of.items()):
            arrived = (attempt for attempt in attempts if attempt.complete())
            last = next(arrived, None)
            if last is None or self.settled.get(student) == last:
                continue
            is_new = self._is_new(self.inbound, last)
            if is_new(last) and not self._has_a_turn(last):
                continue
            self.settled[student] = last
            if self._take(self.inbound, student, takewhile(is_new, chain([last], arrived))):
                taken.add(student)
        return taken

    def _is_new(self, inbound: Inbound, last: Attempt) -> Callable[[Attempt], bool]:
        """Whether an attempt is later than what the student has in the course directory."""
        there, time = inbound.collected(last.student)
        if there and time is None:
            self._say(
                f"{last.student}: submitted/ has a submission without a timestamp.txt, so the attempt of "
                f"{last.time:%Y-%m-%d %H:%M:%S} UTC is not collected. To have it collected, move that submission "
                "away and start again."
            )
            return lambda attempt: False
        return lambda attempt: time is None or attempt.time > time

    def _has_a_turn(self, attempt: Attempt) -> bool:
        most, today = self.attempts_per_day, day(now())
        if most is None or self.journal.collected.get((attempt.student, today), 0) < most:
            return True
        self._say(f"{attempt.student}: {most} attempts were graded on {today}; the next one waits until tomorrow.")
        return False

    def _take(self, inbound: Inbound, student: str, attempts: Iterable[Attempt]) -> bool:
        """Take over the first of these attempts, which is the last of a student; but one that is refused, or that would
        replace a notebook by a file that is none, leaves its place to the one before. Returns whether one was taken.
        """
        best: Copy | None = None
        with tempfile.TemporaryDirectory(
            prefix="attempts-", dir=self.opened.spool.work, ignore_cleanup_errors=True
        ) as work:
            for number, attempt in enumerate(islice(attempts, MOST_TRIED)):
                try:
                    copy = inbound.copy(attempt, Path(work, str(number)))
                except RefusedError as refused:
                    self._say(NOT_COLLECTED.format(attempt=attempt, why=refused))
                    continue
                if best is None or self._leaves_its_place(inbound, best, copy.notebooks):
                    best = copy
                if not best.notebooks.problems:
                    break
            if best is None:
                return False
            if best.notebooks.problems and self._leaves_its_place(inbound, best, inbound.notebooks(student)):
                return False
            inbound.place(best)
        self.journal.add("collected", student, attempt=best.attempt.folder.name, handed_in=f"{best.time} UTC")
        if best.doubted:
            folder = self.opened.course.folder("submitted", student, self.opened.request.assignment)
            counts = COPIED if best.time == best.attempt.time else LATER.format(folder / TIMESTAMP)
            times = CLAIMED.format(best.attempt.time, best.changed)
            self._say(f"{student}: the attempt {best.attempt.folder.name} {times} {counts}")
        if best.left_out:
            shown = ", ".join(best.left_out[:5]) + (", ..." if len(best.left_out) > 5 else "")
            self._say(f"{student}: left out (links, other people's files, or too large): {shown}.")
        return True

    def _leaves_its_place(self, inbound: Inbound, copy: Copy, before: Notebooks) -> bool:
        """Whether an attempt must not replace what was handed in before. If so, say that, also to the student."""
        why = copy.notebooks.harm_to(before)
        if why:
            self._say(NOT_COLLECTED.format(attempt=copy.attempt, why=why))
            with self._said_why_not_released(copy.attempt.student):
                self._release_advice(inbound, copy.folder, why, SUBMIT_AGAIN)
        return bool(why)

    def _changed(self, taken: set[str]) -> list[str]:
        """The students whose submissions or due dates changed after they were graded, or everybody if the assignment
        has changed.

        A folder that is still being copied changes from look to look, so it has to stay the same for one.
        """
        self._start_again_when_the_assignment_has_changed()
        found, course, name = [], self.opened.course, self.opened.request.assignment
        due, extensions = deadlines(course, name)
        moving: dict[str, Signature] = {}
        for student in filter(has_a_name, self.opened.students()):
            more_time = extensions.get(student, timedelta()).total_seconds()
            deadline = DUE, int(due.timestamp()) if due else 0, int(more_time)
            signature = (*_signature(course.folder("submitted", student, name)), deadline)
            if signature == self.seen.get(student) and not self.everybody:
                continue
            if student in taken or self.everybody or self.moving.get(student) == signature:
                found.append(student)
                self.seen[student] = signature
            else:
                moving[student] = signature
        self.moving, self.everybody = moving, False
        return found

    def _start_again_when_the_assignment_has_changed(self) -> None:
        """Grade everybody again when source and release have stopped changing and the gradebook has the source's tests.
        A corrected test is only in the source until `nbgrader generate_assignment`, which renews the release too.
        """
        course, name = self.opened.course, self.opened.request.assignment
        signature = _signature(course.folder("source", ".", name)) + _signature(course.folder("release", ".", name))
        if self.assignment not in (None, signature):
            self.new_assignment = True
        elif self.new_assignment:
            differences = self.opened.differences()
            for sentence in differences:
                self._say(sentence)
            self.everybody = self.everybody or not differences
            self.new_assignment = False
        self.assignment = signature

    def _grade(self, students: list[str]) -> None:
        records = self.opened.grade(students, on_notice=self._say, on_remark=self._say)
        unanswered = [record for record in records if self._unanswered(record)]
        for problem in self.opened.write_feedback([it.student for it in unanswered if it.status != "missing"]):
            self._say(problem)
        for record in unanswered:
            self._answer(record)
        self.unchanged += sum(record.unchanged and record not in unanswered for record in records)
        if waiting := [record for record in records if record.status == "not graded"]:
            raise CourseError(f"{len(waiting)} of the submissions could not be graded now: {waiting[0].reason}")

    def _unanswered(self, record: SubmissionRecord) -> bool:
        return bool(self._graded(record)) and self.journal.released.get(record.student) != self._graded(record)

    def _graded(self, record: SubmissionRecord) -> str:
        """Identifies this version of the graded notebooks or, if there were none to grade, of what was handed in."""
        missing = record.status == "missing"
        step = "submitted" if missing else "autograded"
        signature = _signature(self.opened.course.folder(step, record.student, self.opened.request.assignment))
        counting = [entry for entry in signature if missing or entry[0].endswith(".ipynb")]
        return "; ".join([record.status] * missing + [f"{name} {time} {size}" for name, time, size in counting])

    def _answer(self, record: SubmissionRecord) -> None:
        """Release the feedback, and record that in the journal."""
        released = self._release(record)
        points = {"points": record.points, "of_points": record.max_points, "open_points": record.open_points}
        self.journal.add(
            "released",
            record.student,
            of=self._graded(record),
            **points,
            status=record.status,
            in_exchange=released,
            failing=record.first_lost,
        )
        if record.unchanged and not (released or record.reason or record.by_hand):
            self.unchanged += 1
        else:
            self.events.answered(record, released)

    def _release(self, record: SubmissionRecord) -> bool:
        """Put the student's pages where *Fetch feedback* finds them. Returns whether they are there."""
        if self.inbound is None:
            return False
        course, name = self.opened.course, self.opened.request.assignment
        with self._said_why_not_released(record.student):
            if record.status == "missing":
                wanted = " or ".join(f"{notebook}.ipynb" for notebook in notebooks_of(course, name))
                submitted, advice = course.folder("submitted", record.student, name), RENAME.format(wanted)
                return self._release_advice(self.inbound, submitted, MISNAMED, advice)
            folder = course.folder("feedback", record.student, name)
            return _release_pages(self.inbound, folder, folder)
        return False

    @contextmanager
    def _said_why_not_released(self, student: str) -> Iterator[None]:
        try:
            yield
        except (ExchangeError, ValueError) as error:
            self._say(f"{student}: the feedback is not released: {error}")

    def _release_advice(self, inbound: Inbound, folder: Path, why: str, advice: str) -> bool:
        """Tell a student why the notebooks in a folder are not graded, and what to do, on pages under their present
        names, which *Fetch feedback* asks for.
        """
        about = {"lesson": self.opened.request.assignment, "why": why, "advice": advice}
        with tempfile.TemporaryDirectory(dir=self.opened.spool.work) as drafts:
            for notebook in sorted(folder.glob("*.ipynb"))[:MOST_PAGES]:
                said = {**about, "found": notebook.name.encode("utf-8", "replace").decode()}
                page = NOT_GRADED.format_map({name: html.escape(text) for name, text in said.items()})
                Path(drafts, f"{notebook.stem}.html").write_text(page, "utf-8")
            return _release_pages(inbound, Path(drafts), folder)

    def _say(self, notice: str) -> None:
        """Pass a notice on, but only once."""
        if notice not in self.said:
            self.said.add(notice)
            self.events.notice(notice)


def _release_pages(inbound: Inbound, folder: Path, secret: Path) -> bool:
    """Release the pages of a folder. `secret`: the folder with the attempt's secret. Returns whether there are both."""
    pages = sorted(folder.glob("*.html"))
    if not pages or not (secret / SECRET).is_file():
        return False
    inbound.release(pages, (secret / SECRET).read_text("ascii"))
    return True


def _signature(folder: Path) -> Signature:
    """The files below a folder with their modification times and sizes."""
    found = []
    for where, _, names in os.walk(folder):
        for name in names:
            path = Path(where, name)
            try:
                about = path.lstat()
            except OSError:
                continue
            found.append((str(path.relative_to(folder)), about.st_mtime_ns, about.st_size))
    return tuple(sorted(found))
