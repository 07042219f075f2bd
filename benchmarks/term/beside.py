"""The first assignment of the term once more: graded by us, and a few submissions of it by nbgrader alone."""

from __future__ import annotations

import shutil
import sys

from benchmarks.grading.course import STOCK
from benchmarks.grading.measuring import Cost, cost_of
from benchmarks.term.handing_in import Term
from benchmarks.term.table import PS1, Student


def beside_nbgrader(term: Term, count: int) -> str:
    """What a submission takes of each, from its command's start to its end. nbgrader takes seconds for one, so it gets
    only this many.
    """
    ours = [sys.executable, "-m", "autograder.cli", "grade", PS1, "--force", "--course", str(term.root)]
    cost = cost_of(["sh", "-c", '"$@" || [ $? -eq 1 ]', "sh", *ours], term.root.parent)
    there = sum(not student.rows[PS1].absent for student in term.students)
    root = term.root.parent / "stock"
    shutil.copytree(term.root / "source" / PS1, root / "source" / PS1)
    (root / "nbgrader_config.py").write_text(STOCK)
    few = [student for student in term.students if _can_be_graded(student)][:count]
    for student in few:
        shutil.copytree(term.root / "submitted" / student.id / PS1, root / "submitted" / student.id / PS1)
    nbgrader = [sys.executable, "-m", "nbgrader"]
    cost_of([*nbgrader, "generate_assignment", PS1, "--create", f"--course-dir={root}"], root)
    stock = cost_of([*nbgrader, "autograde", PS1, f"--course-dir={root}"], root)
    theirs = Cost(stock.wall / len(few), stock.cpu / len(few))
    mine = Cost(cost.wall / there, cost.cpu / there)
    return (
        f"a submission of {PS1}: {mine.wall:.3f} s, {mine.cpu:.3f} s of processor time (all {there}); `nbgrader "
        f"autograde`: {theirs.wall:.2f} s, {theirs.cpu:.2f} s ({len(few)} of them): {theirs.wall / mine.wall:.0f} and "
        f"{theirs.cpu / mine.cpu:.0f} times as much"
    )


def _can_be_graded(student: Student) -> bool:
    """Whether nbgrader grades what the student has handed in. It ends with an error if it cannot."""
    files = student.rows[PS1].files
    return bool(files) and not any(it.unreadable or it.name for it in files)
