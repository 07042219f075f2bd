"""Courses with the benchmark's assignment, the command that grades one with us, and the resulting marks."""

from __future__ import annotations

import sys
from pathlib import Path

from benchmarks.grading.assignment import NAME, make_course, right_points
from benchmarks.grading.measuring import cost_of

STOCK = "c = get_config()\nc.CourseDirectory.course_id = 'stock'\n"
ALONE = "the cells alone"
CELLS_ALONE = [sys.executable, str(Path(__file__).with_name("alone.py")), "COURSE"]
OURS = "from autograder.nbgrader_plugins import configure\n\nc = get_config()\nconfigure(c)\n"


def make_released_course(root: Path, submissions: int, configuration: str) -> None:
    """A course whose assignment is in the gradebook, as it is when a class hands in."""
    make_course(root, submissions, configuration)
    release = [sys.executable, "-m", "nbgrader", "generate_assignment", NAME, "--create", f"--course-dir={root}"]
    cost_of(release, root.parent)


def grade_with_us(root: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "autograder.cli", "grade", NAME, "--course", str(root), *options]


def count_right(root: Path) -> int:
    """How many submissions have the mark that they deserve."""
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{root / 'gradebook.db'}") as gradebook:
        marks = {entry.student_id: entry.score for entry in gradebook.assignment_submissions(NAME)}
    return sum(abs(score - right_points(int(student[-4:]))) < 1e-9 for student, score in marks.items())
