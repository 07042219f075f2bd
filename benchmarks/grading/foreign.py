"""Courses on other subjects, with assignments that the tests of the judge use: a class hands in solutions, wrong
answers and nothing in turn.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from benchmarks.grading.course import ALONE, CELLS_ALONE, OURS, STOCK
from benchmarks.grading.measuring import Cost, cost_of
from tests.autograder.judge.test_foreign_corpus import CORPUS, Foreign

NAMES = (
    "strings: words and letters",
    "numerical methods: arrays and tolerances",
    "plots: axes and their labels",
    "data science: frames and series",
)
HOW = ("solution", "wrong", "not written")
NBGRADER = [sys.executable, "-m", "nbgrader"]
Marks = dict[tuple[str, str, str], float]  # by assignment, student and cell


@dataclass
class Graded:
    """What grading a class in these assignments cost, and its marks."""

    way: str
    submissions: int
    cost: Cost
    marks: Marks


def slug(name: str) -> str:
    return re.sub(r"\W+", "_", name)


def make_course(root: Path, students: int, configuration: str) -> None:
    """A released course with these assignments, handed in by this many students."""
    root.mkdir(parents=True)
    (root / "nbgrader_config.py").write_text(configuration)
    for name in NAMES:
        foreign, assignment = CORPUS[name], slug(name)
        _write(root / "source" / assignment, foreign, _with_marks(foreign.source()))
        cost_of([*NBGRADER, "generate_assignment", assignment, "--create", f"--course-dir={root}"], root)
        for number in range(students):
            folder = root / "submitted" / f"student{number:04d}" / assignment
            _write(folder, foreign, foreign.answered(HOW[number % len(HOW)]))


def _write(folder: Path, foreign: Foreign, notebook: NotebookNode) -> None:
    folder.mkdir(parents=True)
    for file, text in foreign.files.items():
        (folder / file).write_text(text)
    notebook.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, folder / f"{folder.name}.ipynb")


def _with_marks(source: NotebookNode) -> NotebookNode:
    for cell in source.cells:
        if cell.metadata.get("nbgrader", {}).get("solution"):
            cell.source = f"### BEGIN SOLUTION\n{cell.source}\n### END SOLUTION"
    return source


def grade(folder: Path, way: str, students: int, command: list[str], configuration: str) -> Graded:
    """Grade each assignment with a command in which ASSIGNMENT and COURSE are filled in."""
    root, total = folder / "course", Cost()
    make_course(root, students, configuration)
    for name in NAMES:
        filled = [part.replace("COURSE", str(root)).replace("ASSIGNMENT", slug(name)) for part in command]
        total.add(cost_of(filled, root))
    return Graded(way, students * len(NAMES), total, _marks(root))


def _marks(root: Path) -> Marks:
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{root / 'gradebook.db'}") as gradebook:
        return {
            (assignment.name, submission.student_id, grade.name): grade.score
            for assignment in gradebook.assignments
            for submission in assignment.submissions
            for notebook in submission.notebooks
            for grade in notebook.grades
        }


def ways() -> list[tuple[str, list[str], str]]:
    """Name, command and configuration of each way of grading; nbgrader's own is the first."""
    stock = [*NBGRADER, "autograde", "ASSIGNMENT", "--course-dir=COURSE"]
    ours = [sys.executable, "-m", "autograder.cli", "grade", "ASSIGNMENT", "--course", "COURSE", "--workers"]
    return [
        ("nbgrader autograde", stock, STOCK),
        (ALONE, [*CELLS_ALONE, "ASSIGNMENT"], STOCK),
        ("autograder grade, 1 worker", [*ours, "1"], OURS),
        ("autograder grade, 2 workers", [*ours, "2"], OURS),
    ]
