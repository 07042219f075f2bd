"""How strong a lesson's checks are: every bug of the bank that applies to an exercise must cost points there.

A solved notebook is judged, and every gradient check that runs on the way is kept with what it expected. Then each bug
is planted into the reference, which stands in for a student with that bug, and the same checks look at its numbers.

A bug in a rule applies to an exercise if an operation with that rule runs in one of its expressions, on values where
the bug changes the vector-Jacobian product of that operation for a random cotangent. How the gradient gets to that
operation, and where it goes from there, is up to the exercise: a check whose cotangent is always 1 cannot see what the
bug does, and this module finds such checks. If an expression only uses an operation, and another exercise of the lesson
asks for it, that exercise has to check it. A bug of the backward pass applies to a lesson whose students write
`backward`, and has to cost points in one of its exercises.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import mini_autograd as ma
from autograder.bugs.bank import BUGS
from autograder.bugs.bug import Bug, Plant, Variant
from autograder.runs import engine_protocol
from autograder.runs.answers import compare
from autograder.runs.engines import REFERENCE
from autograder.runs.expected import Expected, measured
from autograder.runs.methods import reference_methods
from autograder.runs.programs import Program
from autograder.runs.reference_patch import OPERATIONS, Call, patched, symbol

DIFFERENT = 1e-6
"""Relative: how far the vector-Jacobian product of an operation must move for a bug to count as present."""


@dataclass(frozen=True)
class AskedProgram:
    """One expression of a check in a test cell, and what was expected of it on each draw."""

    cell: str
    program: Program
    expected: Sequence[Expected]


@dataclass(frozen=True)
class Survivor:
    """A bug that costs no points where it should."""

    cell: str
    bug: Bug
    operation: str = ""

    def __str__(self) -> str:
        place = f" in `{symbol(self.operation)}`" if self.operation else ""
        where = self.cell or "every exercise"
        return f"{where}: {self.bug.name}{place} costs nothing ({self.bug.explanation})"


@dataclass
class Strength:
    """What was found: how many pairs of bug and operation apply, and which of them survive."""

    caught: set[tuple[str, str]] = field(default_factory=set)  # names of bug and operation
    survived: list[Survivor] = field(default_factory=list)

    @property
    def survivors(self) -> list[Survivor]:
        """The bugs that cost points in no exercise."""
        return [one for one in self.survived if (one.bug.name, one.operation) not in self.caught]

    @property
    def applied(self) -> int:
        return len(self.caught | {(one.bug.name, one.operation) for one in self.survived})

    @property
    def score(self) -> float:
        """The mutation score: of the pairs that apply, the share that costs points."""
        return 1.0 if not self.applied else 1.0 - len(self.survivors) / self.applied


def strength_of(checks: Sequence[AskedProgram], writes_backward: bool) -> Strength:
    """Plant every bug that applies into the reference, and let the checks of each test cell look for it."""
    found = Strength()
    checks = [replace(check, expected=measured(check.program, check.expected)) for check in checks]
    cells: dict[str, list[AskedProgram]] = {}
    for check in checks:
        cells.setdefault(check.cell, []).append(check)
    with reference_methods(), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        graphs = {id(check): calls_in(check) for check in checks}
        for cell, its_checks in cells.items():
            for bug in BUGS:
                if bug.engine is None:
                    _rule_bug(found, cell, its_checks, graphs, bug)
        if writes_backward:
            for bug in BUGS:
                if bug.engine is not None:
                    _engine_bug(found, checks, graphs, bug)
    return found


def _rule_bug(
    found: Strength, cell: str, checks: Sequence[AskedProgram], graphs: Mapping[int, dict[str, list[Call]]], bug: Bug
) -> None:
    for operation in bug.operations:
        having = [check for check in checks if operation in graphs[id(check)]]
        calls = [call for check in having for call in graphs[id(check)][operation]]
        applying = [v for v in bug.variants([operation]) if any(_changes(operation, call, v) for call in calls)]
        if not applying:
            continue
        if all(_noticed(having, variant) for variant in applying):
            found.caught.add((bug.name, operation))
        else:
            found.survived.append(Survivor(cell, bug, operation))


def _engine_bug(
    found: Strength, checks: Sequence[AskedProgram], graphs: Mapping[int, dict[str, list[Call]]], bug: Bug
) -> None:
    present = sorted({operation for check in checks for operation in graphs[id(check)]})
    variants = bug.variants(present)
    if not any(_shows_itself(variant) for variant in variants):
        return
    if any(_noticed(checks, variant) for variant in variants if _shows_itself(variant)):
        found.caught.add((bug.name, ""))
    else:
        found.survived.append(Survivor("", bug))


PROBES: tuple[Any, ...] = (
    lambda a, b: a * b + a * a + b,
    lambda a, b: (a + b) * (a + b) + (a + b) + a,
)
"""Small graphs with fan-out and a diamond: a bug in a backward pass shows in one of them."""


def _shows_itself(variant: Variant) -> bool:
    """Whether a bug of the backward pass changes the gradients of a small graph."""
    return any(_gradients_of_probe(probe, variant.plants[0]) != _gradients_of_probe(probe, None) for probe in PROBES)


def _gradients_of_probe(probe: Any, plant: Plant | None) -> Any:
    leaves = [REFERENCE(np.array(number), requires_grad=True) for number in (1.25, -0.75)]
    try:
        with nullcontext() if plant is None else plant():
            for _ in range(2):
                REFERENCE.start_backward(probe(*leaves), np.array(0.5))
    except Exception as error:
        return type(error).__name__
    return [None if leaf.grad is None else leaf.grad.tolist() for leaf in leaves]


def _noticed(checks: Sequence[AskedProgram], variant: Variant) -> bool:
    """Whether the checks notice the bug in the reference, whichever of the variant's plants is used."""
    return all(any(_wrong(check, plant) for check in checks) for plant in variant.plants)


def _wrong(check: AskedProgram, plant: Plant) -> bool:
    """Whether a check finds something wrong on a reference with a bug; quickly, if its first draw shows it."""
    first = check.expected[:1]
    return _wrong_on(check, first, plant) or (len(check.expected) > 1 and _wrong_on(check, check.expected, plant))


def _wrong_on(check: AskedProgram, expected: Sequence[Expected], plant: Plant) -> bool:
    sent = [{"function": check.program.function, "draws": [entry.draw.sent() for entry in expected]}]
    with plant():
        (answer,) = engine_protocol.run_programs(REFERENCE, sent)
    return compare(answer, expected, check.program.arguments).problem is not None


def calls_in(check: AskedProgram) -> dict[str, list[Call]]:
    """The calls of each operation while the expression runs on its first draw."""
    calls: dict[str, list[Call]] = {}
    with _recorded(calls):
        check.program.function(*(REFERENCE(array, requires_grad=True) for array in check.expected[0].draw.inputs))
    return calls


@contextmanager
def _recorded(calls: dict[str, list[Call]]) -> Iterator[None]:
    """Inside the block, every operation of the reference records its calls."""

    def noting(name: str, right: Any) -> Any:
        def forward(ctx: Any, *inputs: Any, **options: Any) -> Any:
            output = right(ctx, *inputs, **options)
            calls.setdefault(name, []).append(Call(inputs, options, output))
            return output

        return staticmethod(forward)

    contexts = [patched(op, {"forward": noting(name, op.forward)}) for name, op in OPERATIONS.items()]
    entered = []
    try:
        for context in contexts:
            context.__enter__()
            entered.append(context)
        yield
    finally:
        for context in reversed(entered):
            context.__exit__(None, None, None)


def _changes(operation: str, call: Call, variant: Variant) -> bool:
    """Whether the bug changes the vector-Jacobian product of this call, for a random cotangent."""
    right = _products(operation, call, None)
    if right is None:
        return False
    for plant in variant.plants:
        wrong = _products(operation, call, plant)
        if wrong is not None and all(map(_equal, right, wrong)):
            return False
    return True


def _products(operation: str, call: Call, plant: Plant | None) -> list[Any] | None:
    """The gradients of a call's inputs for a random cotangent; None if something raises."""
    leaves = [_leaf(x) for x in call.inputs]
    tracked = [leaf for leaf in leaves if isinstance(leaf, ma.Tensor) and leaf.requires_grad]
    try:
        with nullcontext() if plant is None else plant():
            output = OPERATIONS[operation].apply(*leaves, **call.options)
            seed = int.from_bytes(hashlib.sha256(operation.encode()).digest()[:4], "big")
            cotangent = np.random.default_rng(seed).uniform(0.5, 2.0, output.shape)
            REFERENCE.start_backward(output, cotangent)
            return [None if leaf.grad is None else np.array(leaf.grad.array) for leaf in tracked]
    except Exception:
        return None


def _leaf(x: Any) -> Any:
    floating = getattr(getattr(x, "dtype", None), "kind", "") == "f"
    return REFERENCE(np.array(x), requires_grad=True) if floating else x


def _equal(right: Any, wrong: Any) -> bool:
    if right is None or wrong is None:
        return right is wrong
    if right.shape != wrong.shape:
        return False
    return bool(np.allclose(right, wrong, rtol=DIFFERENT, atol=DIFFERENT * (1 + np.max(np.abs(right), initial=0.0))))
