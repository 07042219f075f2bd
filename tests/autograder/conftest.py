"""A small nbgrader course on another subject, released and ready for submissions, for the tests that need one."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat
import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from autograder.sandbox.process.isolation import isolation_available
from tests.autograder.nbgrader_commands import NbgraderCommands

if TYPE_CHECKING:
    from autograder.grading.course import Course

SOLUTION_LENGTH = '''def length(word):
    """The number of letters."""
    ### BEGIN SOLUTION
    return len(word)
    ### END SOLUTION'''
TEST_LENGTH = """assert length("abc") == 3
### BEGIN HIDDEN TESTS
assert length("hiddenword") == 10
### END HIDDEN TESTS"""
SOLUTION_SHOUT = """def shout(word):
    ### BEGIN SOLUTION
    return word.upper()
    ### END SOLUTION"""
TEST_SHOUT = 'assert shout("abc") == "ABC"'
ASSIGNMENT, NOTEBOOK = "words", "strings"


@dataclass(frozen=True)
class SmallCourse:
    """Where the course is, and how to hand something in."""

    root: Path

    def copy(self, folder: Path) -> SmallCourse:
        """The same course in a new folder."""
        return SmallCourse(Path(shutil.copytree(self.root, folder)))

    def released(self) -> NotebookNode:
        return nbformat.read(self.root / "release" / ASSIGNMENT / f"{NOTEBOOK}.ipynb", as_version=4)

    def answered(self, length: str = "return len(word)", shout: str = "return word.upper()") -> NotebookNode:
        """A student's notebook with these function bodies."""
        notebook = self.released()
        for cell in notebook.cells:
            name = cell.metadata.get("nbgrader", {}).get("grade_id")
            if name == "length":
                cell.source = f"def length(word):\n    {length}"
            if name == "shout":
                cell.source = f"def shout(word):\n    {shout}"
        return notebook

    def submit(self, student: str, content: NotebookNode | bytes, name: str = f"{NOTEBOOK}.ipynb") -> Path:
        folder = self.root / "submitted" / student / ASSIGNMENT
        folder.mkdir(parents=True, exist_ok=True)
        raw = content if isinstance(content, bytes) else nbformat.writes(content).encode()
        (folder / name).write_bytes(raw)
        return folder / name

    def graded(self, student: str) -> NotebookNode:
        return nbformat.read(self.root / "autograded" / student / ASSIGNMENT / f"{NOTEBOOK}.ipynb", as_version=4)

    def feedback(self, student: str) -> str:
        return (self.root / "feedback" / student / ASSIGNMENT / f"{NOTEBOOK}.html").read_text()


def nbgrader_cell(name: str, source: str, points: float | None = None) -> NotebookNode:
    """A solution cell or, with points, a locked test cell."""
    test = points is not None
    metadata = {
        "schema_version": 3,
        "grade_id": name,
        "grade": test,
        "solution": not test,
        "locked": test,
        "task": False,
    }
    if test:
        metadata["points"] = points
    return new_code_cell(source, metadata={"nbgrader": metadata})


@pytest.fixture(scope="session")
def released_course(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The course, made once per run: a new gradebook costs about a second. Where there is a sandbox, its solution has
    been tried, as in a course that was graded before; a test that changes the assignment has it tried again.
    """
    from autograder.grading.course import generate_assignment, open_course

    root = tmp_path_factory.mktemp("course")
    notebook = new_notebook(
        cells=[
            new_markdown_cell("# Words\n\nWith a formula, $x^2$."),
            nbgrader_cell("length", SOLUTION_LENGTH),
            nbgrader_cell("test_length", TEST_LENGTH, points=2),
            nbgrader_cell("shout", SOLUTION_SHOUT),
            nbgrader_cell("test_shout", TEST_SHOUT, points=3),
        ],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}},
    )
    source = root / "source" / ASSIGNMENT
    source.mkdir(parents=True)
    (root / "nbgrader_config.py").write_text("c = get_config()\nc.CourseDirectory.course_id = 'small'\n")
    (source / "words.txt").write_text("one\ntwo\n")
    nbformat.write(notebook, source / f"{NOTEBOOK}.ipynb")
    with open_course(root) as course:
        generate_assignment(course, ASSIGNMENT)
        if isolation_available():
            try_solution_of(course)
    return root


def try_solution_of(course: Course) -> None:
    """Judge the solution and keep the outcome, as the first grading does."""
    from autograder.grading.gradebook.assignment_reader import read_assignment
    from autograder.grading.submission.trials import keep_trials
    from autograder.grading.submission.trying_solutions import trials_of
    from autograder.grading.workers.spool import Spool

    assignment, folder = read_assignment(course, ASSIGNMENT), Spool.of(course.root, ASSIGNMENT).root
    folder.mkdir(parents=True)
    keep_trials(folder, assignment, trials_of(assignment))


@pytest.fixture
def small_course(released_course: Path, tmp_path: Path) -> SmallCourse:
    """A copy of the course for one test."""
    return SmallCourse(released_course).copy(tmp_path / "course")


@pytest.fixture(scope="session")
def nbgrader() -> Iterator[NbgraderCommands]:
    """nbgrader's own commands."""
    commands = NbgraderCommands()
    yield commands
    commands.close()
