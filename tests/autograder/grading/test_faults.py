"""A lost connection, a locked gradebook, a full disk, a killed command: marks are neither lost nor doubled."""

from __future__ import annotations

import errno
import glob
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import psutil
import pytest
from sqlalchemy import create_engine, text

from autograder.cli import main
from autograder.grading import run
from autograder.grading.course import CourseError, generate_assignment, open_course
from autograder.grading.workers.spool import Spool
from autograder.judge import JUDGE, judge_apart
from autograder.sandbox.process import forkserver
from autograder.sandbox.process.kind import OF_OTHER_COURSES, Kind
from autograder.sandbox.process.limits import SandboxLost
from tests.autograder.grading.here import ASSIGNMENT, grade_all
from tests.autograder.grading.postgresql import own_server, server_programs
from tests.autograder.grading.test_resume import forget_trial

pytestmark = pytest.mark.sandbox

MARKS = {f"s{number}": 5 if number % 2 else 2 for number in range(6)}


def submit_all(course: Any) -> None:
    for student, mark in MARKS.items():
        course.submit(student, course.answered(shout="return word.upper()" if mark == 5 else "return word"))


def points(records: dict[str, Any]) -> dict[str, float]:
    return {student: record.points for student, record in records.items()}


def kill_once_it_forks(warm: int) -> None:
    """Kill a warm process while its next fork is at work, however slow the machine is; in a minute at the latest."""
    process, latest = psutil.Process(warm), time.monotonic() + 60
    before = len(process.children(recursive=True))
    while len(process.children(recursive=True)) <= before and time.monotonic() < latest:
        time.sleep(0.01)
    time.sleep(0.2)  # the caller has its answer, and the submission is at work
    os.kill(warm, signal.SIGKILL)


@pytest.mark.parametrize("kind", [OF_OTHER_COURSES, JUDGE], ids=lambda kind: kind.name)
def test_a_submission_whose_process_ends_with_the_warm_one_is_graded_again(small_course: Any, kind: Kind) -> None:
    slow = "import time; time.sleep(0.4); return len(word)"
    small_course.submit("ann", small_course.answered(length=slow))
    small_course.submit("bob", small_course.answered(length=slow, shout="return word"))
    judged: list[int] = []

    def judge(*arguments: Any, **options: Any) -> Any:
        judged.append(forkserver.warm_process(kind).pid)
        if len(judged) == 1:
            threading.Thread(target=kill_once_it_forks, args=judged).start()
        return judge_apart(*arguments, **options)

    forkserver.branch_of(kind)
    with mock.patch("autograder.grading.submission.usual_steps.judge_apart", judge):
        records = grade_all(small_course)
    assert (points(records), len(judged)) == ({"ann": 5, "bob": 2}, 3)
    assert {record.status for record in records.values()} == {"graded"}


def test_without_the_trial_of_the_solution_nothing_is_marked(small_course: Any) -> None:
    """It finds the tests that have to run inside."""
    forget_trial(small_course)
    small_course.submit("ann", small_course.answered())
    trial = "autograder.grading.submission.trying_solutions.trials_of"
    lost = SandboxLost("Its process was killed.")
    with mock.patch(trial, side_effect=lost), pytest.raises(CourseError, match=r"killed \(the trial"):
        grade_all(small_course)
    assert grade_all(small_course)["ann"].points == 5


def test_where_no_process_can_be_started_nothing_is_marked(small_course: Any) -> None:
    small_course.submit("ann", small_course.answered())
    full = BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
    pair = "autograder.judge.apart.socket.socketpair"
    with mock.patch(pair, side_effect=full), pytest.raises(CourseError, match="ann"):
        grade_all(small_course)
    assert grade_all(small_course)["ann"].points == 5


@pytest.mark.parametrize(
    "command", [("grade",), ("doctor",), ("doctor", "--compare-with-nbgrader"), ("report",)], ids=lambda it: it[-1]
)
@pytest.mark.parametrize("spoil", [Path.touch, Path.mkdir, lambda path: path.write_bytes(b"short")])
def test_a_secret_that_cannot_be_used_is_named_by_every_command(
    small_course: Any, capsys: pytest.CaptureFixture[str], command: tuple[str, ...], spoil: Any
) -> None:
    small_course.submit("ann", small_course.answered())
    path = small_course.root / ".autograder_secret"
    path.unlink(missing_ok=True)
    spoil(path)
    name, *options = command
    assert main([name, ASSIGNMENT, *options, "--course", str(small_course.root)]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"autograder {name}: ")
    assert str(path) in said


@pytest.fixture(scope="module")
def postgresql() -> Iterator[str]:
    """The address of a server of our own."""
    if not (programs := server_programs()):
        pytest.skip("there is no PostgreSQL server; install one with `apt-get install postgresql`")
    with own_server(programs) as address:
        yield address


def test_postgresql_keeps_the_marks_and_survives_a_lost_connection(small_course: Any, postgresql: str) -> None:
    here = grade_all_of(small_course)
    config = small_course.root / "nbgrader_config.py"
    config.write_text(config.read_text() + f"c.CourseDirectory.db_url = '{postgresql}'\n")
    with open_course(small_course.root) as course:
        generate_assignment(course, ASSIGNMENT)
    update, cut = run.Marks._update, []

    def cut_once(marks: Any, connection: Any, entry: Any, result: Any, same: bool) -> None:
        update(marks, connection, entry, result, same)
        if not cut:  # in the middle of a transaction
            cut.append(result.student)
            with create_engine(postgresql).connect() as other:
                others = "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() "
                other.execute(text(others + "and backend_type = 'client backend'"))

    with mock.patch.object(run.Marks, "_update", cut_once):
        records = grade_all(small_course)
    assert cut
    assert points(records) == MARKS
    assert {name: record.cells for name, record in records.items()} == here
    assert all(record.unchanged for record in grade_all(small_course).values())
    with create_engine(postgresql).connect() as connection:
        assert connection.execute(text("select count(*), sum(auto_score) from grade")).one() == (
            12,
            sum(MARKS.values()),
        )


def grade_all_of(course: Any) -> dict[str, Any]:
    submit_all(course)
    return {name: record.cells for name, record in grade_all(course).items()}


def test_a_gradebook_that_stays_locked_loses_nothing(small_course: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    submit_all(small_course)
    monkeypatch.setattr("autograder.grading.gradebook.mark_writer.WAITS", (0.01,))
    monkeypatch.setattr("autograder.grading.course.WAIT_FOR_LOCK", 0.05)
    engine = create_engine(f"sqlite:///{small_course.root}/gradebook.db")
    write, locked = run.Marks.write, []

    def while_locked(marks: Any, results: Any) -> Any:
        if not results:
            return write(marks, results)
        locked.append([result.student for result in results])
        with engine.connect() as other:
            other.execute(text("begin immediate"))
            return write(marks, results)

    with mock.patch.object(run.Marks, "write", while_locked), pytest.raises(CourseError, match=r"locked.*is kept"):
        grade_all(small_course)
    assert locked
    assert Spool.of(small_course.root, ASSIGNMENT).waiting() == sorted(student for part in locked for student in part)
    assert points(grade_all(small_course)) == MARKS


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", disk], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.decode().strip()}")
    yield disk
    subprocess.run(["umount", "--lazy", disk], check=True)


def test_a_full_disk_loses_nothing(small_course: Any, small_disk: Path) -> None:
    submit_all(small_course)
    for student in MARKS:
        (small_course.root / "submitted" / student / ASSIGNMENT / "data.bin").write_bytes(bytes(150_000))
    course = type(small_course)(Path(shutil.copytree(small_course.root, small_disk / "course")))
    with pytest.raises(CourseError, match=r"(No space|full).*is kept"):
        grade_all(course)
    subprocess.run(["mount", "-o", "remount,size=64m", small_disk], check=True)
    records = grade_all(course)
    assert points(records) == MARKS
    assert all(record.status == "graded" for record in records.values())
    engine = create_engine(f"sqlite:///{course.root}/gradebook.db")
    with engine.connect() as connection:
        assert connection.execute(text("select count(*), sum(auto_score) from grade")).one() == (
            12,
            sum(MARKS.values()),
        )
    assert all(record.unchanged for record in grade_all(course).values())


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A folder whose path is short enough for sockets in it."""
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


def test_the_command_is_killed_and_given_again(small_course: Any, short_folder: Path) -> None:
    submit_all(small_course)
    slow = small_course.answered(length="import time; time.sleep(3); return len(word)", shout="return word")
    small_course.submit("s0", slow)
    command = [sys.executable, "-m", "autograder.cli", "grade", ASSIGNMENT, "--course", str(small_course.root)]
    process = subprocess.Popen(
        [*command, "--workers", "2"],
        stdout=subprocess.DEVNULL,
        start_new_session=True,
        env={**os.environ, "TMPDIR": str(short_folder)},
    )
    spool = Spool.of(small_course.root, ASSIGNMENT)
    wait_for(lambda: spool.done.is_dir() and len(done(small_course)) >= 3)
    process.send_signal(signal.SIGKILL)
    process.wait()
    finished = done(small_course)
    wait_for(lambda: not members(process.pid))
    records = grade_all(small_course)
    assert points(records) == MARKS
    assert {name for name, record in records.items() if record.unchanged} <= set(finished)
    assert not list(short_folder.glob("judge-*")), "the killed run has left folders where nobody clears them away"
    assert not spool.work.exists()


def done(course: Any) -> list[str]:
    """The students whose autograded notebook is in its place or waits to be put there."""
    places = (
        course.root.glob(f"autograded/*/{ASSIGNMENT}"),
        Spool.of(course.root, ASSIGNMENT).done.glob("*/result.json"),
    )
    return sorted({path.parent.name for paths in places for path in paths})


def members(session: int) -> list[int]:
    """The processes that are left of a run, found by its session."""
    found = []
    for stat in glob.glob("/proc/[0-9]*/stat"):
        try:
            fields = Path(stat).read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(stat.split("/")[2]))
    return found


def wait_for(condition: Any, seconds: float = 300) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)
