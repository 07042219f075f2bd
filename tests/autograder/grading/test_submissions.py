"""Submissions as they come: honest ones in odd encodings, broken files, tampered cells. Each gets exactly what it
earned.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from autograder.grading.course import assignments_of, open_course
from autograder.notebooks.reading import note_of, read_submission
from tests.autograder.grading.here import grade, grade_all

pytestmark = [pytest.mark.sandbox, pytest.mark.filterwarnings("ignore:Object of type")]

ASSIGNMENT = "words"


def named(notebook: NotebookNode, name: str) -> NotebookNode:
    return next(cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("grade_id") == name)


def index(notebook: NotebookNode, name: str) -> int:
    return notebook.cells.index(named(notebook, name))


def encoded(course: Any, encoding: str) -> bytes:
    notebook = course.answered(length="return len(word)  # café")
    return json.dumps(notebook, ensure_ascii=False).encode(encoding)


def without(*names: str) -> Callable[[Any], NotebookNode]:
    def submission(course: Any) -> NotebookNode:
        notebook = course.answered()
        for name in names:
            del notebook.cells[index(notebook, name)]
        return notebook

    return submission


def changed(name: str, change: Callable[[NotebookNode], Any], **answers: str) -> Callable[[Any], NotebookNode]:
    def submission(course: Any) -> NotebookNode:
        notebook = course.answered(**answers)
        change(named(notebook, name))
        return notebook

    return submission


def with_copy(name: str, **answers: str) -> Callable[[Any], NotebookNode]:
    def submission(course: Any) -> NotebookNode:
        notebook = course.answered(**answers)
        copy = nbformat.from_dict(dict(named(notebook, name)))
        copy["id"] = "copied"
        notebook.cells.insert(index(notebook, name) + 1, copy)
        return notebook

    return submission


def with_stray_cell(course: Any) -> NotebookNode:
    notebook = course.answered()
    notebook.cells.append(
        new_code_cell("x = 1", metadata={"nbgrader": {"grade_id": "mine", "grade": True, "points": 99}})
    )
    return notebook


def with_rubbish_cells(course: Any) -> bytes:
    content = dict(course.answered())
    content["cells"] = [7, {"cell_type": "comic", "source": "x"}, *content["cells"], {"cell_type": "code", "source": 3}]
    return json.dumps(content).encode()


def metadata(**values: Any) -> Callable[[NotebookNode], None]:
    return lambda cell: cell.metadata.nbgrader.update(values)


def no_metadata(cell: NotebookNode) -> None:
    cell.metadata["nbgrader"] = "none of yours"


def as_markdown(cell: NotebookNode) -> None:
    cell.cell_type = "markdown"
    for key in ("outputs", "execution_count"):
        del cell[key]


WRONG = "return 3"
SUBMISSIONS: dict[str, tuple[Callable[[Any], NotebookNode | bytes], str, list[float]]] = {
    # name: (what is handed in, status, points for length (2) and shout (3))
    "right": (lambda c: c.answered(), "graded", [2, 3]),
    "one wrong": (lambda c: c.answered(shout="return word"), "graded", [2, 0]),
    "right for the visible test only": (lambda c: c.answered(length=WRONG), "graded", [0, 3]),
    "untouched": (lambda c: c.released(), "graded", [0, 0]),
    "byte-order mark": (lambda c: encoded(c, "utf-8-sig"), "graded", [2, 3]),
    "latin-1": (lambda c: encoded(c, "latin-1"), "graded", [2, 3]),
    "utf-16": (lambda c: encoded(c, "utf-16"), "graded", [2, 3]),
    "rubbish among the cells": (with_rubbish_cells, "graded", [2, 3]),
    "empty file": (lambda c: b"", "unreadable", [0, 0]),
    "cut off": (lambda c: encoded(c, "utf-8")[:-30], "unreadable", [0, 0]),
    "JSON, but no notebook": (lambda c: b"[1, 2, 3]", "unreadable", [0, 0]),
    "no cells": (lambda c: b'{"nbformat": 4, "nbformat_minor": 5, "metadata": {}}', "unreadable", [0, 0]),
    "deeply nested": (lambda c: b"[" * 100_000, "unreadable", [0, 0]),
    "merge conflict": (
        lambda c: encoded(c, "utf-8").replace(b'"cells"', b'\n<<<<<<< HEAD\n"cells"', 1),
        "unreadable",
        [0, 0],
    ),
    "a picture": (lambda c: bytes(range(256)), "unreadable", [0, 0]),
    "test deleted": (without("test_length"), "graded", [2, 3]),
    "both tests deleted": (without("test_length", "test_shout"), "graded", [2, 3]),
    "answer and test deleted": (without("length", "test_length"), "graded", [0, 3]),
    "everything deleted": (without("length", "test_length", "shout", "test_shout"), "graded", [0, 0]),
    "test rewritten": (changed("test_length", lambda cell: cell.update(source="pass"), length=WRONG), "graded", [0, 3]),
    "points raised": (changed("test_length", metadata(points=1000)), "graded", [2, 3]),
    "points not a number": (changed("test_length", metadata(points="many")), "graded", [2, 3]),
    "not graded any more": (changed("test_length", metadata(grade=False), length=WRONG), "graded", [0, 3]),
    "test declared a solution": (changed("test_length", metadata(solution=True), length=WRONG), "graded", [0, 3]),
    "test unlocked": (changed("test_length", metadata(locked=False), length=WRONG), "graded", [0, 3]),
    "test renamed": (changed("test_length", metadata(grade_id="other"), length=WRONG), "graded", [0, 3]),
    "answer named like the test": (changed("length", metadata(grade_id="test_length")), "graded", [2, 3]),
    "metadata of another kind": (changed("test_length", no_metadata, length=WRONG), "graded", [0, 3]),
    "old metadata": (changed("test_length", metadata(schema_version=1)), "graded", [2, 3]),
    "metadata of the future": (changed("test_length", metadata(schema_version=99)), "graded", [2, 3]),
    "test as Markdown": (changed("test_length", as_markdown, length=WRONG), "graded", [0, 3]),
    "test copied": (with_copy("test_length"), "graded", [2, 3]),
    "answer copied": (with_copy("length"), "graded", [2, 3]),
    "graded cell of one's own": (with_stray_cell, "graded", [2, 3]),
}


@pytest.mark.parametrize(("make", "status", "points"), SUBMISSIONS.values(), ids=SUBMISSIONS)
def test_each_submission_gets_what_it_earned(
    small_course: Any, make: Callable[[Any], NotebookNode | bytes], status: str, points: list[float]
) -> None:
    small_course.submit("ann", make(small_course))
    record = grade(small_course, "ann")
    assert (record.status, record.reason if record.status == "graded" else "") == (status, "")
    by_cell = {cell.grade_id: cell.points for cell in record.cells}
    assert by_cell == {"test_length": points[0], "test_shout": points[1]}
    assert (record.points, record.max_points) == (sum(points), 5)


def test_a_merge_conflict_is_called_one() -> None:
    notebook = read_submission(b'{\n "nbformat": 4,\n<<<<<<< HEAD\n "cells": []\n=======\n>>>>>>> theirs\n}')
    assert note_of(notebook, "problem") == "The file is not valid JSON: line 3 begins a merge conflict (<<<<<<<)."


def test_a_link_to_another_submission_earns_nothing(small_course: Any) -> None:
    target = small_course.submit("ann", small_course.answered())
    link = small_course.root / "submitted" / "eve" / ASSIGNMENT / target.name
    link.parent.mkdir(parents=True)
    link.symlink_to(target)
    record = grade(small_course, "eve")
    assert (record.status, record.points) == ("unreadable", 0)


def test_a_file_that_cannot_be_read_costs_nobody_else(small_course: Any) -> None:
    small_course.submit("ann", small_course.answered())
    small_course.submit("bob", small_course.answered())
    folder = os.open(small_course.root / "submitted" / "ann" / ASSIGNMENT, os.O_RDONLY)
    for _ in range(20):  # a path of 5,000 letters, too long for any system call
        os.mkdir("d" * 250, dir_fd=folder)
        folder, above = os.open("d" * 250, os.O_RDONLY, dir_fd=folder), folder
        os.close(above)
    os.close(os.open("file", os.O_CREAT, dir_fd=folder))
    os.close(folder)
    records = grade_all(small_course)
    ann, bob = records["ann"], records["bob"]
    assert (ann.status, ann.points) == ("failed", 0)
    assert ann.reason.startswith("A file of the submission cannot be read. File name too long: ")
    assert (bob.status, bob.points) == ("graded", 5)


@pytest.mark.parametrize("name", ["other.ipynb", "strings.txt"])
def test_a_notebook_under_another_name_is_missing(small_course: Any, name: str) -> None:
    small_course.submit("ann", small_course.answered(), name=name)
    record = grade(small_course, "ann")
    assert (record.status, record.points, record.max_points) == ("missing", 0, 5)
    assert [cell.points for cell in record.cells] == [0, 0]


def test_a_name_that_is_a_pattern_never_gets_the_mark_of_another(small_course: Any) -> None:
    small_course.submit("ann[1]", small_course.answered(shout="return word"))
    small_course.submit("ann1", small_course.answered())
    record = grade(small_course, "ann[1]")
    assert (record.status, record.points) == ("failed", 0)
    assert "pattern" in record.reason


def test_litter_beside_a_notebook_changes_nothing(small_course: Any) -> None:
    small_course.submit("ann", small_course.answered())
    small_course.submit("bob", b"\0", name="._strings.ipynb")
    assert grade(small_course, "bob").reason == "No notebook of this assignment was handed in."
    assert not grade(small_course, "ann").unchanged
    small_course.submit("ann", b"\0", name=".DS_Store")
    (small_course.root / "source" / ASSIGNMENT / "Thumbs.db").touch()
    (small_course.root / "source" / ASSIGNMENT / "._strings.ipynb").touch()
    (small_course.root / "source" / "__MACOSX").mkdir()
    (small_course.root / "submitted" / "__MACOSX" / ASSIGNMENT).mkdir(parents=True)
    records = grade_all(small_course)
    assert {student: record.unchanged for student, record in records.items()} == {"ann": True, "bob": True}
    with open_course(small_course.root) as course:
        assert assignments_of(course) == [ASSIGNMENT]


def test_feedback_gives_the_reason_and_the_mark_but_no_hidden_test(small_course: Any) -> None:
    small_course.submit("ann", small_course.answered(length=WRONG))
    small_course.submit("bob", b"not a notebook")
    grade(small_course, "ann", feedback=True)
    grade(small_course, "bob", feedback=True)
    page = small_course.feedback("ann")
    assert "3 of 5 points" in page
    assert "hiddenword" not in page
    assert "HIDDEN TESTS" not in page
    assert "<script" not in page
    assert "cdnjs" not in page
    unread = small_course.feedback("bob")
    assert "This submission was not judged.</strong> The file is not valid JSON" in unread
    assert "What cost points" not in unread


def test_the_message_becomes_the_comment_of_the_answer(small_course: Any) -> None:
    small_course.submit("ann", small_course.answered(shout="return word"))
    record = grade(small_course, "ann")
    messages = {cell.grade_id: cell.message for cell in record.cells}
    with open_course(small_course.root) as opened, opened.gradebook() as gradebook:
        comments = {
            name: gradebook.find_comment(name, "strings", ASSIGNMENT, "ann").auto_comment
            for name in ("length", "shout")
        }
    assert messages["test_shout"]
    assert comments == {"length": None, "shout": messages["test_shout"]}


def test_an_unchanged_answer_keeps_the_comment_of_nbgrader(small_course: Any) -> None:
    small_course.submit("ann", small_course.released())
    grade(small_course, "ann")
    with open_course(small_course.root) as opened, opened.gradebook() as gradebook:
        assert gradebook.find_comment("shout", "strings", ASSIGNMENT, "ann").auto_comment == "No response."


def test_files_of_the_course_are_there_and_links_are_not(small_course: Any, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("5")
    answer = "import os; return len(word) if os.path.exists('words.txt') and not os.path.exists('link.txt') else 0"
    path = small_course.submit("ann", small_course.answered(length=answer))
    (path.parent / "link.txt").symlink_to(secret)
    assert grade(small_course, "ann").points == 5
