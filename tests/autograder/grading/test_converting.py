"""Where nbgrader fails, its own reason is told: whole, and with the notebook that it is about."""

from __future__ import annotations

from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_notebook

from autograder.cli import main
from autograder.grading.course import CourseError, generate_assignment, open_course
from tests.autograder.conftest import nbgrader_cell
from tests.autograder.grading.here import ASSIGNMENT
from tests.autograder.grading.test_notices import change_source


def faulty(*cells: Any, **metadata: Any) -> str:
    for cell in cells:
        cell.metadata["nbgrader"].update(metadata)
    return str(nbformat.writes(new_notebook(cells=list(cells))))


TEST = "assert True"
FAULTS = {
    "two cells of one name": (
        faulty(nbgrader_cell("t1", TEST, 1), nbgrader_cell("t1", TEST, 1)),
        ["strings.ipynb: Duplicate grade id: t1\n", "the nbgrader metadata may be corrupted"],
    ),
    "an odd name": (faulty(nbgrader_cell("t 1", TEST, 1)), ["'t 1' does not match", "may be corrupted"]),
    "metadata of an old nbgrader": (
        faulty(nbgrader_cell("t1", TEST, 1), schema_version=1),
        ["Outdated schema version: 1 (expected 3)", "**back up your class files", "nbgrader update ."],
    ),
    "a region without an end": (
        faulty(nbgrader_cell("s", "def f():\n    ### BEGIN SOLUTION\n    return 1")),
        ["No end solution statement found. Cell contents are: \ndef f():\n    ### BEGIN SOLUTION\n    return 1"],
    ),
    "hidden tests without an end": (
        faulty(nbgrader_cell("t1", "### BEGIN HIDDEN TESTS\nassert True", 1)),
        ["strings.ipynb: No end hidden tests statement found"],
    ),
    "no notebook": ("{oops", ["strings.ipynb: ", "Notebook does not appear to be JSON: '{oops'"]),
    "another kind of JSON": ("[]", ["AttributeError: 'list' object has no attribute 'get'"]),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_reason_for_a_faulty_source_is_told_whole(fault: str, small_course: Any) -> None:
    text, told = FAULTS[fault]
    (small_course.root / "source" / ASSIGNMENT / "strings.ipynb").write_text(text)
    with open_course(small_course.root) as course, pytest.raises(CourseError) as error:
        generate_assignment(course, ASSIGNMENT)
    said = str(error.value)
    assert said.startswith(f"nbgrader cannot release {ASSIGNMENT!r}. strings.ipynb: ")
    assert [text for text in told if text not in said] == []
    assert "above traceback" not in said
    assert len(set(said.splitlines())) == len(said.splitlines())


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("c.IncludeHeaderFooter.header = 'source/header.ipynb'", "No such file or directory: 'source/header.ipynb'"),
        ("c.GenerateAssignment.preprocessors = ['nowhere.Step']", "ModuleNotFoundError: No module named 'nowhere'"),
    ],
)
def test_the_reason_for_a_faulty_configuration_is_told(line: str, told: str, small_course: Any) -> None:
    with (small_course.root / "nbgrader_config.py").open("a") as file:
        file.write(f"{line}\n")
    with open_course(small_course.root) as course, pytest.raises(CourseError) as error:
        generate_assignment(course, ASSIGNMENT)
    assert told in str(error.value)


@pytest.mark.sandbox
def test_grade_tells_it_too(small_course: Any, capsys: pytest.CaptureFixture) -> None:
    (small_course.root / "gradebook.db").unlink()
    change_source(small_course, "test_shout", "### BEGIN HIDDEN TESTS\nassert True")
    small_course.submit("ann", small_course.answered())
    assert main(["grade", ASSIGNMENT, "--course", str(small_course.root)]) == 2
    assert "strings.ipynb: No end hidden tests statement found" in capsys.readouterr().err
