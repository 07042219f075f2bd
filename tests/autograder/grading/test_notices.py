"""Faults of an assignment itself are reported once, when it is graded, and change no mark."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import nbformat
import pytest
from nbgrader.converters import Autograde
from nbgrader.utils import capture_log

from autograder.cli import main
from autograder.grading.course import generate_assignment, open_course
from autograder.grading.gradebook.assignment_reader import read_assignment
from autograder.grading.report.notices import notices
from tests.autograder.conftest import nbgrader_cell
from tests.autograder.grading.here import ASSIGNMENT, grade_all, in_this_process

pytestmark = [pytest.mark.sandbox, pytest.mark.filterwarnings("ignore:Object of type")]

FORGETFUL = """from autograder.student import check_function
credit = check_function(length, len, [(3,)], points=2)"""
LOST = "test cell 'test_length' of strings.ipynb, line 2: the points of its checks are lost"
WRITE = "write `credit` as its last line."


def release(course: Any) -> None:
    with open_course(course.root) as opened:
        generate_assignment(opened, ASSIGNMENT)


def change_source(course: Any, name: str, source: str | None = None, points: float | None = None) -> None:
    """Edit a test cell of the instructor's notebook."""
    path = course.root / "source" / ASSIGNMENT / "strings.ipynb"
    notebook = nbformat.read(path, as_version=4)
    cell = next(cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade_id") == name)
    cell.source = cell.source if source is None else source
    cell.metadata.nbgrader.points = cell.metadata.nbgrader.points if points is None else points
    nbformat.write(notebook, path)


@pytest.fixture
def released_earlier(small_course: Any) -> Any:
    """A course with a test cell that today's release would refuse, and two submissions."""
    change_source(small_course, "test_length", FORGETFUL)
    with mock.patch("autograder.nbgrader_plugins.release.unclaimed_points", return_value=None):
        release(small_course)
    small_course.submit("ann", small_course.answered())
    small_course.submit("bob", small_course.answered(length="return 4"))
    return small_course


def test_lost_points_are_said_below_the_table_and_in_the_report(
    released_earlier: Any, capsys: pytest.CaptureFixture
) -> None:
    course = ["--course", str(released_earlier.root)]
    with in_this_process():
        assert main(["grade", ASSIGNMENT, *course]) == 1
    printed = capsys.readouterr().out
    assert printed.count(f"words: {LOST}") == 1
    assert WRITE in printed
    assert "`nbgrader generate_assignment words --force`" in printed
    records = grade_all(released_earlier)
    assert {name: record.points for name, record in records.items()} == {"ann": 5, "bob": 5}
    assert main(["report", ASSIGNMENT, *course]) == 0
    page = Path(capsys.readouterr().out.strip()).read_text()
    assert page.count("test_length&#39; of strings.ipynb, line 2: the points of its checks are lost") == 1
    change_source(released_earlier, "test_length", f"{FORGETFUL}\ncredit")
    release(released_earlier)
    with in_this_process():
        assert main(["grade", ASSIGNMENT, *course]) == 0
    assert "lost" not in capsys.readouterr().out
    assert {name: record.points for name, record in grade_all(released_earlier).items()} == {"ann": 5, "bob": 3}


def test_nbgraders_own_command_says_it_once_for_all_submissions(released_earlier: Any) -> None:
    with open_course(released_earlier.root) as course:
        course.coursedir.assignment_id = ASSIGNMENT
        log = capture_log(Autograde(coursedir=course.coursedir, parent=course.app))["log"]
    assert log.count(f"words: {LOST}") == 1
    assert log.count("generate_assignment words --force") == 1
    assert WRITE in log


def edited(name: str, **changes: Any) -> Any:
    return lambda course: change_source(course, name, **changes)


def added(course: Any) -> None:
    path = course.root / "source" / ASSIGNMENT / "strings.ipynb"
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.append(nbgrader_cell("more", "assert True", points=1))
    notebook.cells.pop(2)
    nbformat.write(notebook, path)


EDITS = {
    "nothing": (lambda course: None, []),
    "points": (
        edited("test_shout", points=7),
        ["cell 'test_shout' of strings.ipynb has 7 points in the source and 3 in the gradebook.", "--force`"],
    ),
    "text": (edited("test_shout", source="assert True"), ["'test_shout' of strings.ipynb differs between", "--force`"]),
    "a line for a test": (edited("test_shout", source="### AUTOTEST shout('a')"), []),
    "cells": (
        added,
        [
            "'more' of strings.ipynb is in the source and not",
            "'test_length' of strings.ipynb is in the gradebook and not",
            "put such a test into a cell",
        ],
    ),
    "half saved": (lambda course: (course.root / "source" / ASSIGNMENT / "strings.ipynb").write_text('{"cells'), []),
}


@pytest.mark.parametrize("name", EDITS)
def test_a_source_that_was_changed_and_not_released_again_is_noticed(small_course: Any, name: str) -> None:
    edit, said = EDITS[name]
    edit(small_course)
    with open_course(small_course.root) as course:
        found = notices(read_assignment(course, ASSIGNMENT))
        if name == "text":
            assert notices(read_assignment(course, ASSIGNMENT), as_written=False) == []
    assert len(found) == len(said)
    assert all(words in sentence for words, sentence in zip(said, found, strict=True))
