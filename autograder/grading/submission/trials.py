"""The trial of an assignment: the judge grades the assignment's own solution before it grades a class.

Its outcome depends only on the assignment and the grader, so it is kept in a file beside the waiting results.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from autograder.files import atomic_write
from autograder.grading.submission.assignments import Assignment
from autograder.notebooks.verdicts import SolutionTrial

FILE = "trials.json"
STOPPED = re.compile(r"The cell `[^`]*` .*?\.(?= )", re.DOTALL)  # an answer, and how it ended
DETAILS = re.compile(r" It failed at `[^`]*`\.|'[^']*'")


def failures(trials: Mapping[str, SolutionTrial]) -> list[str]:
    """The tests that the solution fails, with the reason: a sentence for each kind of reason."""
    return [
        f"The solution in {notebook}.ipynb fails the {_named(cells)}. {said}"
        for notebook, trial in trials.items()
        for cells, said in by_kind(trial.failed)
    ]


def inside(trials: Mapping[str, SolutionTrial]) -> list[str]:
    """The tests that run in the submission's process, with the reason: a sentence for each kind of reason."""
    return [
        f"The {_named(cells)} of {notebook}.ipynb {'is' if len(cells) == 1 else 'are'} judged inside, because "
        f"the solution fails {'it' if len(cells) == 1 else 'them'} outside. {said}"
        for notebook, trial in trials.items()
        for cells, said in by_kind(trial.inside)
    ]


def by_kind(said: Mapping[str, str]) -> list[tuple[list[str], str]]:
    """Test cells by what is said about them, and that. Cells whose reasons are of one kind stand together: one answer
    stopped before all of them, or the same error names other things.
    """
    kinds: dict[str, tuple[list[str], str]] = {}
    for cell, text in said.items():
        stopped = STOPPED.match(text)
        kind = stopped[0] if stopped else DETAILS.sub("", text)
        kinds.setdefault(kind, ([], text))[0].append(cell)
    return [(cells, text if len(cells) == 1 else f"In {cells[0]!r}: {text}") for cells, text in kinds.values()]


def _named(cells: list[str]) -> str:
    *most, last = map(repr, cells)
    return f"test cells {', '.join(most)} and {last}" if most else f"test cell {last}"


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
