"""Which bug explains a student's wrong numbers: run each bug that applies on the same draws, and compare.

A bug is believed only if it gives the student's numbers in every draw of every failing expression, and none that differ
from the student's in the expressions that pass. One such bug is certain; a few are named together; otherwise silence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from autograder.bugs.bank import BUGS
from autograder.bugs.bug import Bug, Plant, Variant
from autograder.bugs.orders import inputs_of
from autograder.bugs.planting import DIALECTS, arithmetic, symbol
from autograder.checks.comparison import EPSILON, ROUNDINGS, within
from autograder.checks.engines import REFERENCE, Draw, Run, run_trusted
from autograder.checks.errors import LessonError
from autograder.checks.expected import Expected, expected_of_draws
from autograder.checks.inputs import Array
from autograder.checks.programs import Program, programs_of
from mini_autograd.function import AccumulateGrad, Function

MOST_RUNS = 1500  # of the reference, for a whole check; small expressions take about 0.1 ms each
LARGEST = 20_000  # numbers in one draw
MOST_NAMED = 3


@dataclass(frozen=True)
class Evidence:
    """One expression of a check: what was right, what the student's engine gave, and whether that passed."""

    program: Program
    expected: Sequence[Expected]
    runs: Sequence[Run]
    passed: bool

    @property
    def size(self) -> int:
        return max(sum(array.size for array in entry.draw.inputs) for entry in self.expected)


@dataclass(frozen=True)
class Suspect:
    """A bug, where it would sit, and the dialect of arithmetic; it explains what was seen so far."""

    bug: Bug
    variant: Variant
    dialect: int


@dataclass(frozen=True)
class Diagnosis:
    """`certain` if exactly one bug explains everything; `candidates` all that do; `operations` the rules it sits in."""

    certain: Bug | None = None
    candidates: tuple[Bug, ...] = ()
    operations: tuple[str, ...] = ()

    def sentence(self) -> str:
        """One sentence for the student; empty where nothing is known."""
        if self.certain is not None:
            return f"{self._place()}{self.certain.explanation}."
        return ("one of these: " + "; or ".join(bug.explanation for bug in self.candidates) + ".") * bool(
            self.candidates
        )

    def hint(self) -> str:
        return "" if self.certain is None else self.certain.hint

    def _place(self) -> str:
        names = [f"`{symbol(operation)}`" for operation in self.operations]
        if not names or len(names) > MOST_NAMED:
            return ""
        return f"in the rule{'s' * (len(names) > 1)} of {' and '.join(names)} "


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
    """The diagnosis of a whole check. Says nothing when it would take too long."""
    failing = [entry for entry in evidence if not entry.passed and entry.runs]
    if not failing or max(entry.size for entry in evidence) > LARGEST:
        return Diagnosis()
    search = Search([entry for entry in evidence if entry.passed and entry.runs])
    found: list[list[Suspect]] = []
    bugs = BUGS
    try:
        for entry in sorted(failing, key=lambda entry: len(operations_in(entry.program, entry.expected[0].draw))):
            found.append(search.suspects(entry, bugs))
            bugs = tuple(bug for bug in bugs if any(suspect.bug is bug for suspect in found[-1]))
    except OverBudget:
        return Diagnosis()
    return _diagnosis(bugs, found)


def _diagnosis(bugs: tuple[Bug, ...], found: Sequence[Sequence[Suspect]]) -> Diagnosis:
    """What to say about the bugs that explain all failing expressions."""
    if len(bugs) != 1:
        return Diagnosis(None, bugs if len(bugs) <= MOST_NAMED else ())
    places = [_places([suspect for suspect in suspects if suspect.bug is bugs[0]]) for suspects in found]
    common = sorted(set.intersection(*places))
    return Diagnosis(bugs[0], bugs, tuple(common) if len(common) == 1 else ())


def _places(suspects: Sequence[Suspect]) -> set[str]:
    """The single operations that explain an expression, by the simplest arithmetic that does."""
    simplest = min(suspect.dialect for suspect in suspects)
    operations = [suspect.variant.operations for suspect in suspects if suspect.dialect == simplest]
    return {names[0] for names in operations if len(names) == 1}


class OverBudget(Exception):  # noqa: N818
    """A diagnosis needs more runs than it may take."""


class Search:
    """Looks for bugs, within a number of runs of the reference that does not depend on the machine."""

    def __init__(self, passing: Sequence[Evidence]) -> None:
        self.passing = passing
        self.runs = 0

    def suspects(self, entry: Evidence, bugs: Sequence[Bug]) -> list[Suspect]:
        """Every way of planting one of the bugs that gives the student's numbers and spares what passed."""
        found: list[Suspect] = []
        seen: list[list[str]] = []
        for dialect in range(len(DIALECTS)):
            with arithmetic(dialect):
                present = operations_in(entry.program, entry.expected[0].draw)
            if present in seen:
                continue
            seen.append(present)
            suspects = [Suspect(bug, variant, dialect) for bug in bugs for variant in bug.variants(present)]
            found += [suspect for suspect in suspects if self.explains(suspect, entry)]
        return [suspect for suspect in found if all(self.spares(suspect, entry) for entry in self.passing)]

    def spares(self, suspect: Suspect, entry: Evidence) -> bool:
        """Whether an expression that passed would have passed with this bug, in some dialect."""
        if suspect.variant.operations:
            with arithmetic(len(DIALECTS) - 1):
                composed = operations_in(entry.program, entry.expected[0].draw)
            direct = operations_in(entry.program, entry.expected[0].draw)
            if not set(suspect.variant.operations) & {*direct, *composed}:
                return True
        return any(self.explains(replace(suspect, dialect=dialect), entry) for dialect in range(len(DIALECTS)))

    def explains(self, suspect: Suspect, entry: Evidence) -> bool:
        """Whether the reference with this bug gives the student's numbers in every draw."""
        draws = zip(entry.expected, entry.runs, strict=True)
        return all(self._explains_draw(suspect, entry.program, right, run) for right, run in draws)

    def _explains_draw(self, suspect: Suspect, program: Program, right: Expected, run: Run) -> bool:
        """Whether a plant explains the first gradients, and that or another one the second: an engine whose result
        depends on the order of its visits may choose another order for its second graph."""
        unexplained = {False, True} if right.draw.again is not None and run.again is not None else {False}
        for plant in suspect.variant.plants:
            unexplained -= self._explained(suspect.dialect, plant, program, right, run)
            if not unexplained:
                return True
        return False

    def _explained(self, dialect: int, plant: Plant, program: Program, right: Expected, run: Run) -> set[bool]:
        """Which gradients a plant explains: the first (False), those after the second call (True)."""
        self.runs += 1
        if self.runs > MOST_RUNS:
            raise OverBudget
        try:
            with arithmetic(dialect), plant():
                (planted,) = run_trusted(REFERENCE, program, [right.draw])
        except LessonError:
            return set()
        same = [
            _same(students, wrong, float(np.max(allowed)))
            for students, wrong, allowed in zip(run.dense(), planted.dense(), right.tolerance.gradients, strict=False)
        ]
        count = len(run.gradients)
        return {second for second in (False, True) if all(same[count:] if second else same[:count])}


def _same(students: Array, planted: Array, allowed: float) -> bool:
    """Whether numbers agree within what is allowed, widened where the wrong gradient is larger than the right one."""
    largest = float(np.max(np.abs(planted), initial=0.0))
    return within(students, planted, np.asarray(4 * max(allowed, ROUNDINGS * EPSILON * largest)))


def operations_in(program: Program, draw: Draw) -> list[str]:
    """The class names of the operations in a program's graph."""
    output = program.function(*(REFERENCE(array, requires_grad=True) for array in draw.inputs))
    found: dict[Function, None] = {}
    stack = [output.grad_fn]
    while stack:
        node = stack.pop()
        if node is not None and node not in found and not isinstance(node, AccumulateGrad):
            found[node] = None
            stack += inputs_of(node)
    return sorted({type(node).__name__ for node in found})
