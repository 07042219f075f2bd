"""The student's version has stubs and shows nothing that it must not; nbgrader itself makes the same version."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbformat import NotebookNode

from autograder.lessons.builder.notebook import assemble, build_lesson
from autograder.lessons.release import ReleaseError, release_notebook, verify_release, without_solutions

SECRETS = ["factor", "HIDDEN", "SOLUTION", "1.75", "exponent", "lowest point", "sign_lost", "return x + x"]


def cell(notebook: NotebookNode, grade_id: str) -> NotebookNode:
    return next(c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("grade_id") == grade_id)


def test_a_release_shows_nothing_that_it_must_not(lesson: Path) -> None:
    text = nbformat.writes(release_notebook(assemble(lesson)))
    assert [secret for secret in SECRETS if secret in text] == []
    assert "raise NotImplementedError()" in text


def test_a_quiz_is_released_with_empty_answers_that_run(lesson: Path) -> None:
    names: dict[str, dict[str, str]] = {}
    exec(cell(release_notebook(assemble(lesson)), "quiz_01_answers").source, names)
    assert names["quiz_01_answers"] == {"at_zero": "", "sign": ""}


def test_stubs_keep_the_hidden_tests(lesson: Path) -> None:
    stubbed = without_solutions(assemble(lesson))
    assert "1.75" in cell(stubbed, "test_slope").source
    assert "factor" not in cell(stubbed, "slope").source


def test_the_source_is_left_alone(lesson: Path) -> None:
    source = assemble(lesson)
    before = nbformat.writes(source)
    release_notebook(source)
    assert nbformat.writes(source) == before


LEAKS = {
    "a marker": ("slope", "### BEGIN SOLUTION", "BEGIN SOLUTION"),
    "a solution": ("slope", "def other(x):\n    factor = 2.0\n    return factor * x", "solution"),
    "a hint": ("slope", "# The exponent comes down\n# in front of the power.".replace("\n#", ""), "a hint"),
    "hidden tests": ("test_slope", "credit += check_function(slope, lambda x: 2 * x, [-1.75], points=2)", "hidden"),
    "a quiz's explanation": ("quiz_01", "# It falls towards the lowest point.", "explanation of the quiz"),
}


@pytest.mark.parametrize("name", LEAKS)
def test_a_release_that_leaks_is_refused(name: str, lesson: Path) -> None:
    grade_id, text, message = LEAKS[name]
    source = assemble(lesson)
    released = release_notebook(source)
    cell(released, grade_id).source += f"\n{text}"
    with pytest.raises(ReleaseError, match=message) as caught:
        verify_release(source, released)
    assert grade_id in str(caught.value)


@pytest.mark.parametrize("tag", ["style:addition", "hint", "quiz"])
def test_a_cell_of_the_builder_is_refused(tag: str, lesson: Path) -> None:
    source = assemble(lesson)
    released = release_notebook(source)
    released.cells[1].metadata["tags"] = [tag]
    with pytest.raises(ReleaseError, match="builder only"):
        verify_release(source, released)


@pytest.mark.slow
def test_nbgrader_makes_the_same_release(course: Path, lesson: Path) -> None:
    build_lesson(lesson, course)
    config = "from autograder.nbgrader_plugins import configure\nc = get_config()\nconfigure(c)\n"
    (course / "nbgrader_config.py").write_text(config)
    command = [sys.executable, "-m", "nbgrader", "generate_assignment", "01_squares", "--create"]
    subprocess.run(command, cwd=course, check=True, capture_output=True)
    theirs = nbformat.read(course / "release" / "01_squares" / "01_squares.ipynb", as_version=4)
    ours = release_notebook(assemble(lesson))
    assert [dict(c) for c in theirs.cells] == [dict(c) for c in ours.cells]
