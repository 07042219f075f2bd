"""Which bug explains a student's wrong numbers: run each bug that applies on the same draws, and compare.

A bug is believed only if it gives the student's numbers in every draw of every failing expression, and none that differ
from the student's in the expressions that pass. One such bug is certain; a few are named together; otherwise silence.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from autograder.bugs.bank import BUGS
from autograder.bugs.bug import Bug, Plant, Variant
from autograder.bugs.orders import inputs_of
from autograder.bugs.planting import composed_arithmetic, symbol
from autograder.checks.comparison import EPSILON, ROUNDINGS, within
from autograder.checks.engines import REFERENCE, Draw, Run, run_trusted
from autograder.checks.errors import LessonError
from autograder.checks.expected import Expected, expected_of_draws
from autograder.checks.inputs import Array
from autograder.checks.programs import Program, programs_of
from mini_autograd.function import AccumulateGrad, Function

BUDGET = 0.25  # seconds for a whole check
MOST_NAMED = 3


@dataclass(frozen=True)
class Evidence:
    """One expression of a check: what was right, what the student's engine gave, and whether that passed."""

    program: Program
    expected: Sequence[Expected]
    runs: Sequence[Run]
    passed: bool


@dataclass(frozen=True)
class Suspect:
    """A bug, where it would sit, and the arithmetic it was found with; it explains what was seen so far."""

    bug: Bug
    variant: Variant
    arithmetic: Callable[[], AbstractContextManager[None]]


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
    return diagnose_all([Evidence(program, expected, runs, passed=False)])


def diagnose_all(evidence: Sequence[Evidence]) -> Diagnosis:
    """The diagnosis of a whole check. Stops and says nothing when it would take too long."""
    failing = [entry for entry in evidence if not entry.passed and entry.runs]
    if not failing:
        return Diagnosis()
    deadline = time.perf_counter() + BUDGET
    passing = [entry for entry in evidence if entry.passed and entry.runs]
    try:
        found = [_not_refuted(_suspects(entry, deadline), passing, deadline) for entry in failing]
    except TimeoutError:
        return Diagnosis()
    return _common(found)


def _common(found: Sequence[Sequence[Suspect]]) -> Diagnosis:
    """The bugs that explain all failing expressions, and the rules in which they sit."""
    names = [{suspect.bug.name for suspect in suspects} for suspects in found]
    shared = set.intersection(*names)
    bugs = tuple(bug for bug in BUGS if bug.name in shared)
    if len(bugs) != 1:
        return Diagnosis(None, bugs if len(bugs) <= MOST_NAMED else ())
    per_expression = [
        [suspect.variant.operations for suspect in suspects if suspect.bug is bugs[0]] for suspects in found
    ]
    places = [min(operations, key=len) for operations in per_expression if len(set(operations)) == 1 or operations]
    everywhere = sorted({operation for operations in places for operation in operations})
    unambiguous = all(len(set(operations)) == 1 for operations in per_expression)
    return Diagnosis(bugs[0], bugs, tuple(everywhere) if unambiguous else ())


def _suspects(entry: Evidence, deadline: float) -> list[Suspect]:
    """Every way of planting a bug that gives the student's numbers in all draws."""
    found = []
    for arithmetic in (nullcontext, composed_arithmetic):
        with arithmetic():
            present = operations_in(entry.program, entry.expected[0].draw)
        if arithmetic is composed_arithmetic and not {"Subtract", "Negate", "Divide"} & set(_plain_operations(entry)):
            break
        for bug in BUGS:
            for variant in bug.variants(present):
                suspect = Suspect(bug, variant, arithmetic)
                if time.perf_counter() > deadline:
                    raise TimeoutError
                if _explains(suspect, entry):
                    found.append(suspect)
    return found


def _plain_operations(entry: Evidence) -> list[str]:
    return operations_in(entry.program, entry.expected[0].draw)


def _not_refuted(suspects: Sequence[Suspect], passing: Sequence[Evidence], deadline: float) -> list[Suspect]:
    """Those suspects whose bug would not have made an expression fail that passed."""
    left = []
    for suspect in suspects:
        if time.perf_counter() > deadline:
            raise TimeoutError
        if all(_explains(suspect, entry) for entry in passing):
            left.append(suspect)
    return left


def _explains(suspect: Suspect, entry: Evidence) -> bool:
    """Whether the reference with this bug gives the student's numbers in every draw."""
    return all(
        any(_same(suspect, plant, entry.program, right, run) for plant in suspect.variant.plants)
        for right, run in zip(entry.expected, entry.runs, strict=True)
    )


def _same(suspect: Suspect, plant: Plant, program: Program, right: Expected, run: Run) -> bool:
    try:
        with suspect.arithmetic(), plant():
            (planted,) = run_trusted(REFERENCE, program, [right.draw])
    except LessonError:
        return False
    if planted.again is None or run.again is None:
        planted, run = Run(planted.value, planted.gradients), Run(run.value, run.gradients)
    for wrong, students, allowed in zip(planted.dense(), run.dense(), right.tolerance.gradients, strict=False):
        bound = 4 * np.maximum(float(np.max(allowed)), ROUNDINGS * EPSILON * float(np.max(np.abs(wrong), initial=0.0)))
        if not within(students, wrong, bound):
            return False
    return True


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
