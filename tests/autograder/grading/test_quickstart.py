"""The example course of `nbgrader quickstart`: our marks are those of `nbgrader autograde` with its own settings."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from pathlib import Path
from typing import Any
from unittest import mock

import nbformat
import pytest
from nbformat import NotebookNode
from nbgrader.api import Gradebook
from nbgrader.apps import QuickStartApp

from tests.autograder.grading.here import in_this_process
from tests.autograder.nbgrader_commands import NbgraderCommands

pytestmark = pytest.mark.sandbox

SQUARES = """def squares(n):
    if n < 1:
        raise ValueError("n must be positive")
    return [i ** 2 for i in range(1, n + 1)]"""
SUM = "def sum_of_squares(n):\n    return sum(squares(n))"
GOOD = {"squares": SQUARES, "sum_of_squares": SUM}
ANSWERS: dict[str, dict[str, str]] = {
    "untouched": {},
    "right, and answers to be read by a person": {
        **GOOD,
        "sum_of_squares_equation": "$\\sum i^2$",
        "sum_of_squares_application": "sum_of_squares(3)",
        "part-a": "It computes Fibonacci numbers.",
    },
    "one too few": {**GOOD, "squares": SQUARES.replace("n + 1", "n")},
    "no error for wrong input": {**GOOD, "squares": "def squares(n):\n    return [i ** 2 for i in range(1, n + 1)]"},
    "another error for wrong input": {**GOOD, "squares": SQUARES.replace("ValueError", "TypeError")},
    "does not use squares": {
        **GOOD,
        "sum_of_squares": "def sum_of_squares(n):\n    return n * (n + 1) * (2 * n + 1) // 6",
    },
    "arrays": {
        **GOOD,
        "squares": "import numpy as np\n"
        + SQUARES.replace("[i ** 2 for i in range(1, n + 1)]", "list(np.arange(1, n + 1) ** 2)"),
    },
    "syntax error": {**GOOD, "squares": "def squares(n)\n    return 1"},
    "name kept elsewhere": {
        **GOOD,
        "sum_of_squares": "mine = squares\ndef sum_of_squares(n):\n    return sum(mine(n))",
    },
    "defines a class": {
        **GOOD,
        "squares": "class Maker:\n    def __call__(self, n):\n        return self.make(n)\n    @staticmethod\n    "
        + SQUARES.replace("def squares", "def make").replace("\n", "\n    ")
        + "\nsquares = Maker()",
    },
}


def quickstart(folder: Path, nbgrader: NbgraderCommands) -> Path:
    """What `nbgrader quickstart course101` makes. It starts five more commands: one writes the configuration, the rest
    would enter an assignment and students into a gradebook beside the course, which nothing uses.
    """

    def start(command: list[str], **more: Any) -> None:
        if "generate_config" in command:
            nbgrader(*command[3:], cwd=Path.cwd())

    with contextlib.chdir(folder), mock.patch.object(subprocess, "call", start):
        app = QuickStartApp()
        app.initialize(["course101"])
        app.start()
    return folder / "course101"


def marks(course: Path) -> dict[tuple[str, str], tuple[float | None, bool]]:
    """The automatic mark of every graded cell of every student, and whether a person has to look."""
    with Gradebook(f"sqlite:///{course / 'gradebook.db'}") as gradebook:
        return {
            (submission.student_id, grade.name): (grade.auto_score, grade.needs_manual_grade)
            for submission in gradebook.assignment_submissions("ps1")
            for notebook in submission.notebooks
            for grade in notebook.grades
        }


def answered(notebook: NotebookNode, answers: dict[str, str]) -> NotebookNode:
    for cell in notebook.cells:
        name = cell.metadata.get("nbgrader", {}).get("grade_id")
        cell.source = answers.get(name, cell.source)
    return notebook


def hand_in(course: Path) -> None:
    """Hand in all answers; the second problem, in which there is no code to write, only from the first two students."""
    for number, answers in enumerate(ANSWERS.values()):
        folder = course / "submitted" / f"student{number}" / "ps1"
        shutil.copytree(course / "release" / "ps1", folder)
        for path in folder.glob("*.ipynb"):
            nbformat.write(answered(nbformat.read(path, as_version=4), answers), path)
        if number > 1:
            (folder / "problem2.ipynb").unlink()


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory, nbgrader: NbgraderCommands) -> Path:
    root = quickstart(tmp_path_factory.mktemp("quickstart"), nbgrader)
    nbgrader("generate_assignment", "ps1", cwd=root)
    hand_in(root)
    return root


def test_our_marks_are_those_of_nbgrader(
    course: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    nbgrader: NbgraderCommands,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from autograder.cli import main

    monkeypatch.setattr("autograder.grading.report.progress_display.WIDTH_OF_FILES", 300)
    theirs = Path(shutil.copytree(course, tmp_path / "theirs"))
    ours = Path(shutil.copytree(course, tmp_path / "ours"))
    nbgrader("autograde", "ps1", cwd=theirs)
    assert main(["grade", "ps1", "--course", str(ours)]) == 0
    said = capsys.readouterr().out
    assert "waiting for a person: 10 (" in said, "a task, and two have written an essay"
    assert [line.split()[1] for line in said.splitlines() if line.startswith("│") and "part-a" in line] == ["student1"]
    expected, found = marks(theirs), marks(ours)
    names = dict(enumerate(ANSWERS))
    different = {
        (names[int(student.removeprefix("student"))], cell): (expected[student, cell], found.get((student, cell)))
        for student, cell in expected
        if expected[student, cell] != found.get((student, cell))
    }
    assert different == {}, "cell of whom: (nbgrader's mark, ours)"
    assert len({mark for mark, _ in expected.values()}) > 2, "a course in which all marks are alike shows nothing"


def test_doctor_compares_its_marks_with_those_of_nbgrader(
    course: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from autograder.cli import main

    root = tmp_path / "course"
    shutil.copytree(course, root, ignore=shutil.ignore_patterns("release", "submitted", "gradebook.db"))
    before = sorted(root.rglob("*"))
    with in_this_process():
        assert main(["doctor", "--course", str(root), "--compare-with-nbgrader"]) == 0
    said = capfd.readouterr()
    assert "ps1: nbgrader gives the solution and the untouched release the same points, cell by cell." in said.out
    assert said.err == ""
    assert sorted(root.rglob("*")) == before


def test_its_own_configuration_stays_in_force(course: Path, tmp_path: Path) -> None:
    """quickstart's configuration puts a header above what is released; ours comes on top of it."""
    from autograder.grading.course import generate_assignment, open_course

    root = Path(shutil.copytree(course, tmp_path / "course"))
    shutil.rmtree(root / "release")
    shutil.rmtree(root / "submitted")
    with open_course(root) as opened:
        generate_assignment(opened, "ps1")
    ours, theirs = (
        nbformat.read(folder / "release" / "ps1" / "problem1.ipynb", as_version=4) for folder in (root, course)
    )
    assert [cell.source for cell in ours.cells] == [cell.source for cell in theirs.cells]
