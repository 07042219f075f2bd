"""Grades an assignment with stock nbgrader and with the judge, on two harmless submissions: the solution, and the
release as it was handed out.

nbgrader runs them without a sandbox, in a copy of the course with a gradebook of its own.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from nbgrader.api import Gradebook

from autograder.grading.course import Course, CourseError
from autograder.grading.run import Request, grade_class

CONFIGURATION = """import os, sys
c = get_config()
if os.path.exists({path!r}):
    sys.path.append(os.path.dirname({path!r}))
    exec(compile(open({path!r}).read(), {path!r}, "exec"))
for name in ("Autograde", "CourseDirectory"):
    c.pop(name, None)
"""
SOLUTION, RELEASE = "the-solution", "the-release"
Marks = dict[tuple[str, str, str], float]  # by student, notebook and cell


def differences(course: Course, assignment: str) -> list[str]:
    """Return a sentence for each cell of the solution or the release on whose points nbgrader and the judge disagree.
    Raises CourseError if nbgrader cannot grade them.
    """
    with tempfile.TemporaryDirectory(prefix="autograder-") as folder:
        root = Path(folder, "course")
        shutil.copytree(course.folder("source", ".", assignment), root / "source" / assignment)
        (root / "nbgrader_config.py").write_text(
            CONFIGURATION.format(path=str(course.root.resolve() / "nbgrader_config.py"))
        )
        _nbgrader(root, "generate_assignment", assignment, "--create")
        for student, step in ((SOLUTION, "source"), (RELEASE, "release")):
            shutil.copytree(root / step / assignment, root / "submitted" / student / assignment)
        ours = shutil.copytree(root, Path(folder, "ours"))
        _nbgrader(root, "autograde", assignment)
        theirs = _marks(root, assignment)
        request = Request(assignment, ours, workers=1, ignore_failing_solution=True)
        found = {
            (record.student, cell.notebook, cell.grade_id): (cell.points, cell.message)
            for record in grade_class(request)
            for cell in record.cells
        }
    return list(_told(theirs, found))


def _told(theirs: Marks, found: dict[tuple[str, str, str], tuple[float | None, str]]) -> Iterator[str]:
    for (student, notebook, cell), points in theirs.items():
        ours, message = found.get((student, notebook, cell), (None, "The judge did not find this cell."))
        if (ours or 0.0) != points:
            who = "the solution" if student == SOLUTION else "the untouched release"
            place = f"the cell {cell!r} of {notebook}.ipynb"
            marks = f"nbgrader gives {who} {points:g} points for {place}, and the judge gives {ours or 0:g}."
            yield f"{marks} {message}".rstrip()


def _marks(root: Path, assignment: str) -> Marks:
    with Gradebook(f"sqlite:///{root / 'gradebook.db'}") as gradebook:
        return {
            (submission.student.id, notebook.name, grade.name): grade.auto_score or 0.0
            for submission in gradebook.assignment_submissions(assignment)
            for notebook in submission.notebooks
            for grade in notebook.grades
        }


def _nbgrader(root: Path, *arguments: str) -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    command = [sys.executable, "-m", "nbgrader", *arguments]
    done = subprocess.run(command, cwd=root, env={**os.environ, "PATH": path}, capture_output=True, text=True)
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise CourseError(f"nbgrader {arguments[0]} failed: {' '.join(last)[:300]}")
