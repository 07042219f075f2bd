"""Who has handed in nothing, who is late and by how much, and who has more time: wherever an instructor looks."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import pytest
from nbgrader.api import Gradebook

from autograder.cli import main
from autograder.grading.run import Request
from autograder.grading.watching.watch import Events, watched
from autograder.nbgrader_plugins.times import span
from tests.autograder.conftest import SmallCourse
from tests.autograder.grading.here import grade_all, in_this_process

pytestmark = [pytest.mark.sandbox, pytest.mark.filterwarnings("ignore")]

DUE = "2026-11-02 12:00 UTC"


def gradebook(course: SmallCourse) -> Gradebook:
    return Gradebook(f"sqlite:///{course.root}/gradebook.db")


@pytest.fixture
def course(small_course: Any) -> SmallCourse:
    """A class of four: ann in time, bob late, cem and dan without a submission. Lateness costs all points."""
    config = small_course.root / "nbgrader_config.py"
    config.write_text(config.read_text() + "c.LateSubmissionPlugin.penalty_method = 'zero'\n")
    for student, time in (("ann", "2026-11-02 11:59:59"), ("bob", "2026-11-04 15:00:00")):
        path = small_course.submit(student, small_course.answered(shout="return word"))
        (path.parent / "timestamp.txt").write_text(f"{time} UTC")
    with gradebook(small_course) as book:
        book.update_or_create_assignment("words", duedate=DUE)
        for student in ("ann", "bob", "cem", "dan"):
            book.update_or_create_student(student, last_name=student.upper())
    return small_course


def said(course: SmallCourse, capsys: pytest.CaptureFixture, *command: str, status: int = 0) -> str:
    with in_this_process():
        assert main([*command, "--course", str(course.root)]) == status
    printed = capsys.readouterr()
    return printed.out + printed.err


def test_the_class_is_said_everywhere(course: SmallCourse, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    said(course, capsys, "extension", "words", "dan", "2026-11-09 12:00")  # which makes rows without a submission
    printed = said(course, capsys, "grade", "words")
    assert "handed in nothing: 2 (cem, dan)\nlate: 1 (bob by 2 d 3 h)\n" in printed
    assert "late by 2 d 3 h: 2 taken off, 0 left" in printed
    assert "handed in nothing" not in said(course, capsys, "grade", "words", "--student", "b*")
    said(course, capsys, "report", "words", "--to", str(tmp_path / "report.html"))
    page = " ".join((tmp_path / "report.html").read_text().split())
    assert "<li><b>handed in nothing: 2</b> cem, dan</li>" in page
    assert re.search("<li><b>late: 1</b> <a [^>]+>bob</a> by 2 d 3 h</li>|<li><b>late: 1</b> bob by 2 d 3 h</li>", page)
    assert "<td>2026-11-04 15:00:00 UTC, late by 2 d 3 h</td>" in page
    printed = said(course, capsys, "export", "words", "--to", str(tmp_path / "grades.csv"))
    assert "words: handed in nothing: 2 students (cem, dan).\n" in printed
    assert "words: late: 1 submission (bob by 2 d 3 h).\n" in printed


def test_marks_of_each_question_are_a_table(course: SmallCourse, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    grade_all(course)
    said(course, capsys, "export", "words", "--for", "questions", "--to", str(tmp_path / "questions.csv"))
    with (tmp_path / "questions.csv").open(newline="") as file:
        head, *rows = csv.reader(file)
    shared = ["student", "last name", "first name", "state", "late penalty"]
    assert head == [*shared, "Words", "Words: test_length", "Words: test_shout"]
    assert rows == [
        ["points possible", "", "", "", "", "5", "2", "3"],
        ["ann", "ANN", "", "", "", "2", "2", "0"],
        ["bob", "BOB", "", "late by 2 d 3 h", "2", "2", "2", "0"],
        ["cem", "CEM", "", "handed in nothing", "", "", "", ""],
        ["dan", "DAN", "", "handed in nothing", "", "", "", ""],
    ]


def test_an_extension_is_nbgraders_and_counts_at_once(course: SmallCourse, capsys: pytest.CaptureFixture) -> None:
    assert grade_all(course)["bob"].late_penalty == 2
    due = "words: due 2026-11-02 12:00:00 UTC\n"
    assert said(course, capsys, "extension", "words") == f"{due}nobody: no extension\n"
    until = "2026-11-04 15:00:00 UTC"
    set_to = said(course, capsys, "extension", "words", "bob", "2026-11-04 07:00 -08:00")
    assert set_to.startswith(f"{due}bob: until {until}\n")
    with gradebook(course) as book:
        assert book.find_submission("words", "bob").total_seconds_late == 0
    records = grade_all(course)
    assert [(records[name].late_seconds, records[name].unchanged) for name in ("ann", "bob")] == [(0, True), (0, False)]
    said(course, capsys, "extension", "words", "cem", "2026-12-01 00:00")
    assert said(course, capsys, "extension", "words", "bob") == f"{due}bob: until {until}\n"
    assert f"bob: until {until}\ncem: until 2026-12-01 00:00:00 UTC\n" in said(course, capsys, "extension", "words")
    assert "bob: no extension\n" in said(course, capsys, "extension", "words", "bob", "--remove")
    assert grade_all(course)["bob"].late_penalty == 2
    assert "handed in nothing: 2 (cem, dan)" in said(course, capsys, "grade", "words"), "more time is no submission"


def test_a_watch_grades_again_who_gets_more_time(course: SmallCourse, capsys: pytest.CaptureFixture) -> None:
    late = []
    events = Events(lambda record, released: late.append((record.student, record.lateness)), lambda notice: None)
    with in_this_process(), watched(Request("words", course.root), None, events) as watch:
        watch.look()
        said(course, capsys, "extension", "words", "bob", "2026-11-05 12:00")
        watch.look()
        watch.look()
        watch.look()
    assert late == [("ann", ""), ("bob", "late by 2 d 3 h: 2 taken off, 0 left"), ("bob", "")]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["words", "bobb", "2026-12-01 00:00"], "The gradebook has no student 'bobb'"),
        (["words", "bob", "2026-11-01 00:00"], "2026-11-01 00:00:00 UTC is not after the due date of 'words'"),
        (["words", "bob", "tomorrow"], "'tomorrow' is not a time such as 2026-03-01 12:00:00 UTC"),
        (["words", "bob", "2026-12-01 12:00 PST"], "the zone of '2026-12-01 12:00 PST' is not certain"),
        (["words", "--remove"], "--remove takes a student"),
        (["wrods", "bob"], "has no assignment 'wrods'"),
    ],
)
def test_an_extension_that_would_help_nobody_is_refused(
    course: SmallCourse, arguments: list[str], why: str, capsys: pytest.CaptureFixture
) -> None:
    assert why in said(course, capsys, "extension", *arguments, status=2)
    assert "nobody: no extension" in said(course, capsys, "extension", "words")
    with gradebook(course) as book:
        book.update_or_create_assignment("words", duedate=None)
    assert "'words' has no due date" in said(course, capsys, "extension", "words", "bob", "2026-12-01 00:00", status=2)


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(0.2, "1 s"), (61, "1 min 1 s"), (7500, "2 h 5 min"), (86400, "1 d"), (86700, "1 d"), (183600, "2 d 3 h")],
)
def test_a_span_of_time_is_said_in_its_largest_units(seconds: float, shown: str) -> None:
    assert span(seconds) == shown
