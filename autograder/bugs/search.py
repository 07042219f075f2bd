"""Runs bugs on the draws of an expression and compares what they give with a student's numbers, within a budget.

The budget counts runs of the reference, so what is found does not depend on how fast the machine is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import Any

import numpy as np

from autograder.bugs.bug import Bug, Plant, Variant
from autograder.bugs.orders import Order, distinct
from autograder.runs.comparison import EPSILON, ROUNDINGS, within
from autograder.runs.engines import REFERENCE, Draw, Run
from autograder.runs.expected import Expected
from autograder.runs.inputs import Array
from autograder.runs.programs import Program
from autograder.runs.reference_patch import OPERATOR_DECOMPOSITIONS, arithmetic
from mini_autograd.graph.backward import reachable
from mini_autograd.graph.function import AccumulateGrad, Function, GraphRoot

NARROW = 1e-5  # relative: how far gradients in float32 may differ by rounding
MOST_RUNS = 1500  # of the reference, for a whole check; small expressions take about 0.2 ms each


@dataclass(frozen=True)
class Evidence:
    """One expression of a check: what was right, what the student's engine gave, and whether that passed.

    `raised`: after these runs the backward pass of the next draw raised something.
    """

    program: Program
    expected: Sequence[Expected]
    runs: Sequence[Run]
    passed: bool
    raised: bool = False

    @property
    def usable(self) -> bool:
        return bool(self.runs) or self.raised

    @property
    def quickest(self) -> int:
        """The draw to begin with: one without a second backward call, if there is any."""
        plain = [n for n, _ in enumerate(self.runs) if self.expected[n].draw.again is None]
        return plain[0] if plain else 0

    @property
    def size(self) -> int:
        return max(sum(array.size for array in entry.draw.inputs) for entry in self.expected)


@dataclass(frozen=True)
class Suspect:
    """A bug, where it would sit, and the first operator decomposition in which it explains an expression;
    `decompositions` are all in which it does, and leaves the expressions that passed as they are."""

    bug: Bug
    variant: Variant
    decomposition: int
    decompositions: tuple[int, ...] = ()


class OverBudget(Exception):  # noqa: N818
    """A diagnosis needs more runs than it may take."""


@dataclass
class Search:
    """Tells whether bugs explain the numbers of a student, and counts the runs that this takes."""

    runs: int = 0
    known: dict[Any, Any] = field(default_factory=dict)

    def operations(self, entry: Evidence, decomposition: int) -> list[str]:
        """The operations in the graph of an expression, in that operator decomposition."""

        def found() -> list[str]:
            with arithmetic(decomposition):
                return operations_in(entry.program, entry.expected[0].draw)

        return self._once(("operations", id(entry), decomposition), found)

    def variants(self, entry: Evidence, decomposition: int, bug: Bug, partial: bool = False) -> list[Variant]:
        """The ways of planting a bug in an expression, the same ones at every call; each order of visits once."""

        def found() -> list[Variant]:
            present = self.operations(entry, decomposition)
            variants = bug.partial_variants(present) if partial else bug.variants(present)
            if all(array.ndim == 0 for right in entry.expected for array in right.draw.inputs):
                variants = [variant for variant in variants if not variant.arrays_only]
            return [self.with_distinct_orders(entry, decomposition, variant) for variant in variants]

        return self._once(("variants", id(entry), decomposition, bug, partial), found)

    def with_distinct_orders(self, entry: Evidence, decomposition: int, variant: Variant) -> Variant:
        if variant.ordered is None:
            return variant

        def found() -> tuple[Order, ...]:
            with arithmetic(decomposition):
                return distinct(root_of(entry.program, entry.expected[0].draw), variant.orders)

        kept = self._once(("orders", id(entry), decomposition, variant.orders), found)
        return replace(variant, plants=tuple(map(variant.ordered, kept)))

    def _once(self, key: Any, found: Callable[[], Any]) -> Any:
        if key not in self.known:
            self.known[key] = found()
        return self.known[key]

    def decompositions(self, entry: Evidence) -> Iterator[int]:
        """The decompositions in which an expression consists of different operations."""
        yield from dict.fromkeys(
            self.same_decomposition(entry, decomposition) for decomposition in range(len(OPERATOR_DECOMPOSITIONS))
        )

    def same_decomposition(self, entry: Evidence, decomposition: int) -> int:
        """The first decomposition in which an expression consists of the same operations."""
        present = self.operations(entry, decomposition)
        return next(first for first in range(len(OPERATOR_DECOMPOSITIONS)) if self.operations(entry, first) == present)

    def explains(self, entry: Evidence, decomposition: int, plants: Sequence[Plant]) -> bool:
        """Whether the reference with a bug gives the student's numbers in every draw.

        Of the plants one must explain the first gradients of a draw, and that or another one those after the second
        call: an engine whose result depends on the order of its visits may choose another order for another graph.
        """
        first = entry.quickest
        order = [first, *(n for n in range(len(entry.runs)) if n != first)] if entry.runs else []
        if not all(self._explains_draw(entry, n, decomposition, plants) for n in order):
            return False
        if not entry.raised:
            return True
        return any(_raises(self.planted(entry, len(entry.runs), decomposition, plant)) for plant in plants)

    def _explains_draw(self, entry: Evidence, number: int, decomposition: int, plants: Sequence[Plant]) -> bool:
        run, right = entry.runs[number], entry.expected[number]
        unexplained = {False, True} if right.draw.again is not None and run.again is not None else {False}
        for plant in plants:
            planted = self.planted(entry, number, decomposition, plant)
            if planted is not None:
                unexplained -= _explained(run, planted, right, self.allowed(entry, number))
            if not unexplained:
                return True
        return False

    def allowed(self, entry: Evidence, number: int) -> list[float]:
        """What is allowed for each gradient of a draw, at its largest."""
        gradients = entry.expected[number].tolerance.gradients
        return self._once(("allowed", id(entry), number), lambda: [float(np.max(array)) for array in gradients])

    def planted(self, entry: Evidence, number: int, decomposition: int, plant: Plant) -> Run | None:
        """A draw on the reference with a bug; None where something raises. Of the first draw this is kept."""
        if number == entry.quickest:
            return self._once(
                ("run", id(entry), decomposition, plant), lambda: self._planted(entry, number, decomposition, plant)
            )
        return self._planted(entry, number, decomposition, plant)

    def _planted(self, entry: Evidence, number: int, decomposition: int, plant: Plant) -> Run | None:
        self.runs += 1
        if self.runs > MOST_RUNS:
            raise OverBudget
        try:
            with arithmetic(decomposition), plant():
                return _run(entry.program, entry.expected[number].draw)
        except Exception:
            return None


def suspects_in(search: Search, entry: Evidence, bugs: Sequence[Bug]) -> list[Suspect]:
    """Every way of planting one of the bugs that gives the student's numbers: first in one rule or in all; where
    nothing is found, in several."""
    for partial in (False, True):
        found = [
            Suspect(bug, variant, decomposition)
            for decomposition in search.decompositions(entry)
            for bug in bugs
            for variant in search.variants(entry, decomposition, bug, partial)
            if search.explains(entry, decomposition, variant.plants)
        ]
        if found:
            return found
    return []


def consistent_with_passing(
    search: Search, suspects: Sequence[Suspect], entry: Evidence, passing: Sequence[Evidence]
) -> list[Suspect]:
    """The suspects of a failing expression that leave those that passed as they are, with the decompositions in which
    they do: in the same decomposition the bug must explain the one and be invisible in the others."""
    found = []
    for suspect in suspects:
        spoken = [
            d
            for d in range(len(OPERATOR_DECOMPOSITIONS))
            if search.same_decomposition(entry, d) == suspect.decomposition
        ]
        kept = [d for d in spoken if all(_spares(search, suspect.variant, other, d) for other in passing)]
        if kept:
            found.append(replace(suspect, decompositions=tuple(kept)))
    return found


def _spares(search: Search, variant: Variant, entry: Evidence, decomposition: int) -> bool:
    """Whether an expression that passed would have passed with this bug, in that decomposition."""
    decomposition = search.same_decomposition(entry, decomposition)
    if variant.operations and not set(variant.operations) & set(search.operations(entry, decomposition)):
        return True
    return search.explains(entry, decomposition, search.with_distinct_orders(entry, decomposition, variant).plants)


def _run(program: Program, draw: Draw) -> Run:
    """What `run_trusted` does for one draw, without the checks that only an unknown engine needs."""
    leaves = [REFERENCE(array, requires_grad=True) for array in draw.inputs]
    output = program.function(*leaves)
    value = np.asarray(output.array)
    REFERENCE.start_backward(output, draw.seed(value.shape))
    gradients = [_gradient(leaf) for leaf in leaves]
    after = [(n, np.array(leaf.array)) for n, leaf in enumerate(leaves)]
    changed = tuple((n, array) for n, array in after if not np.array_equal(array, draw.inputs[n]))
    again = None
    if draw.again is not None:
        REFERENCE.start_backward(program.function(*leaves), draw.again)
        again = tuple(_gradient(leaf) for leaf in leaves)
    narrowed = any(g is not None and g.dtype.itemsize < 8 for g in gradients)
    return Run(value, tuple(gradients), again, changed, narrowed)


def _raises(planted: Run | None) -> bool:
    """Whether an engine with that bug would raise: where NumPy gives nan, Python's `math` raises."""
    return planted is None or not all(np.all(np.isfinite(gradient)) for gradient in planted.dense())


def _gradient(leaf: Any) -> Any:
    return None if leaf.grad is None else np.array(leaf.grad.array)


def _explained(run: Run, planted: Run, right: Expected, allowed: Sequence[float]) -> set[bool]:
    """Which gradients a planted run explains: the first (False), those after the second call (True)."""
    if not same_effects(planted, run, right.draw.epsilon):
        return set()
    if not within(planted.value, right.reference.value, right.tolerance.value):
        return set()
    if run.narrowed:
        allowed = [
            max(one, NARROW * float(np.max(np.abs(gradient), initial=0.0)))
            for one, gradient in zip(allowed, planted.dense(), strict=True)
        ]
    wrong, students, count = planted.dense(), run.dense(), len(run.gradients)
    found = set()
    for second in (False, True)[: 1 if run.again is None or planted.again is None else 2]:
        part = slice(count, None) if second else slice(count)
        if all(map(same_numbers, students[part], wrong[part], allowed[part], repeat(right.draw.epsilon))):
            found.add(second)
    return found


def same_effects(planted: Run, run: Run, epsilon: float = EPSILON) -> bool:
    """Whether the same inputs were changed in the same way, and digits were lost in both runs or in none."""
    if planted.narrowed != run.narrowed or [n for n, _ in planted.changed] != [n for n, _ in run.changed]:
        return False
    pairs = zip(planted.changed, run.changed, strict=True)
    return all(np.allclose(first, second, rtol=ROUNDINGS * epsilon) for (_, first), (_, second) in pairs)


def same_numbers(students: Array, planted: Array, allowed: float, epsilon: float = EPSILON) -> bool:
    """Whether numbers agree within what is allowed, widened where the wrong gradient is larger than the right one."""
    if students.shape != planted.shape and students.shape != () and planted.shape != ():
        return False
    largest = float(np.max(np.abs(planted), initial=0.0))
    return within(students, planted, np.asarray(4 * max(allowed, ROUNDINGS * epsilon * largest)))


def both(first: Plant, second: Plant) -> Plant:
    """Two bugs at once."""

    @contextmanager
    def plant() -> Iterator[None]:
        with ExitStack() as stack:
            stack.enter_context(first())
            stack.enter_context(second())
            yield

    return plant


def root_of(program: Program, draw: Draw) -> Function:
    """The root of a program's graph."""
    output = program.function(*(REFERENCE(array, requires_grad=True) for array in draw.inputs))
    return GraphRoot((output.gradient_edge,))


def operations_in(program: Program, draw: Draw) -> list[str]:
    """The class names of the operations in a program's graph."""
    nodes = reachable(root_of(program, draw))
    return sorted({type(node).__name__ for node in nodes if not isinstance(node, AccumulateGrad | GraphRoot)})
