"""Faults of an assignment itself are reported once, when it is graded, and change no mark."""

from __future__ import annotations

from typing import Any

import nbformat
import pytest

from autograder.grading.course import generate_assignment, open_course
from autograder.grading.gradebook.assignment_reader import read_assignment
from autograder.grading.report.notices import notices
from tests.autograder.conftest import nbgrader_cell
from tests.autograder.grading.here import ASSIGNMENT, grade_all

pytestmark = [pytest.mark.sandbox, pytest.mark.filterwarnings("ignore:Object of type")]


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


FORGETFUL = """from autograder.student import check_function
check_function(length, len, [(3,)], points=1)
check_function(length, len, [(2,)], points=1)"""


def test_a_check_earns_its_points_wherever_it_stands(small_course: Any) -> None:
    change_source(small_course, "test_length", FORGETFUL)
    release(small_course)
    small_course.submit("ann", small_course.answered())
    small_course.submit("bob", small_course.answered(length="return 3"))
    assert {name: record.points for name, record in grade_all(small_course).items()} == {"ann": 5, "bob": 4}


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
