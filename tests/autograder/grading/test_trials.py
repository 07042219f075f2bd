"""Before a class is graded, the assignment's own solution is graded: the tests that it fails are named, and tests that
only its process can answer for are judged there, by both ways of grading.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from nbgrader.converters import Autograde
from nbgrader.utils import capture_log

from autograder.cli import main
from autograder.grading.course import open_course
from autograder.grading.submission import trials, trying_solutions
from autograder.grading.submission.grader import Grader
from autograder.notebooks.verdicts import SolutionTrial
from tests.autograder.grading.here import ASSIGNMENT, grade_all, in_this_process
from tests.autograder.grading.test_notices import change_source, release

pytestmark = [pytest.mark.sandbox, pytest.mark.filterwarnings("ignore:Object of type")]

LOOKS_AT_CODE = "import inspect\nassert 'return' in inspect.getsource(length)\nassert length('abc') == 3"
FAILS = "assert length('abc') == 4"


@pytest.fixture
def course(small_course: Any) -> Any:
    """A course with a test that looks at code, a right submission and a wrong one."""
    change_source(small_course, "test_length", LOOKS_AT_CODE)
    release(small_course)
    small_course.submit("ann", small_course.answered())
    small_course.submit("bob", small_course.answered(length="return 4"))
    return small_course


def run(course: Any, *options: str) -> int:
    with in_this_process():
        return main(["grade", ASSIGNMENT, "--course", str(course.root), *options])


@pytest.mark.parametrize("own_steps", [False, True])
def test_marks_that_were_judged_inside_are_marked(
    course: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any, own_steps: bool
) -> None:
    if own_steps:
        monkeypatch.setattr(Grader, "_needs_own_steps", lambda *_: True)
    found = tmp_path / "marks.json"
    assert run(course, "--json", str(found)) == 0
    said = capsys.readouterr().out
    assert (
        "The test cell 'test_length' of strings.ipynb is judged inside, because the solution fails it outside" in said
    )
    records = {record["student"]: record for record in json.loads(found.read_text())}
    assert [records[student]["points"] for student in ("ann", "bob")] == [5, 3]
    assert {cell["grade_id"]: cell["inside"] for cell in records["bob"]["cells"]} == {
        "test_length": True,
        "test_shout": False,
    }
    page = tmp_path / "report.html"
    assert main(["report", ASSIGNMENT, "--course", str(course.root), "--to", str(page)]) == 0
    assert "test_length</code> (inside)" in page.read_text()
    assert "test_shout</code> (inside)" not in page.read_text()


@pytest.mark.parametrize("own_steps", [False, True])
def test_a_right_answer_loses_nothing_where_the_solution_fails(
    small_course: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, own_steps: bool
) -> None:
    if own_steps:
        monkeypatch.setattr(Grader, "_needs_own_steps", lambda *_: True)
    change_source(small_course, "test_length", f"{LOOKS_AT_CODE}\nassert length('') == 7")
    release(small_course)
    small_course.submit("ann", small_course.answered(length="return len(word) or 7"))
    small_course.submit("bob", small_course.answered())
    found = tmp_path / "marks.json"
    assert run(small_course, "--ignore-failing-solution", "--json", str(found)) == 1
    records = {record["student"]: record for record in json.loads(found.read_text())}
    assert [records[student]["points"] for student in ("ann", "bob")] == [5, 3]
    for record in records.values():
        assert [cell["inside"] for cell in record["cells"]] == [True, False]


def test_nbgrader_s_own_command_gives_the_same_marks(course: Any) -> None:
    with open_course(course.root) as opened:
        opened.coursedir.assignment_id = ASSIGNMENT
        assert capture_log(Autograde(coursedir=opened.coursedir, parent=opened.app))["success"]
        with opened.gradebook() as gradebook:
            marks = [gradebook.find_submission(ASSIGNMENT, student).score for student in ("ann", "bob")]
    assert marks == [5, 3]


def test_an_assignment_that_fails_its_own_solution_is_not_graded(small_course: Any, capsys: Any) -> None:
    change_source(small_course, "test_length", FAILS)
    release(small_course)
    small_course.submit("ann", small_course.answered())
    assert run(small_course) == 2
    said = capsys.readouterr().err
    assert "The solution in strings.ipynb fails the test cell 'test_length'. This is not true: `assert" in said
    assert f"`nbgrader generate_assignment {ASSIGNMENT} --force`" in said, "without it nbgrader keeps the old release"
    assert "--ignore-failing-solution" in said
    assert not (small_course.root / "autograded").exists()
    assert run(small_course, "--ignore-failing-solution") == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "fails the test cell 'test_length'" in said
    assert "the result inside counts, and is marked" in said
    assert grade_all(small_course, ignore_failing_solution=True)["ann"].points == 3


def test_a_trial_is_made_once_for_each_version_of_an_assignment(course: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made = mock.Mock(side_effect=trying_solutions.trials_of)
    monkeypatch.setattr("autograder.grading.submission.trying_solutions.trials_of", made)
    grade_all(course)
    grade_all(course, force=True)
    assert made.call_count == 1
    change_source(course, "test_shout", "assert shout('b') == 'B'")
    release(course)
    grade_all(course)
    assert made.call_count == 2
    (course.root / ".autograder" / ASSIGNMENT / trials.FILE).write_text("{")
    grade_all(course, force=True)
    assert made.call_count == 3


def test_a_trial_that_dies_is_said_and_nobody_suffers(course: Any, capsys: Any) -> None:
    change_source(course, "test_length", "import os\nif length('abc') == 3:\n    os._exit(1)")
    release(course)
    assert run(course) == 1
    assert "The trial of the solution in strings.ipynb did not finish" in " ".join(capsys.readouterr().out.split())
    assert grade_all(course)["bob"].points == 5


FILE_GONE = "The cell `read` stopped with FileNotFoundError: No such file: 'a.csv'."
KINDS: list[tuple[dict[str, str], list[tuple[list[str], str]]]] = [
    ({"a": "This is not true: `x`"}, [(["a"], "This is not true: `x`")]),
    (
        {"a": "This is not true: `x`", "b": "This is not true: `y`"},
        [(["a"], "This is not true: `x`"), (["b"], "This is not true: `y`")],
    ),
    (
        {"a": "name 'x' is not defined. It failed at `x`.", "b": "name 'y' is not defined. It failed at `y > 2`."},
        [(["a", "b"], "In 'a': name 'x' is not defined. It failed at `x`.")],
    ),
    (
        {"a": f"{FILE_GONE} name 'x' is not defined", "b": "Not equal.", "c": f"{FILE_GONE} This is not true: `y`"},
        [(["a", "c"], f"In 'a': {FILE_GONE} name 'x' is not defined"), (["b"], "Not equal.")],
    ),
]


@pytest.mark.parametrize(("said", "kinds"), KINDS)
def test_reasons_of_one_kind_are_given_once(said: dict[str, str], kinds: list[tuple[list[str], str]]) -> None:
    assert trials.by_kind(said) == kinds
    for sentences in (trials.failures({"n": SolutionTrial(failed=said)}), trials.inside({"n": SolutionTrial(said)})):
        assert len(sentences) == len(kinds)
        assert all(repr(cell) in " ".join(sentences) for cell in said)
