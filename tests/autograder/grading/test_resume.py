"""A graded submission is not graded again, however the run ended; the gradebook is as after an undisturbed run."""

from __future__ import annotations

import contextlib
import errno
import json
import multiprocessing
import os
import random
import signal
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any
from unittest import mock

import nbformat
import pytest

from autograder.grading import run
from autograder.grading.course import CourseError, generate_assignment, open_course
from autograder.grading.submission import trials, worker
from autograder.grading.submission.result import Result
from autograder.grading.workers.spool import Spool
from autograder.notebooks.verdicts import CellVerdict
from tests.autograder.conftest import SmallCourse
from tests.autograder.grading.here import ASSIGNMENT, grade_all
from tests.autograder.grading.test_notices import change_source, release

pytestmark = pytest.mark.sandbox

MARKS = """
    select s.student_id, n.name, b.name, g.auto_score, g.manual_score, g.extra_credit, g.needs_manual_grade,
           sn.late_submission_penalty
    from grade g join submitted_notebook sn on g.notebook_id = sn.id join submitted_assignment s
    on sn.assignment_id = s.id join notebook n on sn.notebook_id = n.id join base_cell b on g.cell_id = b.id
    order by 1, 2, 3
"""
OF_ANN = """
    select c.id from comment c join submitted_notebook n on c.notebook_id = n.id join submitted_assignment s
    on n.assignment_id = s.id where s.student_id = 'ann'
"""


def gradebook(course: Any) -> list[tuple]:
    with sqlite3.connect(course.root / "gradebook.db") as connection:
        return connection.execute(MARKS).fetchall()


def change(course: Any, statement: str) -> None:
    with sqlite3.connect(course.root / "gradebook.db") as connection:
        connection.execute(statement)


class Counted:
    """Lists the students who are graded while it is active."""

    def __init__(self) -> None:
        self.students: list[str] = []
        grade = worker.Workshop.grade

        def counted(workshop: Any, submission: Any) -> Any:
            self.students.append(submission.student)
            return grade(workshop, submission)

        self.patch = mock.patch.object(worker.Workshop, "grade", counted)

    def __enter__(self) -> list[str]:
        self.patch.start()
        return self.students

    def __exit__(self, *error: object) -> None:
        self.patch.stop()


@pytest.fixture(scope="module")
def graded_once(released_course: Path, tmp_path_factory: pytest.TempPathFactory) -> SmallCourse:
    course = SmallCourse(released_course).copy(tmp_path_factory.mktemp("graded") / "course")
    course.submit("ann", course.answered())
    course.submit("bob", course.answered(shout="return word"))
    course.submit("cem", b"no notebook")
    (course.root / "submitted" / "dan" / ASSIGNMENT).mkdir(parents=True)
    grade_all(course)
    return course


@pytest.fixture
def graded(graded_once: SmallCourse, tmp_path: Path) -> SmallCourse:
    """A copy of a course with graded submissions, for one test."""
    return graded_once.copy(tmp_path / "course")


def submitted_anew(course: Any) -> None:
    course.submit("bob", course.answered())


def other_hidden_test(course: Any) -> None:
    path = course.root / "source" / ASSIGNMENT / "strings.ipynb"
    source = nbformat.read(path, as_version=4)
    for cell in source.cells:
        cell.source = cell.source.replace('length("hiddenword") == 10', 'length("hidden") == 6')
    nbformat.write(source, path)
    with open_course(course.root) as opened:
        generate_assignment(opened, ASSIGNMENT)


def other_configuration(course: Any) -> None:
    path = course.root / "nbgrader_config.py"
    path.write_text(path.read_text() + "c.JudgeNotebook.query_seconds = 7\n")


def notebook_lost(course: Any) -> None:
    path = course.root / "autograded" / "ann" / ASSIGNMENT / "strings.ipynb"
    path.unlink()


def mark_changed(course: Any) -> None:
    change(course, "update grade set auto_score = 99 where id = (select min(id) from grade)")


EVERYBODY = {"ann", "bob", "cem", "dan"}


@pytest.mark.parametrize(
    ("happens", "again"),
    [
        (lambda course: None, set()),
        (submitted_anew, {"bob"}),
        (other_hidden_test, EVERYBODY),
        (other_configuration, EVERYBODY),
        (notebook_lost, {"ann"}),
    ],
)
def test_only_what_has_changed_is_graded_again(graded: Any, happens: Any, again: set[str]) -> None:
    happens(graded)
    with Counted() as students:
        records = grade_all(graded)
    assert sorted(students) == sorted(again)
    assert {name for name, record in records.items() if not record.unchanged} == again
    points = {name: record.points for name, record in records.items()}
    assert points == {"ann": 5, "bob": 5 if happens is submitted_anew else 2, "cem": 0, "dan": 0}


def test_force_grades_everything_and_a_wrong_mark_is_put_right(graded: Any) -> None:
    before = gradebook(graded)
    with Counted() as students:
        grade_all(graded, force=True)
    assert set(students) == EVERYBODY
    mark_changed(graded)
    with Counted() as students:
        grade_all(graded)
    assert len(students) == 1
    assert gradebook(graded) == before


def test_a_submission_that_is_graded_reads_nobody_else_s_result(graded: Any) -> None:
    """Otherwise a class of many thousands, graded a few at a time, reads all results once for each few."""
    submitted_anew(graded)
    with mock.patch.object(run.Marks, "_kept", autospec=True, side_effect=run.Marks._kept) as asked:
        grade_all(graded, "bob")
    assert asked.call_count == 2, "once to see what is done, and once to write"
    assert all(list(call.args[2]) == ["bob"] for call in asked.call_args_list)


def test_unchanged_records_say_the_same_as_fresh_ones(graded: Any) -> None:
    fresh = {name: record.cells for name, record in grade_all(graded, force=True).items()}
    assert {name: record.cells for name, record in grade_all(graded).items()} == fresh


def forget_trial(course: Any) -> None:
    """Let the next grading try the solution first, as in a course that has never been graded."""
    (Spool.of(course.root, ASSIGNMENT).root / trials.FILE).unlink()


class Killed(BaseException):
    """Stands for kill -9 at one place."""


@pytest.mark.parametrize(
    ("place", "when"),
    [
        ("autograder.grading.workers.spool.Spool.put", "after"),
        ("autograder.grading.workers.spool.Spool.place", "before"),
        ("autograder.grading.workers.spool.Spool.place", "after"),
        ("autograder.grading.gradebook.mark_writer.Marks.write", "after"),
        ("autograder.grading.workers.spool.Spool.remove", "after"),
    ],
)
def test_a_run_that_ends_between_two_steps_loses_and_repeats_nothing(small_course: Any, place: str, when: str) -> None:
    for student, shout in (("ann", "return word.upper()"), ("bob", "return word"), ("cem", "return 3")):
        small_course.submit(student, small_course.answered(shout=shout))
    module, name = place.rsplit(".", 1)
    owner = {"Spool": Spool, "Marks": run.Marks}[module.rsplit(".", 1)[1]]
    original = getattr(owner, name)

    def kill(self: Any, *arguments: Any) -> Any:
        if when == "after" and arguments[0] != []:
            original(self, *arguments)
            raise Killed
        if when == "before":
            raise Killed
        return original(self, *arguments)

    with Counted() as students:
        with mock.patch.object(owner, name, kill), pytest.raises(Killed):
            grade_all(small_course)
        records = grade_all(small_course)
    assert sorted(students) == ["ann", "bob", "cem"]
    assert {student: record.points for student, record in records.items()} == {"ann": 5, "bob": 2, "cem": 2}
    assert (small_course.root / "autograded" / "ann" / ASSIGNMENT / "strings.ipynb").is_file()
    assert Spool.of(small_course.root, ASSIGNMENT).waiting() == []


def grade_and_count(course: Any, log: Path) -> None:
    """Grade in a process that will be killed, and note each student whose result has been kept."""
    put = Spool.put

    def noted(spool: Spool, result: Any, files: Path | None) -> None:
        put(spool, result, files)
        with log.open("a") as file:
            file.write(f"{result.student} {result.status} {result.fingerprint}\n")

    with mock.patch.object(Spool, "put", noted):
        grade_all(course)


def test_twenty_kills_at_random_moments_change_no_mark(small_course: Any, tmp_path: Path) -> None:
    shouts = ("return word.upper()", "return word")
    forget_trial(small_course)  # a kill may come while the solution is tried
    for number in range(16):
        small_course.submit(f"s{number:02}", small_course.answered(shout=shouts[number % 2]))
    context = multiprocessing.get_context("forkserver")
    log, random_moment, kills = tmp_path / "graded", random.Random(5), 0
    log.touch()
    for _ in range(20):
        process = context.Process(target=grade_and_count, args=(small_course, log))
        process.start()
        process.join(random_moment.uniform(0.05, 1.2))
        if process.is_alive():
            with contextlib.suppress(ProcessLookupError):  # it has ended in this very moment
                os.kill(process.pid or 0, signal.SIGKILL)
                kills += 1
        process.join()
    done = log.read_text().splitlines()
    records = grade_all(small_course)
    assert kills, "every run was quicker than the time to its end"
    assert {student: record.points for student, record in records.items()} == {
        f"s{number:02}": 5 if number % 2 == 0 else 2 for number in range(16)
    }
    assert len(gradebook(small_course)) == 32
    disturbed = gradebook(small_course)
    grade_all(small_course, force=True)
    assert gradebook(small_course) == disturbed
    assert len(done) <= 16, f"something was graded again although it was done: {done}"
    assert len(done) == len({line.split()[0] for line in done})


def test_a_second_run_of_the_same_lesson_is_refused(small_course: Any) -> None:
    small_course.submit("ann", small_course.answered())
    with Spool.of(small_course.root, ASSIGNMENT).held(), pytest.raises(CourseError, match="autograder watch"):
        grade_all(small_course)


def test_a_disk_without_locks_is_not_taken_for_another_run(small_course: Any) -> None:
    no_locks = OSError(errno.ENOLCK, "No locks available")
    with mock.patch("fcntl.flock", side_effect=no_locks), pytest.raises(CourseError, match="cannot be locked"):
        grade_all(small_course)


def test_a_lock_that_is_held_for_a_moment_more_is_waited_for(small_course: Any) -> None:
    """A process that a killed run was starting may hold it."""
    small_course.submit("ann", small_course.answered())
    held = Spool.of(small_course.root, ASSIGNMENT).held()
    held.__enter__()
    end = threading.Timer(0.5, held.__exit__, (None, None, None))
    end.start()
    assert grade_all(small_course)["ann"].points == 5
    end.join()


def test_a_failure_is_recorded_with_its_reason_and_replaced_later(small_course: Any) -> None:
    small_course.submit("ann", small_course.answered())
    with mock.patch.object(worker.Workshop, "_grade", side_effect=RuntimeError("a fault of ours")):
        record = grade_all(small_course, feedback=True)["ann"]
    assert (record.status, record.points) == ("failed", 0)
    rows = gradebook(small_course)
    assert [(row[3], row[6]) for row in rows] == [(0, 1), (0, 1)], "zero points, and somebody has to look"
    with sqlite3.connect(small_course.root / "gradebook.db") as connection:
        comments = [text for (text,) in connection.execute("select auto_comment from comment")]
    assert all("a fault of ours" in text for text in comments)
    assert "a fault of ours" in small_course.feedback("ann")
    assert grade_all(small_course, feedback=True)["ann"].points == 5
    assert [(row[3], row[6]) for row in gradebook(small_course)] == [(2, 0), (3, 0)]
    assert "a fault of ours" not in small_course.feedback("ann")


def test_only_pages_that_would_change_are_made_again(small_course: Any) -> None:
    for student in ("ann", "bob", "cem", "dan"):
        small_course.submit(student, small_course.answered(shout="return word"))
    grade_all(small_course, feedback=True)
    pages = {path.parts[-3]: path for path in small_course.root.glob("feedback/*/*/*.html")}
    before = {student: path.read_bytes() for student, path in pages.items()}
    change(small_course, "update comment set manual_comment = 'Look again.' where id in (" + OF_ANN + ")")
    change(small_course, "update student set last_name = 'Lee' where id = 'bob'")
    pages["cem"].unlink()
    old = pages["dan"].stat().st_mtime_ns
    grade_all(small_course, feedback=True)
    after = {student: path.read_bytes() for student, path in pages.items()}
    assert sorted(student for student in pages if before[student] != after[student]) == ["ann", "bob"]
    assert pages["dan"].stat().st_mtime_ns == old
    assert b"Look again." in after["ann"]
    assert b"Lee (bob)" in after["bob"]


def test_what_people_have_entered_stays(small_course: Any) -> None:
    small_course.submit("ann", small_course.answered(shout="return word"))
    grade_all(small_course)
    change(
        small_course,
        "update grade set manual_score = 1.5, extra_credit = 0.25, needs_manual_grade = 0 where auto_score = 0",
    )
    change(small_course, "update comment set manual_comment = 'nearly'")
    before = gradebook(small_course)
    assert grade_all(small_course)["ann"].points == 3.75
    assert gradebook(small_course) == before, "an unchanged submission asks for no second look"
    assert grade_all(small_course, force=True)["ann"].by_hand == ""
    assert gradebook(small_course) == before, "nor does one that is graded again with the same score"
    small_course.submit("ann", small_course.answered(shout="return word * 1"))
    assert grade_all(small_course)["ann"].by_hand == "marked by hand before, look again: test_shout"
    assert [(row[3], row[4], row[5], row[6]) for row in gradebook(small_course)] == [
        (2, None, None, 0),
        (0, 1.5, 0.25, 1),
    ], "as in nbgrader, a mark that was given by hand to an earlier submission is to be looked at again"
    with sqlite3.connect(small_course.root / "gradebook.db") as connection:
        assert connection.execute("select distinct manual_comment from comment").fetchall() == [("nearly",)]


def test_a_mark_by_hand_is_looked_at_again_where_other_points_are_to_be_had(small_course: Any) -> None:
    small_course.submit("ann", small_course.answered(shout="return word"))
    grade_all(small_course)
    change(small_course, "update grade set manual_score = 2, needs_manual_grade = 0 where auto_score = 0")
    change_source(small_course, "test_shout", points=5)
    release(small_course)
    assert grade_all(small_course)["ann"].by_hand == "marked by hand before, look again: test_shout"


def test_late_penalties_are_those_of_nbgrader(small_course: Any) -> None:
    config = small_course.root / "nbgrader_config.py"
    config.write_text(config.read_text() + "c.LateSubmissionPlugin.penalty_method = 'zero'\n")
    for student, day in (("ann", "01"), ("bob", "03"), ("cem", "03")):
        path = small_course.submit(student, small_course.answered(shout="return word"))
        (path.parent / "timestamp.txt").write_text(f"2026-11-{day} 12:00:00 UTC")
    change(small_course, "update assignment set duedate = '2026-11-02 12:00:00.000000'")
    records = grade_all(small_course)
    assert records["bob"].handed_in == "2026-11-03 12:00:00 UTC"
    assert {name: (record.points, record.late_penalty) for name, record in records.items()} == {
        "ann": (2, 0),
        "bob": (2, 2),
        "cem": (2, 2),
    }
    change(small_course, "update submitted_assignment set extension = '2026-11-04 12:00:00' where student_id = 'bob'")
    change(small_course, "update grade set manual_score = 3 where auto_score = 0")
    records = grade_all(small_course, force=True)
    assert {name: (record.points, record.late_penalty) for name, record in records.items()} == {
        "ann": (5, 0),
        "bob": (5, 0),
        "cem": (5, 5),
    }, "an extension counts, and a mark given by hand is part of what is taken away"
    assert time.strptime(str(_timestamp(small_course, "bob"))[:10], "%Y-%m-%d").tm_mday == 3


def test_a_submission_without_a_time_has_not_that_of_the_one_before(small_course: Any) -> None:
    path = small_course.submit("ann", small_course.answered(shout="return word"))
    (path.parent / "timestamp.txt").write_text("2026-11-03 12:00:00 UTC")
    grade_all(small_course)
    (path.parent / "timestamp.txt").unlink()
    small_course.submit("ann", small_course.answered())
    assert grade_all(small_course, feedback=True)["ann"].handed_in == ""
    assert _timestamp(small_course, "ann") is None
    assert "handed in" not in small_course.feedback("ann")


def _timestamp(course: Any, student: str) -> str:
    with sqlite3.connect(course.root / "gradebook.db") as connection:
        query = "select timestamp from submitted_assignment where student_id = ?"
        return connection.execute(query, (student,)).fetchone()[0]


def test_a_result_that_an_earlier_version_kept_is_read() -> None:
    cell = CellVerdict("test_length", 1.5, 2.0, "Too long.", "strings", ("sign_lost",))
    result = Result("ann", "words", "graded", cells=(cell,))
    kept = json.loads(result.to_json())
    for before, now in (("name", "grade_id"), ("auto", "points")):
        kept["cells"][0][before] = kept["cells"][0].pop(now)
    del kept["cells"][0]["by_hand"]
    assert Result.from_json(json.dumps(kept)) == result
