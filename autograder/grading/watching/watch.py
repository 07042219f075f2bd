"""Watches one assignment: looks for what has arrived, grades it, answers it, and looks again.

The whole state of a run is on disk: attempts in the exchange, submissions, marks, and the journal, which says what was
answered. So a killed run loses nothing, and the next run repeats nothing.
"""

from __future__ import annotations

import contextlib
import dataclasses
import html
import math
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain, islice, takewhile
from pathlib import Path
from threading import Event

from nbgrader.exchange import ExchangeError

from autograder.grading.attempts import Attempts
from autograder.grading.course import deadlines, notebooks_of
from autograder.grading.errors import CourseError, faults_said
from autograder.grading.journal import NAME, Journal, day, now
from autograder.grading.run import FailingSolutionError, OpenClass, Request, has_a_name, opened_class
from autograder.grading.submission.class_records import SubmissionRecord
from autograder.grading.watching.copying import Notebooks, RefusedError
from autograder.grading.watching.inbound import SECRET, TIMESTAMP, Attempt, Copy, Inbound
from autograder.grading.workers.pool import KeptPools
from autograder.nbgrader_plugins.course_secret import gradebook_file
from autograder.nbgrader_plugins.times import seconds_late

EVERY, AFTER_A_FAULT = 1.0, 30.0  # seconds between two looks
TOGETHER = 8  # submissions to grade before answering them, so that the first need not wait for the last
LEFT_OUT_EVERY = 10.0  # seconds
LOOKING = 0.1  # of the time: a look reads the folders of the whole class, and a rush has many parts
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
<html lang="en"><head><meta charset="utf-8"><title>{lesson}</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>:root {{ color-scheme: light dark }}
body {{ max-width: 40em; margin: 2em auto; padding: 0 1em; font: 15px/1.5 system-ui, sans-serif }}</style></head><body>
<h1>{lesson}</h1>
<p>{found} was not graded: {why}.</p>
<p>{advice}</p>
</body></html>
"""
MISNAMED = "its name is not that of this assignment's notebook"
STILL_COUNTS = "What you submitted before still counts."
SUBMIT_AGAIN = f"{STILL_COUNTS} Save the notebook, and submit again."
TOMORROW = "It will be graded tomorrow, unless you submit another one."
TOO_LATE = "it came after the due date, and the one before was in time"
EARLIER_COUNTS = "It does not count: an earlier one has {:g} points, and the best one counts."
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
                yield Watch(opened, attempts_per_day, events, attempts=Attempts(config=opened.course.app.config))
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
    attempts: Attempts = field(default_factory=Attempts)
    passed: set[str] = field(default_factory=set)  # attempts that were not taken: their folders' names
    settled: dict[str, Attempt] = field(default_factory=dict)
    everybody: bool = True
    seen: dict[str, Signature] = field(default_factory=dict)
    moving: dict[str, Signature] = field(default_factory=dict)
    said: set[str] = field(default_factory=set)
    left_out_at: float = 0.0
    assignment: Signature | None = None
    new_assignment: bool = False
    due: datetime | None = None
    extensions: dict[str, timedelta] = field(default_factory=dict)
    gradebook_changed: int | None = None
    unchanged: int = 0  # submissions of this look about which there is nothing to say
    untried: set[str] = field(default_factory=set)  # students whose submission may not be graded yet

    def __post_init__(self) -> None:
        self.untried = set(self.opened.students())
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
                return self.look(stop)
        except CourseError as error:
            if first and isinstance(error, FailingSolutionError):
                raise
            self._say(f"{error} Trying again every {AFTER_A_FAULT:.0f} s.")
            self.everybody = True
            stop.wait(AFTER_A_FAULT)
            return True

    def look(self, stop: Event | None = None) -> bool:
        """Collect, grade and answer what has arrived since the last look, and then what has to be graded again, among
        which what arrives meanwhile goes first. Stops between two submissions. Returns whether there was anything.
        """
        stop = stop or Event()
        taken, again = self._collect(), self.everybody
        self._say_left_out(again)
        self.unchanged = 0
        changed, backlog = self._changed(taken)
        busy = bool(changed or backlog or self.moving)
        looked, took = time.monotonic(), 0.0
        while (changed or backlog) and not stop.is_set():
            together = TOGETHER if changed else self.opened.request.workers
            part = (changed or backlog)[:together]
            self._grade(part)
            changed, backlog = ([it for it in students if it not in part] for students in (changed, backlog))
            if (changed or backlog) and time.monotonic() - looked < took / LOOKING:
                continue
            begun = time.monotonic()
            later, everybody = self._changed(self._collect())
            looked = time.monotonic()
            took = looked - begun
            changed += [student for student in later if student not in changed]
            backlog = everybody or [student for student in backlog if student not in changed]
        if again and self.unchanged:
            self._say(ONE_UNCHANGED if self.unchanged == 1 else UNCHANGED.format(self.unchanged))
        self.events.looking(len(self.seen), len(self.moving))
        return busy

    def _say_left_out(self, now: bool) -> None:
        """Say what lies among the submissions but is not graded. Looking for it takes longer than for submissions."""
        if now or time.monotonic() - self.left_out_at >= LEFT_OUT_EVERY:
            self.left_out_at = time.monotonic()
            for sentence in self.opened.left_out():
                self._say(sentence)

    def _collect(self) -> set[str]:
        """Take over the attempts that may be graded now: the newest of each student, or, where the best one counts,
        one after the other. Returns their students.
        """
        self._read_deadlines()
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
            new = list(takewhile(self._is_new(self.inbound, last), chain([last], arrived)))
            if self.attempts.best:
                waits = student in self.untried or self.opened.kept(student).there
                new = [] if waits else [it for it in new if self._is_untried(it)][-1:]
            if new and not self._has_a_turn(self.inbound, new[0]):
                continue
            if self.attempts.best:
                self.passed |= {attempt.folder.name for attempt in new}
            else:
                self.settled[student] = last
            if self._take(self.inbound, student, new):
                taken.add(student)
        return taken

    def _read_deadlines(self) -> None:
        """Read the due date and the extensions, if the gradebook may have changed since the last look."""
        file = gradebook_file(self.opened.course.coursedir)
        changed = file.stat().st_mtime_ns if file is not None else None
        if changed is None or changed != self.gradebook_changed:
            self.due, self.extensions = deadlines(self.opened.course, self.opened.request.assignment)
            self.gradebook_changed = changed

    def _is_untried(self, attempt: Attempt) -> bool:
        name = attempt.folder.name
        return name not in self.passed and name not in self.journal.attempts.get(attempt.student, ())

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

    def _has_a_turn(self, inbound: Inbound, attempt: Attempt) -> bool:
        """Whether an attempt may be graded today. If not, its student is told, too."""
        most = self.attempts_per_day
        if most is None or self._graded_today(attempt.student) < most:
            return True
        waits = f"{attempt.student}: {most} attempts were graded on {day(now())}; the next one waits until tomorrow."
        if waits not in self.said:
            with self._folder_for_copies() as work, contextlib.suppress(RefusedError):
                folder = inbound.copy(attempt, Path(work, "waits")).folder
                with self._said_why_not_released(attempt.student):
                    self._release_advice(inbound, folder, f"today's attempts ({most}) are used up", TOMORROW)
        self._say(waits)
        return False

    def _graded_today(self, student: str) -> int:
        return self.journal.collected.get((student, day(now())), 0)

    def _folder_for_copies(self) -> tempfile.TemporaryDirectory[str]:
        return tempfile.TemporaryDirectory(prefix="attempts-", dir=self.opened.spool.work, ignore_cleanup_errors=True)

    def _take(self, inbound: Inbound, student: str, attempts: Iterable[Attempt]) -> bool:
        """Take over the first of these attempts, which is the last of a student; but one that is refused or late, or
        that would replace a notebook by a file that is none, leaves its place to the one before. Returns whether one
        was taken.
        """
        best: Copy | None = None
        with self._folder_for_copies() as work:
            for number, attempt in enumerate(islice(attempts, MOST_TRIED)):
                try:
                    copy = inbound.copy(attempt, Path(work, str(number)))
                except RefusedError as refused:
                    self._say(NOT_COLLECTED.format(attempt=attempt, why=refused))
                    continue
                if best is None or self._leaves_its_place(inbound, best, copy.notebooks, copy.time):
                    best = copy
                if best.notebooks.readable and not self._is_late(student, best.time):
                    break
            if best is None:
                return False
            there, time = inbound.collected(student)
            if there and self._leaves_its_place(inbound, best, inbound.notebooks(student), time):
                return False
            self._place(inbound, best)
        about = {"attempt": best.attempt.folder.name, "handed_in": f"{best.time} UTC"}
        self.journal.add("collected", student, **about, counts=bool(best.notebooks.readable))
        if best.doubted:
            folder = self.opened.course.folder("submitted", student, self.opened.request.assignment)
            counts = COPIED if best.time == best.attempt.time else LATER.format(folder / TIMESTAMP)
            times = CLAIMED.format(best.attempt.time, best.changed)
            self._say(f"{student}: the attempt {best.attempt.folder.name} {times} {counts}")
        if best.left_out:
            shown = ", ".join(best.left_out[:5]) + (", ..." if len(best.left_out) > 5 else "")
            self._say(f"{student}: left out (links, other people's files, or too large): {shown}.")
        return True

    def _place(self, inbound: Inbound, copy: Copy) -> None:
        """Put an attempt where it is graded. If the best one counts, the one before is kept until that is known."""
        student = copy.attempt.student
        self.untried.add(student)
        earned = self.opened.earned(student) if self.attempts.best and inbound.collected(student)[0] else None
        if earned is None:
            inbound.place(copy)
            return
        with self.opened.kept(student).place_for(earned) as before:
            inbound.place(copy, before)

    def _is_late(self, student: str, time: datetime | None) -> bool:
        return seconds_late(time, self.due, self.extensions.get(student)) > 0

    def _leaves_its_place(self, inbound: Inbound, copy: Copy, before: Notebooks, time: datetime | None) -> bool:
        """Whether an attempt must not replace what was handed in before, at that time. If so, say that, also to the
        student.
        """
        student, advice = copy.attempt.student, SUBMIT_AGAIN
        in_time = before.readable and not self._is_late(student, time)
        why = copy.notebooks.harm_to(before)
        if not why and in_time and self._is_late(student, copy.time) and not self.attempts.late_replaces:
            why, advice = TOO_LATE, STILL_COUNTS
        elif why and not copy.notebooks.problems:
            wanted = " or ".join(sorted(before.readable))
            advice = f"{STILL_COUNTS} {RENAME.format(wanted)}"
        if why:
            self._say(NOT_COLLECTED.format(attempt=copy.attempt, why=why))
            with self._said_why_not_released(student):
                self._release_advice(inbound, copy.folder, why, advice)
        return bool(why)

    def _changed(self, taken: set[str]) -> tuple[list[str], list[str]]:
        """The students whose submissions or due dates changed after they were graded, and, if the assignment has
        changed, everybody else.

        A folder that is still being copied changes from look to look, so it has to stay the same for one.
        """
        self._start_again_when_the_assignment_has_changed()
        course, name = self.opened.course, self.opened.request.assignment
        found: list[str] = []
        others: list[str] = []
        moving: dict[str, Signature] = {}
        for student in filter(has_a_name, self.opened.students()):
            more_time = self.extensions.get(student, timedelta()).total_seconds()
            deadline = DUE, int(self.due.timestamp()) if self.due else 0, int(more_time)
            signature = (*_signature(course.folder("submitted", student, name)), deadline)
            if signature == self.seen.get(student) and not self.everybody:
                continue
            if student in taken or self.everybody or self.moving.get(student) == signature:
                (found if student in taken or not self.everybody else others).append(student)
                self.seen[student] = signature
            else:
                moving[student] = signature
        self.moving, self.everybody = moving, False
        return found, others

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

    def _grade(self, students: list[str], back: bool = False) -> None:
        """Grade and answer. `back`: earlier attempts that count again, about which there is nothing new to say."""
        records = self.opened.grade(students, on_notice=self._say, on_remark=self._say)
        self.untried -= {record.student for record in records if record.status != "not graded"}
        unanswered = [record for record in records if self._unanswered(record)]
        for problem in self.opened.write_feedback([it.student for it in unanswered if it.status != "missing"]):
            self._say(problem)
        for record in unanswered:
            self._answer(record, back)
        self.unchanged += sum(record.unchanged and record not in unanswered for record in records)
        if returned := self.opened.put_better_ones_back(records, self._say):
            self._grade(returned, back=True)
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

    def _about(self, record: SubmissionRecord) -> str:
        """What a student is told about an attempt: its number, how many are left today, and whether it counts."""
        kept, said = self.opened.kept(record.student), []
        if number := len(self.journal.attempts.get(record.student, ())):
            said.append(f"Attempt {number}.")
        if self.attempts_per_day is not None:
            left = max(0, self.attempts_per_day - self._graded_today(record.student))
            said.append(f"{left or 'No'} more {'is' if left == 1 else 'are'} graded today.")
        if kept.there:
            worse = record.counts < kept.earned
            said.append(EARLIER_COUNTS.format(kept.earned) if worse else "It counts: it is the best one so far.")
        return " ".join(said)

    def _answer(self, record: SubmissionRecord, back: bool = False) -> None:
        """Release the feedback, and record that in the journal."""
        if back:
            self.journal.add(
                "released",
                record.student,
                of=self._graded(record),
                points=record.points,
                of_points=record.max_points,
                failing=record.first_lost,
                back=True,
            )
            return
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
            return _release_pages(self.inbound, folder, folder, self._about(record))
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


def _release_pages(inbound: Inbound, folder: Path, secret: Path, about: str = "") -> bool:
    """Release the pages of a folder. `secret`: the folder with the attempt's secret. Returns whether there are both.
    `about`: what they say of the attempt.
    """
    pages = sorted(folder.glob("*.html"))
    if not pages or not (secret / SECRET).is_file():
        return False
    inbound.release(pages, (secret / SECRET).read_text("ascii"), about)
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
