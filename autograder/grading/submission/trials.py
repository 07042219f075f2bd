"""The trial of an assignment: the judge grades the assignment's own solution before it grades a class.

Its outcome depends only on the assignment and the grader, so it is kept in a file beside the waiting results.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from autograder.files import atomic_write
from autograder.grading.submission.assignments import Assignment
from autograder.notebooks.verdicts import SolutionTrial

FILE = "trials.json"


def failures(trials: Mapping[str, SolutionTrial]) -> list[str]:
    """The tests that the solution fails, a sentence each."""
    return [
        f"The solution in {notebook}.ipynb fails the test cell {cell!r}. {said}"
        for notebook, trial in trials.items()
        for cell, said in trial.failed.items()
    ]


def inside(trials: Mapping[str, SolutionTrial]) -> list[str]:
    """The tests that run in the submission's process, a sentence each, with the reason."""
    return [
        f"The test cell {cell!r} of {notebook}.ipynb is judged inside, because the solution fails it outside. {said}"
        for notebook, trial in trials.items()
        for cell, said in trial.inside.items()
    ]


def kept_trials(folder: Path, assignment: Assignment) -> dict[str, SolutionTrial] | None:
    """The trials that were kept for this very assignment, if there are any."""
    try:
        kept = json.loads((folder / FILE).read_text())
        if kept["fingerprint"] == assignment.fingerprint:
            return {name: SolutionTrial(**trial) for name, trial in kept["trials"].items()}
    except (OSError, ValueError, TypeError, KeyError):
        pass  # none yet, or damaged: the trial is repeated
    return None


def keep_trials(folder: Path, assignment: Assignment, trials: Mapping[str, SolutionTrial]) -> None:
    kept = {"fingerprint": assignment.fingerprint, "trials": {name: asdict(trial) for name, trial in trials.items()}}
    with atomic_write(folder / FILE) as draft:
        draft.write_text(json.dumps(kept))
