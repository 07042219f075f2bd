"""Has the judge grade an assignment's own solution, in a worker process, before it grades a class."""

from __future__ import annotations

from autograder.grading.submission.assignments import Assignment
from autograder.grading.submission.usual_steps import KnownNotebook, known_notebooks, limits_of
from autograder.grading.submission.worker import prepare
from autograder.judge import JudgeDied, try_solution
from autograder.notebooks.verdicts import SolutionTrial

NO_TRIAL = "The trial of the solution in {}.ipynb did not finish: {}. Its tests are judged outside."


def trials_of(assignment: Assignment) -> dict[str, SolutionTrial]:
    """The trial of each notebook that has a source, by name. Raises SandboxUnavailable."""
    prepare(assignment)
    notebooks = known_notebooks(assignment.rows, assignment.files)
    return {name: _trial(assignment, known) for name, known in notebooks.items() if known.source.notebook is not None}


def _trial(assignment: Assignment, known: KnownNotebook) -> SolutionTrial:
    settings = assignment.settings
    try:
        return try_solution(
            known.source,
            {cell.name: cell.source for cell in known.cells.values() if cell.locked},
            secret=settings.secret,
            limits=limits_of(settings),
            unsafe=settings.unsafe,
        )
    except JudgeDied as error:
        return SolutionTrial(fault=NO_TRIAL.format(known.name, error))
