"""The inbound folder of nbgrader's exchange: one folder per attempt, STUDENT+ASSIGNMENT+TIME+RANDOM.

`nbgrader submit` writes the notebooks first and the time and the secret last, so an attempt without a secret may still
be on its way.

The student chooses the folder's name, and so the time in it. The time that counts is that one if the folder and its
files have not changed since, but for minutes: the system sets when they last changed (`st_ctime`), and a student cannot
set it back. Otherwise it is the time at which they changed.
"""

from __future__ import annotations

import contextlib
import html
import os
import pwd
import re
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from nbgrader.exchange import ExchangeFactory, default
from nbgrader.utils import notebook_hash

from autograder.files import atomic_write, swap_folders
from autograder.grading.course import Course, notebooks_of
from autograder.grading.errors import CourseError
from autograder.grading.watching.copying import Notebooks, RefusedError, WhatCounts, copy_submission
from autograder.nbgrader_plugins.feedback import ABOUT_ATTEMPT
from autograder.nbgrader_plugins.times import TIMESTAMP, NoTimeError, read_time, zone_of

SECRET = "submission_secret.txt"
UNCLEAR = "{}: the attempt {} is not collected: {}. Do that, and start again."
SKEW = timedelta(minutes=5)  # clocks of two machines differ, and a large submission takes a while to write
A_COPY = timedelta(hours=1)  # in which somebody copies an exchange
AT_REST = 10.0  # seconds without a change, after which an attempt without a secret counts as complete


@dataclass(frozen=True)
class Attempt:
    """One submission of a student in the exchange. `time` is what its folder's name claims; `unseen` is when a watch
    looked and it was not there yet. Both are in UTC without a zone.
    """

    student: str
    time: datetime
    folder: Path
    unseen: datetime | None = None

    def complete(self) -> bool:
        """Whether the whole attempt has arrived."""
        with contextlib.suppress(OSError):
            return (self.folder / SECRET).lstat().st_size > 0 or self._untouched()
        return self._untouched()

    def _untouched(self) -> bool:
        with contextlib.suppress(OSError):
            return time.time() - self.folder.lstat().st_mtime > AT_REST
        return False


@dataclass(frozen=True)
class Copy:
    """A copy of an attempt, which the student cannot change any more. `left_out` are the names of files that were not
    copied, `changed` is when its files last changed, `doubted` whether that is too late for the time that it claims,
    and `time` is the one that counts.
    """

    attempt: Attempt
    folder: Path
    left_out: list[str]
    notebooks: Notebooks
    changed: datetime
    doubted: bool
    time: datetime


def inbound_folder(course: Course) -> Path:
    """Where students hand in. Raises `CourseError` if the course uses no exchange on disk, or if that has no such
    folder.
    """
    factory = ExchangeFactory(config=course.app.config)
    if not issubclass(factory.collect, default.ExchangeCollect):
        raise CourseError(f"The course uses {factory.collect.__name__}, and not nbgrader's exchange on disk.")
    if not course.coursedir.course_id:
        raise CourseError("nbgrader_config.py sets no CourseDirectory.course_id.")
    exchange = factory.exchange(coursedir=course.coursedir, config=course.app.config)
    folder = Path(exchange.root, course.coursedir.course_id, "inbound")
    if not folder.is_dir():
        raise CourseError(f"The exchange has no folder {folder}; nbgrader release_assignment makes it.")
    return folder


class Inbound:
    """What students have handed in for one assignment."""

    def __init__(self, course: Course, assignment: str) -> None:
        """Raises `CourseError` if the course uses no exchange on disk, or the exchange has no inbound folder."""
        factory = ExchangeFactory(config=course.app.config)
        self.folder = inbound_folder(course)
        self.exchange = factory.exchange(coursedir=course.coursedir, config=course.app.config)
        self.collector = factory.collect(coursedir=course.coursedir, config=course.app.config)
        self.releaser = factory.release_feedback(coursedir=course.coursedir, config=course.app.config)
        self.course, self.assignment = course, assignment
        self.limits = WhatCounts.of(course.coursedir)
        self.excluded = set(course.coursedir.student_id_exclude.split(","))
        self.zone = zone_of(course.app.config)
        # The time may end in an offset such as +0545.
        self._named = re.compile(
            rf"(?P<student>[^.].*)\+{re.escape(assignment)}\+(?P<time>[^+]*[^+ ]( ?\+\d\d(:?\d\d)?)?)(\+[^+]+)?"
        )
        self._known: dict[str, Attempt | None] = {}
        self.unclear: list[str] = []  # sentences about attempts whose time is not certain
        self._looked: datetime | None = None

    def attempts(self) -> dict[str, list[Attempt]]:
        """The attempts of each student, the last one first. They may not have arrived completely."""
        found: dict[str, list[Attempt]] = {}
        before, self._looked = self._looked, _utc(time.time())
        with os.scandir(self.folder) as entries:
            for name in [entry.name for entry in entries]:
                if name not in self._known:
                    self._known[name] = self._read(name, before)
                if attempt := self._known[name]:
                    found.setdefault(attempt.student, []).append(attempt)
        return {student: sorted(attempts, key=lambda it: it.time, reverse=True) for student, attempts in found.items()}

    def _read(self, name: str, unseen: datetime | None) -> Attempt | None:
        match = self._named.fullmatch(name)
        if match is None or match["student"] in self.excluded:
            return None
        try:
            name.encode()
            moment = read_time(match["time"], self.zone)
        except UnicodeEncodeError:
            return None
        except NoTimeError as error:
            self.unclear.append(UNCLEAR.format(match["student"], name, error))
            return None
        return Attempt(match["student"], moment, self.folder / name, unseen) if moment else None

    def collected(self, student: str) -> tuple[bool, datetime | None]:
        """Whether the student has a submission in the course directory, and its timestamp."""
        folder = self.course.folder("submitted", student, self.assignment)
        if not folder.is_dir():
            return False, None
        with contextlib.suppress(NoTimeError, OSError):
            return True, read_time((folder / TIMESTAMP).read_bytes(), self.zone)
        return True, None

    def copy(self, attempt: Attempt, target: Path) -> Copy:
        """Copy an attempt into a folder that does not exist yet. Its `timestamp.txt` then has the time that counts.
        Raises `RefusedError` if it cannot be taken.
        """
        self._check_owner(attempt)
        try:
            left_out, seconds = copy_submission(attempt.folder, target, self.limits)
        except OSError as error:
            if error.filename is None or not str(error.filename).startswith(str(attempt.folder)):
                raise
            raise RefusedError(f"it cannot be read: {error.strerror}") from error
        changed = self._handed_in(attempt, seconds)
        doubted = changed - attempt.time > SKEW
        counts = changed if doubted and not self._came_with_a_copy(attempt, changed) else attempt.time
        self._write_time(target / TIMESTAMP, counts)
        if self.course.coursedir.groupshared:
            self.exchange.set_perms(target, fileperms=0o664, dirperms=0o2775)
        notebooks = Notebooks.inside(target, notebooks_of(self.course, self.assignment))
        return Copy(attempt, target, left_out, notebooks, changed, doubted, counts)

    def notebooks(self, student: str) -> Notebooks:
        """The notebooks that the student has in the course directory."""
        folder = self.course.folder("submitted", student, self.assignment)
        return Notebooks.inside(folder, notebooks_of(self.course, self.assignment))

    def place(self, copy: Copy, before: Path | None = None) -> None:
        """Replace what the student handed in before by a copy of an attempt, completely or not at all. `before`: where
        to keep that.
        """
        target = self.course.folder("submitted", copy.attempt.student, self.assignment)
        target.parent.mkdir(parents=True, exist_ok=True)
        swap_folders(copy.folder, target, before or copy.folder.with_name("old"))

    def _write_time(self, path: Path, counts: datetime) -> None:
        """Write the time of a submission, unless it is there. The student may have put anything in its place."""
        with contextlib.suppress(NoTimeError, OSError):
            if path.is_file() and read_time(path.read_bytes(), self.zone) == counts:
                return
        shutil.rmtree(path, ignore_errors=True)
        path.write_text(f"{counts} UTC", "utf-8")

    def _handed_in(self, attempt: Attempt, changed: float) -> datetime:
        """When an attempt was handed in at the earliest, from when it last changed, in seconds since 1970."""
        known = _utc(min(changed, time.time()))  # the file system's clock may be ahead of ours
        return max(known, attempt.unseen or known)

    def _came_with_a_copy(self, attempt: Attempt, changed: datetime) -> bool:
        """Whether this attempt came when somebody copied or restored those of a class, which makes all of them look
        late: another student's came in the same hour and looks late, too, and no earlier one bears out its time.
        """
        late: list[datetime] = []
        in_time: list[datetime] = []
        for other in self._known.values():
            if other is not None and other.student != attempt.student:
                with contextlib.suppress(OSError):
                    when = self._handed_in(other, other.folder.lstat().st_ctime)
                    (late if when - other.time > SKEW else in_time).append(when)
        return any(abs(when - changed) < A_COPY for when in late) and not any(when <= changed for when in in_time)

    def release(self, pages: Sequence[Path], secret: str, about: str = "") -> None:
        """Put feedback pages, named after the attempt's secret, where *Fetch feedback* finds them, each in one step.
        `about`: what they say of the attempt, as text.

        Raises nbgrader's `ExchangeError` if the exchange's folder cannot be used.
        """
        self.releaser.init_dest()
        for page in pages:
            name = notebook_hash(secret=secret, notebook_id=page.stem)
            with atomic_write(Path(self.releaser.dest_path, f"{name}.html")) as draft:
                said = f'<p class="attempt">{html.escape(about)}</p>' if about else ABOUT_ATTEMPT
                draft.write_bytes(page.read_bytes().replace(ABOUT_ATTEMPT.encode(), said.encode()))

    def _check_owner(self, attempt: Attempt) -> None:
        """Refuse a folder under another person's name. nbgrader takes it and warns; here nobody would see that."""
        if not self.collector.check_owner:
            return
        try:
            owner = pwd.getpwuid(os.lstat(attempt.folder).st_uid).pw_name
        except (KeyError, OSError):
            owner = "an unknown account"
        if owner != attempt.student:
            raise RefusedError(
                f"its folder belongs to {owner}. If all students share one system account, set "
                "c.ExchangeCollect.check_owner = False"
            )


def _utc(seconds: float) -> datetime:
    """A time in seconds since 1970, in UTC without a zone."""
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)
