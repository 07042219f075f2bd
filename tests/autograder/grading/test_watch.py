"""`autograder watch`: a submission is graded and answered once, whatever it is and whenever the run is killed."""

from __future__ import annotations

import errno
import io
import json
import multiprocessing
import os
import random
import re
import resource
import secrets
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Event
from typing import Any
from unittest import mock

import nbformat
import pytest
from nbgrader.api import Gradebook
from nbgrader.utils import notebook_hash

from autograder.cli import main
from autograder.grading.commands.watch import _Screen
from autograder.grading.course import CourseError, generate_assignment, open_course
from autograder.grading.journal import NAME, Journal
from autograder.grading.run import Request
from autograder.grading.submission.class_records import SubmissionRecord
from autograder.grading.watching import copying, inbound
from autograder.grading.watching import watch as watching
from autograder.grading.watching.copying import RefusedError, WhatCounts, copy_submission
from autograder.grading.watching.lessons import Lessons
from autograder.grading.watching.output import Output
from autograder.grading.watching.watch import Events, Watch, watched
from autograder.grading.workers.spool import Spool
from tests.autograder.conftest import SmallCourse
from tests.autograder.grading.here import ASSIGNMENT, grade_all, in_this_process
from tests.autograder.grading.test_resume import forget_trial

pytestmark = pytest.mark.sandbox

WRONG = "return word"
MOST_FILES = 1000  # in place of the ten thousand that an attempt may have
Attack = Callable[[Path, Path], None]


def at(minutes: float = 0) -> str:
    """A time so many minutes from now, as nbgrader writes it."""
    return f"{datetime.now(UTC) + timedelta(minutes=minutes):%Y-%m-%d %H:%M:%S.%f} UTC"


@dataclass(frozen=True)
class Exchange:
    """The course with an exchange beside it."""

    course: Any
    root: Path

    @property
    def inbound(self) -> Path:
        return self.root / "small" / "inbound"

    def hand_in(self, student: str, when: str = "", secret: str = "", **answers: str) -> Path:
        """An attempt, as `nbgrader submit` leaves it."""
        when = when or at()
        folder = self.inbound / f"{student}+{ASSIGNMENT}+{when}+{secrets.token_urlsafe(9)}"
        folder.mkdir()
        nbformat.write(self.course.answered(**answers), folder / "strings.ipynb")
        (folder / "timestamp.txt").write_text(when)
        (folder / "submission_secret.txt").write_text(secret or secrets.token_hex(64))
        return folder

    def answer(self, attempt: Path) -> str:
        """The feedback that the student finds for an attempt, or nothing."""
        name = notebook_hash(secret=(attempt / "submission_secret.txt").read_text(), notebook_id="strings")
        page = self.root / "small" / "feedback" / f"{name}.html"
        return page.read_text() if page.is_file() else ""

    def events(self, event: str) -> list[str]:
        """The students of these events in the journal, in order."""
        path = self.course.root / ".autograder" / ASSIGNMENT / NAME
        entries = [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []
        return [entry["student"] for entry in entries if entry["event"] == event]


@pytest.fixture
def exchange(small_course: Any) -> Exchange:
    return exchange_beside(small_course)


def exchange_beside(course: Any) -> Exchange:
    found = Exchange(course, course.root.parent / "exchange")
    found.inbound.mkdir(parents=True)
    configuration = course.root / "nbgrader_config.py"
    more = f"c.Exchange.root = {str(found.root)!r}\nc.ExchangeCollect.check_owner = False\n"
    configuration.write_text(configuration.read_text() + more)
    return found


@dataclass
class Watcher:
    """A watch, and what it said."""

    watch: Watch
    answered: dict[str, tuple[float, bool]]
    notices: list[str]

    def look(self) -> dict[str, tuple[float, bool]]:
        self.answered.clear()
        self.watch.look()
        return dict(self.answered)


@contextmanager
def watcher(course: Any, attempts_per_day: int | None = None) -> Iterator[Watcher]:
    answered: dict[str, tuple[float, bool]] = {}
    notices: list[str] = []

    def note(record: Any, released: bool) -> None:
        answered[record.student] = record.points, released

    with (
        in_this_process(),
        watched(Request(ASSIGNMENT, course.root), attempts_per_day, Events(note, notices.append)) as watch,
    ):
        yield Watcher(watch, answered, notices)


def test_an_attempt_is_graded_and_answered_once_and_the_next_one_too(exchange: Exchange) -> None:
    with watcher(exchange.course) as watch:
        assert watch.look() == {}
        first, other = exchange.hand_in("ann", shout=WRONG), exchange.hand_in("bob")
        assert watch.look() == {"ann": (2, True), "bob": (5, True)}
        assert watch.look() == {}
        second = exchange.hand_in("ann", at(5))
        assert watch.look() == {"ann": (5, True)}
    assert "2 of 5 points" in exchange.answer(first)
    assert "5 of 5 points" in exchange.answer(second)
    assert "hiddenword" not in exchange.answer(first) + exchange.answer(second) + exchange.answer(other)
    assert exchange.events("released") == ["ann", "bob", "ann"]
    with watcher(exchange.course) as again:
        assert again.look() == {}
    assert exchange.events("collected") == ["ann", "bob", "ann"]


def test_the_report_says_where_the_class_is_stuck_and_how_attempts_went(
    exchange: Exchange, capsys: pytest.CaptureFixture
) -> None:
    with watcher(exchange.course) as watch:
        exchange.hand_in("ann", length="return 3", shout=WRONG)
        exchange.hand_in("bob", shout=WRONG)
        watch.look()
        later = at(5)
        exchange.hand_in("ann", later, shout=WRONG)
        watch.look()
    assert main(["report", ASSIGNMENT, "--course", str(exchange.course.root)]) == 0
    page = Path(capsys.readouterr().out.strip()).read_text()
    rows = [" ".join(re.sub(r"<[^>]+>", " ", row).split()) for row in re.findall(r"<tr>.*?</tr>", page, re.DOTALL)]
    assert "0 1 Words test_length" in rows
    assert "2 2 Words test_shout ann , bob" in rows
    assert any(row.startswith(f"ann 2 / 5 {later[:19]} UTC 0, 2 ") for row in rows)


def misnamed(exchange: Exchange, student: str, when: str = "") -> tuple[Path, str]:
    """An attempt whose notebook has another name, and the name of the page that `nbgrader fetch_feedback` looks for."""
    attempt = exchange.hand_in(student, when)
    (attempt / "strings.ipynb").rename(attempt / "my <1>.ipynb")
    secret = (attempt / "submission_secret.txt").read_text()
    page = exchange.root / "small" / "feedback" / f"{notebook_hash(secret=secret, notebook_id='my <1>')}.html"
    return attempt, str(page)


def test_a_notebook_with_another_name_gets_a_line_and_a_page_that_says_what_to_do(exchange: Exchange) -> None:
    _, page = misnamed(exchange, "ann")
    exchange.course.submit("bob", exchange.course.answered(), "sol.ipynb")
    with watcher(exchange.course) as watch:
        assert watch.look() == {"ann": (0, True), "bob": (0, False)}
        assert watch.look() == {}
        said = Path(page).read_text()
        assert "my &lt;1&gt;.ipynb was not graded" in said
        assert "Rename it to strings.ipynb and submit again." in said
        attempt = exchange.hand_in("ann", at(5))
        assert watch.look() == {"ann": (5, True)}
    assert "5 of 5 points" in exchange.answer(attempt)
    with watcher(exchange.course) as again:
        assert again.look() == {}
    assert exchange.events("released") == ["ann", "bob", "ann"]


def test_a_misnamed_attempt_after_a_good_one_is_answered_with_its_own_page(exchange: Exchange) -> None:
    with watcher(exchange.course) as watch:
        first = exchange.hand_in("ann")
        assert watch.look() == {"ann": (5, True)}
        _, page = misnamed(exchange, "ann", at(5))
        assert watch.look() == {}, "it takes the place of no notebook"
    said = "What you submitted before still counts. Rename it to strings.ipynb and submit again."
    assert said in Path(page).read_text()
    assert "5 of 5 points" in exchange.answer(first)


def junk(exchange: Exchange, student: str, when: str, content: bytes = b"\0\5\x16\7") -> Path:
    """An attempt whose notebook is none."""
    attempt = exchange.hand_in(student, when)
    (attempt / "strings.ipynb").write_bytes(content)
    return attempt


@pytest.mark.parametrize("content", [b"", b"\0\5\x16\7", b"{}", b"PK\3\4", b'{"nbformat": 4}', b"[" * 11_000_000])
def test_a_file_that_is_no_notebook_replaces_none_and_the_student_is_told(exchange: Exchange, content: bytes) -> None:
    with watcher(exchange.course) as watch:
        good = exchange.hand_in("ann", at())
        (good / "._strings.ipynb").write_bytes(b"\0")
        assert watch.look() == {"ann": (5, True)}
        broken = junk(exchange, "ann", at(1), content)
        assert watch.look() == {}
        assert "strings.ipynb is not a notebook, and the one before is" in exchange.answer(broken)
        assert "What you submitted before still counts." in exchange.answer(broken)
        exchange.hand_in("ann", at(2), shout=WRONG)
        assert watch.look() == {"ann": (2, True)}
    assert any(f"ann: the attempt {broken.name} is not collected: strings.ipynb" in said for said in watch.notices)
    assert "5 of 5 points" in exchange.answer(good)
    assert exchange.events("collected") == ["ann", "ann"]
    assert not (exchange.course.root / "submitted" / "ann" / ASSIGNMENT / "._strings.ipynb").exists()


def test_of_attempts_that_came_before_the_watch_the_last_notebook_counts(exchange: Exchange) -> None:
    exchange.hand_in("ann", at(-3), shout=WRONG)
    good = exchange.hand_in("ann", when := at(-2))
    broken = [junk(exchange, "ann", at(minute)) for minute in (-1, 0)]
    junk(exchange, "bob", at(-2), b"")
    last = junk(exchange, "bob", at(-1))
    with watcher(exchange.course) as watch:
        assert watch.look() == {"ann": (5, True), "bob": (0, True)}
        assert watch.look() == {}
    assert "5 of 5 points" in exchange.answer(good)
    assert "still counts" in exchange.answer(broken[1])
    assert "This submission was not judged" in exchange.answer(last)
    time = exchange.course.root / "submitted" / "ann" / ASSIGNMENT / "timestamp.txt"
    assert time.read_text() == when


def test_an_attempt_that_cannot_be_taken_leaves_its_place_to_the_one_before(exchange: Exchange) -> None:
    good, linked = exchange.hand_in("ann"), exchange.hand_in("ann", at(5))
    linked.rename(exchange.root / "attempt")
    linked.symlink_to(exchange.root / "attempt")
    with watcher(exchange.course) as watch:
        assert watch.look() == {"ann": (5, True)}
    assert f"ann: the attempt {linked.name} is not collected: it is not a folder." in watch.notices
    assert "5 of 5 points" in exchange.answer(good)


def test_the_line_of_a_misnamed_notebook_is_that_of_grade(capsys: pytest.CaptureFixture) -> None:
    reason = "No C.ipynb was handed in, only sol.ipynb."
    record = SubmissionRecord("hugo", "C", "missing", 0, 35, reason=reason)
    screen = _Screen("C", Event())
    screen.answered(record, False)
    screen.answered(record, True)
    said = [line[10:] for line in capsys.readouterr().out.splitlines()]
    line = f"hugo  0 of 35  missing: {reason}"
    assert said == [line, f"{line}  feedback released"]


def test_the_sentences_of_a_notice_are_one_line_and_stay_apart(capsys: pytest.CaptureFixture) -> None:
    _Screen("C", Event()).notice("test_a loses points.\nSo nothing was graded:\x1b[2J.\n")
    assert capsys.readouterr().out[10:] == "test_a loses points. So nothing was graded:?[2J.\n"


def test_what_lies_in_no_folder_of_the_lesson_is_named_once(exchange: Exchange) -> None:
    exchange.course.submit("ann", exchange.course.answered())
    (exchange.course.root / "submitted" / "gina").mkdir()
    nbformat.write(exchange.course.answered(), exchange.course.root / "submitted" / "gina" / "strings.ipynb")
    with watcher(exchange.course) as watch:
        assert watch.look() == {"ann": (5, False)}
        exchange.hand_in("bob")
        watch.look()
    assert [notice for notice in watch.notices if "not graded" in notice] == [
        "not graded: submitted/gina/strings.ipynb belongs in submitted/gina/words/. Move it there to have it graded."
    ]


def test_what_comes_to_lie_in_no_folder_of_the_lesson_is_named_while_nothing_else_happens(exchange: Exchange) -> None:
    with watcher(exchange.course) as watch:
        assert watch.look() == {}
        (exchange.course.root / "submitted").mkdir(exist_ok=True)
        nbformat.write(exchange.course.answered(), exchange.course.root / "submitted" / "strings.ipynb")
        with mock.patch("autograder.grading.watching.watch.LEFT_OUT_EVERY", 0.0):
            assert (watch.look(), watch.look()) == ({}, {})
    assert [notice for notice in watch.notices if "not graded: submitted/strings.ipynb" in notice] == watch.notices
    assert len(watch.notices) == 1


def test_what_has_not_changed_is_one_line_after_a_restart(exchange: Exchange) -> None:
    for student in ("ann", "bob", "eve"):
        exchange.course.submit(student, exchange.course.answered())
    grade_all(exchange.course, "[ab]*")
    with watcher(exchange.course) as watch:
        assert watch.look() == {"eve": (5, False)}
    assert watch.notices == ["2 submissions unchanged since they were graded"]
    assert "5 of 5 points" in exchange.course.feedback("ann")
    with watcher(exchange.course) as again:
        assert (again.look(), again.look()) == ({}, {})
    assert again.notices == ["3 submissions unchanged since they were graded"]
    assert sorted(exchange.events("released")) == ["ann", "bob", "eve"]


def test_an_older_attempt_does_not_take_the_place_of_a_newer_one(exchange: Exchange) -> None:
    with watcher(exchange.course) as watch:
        exchange.hand_in("ann", at(5))
        assert watch.look() == {"ann": (5, True)}
        exchange.hand_in("ann", at(4), shout=WRONG)
        assert watch.look() == {}


def test_an_attempt_that_is_still_on_its_way_is_waited_for(exchange: Exchange) -> None:
    attempt = exchange.hand_in("ann")
    secret = (attempt / "submission_secret.txt").read_text()
    (attempt / "submission_secret.txt").unlink()
    with watcher(exchange.course) as watch:
        assert watch.look() == {}
        (attempt / "submission_secret.txt").write_text("")
        assert watch.look() == {}
        (attempt / "submission_secret.txt").write_text(secret)
        assert watch.look() == {"ann": (5, True)}


def test_an_attempt_without_a_secret_is_graded_when_nothing_more_comes(exchange: Exchange) -> None:
    attempt = exchange.hand_in("ann")
    (attempt / "submission_secret.txt").unlink()
    os.utime(attempt, (time.time() - 60,) * 2)
    with watcher(exchange.course) as watch:
        assert watch.look() == {"ann": (5, False)}


def test_attempts_of_a_day_are_counted_over_runs(exchange: Exchange) -> None:
    for number, shout in enumerate((WRONG, WRONG, "return word.upper()")):
        with watcher(exchange.course, attempts_per_day=2) as watch:
            exchange.hand_in("ann", at(number), shout=shout)
            assert watch.look() == ({"ann": (2, True)} if number < 2 else {})
    assert watch.notices == [mock.ANY, "1 submission unchanged since it was graded"]
    assert watch.notices[0].startswith("ann: 2 attempts were graded on")
    tomorrow = watching.now().replace(year=2100)
    with (
        mock.patch.object(watching, "now", return_value=tomorrow),
        watcher(exchange.course, attempts_per_day=2) as watch,
    ):
        assert watch.look() == {"ann": (5, True)}


def test_what_is_put_into_submitted_is_graded_when_it_has_come_to_rest(exchange: Exchange) -> None:
    with watcher(exchange.course) as watch:
        assert watch.look() == {}
        path = exchange.course.submit("ann", b"half a note")
        assert watch.look() == {}
        exchange.course.submit("ann", exchange.course.answered())
        assert watch.look() == {}
        assert watch.look() == {"ann": (5, False)}
        assert "5 of 5 points" in exchange.course.feedback("ann")
        os.utime(path, (1, 1))
        assert (watch.look(), watch.look(), watch.look()) == ({}, {}, {}), "touched, but the same"


def test_a_submission_without_a_time_is_not_replaced(exchange: Exchange) -> None:
    exchange.course.submit("ann", exchange.course.answered())
    with watcher(exchange.course) as watch:
        exchange.hand_in("ann", shout=WRONG)
        assert watch.look() == {"ann": (5, False)}
    assert any("without a timestamp.txt" in notice for notice in watch.notices)


@pytest.mark.parametrize(
    ("zone", "first", "second", "newest"),
    [
        ("America/Los_Angeles", "2026-11-01 01:50:00.000000 PDT", "2026-11-01 01:10:00.000000 PST", 5),
        ("America/Los_Angeles", "2026-03-01 11:00:00.000000 PST", "2026-03-01 18:00:00.000000 UTC", 2),
        ("Asia/Kathmandu", "2026-03-01 11:00:00.000000 +0545", "2026-03-01 11:30:00.000000 +0545", 5),
        ("", "2026-03-01T11:00:00+0545", "2026-03-01T11:00:00+05:30", 5),
        ("America/Sao_Paulo", "2026-03-01 11:00:00.000000 -03", "2026-03-01 13:59:00.000000 UTC", 2),
        ("", "2026-03-01 11:00:00.000000 UTC", "2026-03-01 12:00:00.000000 PST", 2),
    ],
)
def test_the_newest_attempt_is_found_in_any_zone(
    exchange: Exchange, zone: str, first: str, second: str, newest: float
) -> None:
    configuration = exchange.course.root / "nbgrader_config.py"
    configuration.write_text(configuration.read_text() + f"c.Exchange.timezone = {zone!r}\n" * bool(zone))
    exchange.hand_in("ann", first, shout=WRONG)
    exchange.hand_in("ann", second)
    with watcher(exchange.course) as watch:
        assert watch.look() == {"ann": (newest, True)}
        assert watch.look() == {}
    unclear = [notice for notice in watch.notices if "is not collected: the zone of" in notice]
    assert len(unclear) == (second.endswith("PST") and not zone)


def test_a_corrected_test_grades_everybody_again_and_says_so_to_them(exchange: Exchange) -> None:
    with watcher(exchange.course) as watch:
        attempt = exchange.hand_in("ann", length="return min(len(word), 6)")
        assert watch.look() == {"ann": (3, True)}
        path = exchange.course.root / "source" / ASSIGNMENT / "strings.ipynb"
        source = nbformat.read(path, as_version=4)
        for cell in source.cells:
            cell.source = cell.source.replace('length("hiddenword") == 10', 'length("hidden") == 6')
        nbformat.write(source, path)
        assert (watch.look(), watch.look()) == ({}, {}), "the gradebook does not have it yet"
        assert any("differs between the source and the gradebook" in notice for notice in watch.notices)
        with open_course(exchange.course.root) as opened:
            generate_assignment(opened, ASSIGNMENT)
        assert watch.look() == {}, "it may not be complete"
        assert watch.look() == {"ann": (5, True)}
        assert (watch.look(), watch.look()) == ({}, {})
    assert "5 of 5 points" in exchange.answer(attempt)


def linked_file(folder: Path, outside: Path) -> None:
    (folder / "stolen.txt").symlink_to(outside / "private.txt")


def linked_folder(folder: Path, outside: Path) -> None:
    (folder / "stolen").symlink_to(outside)


def linked_notebook(folder: Path, outside: Path) -> None:
    (folder / "strings.ipynb").unlink()
    (folder / "strings.ipynb").symlink_to(outside / "private.txt")


def linked_time(folder: Path, outside: Path) -> None:
    (folder / "timestamp.txt").unlink()
    (folder / "timestamp.txt").symlink_to(outside / "private.txt")


def linked_secret(folder: Path, outside: Path) -> None:
    (folder / "submission_secret.txt").unlink()
    (folder / "submission_secret.txt").symlink_to(outside / "private.txt")


def linked_attempt(folder: Path, outside: Path) -> None:
    away = folder.rename(outside / "attempt")
    folder.symlink_to(away)


def pipe(folder: Path, outside: Path) -> None:
    os.mkfifo(folder / "data.csv")


def device_like_notebook(folder: Path, outside: Path) -> None:
    (folder / "strings.ipynb").unlink()
    os.mkfifo(folder / "strings.ipynb")


def file_of_somebody_else(folder: Path, outside: Path) -> None:
    os.link(outside / "private.txt", folder / "stolen.txt")
    os.chown(outside / "private.txt", 65534, 65534)


def endless_file(folder: Path, outside: Path) -> None:
    with open(folder / "large.bin", "wb") as file:
        file.truncate(1 << 40)


def folders_without_end(folder: Path, outside: Path) -> None:
    deep = folder
    for _ in range(200):
        deep = deep / "a"
    deep.mkdir(parents=True)
    (deep / "note.txt").write_text("here")


def thousands_of_files(folder: Path, outside: Path) -> None:
    for number in range(MOST_FILES + 50):
        (folder / f"{number}").touch()


def binary_secret(folder: Path, outside: Path) -> None:
    (folder / "submission_secret.txt").write_bytes(bytes(range(256)))


def secret_of_another_folder(folder: Path, outside: Path) -> None:
    (folder / "submission_secret.txt").write_text("../../../../private")


def folder_for_the_time(folder: Path, outside: Path) -> None:
    (folder / "timestamp.txt").unlink()
    (folder / "timestamp.txt").mkdir()
    (folder / "timestamp.txt" / "link.txt").symlink_to(outside / "private.txt")


def time_without_end(folder: Path, outside: Path) -> None:
    (folder / "timestamp.txt").write_text("9" * 1_000_000)


def unreadable(folder: Path, outside: Path) -> None:
    (folder / "strings.ipynb").write_bytes(b"\xff\xfe not a notebook")


def no_notebook(folder: Path, outside: Path) -> None:
    (folder / "strings.ipynb").unlink()


def name_that_climbs(folder: Path, outside: Path) -> None:
    folder.rename(folder.with_name(f"..+{ASSIGNMENT}+2026-11-01 10:00:00 UTC+x"))


def time_that_is_none(folder: Path, outside: Path) -> None:
    folder.rename(folder.with_name(f"eve+{ASSIGNMENT}+tomorrow, perhaps+x"))


def time_beyond_time(folder: Path, outside: Path) -> None:
    folder.rename(folder.with_name(f"eve+{ASSIGNMENT}+99999999999999999999-01-01+x"))


def lines_in_the_name(folder: Path, outside: Path) -> None:
    folder.rename(folder.with_name(f"e\nve\x1b[2J+{ASSIGNMENT}+2026-11-01 10:00:00 UTC+x"))


def name_that_is_no_text(folder: Path, outside: Path) -> None:
    os.rename(folder, os.fsencode(folder.parent) + b"/\xff+" + ASSIGNMENT.encode() + b"+2026-11-01 10:00:00 UTC+x")


def a_file_for_a_folder(folder: Path, outside: Path) -> None:
    folder.rename(outside / "attempt")
    folder.write_text("no folder")


HOSTILE = (
    linked_file, linked_folder, linked_notebook, linked_time, linked_secret, linked_attempt, pipe, device_like_notebook,
    file_of_somebody_else, endless_file, folders_without_end, thousands_of_files, binary_secret,
    secret_of_another_folder, folder_for_the_time, time_without_end, unreadable, no_notebook, name_that_climbs,
    time_that_is_none, time_beyond_time, lines_in_the_name, name_that_is_no_text, a_file_for_a_folder,
)  # fmt: skip
READ_IT = "import pathlib; return str([p.read_text()[:99] for p in pathlib.Path('.').rglob('*') if p.is_file()])"


@dataclass(frozen=True)
class Attacked:
    """What a watch has left behind that met all attacks at once, each by a student of the attack's name."""

    exchange: Exchange
    found: dict[str, tuple[float, bool]]
    beside: tuple[list[Path], list[Path]]  # what lies beside course and exchange, before and after the watch

    def holding(self, text: str) -> list[Path]:
        """The files of the course and the released pages that hold a text."""
        course = [path for path in self.exchange.course.root.rglob("*") if path.is_file() and not path.is_symlink()]
        pages = list((self.exchange.root / "small" / "feedback").iterdir())
        return [path for path in [*course, *pages] if text.encode() in path.read_bytes()]


def is_possible(attack: Attack) -> bool:
    return attack is not file_of_somebody_else or os.getuid() == 0


def key_against(attack: Attack) -> str:
    """What an attack may not bring out."""
    return f"the key of attack {HOSTILE.index(attack):02}"


@pytest.fixture(scope="module")
def attacked(released_course: Path, tmp_path_factory: pytest.TempPathFactory) -> Attacked:
    folder = tmp_path_factory.mktemp("attacked")
    exchange = exchange_beside(SmallCourse(released_course).copy(folder / "course"))
    for attack in HOSTILE:
        outside = folder / "private" / attack.__name__
        outside.mkdir(parents=True)
        (outside / "private.txt").write_text(key_against(attack))
        if is_possible(attack):
            attack(exchange.hand_in(attack.__name__, shout=READ_IT), outside)
    exchange.hand_in("ann")
    before = beside(folder)
    with mock.patch.object(copying, "MOST_FILES", MOST_FILES), watcher(exchange.course) as watch:
        found = watch.look()
        watch.look()
    return Attacked(exchange, found, (before, beside(folder)))


def beside(folder: Path) -> list[Path]:
    """What lies beside course and exchange."""
    return sorted([*folder.iterdir(), *folder.glob("private/*/*")])


def test_attacks_in_the_exchange_stop_nothing_and_write_nowhere_else(attacked: Attacked) -> None:
    assert attacked.found["ann"] == (5, True)
    assert attacked.beside[0] == attacked.beside[1]
    root = attacked.exchange.course.root
    assert [path for path in root.rglob("*") if stat.S_ISFIFO(path.lstat().st_mode)] == []


@pytest.mark.parametrize("attack", HOSTILE, ids=lambda it: it.__name__)
def test_no_attack_in_the_exchange_brings_anything_out(attacked: Attacked, attack: Attack) -> None:
    if not is_possible(attack):
        pytest.skip("only root can give a file away")
    assert attacked.holding(key_against(attack)) == []


def test_a_folder_of_another_account_is_not_taken(exchange: Exchange) -> None:
    configuration = exchange.course.root / "nbgrader_config.py"
    configuration.write_text(configuration.read_text().replace("check_owner = False", "check_owner = True"))
    with watcher(exchange.course) as watch:
        exchange.hand_in("ann")
        assert watch.look() == {}
    assert any("its folder belongs to" in notice and "check_owner" in notice for notice in watch.notices)


DAY = -24 * 60.0


def times_that_count(exchange: Exchange) -> dict[str, float]:
    """The times of what was collected, as grading reads them, in minutes from now."""
    found = {}
    for path in (exchange.course.root / "submitted").glob(f"*/{ASSIGNMENT}/timestamp.txt"):
        counts = datetime.strptime(path.read_text(), "%Y-%m-%d %H:%M:%S.%f UTC").replace(tzinfo=UTC)
        found[path.parts[-3]] = round((counts - datetime.now(UTC)).total_seconds() / 60)
    return found


TIMES = {
    "as it was": ([{"ann": 0}], {"ann": 0}, []),
    "clocks that differ": ([{"ann": -4}, {"bob": 0}], {"ann": -4, "bob": 0}, []),
    "a clock that is ahead": ([{"ann": 60}], {"ann": 60}, []),
    "alone": ([{"ann": DAY}], {"ann": 0}, ["ann: later"]),
    "beside an honest one": ([{"ann": 0, "bob": DAY}], {"ann": 0, "bob": 0}, ["bob: later"]),
    "an honest one after it": ([{"ann": DAY}, {"bob": 0}], {"ann": 0, "bob": 0}, ["ann: later"]),
    "two friends": (
        [{"ann": 0, "bob": -30, "cem": DAY}],
        dict.fromkeys(("ann", "bob", "cem"), 0),
        ["bob: later", "cem: later"],
    ),
    "a copy of the whole exchange": (
        [{"ann": DAY, "bob": 2 * DAY, "cem": -90}, {"dan": 0}],
        {"ann": DAY, "bob": 2 * DAY, "cem": -90, "dan": 0},
        ["ann: copied", "bob: copied", "cem: copied"],
    ),
    "after a copy": (
        [{"ann": DAY, "bob": DAY}, {"dan": 0}, {"eve": DAY}],
        {"ann": DAY, "bob": DAY, "dan": 0, "eve": 0},
        ["ann: copied", "bob: copied", "eve: later"],
    ),
}


@pytest.mark.parametrize("name", TIMES)
def test_the_time_of_an_attempt_is_believed_if_its_files_bear_it_out(exchange: Exchange, name: str) -> None:
    looks, wanted, said = TIMES[name]
    with watcher(exchange.course) as watch:
        for claims in looks:
            for student, minutes in claims.items():
                exchange.hand_in(student, at(minutes))
            watch.watch._collect()
    assert times_that_count(exchange) == wanted
    for notice, (student, counts) in zip(watch.notices, (line.split(": ") for line in said), strict=True):
        claimed = r"it was handed in at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"
        ends = {"later": "The later time counts.*timestamp.txt", "copied": "copied.*The earlier time counts"}[counts]
        assert re.match(rf"{student}: .*{claimed}.*are from \d{{4}}-.* UTC.*{ends}", notice), notice


def test_a_copy_excuses_nobody_who_comes_later(exchange: Exchange, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbound, "A_COPY", timedelta(seconds=1.5))
    with watcher(exchange.course) as watch:
        exchange.hand_in("ann", at(DAY))
        exchange.hand_in("bob", at(DAY))
        watch.watch._collect()
        time.sleep(1.6)
        exchange.hand_in("eve", at(DAY))
        watch.watch._collect()
    assert times_that_count(exchange) == {"ann": DAY, "bob": DAY, "eve": 0}


def earlier_file(attempt: Path) -> None:
    (attempt / "timestamp.txt").write_text(at(DAY))


def no_file(attempt: Path) -> None:
    (attempt / "timestamp.txt").unlink()


def folder_for_a_file(attempt: Path) -> None:
    no_file(attempt)
    (attempt / "timestamp.txt").mkdir()


def zone_ahead(attempt: Path) -> None:
    """A zone in which the same hour was thirteen hours ago."""
    attempt.rename(attempt.with_name(f"ann+{ASSIGNMENT}+{at().replace(' UTC', '+1300')}+x"))


def earlier_dates_of_files(attempt: Path) -> None:
    attempt = attempt.rename(attempt.with_name(f"ann+{ASSIGNMENT}+{at(DAY)}+x"))
    for path in (*attempt.iterdir(), attempt):
        os.utime(path, (time.time() + 60 * DAY,) * 2)


def notebook_changed_later(attempt: Path) -> None:
    time.sleep(0.3)
    (attempt / "strings.ipynb").write_bytes((attempt / "strings.ipynb").read_bytes())


def filled_later(attempt: Path) -> None:
    time.sleep(0.3)
    (attempt / "more").mkdir()
    (attempt / "more" / "data.csv").touch()


def named_later(attempt: Path) -> None:
    kept = attempt.rename(attempt.with_name("kept"))
    time.sleep(0.3)
    kept.rename(attempt)


@pytest.mark.parametrize(
    ("change", "noticed"),
    [
        *((earlier_file, False), (no_file, False), (folder_for_a_file, False), (zone_ahead, True)),
        *((earlier_dates_of_files, True), (notebook_changed_later, True), (filled_later, True), (named_later, True)),
    ],
    ids=lambda it: getattr(it, "__name__", ""),
)
def test_an_attempt_does_not_become_earlier_by_what_a_student_can_change(
    exchange: Exchange, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None], noticed: bool
) -> None:
    if noticed:
        monkeypatch.setattr(inbound, "SKEW", timedelta(seconds=0.2))
    claimed = datetime.now(UTC).replace(tzinfo=None)
    change(exchange.hand_in("ann", f"{claimed} UTC"))
    with watcher(exchange.course) as watch:
        watch.watch._collect()
        assert times_that_count(exchange) == {"ann": 0}
        assert len(watch.notices) == noticed
        watch.watch.settled.clear()
        assert watch.watch._collect() == set(), "it would be taken again after a restart"


def test_a_watch_that_starts_days_later_believes_as_one_that_was_there(
    exchange: Exchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchange.hand_in("ann")
    exchange.hand_in("bob", at(DAY))
    later = time.time() - 3 * 60 * DAY
    monkeypatch.setattr(inbound.time, "time", lambda: later)
    with watcher(exchange.course) as watch:
        watch.watch._collect()
    assert times_that_count(exchange) == {"ann": 0, "bob": 0}
    assert [notice.split(":")[0] for notice in watch.notices] == ["bob"]


@pytest.mark.parametrize("ahead", [-3600, 3600])
def test_a_watch_knows_what_was_not_there_though_the_clock_of_the_files_is_wrong(
    exchange: Exchange, monkeypatch: pytest.MonkeyPatch, ahead: float
) -> None:
    copy = inbound.copy_submission

    def copy_with_another_clock(*arguments: Any) -> tuple[list[str], float]:
        left_out, changed = copy(*arguments)
        return left_out, changed + ahead

    monkeypatch.setattr(inbound, "copy_submission", copy_with_another_clock)
    with watcher(exchange.course) as watch:
        exchange.hand_in("ann")
        watch.watch._collect()
        exchange.hand_in("bob", at(-30))
        watch.watch._collect()
    assert times_that_count(exchange) == {"ann": 0, "bob": 0}
    assert [notice.split(":")[0] for notice in watch.notices] == ["bob"]


def test_a_submission_that_is_too_large_is_refused(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "data").write_bytes(b"a" * 100)
    limits = WhatCounts((), ("*",), file_size=1e6, folder_size=50)
    with pytest.raises(RefusedError, match="larger than"):
        copy_submission(source, tmp_path / "target", limits)


@pytest.fixture
def lessons(exchange: Exchange) -> Iterator[Lessons]:
    """All lessons of the course, each watched by a command that ends at once and leaves a line in `log`."""
    more = exchange.course.root / "source" / "more"
    shutil.copytree(exchange.course.root / "source" / ASSIGNMENT, more)
    code = "import sys; print('one line'); sys.exit(sys.argv[1] == 'more')"
    said: list[str] = []
    with open_course(exchange.course.root) as course:
        yield Lessons(course, lambda lesson: [sys.executable, "-c", code, lesson], said.append)


def started(lessons: Lessons) -> list[str]:
    """The lessons that one look starts. Waits until their processes have ended."""
    before = dict(lessons.running)
    lessons.look()
    new = [lesson for lesson in lessons.running if lessons.running[lesson] is not before.get(lesson)]
    for lesson in new:
        lessons.running[lesson].wait(timeout=60)
    return new


def test_a_lesson_is_watched_from_the_moment_on_when_something_arrives_for_it(
    lessons: Lessons, exchange: Exchange
) -> None:
    assert started(lessons) == []
    exchange.hand_in("ann")
    assert started(lessons) == [ASSIGNMENT]
    assert started(lessons) == []
    exchange.hand_in("ann", at(5))
    assert started(lessons) == [ASSIGNMENT]
    exchange.course.submit("bob", exchange.course.answered())
    assert started(lessons) == [ASSIGNMENT]
    os.utime(exchange.course.root / "release" / ASSIGNMENT)
    assert started(lessons) == [ASSIGNMENT], "its tests may have changed"
    tomorrow = watching.now().replace(year=2100)
    with mock.patch("autograder.grading.watching.lessons.now", return_value=tomorrow):
        assert started(lessons) == [ASSIGNMENT], "attempts that waited for the next day count now"
        assert started(lessons) == []


def test_it_ends_when_nothing_has_come_for_a_while(lessons: Lessons, exchange: Exchange) -> None:
    exchange.course.submit("ann", exchange.course.answered())
    began = time.monotonic()
    lessons.until(threading.Event(), 1.5)
    assert lessons.seen
    assert not lessons.running
    assert time.monotonic() - began > 1.5


def test_a_lesson_whose_watch_failed_is_tried_again_later(lessons: Lessons, exchange: Exchange) -> None:
    lessons.say = (said := []).append
    exchange.course.submit("ann", exchange.course.answered())
    shutil.copytree(*(exchange.course.root / "submitted" / "ann" / name for name in (ASSIGNMENT, "more")))
    assert sorted(started(lessons)) == ["more", ASSIGNMENT]
    assert started(lessons) == []
    assert said[-1] == "more  trying again when something arrives for it, or in 5 minutes"
    assert said.count(said[-1]) == 1
    with mock.patch("autograder.grading.watching.lessons.time.monotonic", return_value=time.monotonic() + 1000):
        assert started(lessons) == ["more"]


def test_a_whole_course_is_watched_by_one_command_until_a_signal(exchange: Exchange, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "autograder.cli", "watch", "--course", str(exchange.course.root)]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen([*command, "--workers", "1"], stdout=log, stderr=subprocess.STDOUT)
    try:
        attempt = exchange.hand_in("ann", shout=WRONG)
        end = time.monotonic() + 120
        while not exchange.answer(attempt) and time.monotonic() < end and process.poll() is None:
            time.sleep(0.2)
        assert "2 of 5 points" in exchange.answer(attempt), (tmp_path / "log").read_text()
    finally:
        process.terminate()
    assert process.wait(timeout=60) == 0
    said = (tmp_path / "log").read_text()
    assert re.search(rf"{ASSIGNMENT}  \d\d:\d\d:\d\d  ann  2 of 5  graded  feedback released", said), said
    stopped = "autograder watch: stopped. Nothing is lost"
    assert f"\n{ASSIGNMENT}  {stopped}" in said, "its watch ends in the same way"
    assert f"\n{stopped}" in said
    assert main(["grade", ASSIGNMENT, "--course", str(exchange.course.root)]) == 0, "its watch still holds the lesson"


def test_the_watches_of_lessons_end_with_the_one_that_started_them(exchange: Exchange, tmp_path: Path) -> None:
    exchange.hand_in("ann")
    command = [sys.executable, "-m", "autograder.cli", "watch", "--course", str(exchange.course.root)]
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen([*command, "--workers", "1"], stdout=log, stderr=subprocess.STDOUT)
    end = time.monotonic() + 120
    while "ann  5 of 5" not in (tmp_path / "log").read_text() and time.monotonic() < end:
        time.sleep(0.1)
    process.kill()
    process.wait()
    assert "ann  5 of 5" in (tmp_path / "log").read_text(), "no lesson was watched"
    assert main(["grade", ASSIGNMENT, "--course", str(exchange.course.root)]) == 0, "its watch still holds the lesson"


def test_a_watch_ends_when_nothing_comes(exchange: Exchange) -> None:
    attempt = exchange.hand_in("ann")
    with watcher(exchange.course) as watch:
        watch.watch.until(Event(), quiet=2.0)
    assert "5 of 5 points" in exchange.answer(attempt)


def test_a_journal_that_broke_off_goes_on(tmp_path: Path) -> None:
    path = tmp_path / NAME
    Journal(path).add("released", "ann", of="one", points=1, of_points=2, failing="")
    with path.open("a") as file:
        file.write('{"at": "2026')
    journal = Journal.read(path)
    assert journal.released == {"ann": "one"}
    journal.add("released", "bob", of="two", points=2, of_points=2, failing="")
    assert Journal.read(path).released == {"ann": "one", "bob": "two"}


@contextmanager
def no_file_longer_than(size: int) -> Iterator[None]:
    """As on a full disk, the part of a write that has room is written, and the rest fails."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_an_event_for_which_the_disk_has_no_room_leaves_nothing_in_the_journal(tmp_path: Path) -> None:
    path = tmp_path / NAME
    journal = Journal(path)
    for student in ("ann", "bob"):
        about = {"of": "one", "points": 1, "of_points": 2, "failing": ""}
        before = path.read_bytes() if path.exists() else b""
        with no_file_longer_than(len(before) + 20), pytest.raises(OSError, match="large"):
            journal.add("released", student, **about)
        assert path.read_bytes() == before
        assert student not in journal.released
        journal.add("released", student, **about)
    assert Journal.read(path).released == {"ann": "one", "bob": "one"}


def damaged_journal(path: Path) -> None:
    """The third line is what a full disk left in the middle of a journal, the others are other accidents."""
    for student in ("ann", "bob"):
        Journal(path).add("released", student, of="one", points=1, of_points=2, failing="")
    first, last = path.read_bytes().splitlines(keepends=True)
    broken = [bytes(9) + b"\n", first[:70] + last, b"[1]\n", b'{"event": "released"}\n', b"\xff\n"]
    path.write_bytes(b"".join([first, *broken, last]))


def test_a_line_of_the_journal_that_cannot_be_read_is_skipped_and_named(tmp_path: Path) -> None:
    path = tmp_path / NAME
    damaged_journal(path)
    journal = Journal.read(path)
    assert journal.released == {"ann": "one", "bob": "one"}
    (said,) = journal.complaints()
    assert said.startswith(f"{path}: these lines cannot be read and are skipped: 2, 3, 4, 5, 6. ")


def test_watch_and_report_go_on_with_a_damaged_journal(exchange: Exchange, capsys: pytest.CaptureFixture) -> None:
    damaged_journal(exchange.course.root / ".autograder" / ASSIGNMENT / NAME)
    exchange.course.submit("eve", exchange.course.answered())
    with watcher(exchange.course) as watch:
        assert watch.look() == {"eve": (5, False)}
    (said,) = [notice for notice in watch.notices if "cannot be read" in notice]
    assert main(["report", ASSIGNMENT, "--course", str(exchange.course.root)]) == 0
    assert said in Path(capsys.readouterr().out.strip()).read_text()


def test_a_full_disk_at_the_first_look_does_not_end_a_watch(
    exchange: Exchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "AFTER_A_FAULT", 0.1)
    attempt = exchange.hand_in("ann")
    collect, full = Watch._collect, [OSError(errno.ENOSPC, "No space left on device")]

    def collect_when_there_is_room(watch: Watch) -> set[str]:
        if full:
            raise full.pop()
        return collect(watch)

    monkeypatch.setattr(Watch, "_collect", collect_when_there_is_room)
    with watcher(exchange.course) as watch:
        watch.watch.until(Event(), quiet=1.0)
    assert "No space left on device. Trying again every 0 s." in watch.notices
    assert "5 of 5 points" in exchange.answer(attempt)


def test_a_secret_that_cannot_be_used_is_named_and_does_not_end_a_watch(
    exchange: Exchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "AFTER_A_FAULT", 0.1)
    path = exchange.course.root / ".autograder_secret"
    path.write_bytes(b"")
    exchange.hand_in("ann")
    with watcher(exchange.course) as watch:
        assert watch.watch._look_if_possible(Event())
        assert [notice for notice in watch.notices if "is empty or too short. Put your copy of it back" in notice]
        path.unlink()
        assert watch.look() == {"ann": (5, True)}


@contextmanager
def watch_command(course: Any, lesson: Sequence[str], output: Any, **more: Any) -> Iterator[subprocess.Popen]:
    """`autograder watch` in a process group of its own, as a shell in a terminal starts it."""
    command = [sys.executable, "-m", "autograder.cli", "watch", *lesson, "--course", str(course.root), "--workers", "1"]
    process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True, **more)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def wait_until(condition: Callable[[], Any], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def is_being_graded(course: Any) -> bool:
    return any(Spool.of(course.root, ASSIGNMENT).work.glob("workshop-*/autograded/*/*"))


EITHER = pytest.mark.parametrize("lesson", [(ASSIGNMENT,), ()], ids=["one lesson", "whole course"])


@EITHER
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["SIGINT", "SIGTERM"])
def test_a_signal_to_all_its_processes_lets_it_finish_what_it_is_grading(
    exchange: Exchange, tmp_path: Path, lesson: Sequence[str], number: int
) -> None:
    """A terminal sends Ctrl-C to the whole process group."""
    attempt = exchange.hand_in("ann", length="import time; time.sleep(3); return len(word)")
    with (tmp_path / "log").open("w") as log, watch_command(exchange.course, lesson, log) as process:
        wait_until(lambda: is_being_graded(exchange.course))
        os.killpg(process.pid, number)
        assert process.wait(timeout=60) == 0
    assert "5 of 5 points" in exchange.answer(attempt), (tmp_path / "log").read_text()
    said = (tmp_path / "log").read_text()
    assert "ann  5 of 5  graded  feedback released" in said
    assert "Traceback" not in said


@EITHER
def test_a_second_signal_stops_it_at_once_and_loses_nothing(
    exchange: Exchange, tmp_path: Path, lesson: Sequence[str]
) -> None:
    exchange.hand_in("ann", length="import time; time.sleep(60); return len(word)")
    with (tmp_path / "log").open("w") as log, watch_command(exchange.course, lesson, log) as process:
        wait_until(lambda: is_being_graded(exchange.course))
        os.killpg(process.pid, signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=2)
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(timeout=30) == 0
    assert "Traceback" not in (tmp_path / "log").read_text()
    assert exchange.events("collected") == ["ann"]
    assert exchange.events("released") == []
    exchange.hand_in("ann", at(5))
    with watcher(exchange.course) as watch:
        assert watch.look() == {"ann": (5, True)}


@EITHER
def test_a_watch_whose_output_nobody_reads_ends_after_what_it_is_grading(
    exchange: Exchange, lesson: Sequence[str]
) -> None:
    attempt = exchange.hand_in("ann", length="import time; time.sleep(3); return len(word)")
    reading, writing = os.pipe()
    with watch_command(exchange.course, lesson, writing) as process:
        os.close(writing)
        wait_until(lambda: is_being_graded(exchange.course))
        os.close(reading)
        assert process.wait(timeout=60) == 0
    assert "5 of 5 points" in exchange.answer(attempt)


@EITHER
def test_a_log_on_a_full_disk_does_not_stop_a_watch(exchange: Exchange, lesson: Sequence[str]) -> None:
    attempt = exchange.hand_in("ann")
    with open("/dev/full", "w") as full, watch_command(exchange.course, lesson, full) as process:
        wait_until(lambda: exchange.answer(attempt))
        second = exchange.hand_in("ann", at(5))
        wait_until(lambda: exchange.answer(second))
        assert process.poll() is None
        process.terminate()
        assert process.wait(timeout=60) == 0


def test_lines_that_cannot_be_printed_do_not_hold_up_a_lesson(lessons: Lessons, exchange: Exchange) -> None:
    exchange.course.submit("ann", exchange.course.answered())
    more_than_a_pipe_holds = "print('a line\\n' * 100_000)"
    lessons.command = lambda lesson: [sys.executable, "-c", more_than_a_pipe_holds]
    with open("/dev/full", "wb", buffering=0) as full:
        output = Output(io.TextIOWrapper(full, write_through=True), Event())
        lessons.say = lambda line: print(line, file=output, flush=True)
        assert started(lessons) == [ASSIGNMENT]
        lessons.readers[ASSIGNMENT].join()
    assert lessons.running[ASSIGNMENT].returncode == 0


def test_a_letter_that_the_output_does_not_have_costs_its_line_and_no_other(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w", encoding="ascii") as log:
        for line in ("before", "\u00fc", "after"):
            print(line, file=Output(log, Event()))
    assert "before" in (tmp_path / "log").read_text()
    assert "after" in (tmp_path / "log").read_text()


def watch_until_killed(course: Any) -> None:
    """Watch in a process that will be killed."""
    with watcher(course) as watch:
        watch.watch.until(Event())


def test_kills_at_random_moments_lose_double_and_release_nothing_twice(exchange: Exchange) -> None:
    """Twenty kills while a class of thirty hands in: a third of it before, and one student with each start."""
    shouts = [WRONG if number < 15 else "return word.upper()" for number in range(30)]
    forget_trial(exchange.course)  # a kill may come while the solution is tried
    attempts = {f"s{number:02}": exchange.hand_in(f"s{number:02}", shout=shouts[number]) for number in range(10)}
    context = multiprocessing.get_context("forkserver")
    moments = random.Random(7)
    for number in range(10, 30):
        attempts[f"s{number:02}"] = exchange.hand_in(f"s{number:02}", shout=shouts[number])
        process = context.Process(target=watch_until_killed, args=(exchange.course,))
        process.start()
        process.join(moments.uniform(0.2, 1.8))
        assert process.is_alive(), "a watch ends when it is told to"
        os.kill(process.pid or 0, signal.SIGKILL)
        process.join()
    with watcher(exchange.course) as watch:
        watch.look()
    points = {name: "2 of 5 points" if int(name[1:]) < 15 else "5 of 5 points" for name in attempts}
    assert {name: points[name] in exchange.answer(attempt) for name, attempt in attempts.items()} == dict.fromkeys(
        points, True
    )
    assert sorted(exchange.events("released")) == sorted(attempts)


def test_a_solution_that_fails_is_not_watched(exchange: Exchange) -> None:
    path = exchange.course.root / "source" / ASSIGNMENT / "strings.ipynb"
    source = nbformat.read(path, as_version=4)
    for cell in source.cells:
        cell.source = cell.source.replace("return len(word)", "return 3")
    nbformat.write(source, path)
    with open_course(exchange.course.root) as opened:
        generate_assignment(opened, ASSIGNMENT)
    exchange.hand_in("ann")
    with watcher(exchange.course) as watch, pytest.raises(CourseError, match="length"):
        watch.watch.until(Event())


def with_setting(exchange: Exchange, line: str) -> None:
    configuration = exchange.course.root / "nbgrader_config.py"
    configuration.write_text(f"{configuration.read_text()}{line}\n")


def points_of(exchange: Exchange, student: str) -> float:
    with Gradebook(f"sqlite:///{exchange.course.root}/gradebook.db") as gradebook:
        return gradebook.find_submission(ASSIGNMENT, student).score


def due(exchange: Exchange, minutes: float) -> None:
    with Gradebook(f"sqlite:///{exchange.course.root}/gradebook.db") as gradebook:
        gradebook.update_or_create_assignment(ASSIGNMENT, duedate=at(minutes))


def test_the_best_attempt_counts_where_the_course_says_so(exchange: Exchange) -> None:
    with_setting(exchange, "c.Attempts.best = True")
    with watcher(exchange.course, attempts_per_day=3) as watch:
        attempts = [exchange.hand_in("ann", at(0), shout=WRONG), exchange.hand_in("ann", at(1))]
        assert watch.look() == {"ann": (5, True)}, "both were tried, one after the other"
        attempts.append(exchange.hand_in("ann", at(2), length="return 3", shout=WRONG))
        assert watch.look() == {"ann": (0, True)}
        assert points_of(exchange, "ann") == 5
        exchange.hand_in("ann", at(3))
        assert watch.look() == {}
    assert "ann: the attempt has 0 points and does not count: an earlier one has 5." in watch.notices
    said = [re.search(r'<p class="attempt">(.*?)</p>', exchange.answer(attempt)) for attempt in attempts]
    assert [found and found[1] for found in said] == [
        "Attempt 1. 2 more are graded today.",
        "Attempt 2. 1 more is graded today. It counts: it is the best one so far.",
        "Attempt 3. No more are graded today. It does not count: an earlier one has 5 points, and the best one counts.",
    ]
    journal = Journal.read(Spool.of(exchange.course.root, ASSIGNMENT).root / NAME)
    assert [answer.points for answer in journal.answers["ann"]] == [2, 5, 0]
    with watcher(exchange.course, attempts_per_day=3) as again:
        assert again.look() == {}
    assert points_of(exchange, "ann") == 5
    assert grade_all(exchange.course)["ann"].unchanged


@pytest.mark.parametrize("killed", [False, True])
def test_where_the_best_counts_each_attempt_is_tried_before_the_next_one(exchange: Exchange, killed: bool) -> None:
    """Also if the class hands in more than is graded together, and if the first one is only in its place."""
    with_setting(exchange, "c.Attempts.best = True")
    due(exchange, 30)
    attempts = [exchange.hand_in(student, at(-2)) for student in ("ann", "bob", "eve")]
    attempts += [exchange.hand_in(student, at(-1), shout=WRONG) for student in ("ann", "bob", "eve")]
    if killed:
        with (
            watcher(exchange.course) as watch,
            mock.patch.object(watch.watch, "_grade", side_effect=SystemExit),
            pytest.raises(SystemExit),
        ):
            watch.look()
    with mock.patch.object(watching, "TOGETHER", 1), watcher(exchange.course) as watch:
        watch.look()
    assert [points_of(exchange, student) for student in ("ann", "bob", "eve")] == [5, 5, 5]
    assert ["Attempt 1." in exchange.answer(attempt) for attempt in attempts] == [True] * 3 + [False] * 3
    assert all("It does not count: an earlier one has 5 points" in exchange.answer(it) for it in attempts[3:])


@pytest.mark.parametrize("command", ["watch", "grade"])
@pytest.mark.parametrize("swapped", [True, False], ids=["the later one is there", "none is there"])
def test_a_kill_while_a_later_attempt_is_tried_loses_no_mark(exchange: Exchange, command: str, swapped: bool) -> None:
    with_setting(exchange, "c.Attempts.best = True")
    with watcher(exchange.course) as watch:
        exchange.hand_in("ann")
        watch.look()
        exchange.hand_in("ann", at(5), shout=WRONG)

        def killed(copy: Any, before: Path) -> None:
            os.rename(submitted(exchange), before)
            if swapped:
                os.rename(copy.folder, submitted(exchange))
            sys.exit()

        with mock.patch.object(watch.watch.inbound, "place", killed), pytest.raises(SystemExit):
            watch.look()
    if command == "grade":
        assert grade_all(exchange.course)["ann"].points == 5
    else:
        with watcher(exchange.course) as again:
            again.look()
    assert points_of(exchange, "ann") == 5
    assert not (Spool.of(exchange.course.root, ASSIGNMENT).root / "best" / "ann").exists()


def submitted(exchange: Exchange) -> Path:
    return exchange.course.root / "submitted" / "ann" / ASSIGNMENT


def test_an_attempt_after_the_due_date_replaces_none_that_was_in_time(exchange: Exchange) -> None:
    due(exchange, 1)
    with watcher(exchange.course) as watch:
        exchange.hand_in("ann", shout=WRONG)
        exchange.hand_in("bob", at(2), shout=WRONG)
        exchange.hand_in("eve", at(0), shout=WRONG)
        exchange.hand_in("eve", at(3))
        assert watch.look() == {"ann": (2, True), "bob": (2, True), "eve": (2, True)}
        late = exchange.hand_in("ann", at(2))
        exchange.hand_in("bob", at(3))
        assert watch.look() == {"bob": (5, True)}, "what he had was late, too"
    why = "it came after the due date, and the one before was in time."
    assert f"ann: the attempt {late.name} is not collected: {why}" in watch.notices
    assert f"strings.ipynb was not graded: {why}" in exchange.answer(late)
    assert exchange.events("collected") == ["ann", "bob", "eve", "bob"]
    with_setting(exchange, "c.Attempts.late_replaces = True")
    with watcher(exchange.course) as watch:
        assert watch.look() == {"ann": (5, True), "bob": (5, True), "eve": (5, True)}, "all, by another configuration"


def test_what_cannot_be_read_costs_no_attempt(exchange: Exchange) -> None:
    with watcher(exchange.course, attempts_per_day=1) as watch:
        junk(exchange, "ann", at(0))
        misnamed(exchange, "bob", at(0))
        assert watch.look() == {"ann": (0, True), "bob": (0, True)}
        for student in ("ann", "bob"):
            exchange.hand_in(student, at(1))
        assert watch.look() == {"ann": (5, True), "bob": (5, True)}
        waits = exchange.hand_in("ann", at(2))
        assert watch.look() == {}
    assert "was not graded: today&#x27;s attempts (1) are used up." in exchange.answer(waits)
    assert "It will be graded tomorrow" in exchange.answer(waits)


def test_what_arrives_during_a_regrade_goes_first_and_a_regrade_can_be_stopped(exchange: Exchange) -> None:
    for number in range(7):
        exchange.course.submit(f"s{number}", exchange.course.answered())
    stop, order = Event(), []

    def note(record: SubmissionRecord, released: bool) -> None:
        order.append(record.student)
        if len(order) == 2:
            exchange.hand_in("ann")
        if record.student == "ann":
            stop.set()

    with in_this_process(), watched(Request(ASSIGNMENT, exchange.course.root), None, Events(note, order.append)) as it:
        it.look(stop)
        assert order == ["s0", "s1", "ann"]
    with watcher(exchange.course) as again:
        again.look()
    assert exchange.events("released") == ["s0", "s1", "ann", "s2", "s3", "s4", "s5", "s6"]
