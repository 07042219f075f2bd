"""Which bug explains a student's wrong numbers: run each bug that applies on the same draws, and compare.

A bug counts only if it gives the student's numbers in every draw of every failing expression, and does not contradict
them in the expressions that pass. A single such bug is certain, unless the expressions use operations that no bug can
sit in, such as writes through views. A few are named together. If there is none, nothing is said.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from autograder.bugs.bank import BUGS
from autograder.bugs.bug import Bug
from autograder.bugs.search import Search, Suspect, consistent_with_passing, suspects_in
from autograder.runs.engines import Draw, Run
from autograder.runs.expected import expected_of_draws
from autograder.runs.inputs import Array
from autograder.runs.methods import reference_methods
from autograder.runs.programs import Program, programs_of
from autograder.runs.reference_patch import OPERATIONS
from autograder.runs.replay import Evidence, OverBudget

__all__ = ["Diagnosis", "diagnose", "diagnose_all"]

LARGEST = 20_000  # numbers in one draw
MOST_NAMED = 3


@dataclass(frozen=True)
class Diagnosis:
    """The explanation of a student's numbers.

    `certain`: the one bug that explains them. `candidates`: all that do, the likeliest first. `operations`: the rules
    that the certain bug sits in.
    """

    certain: Bug | None = None
    candidates: tuple[Bug, ...] = ()
    operations: tuple[str, ...] = ()

    def sentence(self) -> str:
        """One sentence for the student; empty if nothing is known."""
        if self.certain is not None:
            return f"{self.certain.sentence(self.operations)}."
        texts = [bug.explanation for bug in self.candidates]
        if len(texts) == 1:  # it fits, but an exception alone proves nothing
            return f"{texts[0]}. This fits, but it is not certain."
        return f"one of these: {'; or '.join(texts)}." if texts else ""

    def hint(self) -> str:
        return "" if self.certain is None else self.certain.hint


def diagnose(
    program: Any,
    inputs: Sequence[Sequence[Array]],
    cotangents: Sequence[Array],
    student_gradients: Sequence[Sequence[Array]],
) -> Diagnosis:
    """Diagnose one expression over several draws: `inputs[i]` and `cotangents[i]` gave `student_gradients[i]`."""
    if not isinstance(program, Program):
        (program,) = programs_of(program, len(inputs[0]))
    draws = [
        Draw(tuple(np.asarray(array, dtype=np.float64) for array in arrays), np.asarray(cotangent, dtype=np.float64))
        for arrays, cotangent in zip(inputs, cotangents, strict=True)
    ]
    expected = expected_of_draws(program, draws)
    runs = [
        Run(right.reference.value, tuple(np.asarray(g, dtype=np.float64) for g in gradients))
        for right, gradients in zip(expected, student_gradients, strict=True)
    ]
    right = all(e.tolerance.accepts(e.reference, run) for e, run in zip(expected, runs, strict=True))
    return diagnose_all([Evidence(program, expected, runs, passed=right)])


def diagnose_all(evidence: Sequence[Evidence]) -> Diagnosis:
    """The diagnosis of a whole check; empty if it would take too long."""
    failing = [entry for entry in evidence if not entry.passed and entry.usable]
    if not failing or max(entry.size for entry in evidence) > LARGEST:
        return Diagnosis()
    passing = [entry for entry in evidence if entry.passed and entry.runs]
    search = Search()
    with reference_methods(), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        failing.sort(key=lambda entry: len(search.graph(entry, 0).operations))
        try:
            bugs, found = _single(search, failing, passing)
            diagnosis = _diagnosis(bugs, found, failing)
            known = all(name in OPERATIONS for entry in failing for name in search.graph(entry, 0).operations)
            sure = known and (diagnosis.certain is None or _is_steady(search, diagnosis.certain, found, failing))
            return diagnosis if sure else replace(diagnosis, certain=None, operations=())
        except OverBudget:
            return Diagnosis()


def _single(
    search: Search, failing: Sequence[Evidence], passing: Sequence[Evidence]
) -> tuple[tuple[Bug, ...], list[list[Suspect]]]:
    """The bugs that each explain everything, and where they would sit in each failing expression."""
    found: list[list[Suspect]] = []
    bugs = BUGS
    for entry in failing:
        found.append(consistent_with_passing(search, suspects_in(search, entry, bugs), entry, passing))
        bugs = tuple(bug for bug in bugs if any(suspect.bug is bug for suspect in found[-1]))
    spoken = {bug: _decompositions(bug, found) for bug in bugs}
    likely = [bug for bug in bugs if spoken[bug]]
    return tuple(sorted(likely, key=lambda bug: (min(spoken[bug]), len(bug.operations)))), found


def _decompositions(bug: Bug, found: Sequence[Sequence[Suspect]]) -> list[int]:
    """The operator decompositions in which a bug explains every expression: an engine has only one."""
    spoken = [
        {decomposition for s in suspects if s.bug is bug for decomposition in s.decompositions} for suspects in found
    ]
    return sorted(set.intersection(*spoken))


def _diagnosis(bugs: tuple[Bug, ...], found: Sequence[Sequence[Suspect]], failing: Sequence[Evidence]) -> Diagnosis:
    """What to say about the bugs that explain all failing expressions."""
    if not 0 < len(bugs) <= MOST_NAMED:
        return Diagnosis()
    if len(bugs) > 1 or not any(entry.runs for entry in failing):  # an exception alone proves nothing
        return Diagnosis(None, bugs)
    if not any(suspect.decomposition == 0 for suspects in found for suspect in suspects if suspect.bug is bugs[0]):
        return Diagnosis(None, bugs)  # it fits only if, say, `/` is made of `**`, and nothing shows that it is
    places = [_places([suspect for suspect in suspects if suspect.bug is bugs[0]]) for suspects in found]
    common = sorted(set.intersection(*places))
    return Diagnosis(bugs[0], bugs, tuple(common) if len(common) == 1 else ())


def _is_steady(search: Search, bug: Bug, found: Sequence[Sequence[Suspect]], failing: Sequence[Evidence]) -> bool:
    """Whether one form of a bug explains all draws of a failing expression, in each of them."""
    return all(
        any(
            search.replays.explains_with_one(entry, suspect.decomposition, suspect.variant.plants)
            for suspect in suspects
            if suspect.bug is bug
        )
        for entry, suspects in zip(failing, found, strict=True)
    )


def _places(suspects: Sequence[Suspect]) -> set[str]:
    """The operations that each explain an expression alone, in the simplest decomposition that explains it."""
    simplest = min(suspect.decomposition for suspect in suspects)
    operations = [suspect.variant.operations for suspect in suspects if suspect.decomposition == simplest]
    return {names[0] for names in operations if len(names) == 1}
