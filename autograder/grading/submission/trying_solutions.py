"""Has the judge grade an assignment's own solution, in a worker process, before it grades a class."""

from __future__ import annotations

import tempfile
from pathlib import Path

from autograder.files import write_file
from autograder.grading.submission.assignments import Assignment
from autograder.grading.submission.worker import prepare
from autograder.judge import JudgeDied, try_solution
from autograder.nbgrader_plugins.direct import KnownNotebook, known_notebooks, limits_of
from autograder.notebooks.verdicts import SolutionTrial

NO_TRIAL = "The trial of the solution in {}.ipynb did not finish: {}. Its tests are judged outside."


def trials_of(assignment: Assignment) -> dict[str, SolutionTrial]:
    """The trial of each notebook that has a source, by name. Raises SandboxUnavailable."""
    prepare(assignment)
    notebooks = known_notebooks(assignment.rows, assignment.files)
    with tempfile.TemporaryDirectory(prefix="autograder-") as folder:
        for name, content in assignment.files.items():
            if not name.endswith(".ipynb"):
                write_file(Path(folder, name), content)
        return {
            name: _trial(assignment, notebook, Path(folder))
            for name, notebook in notebooks.items()
            if notebook.source is not None
        }


def _trial(assignment: Assignment, known: KnownNotebook, files: Path) -> SolutionTrial:
    settings = assignment.settings
    try:
        return try_solution(
            known.source,
            {cell.name: cell.source for cell in known.cells.values() if cell.locked},
            secret=settings.secret,
            limits=limits_of(settings),
            files=files,
            helpers=files,
            unsafe=settings.unsafe,
        )
    except JudgeDied as error:
        return SolutionTrial(fault=NO_TRIAL.format(known.name, error))
