"""Replays draws on the reference with a bug planted, and compares the results with a student's numbers.

The caller provides what is planted: a context in which the reference is wrong. The budget counts runs of the reference,
so the findings do not depend on the speed of the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from itertools import repeat

import numpy as np

from autograder.runs.answers import Outcome
from autograder.runs.comparison import EPSILON, ROUNDINGS, within
from autograder.runs.engines import REFERENCE, Draw, Run
from autograder.runs.errors import Raised
from autograder.runs.expected import Expected
from autograder.runs.inputs import Array
from autograder.runs.programs import Program
from autograder.runs.reference_patch import composed_arithmetic
from mini_autograd.graph.backward import reachable
from mini_autograd.graph.function import AccumulateGrad, Function, GraphRoot

NARROW = 1e-5  # relative: how far gradients in float32 may differ by rounding
LARGEST_KEPT = 100  # numbers in a draw whose runs are kept for the next diagnosis
MOST_RUNS = 1500  # of the reference, for a whole check; small expressions take about 0.2 ms each

Plant = Callable[[], AbstractContextManager[None]]
"""Makes a context in which the reference has a bug."""


@dataclass(frozen=True, eq=False)
class RecordedGraph:
    """The graph of an expression: its root, the class names of its operations, whether anything in it, or in another
    draw, has a dimension (otherwise nothing is broadcast), and whether its arithmetic is `composed`."""

    root: Function
    operations: tuple[str, ...]
    has_arrays: bool
    composed: bool


class OverBudget(Exception):  # noqa: N818
    """A diagnosis needs more runs than it may take."""


class Replays:
    """Tells whether the reference with a bug gives a student's numbers, and counts the runs that this takes."""

    def __init__(self) -> None:
        self.runs = 0
        self.allowed, self.quickest = cache(_allowed), cache(_quickest)
        self._first = cache(self._planted)

    def explains(self, entry: Outcome, composed: bool, plants: Sequence[Plant]) -> bool:
        """Whether the reference with a bug gives the student's numbers in every draw.

        One of the plants must explain the first gradients of a draw, and one of them those after the second call: an
        engine whose result depends on the order of its visits may choose another order for another graph.
        """
        first, count = self.quickest(entry), len(entry.runs)
        order = sorted(range(count), key=lambda number: number != first)
        if not all(self._explains_draw(entry, number, composed, plants) for number in order):
            return False
        raised = entry.comparison.raised
        return raised is None or any(_raises(self.planted(entry, count, composed, plant), raised) for plant in plants)

    def _explains_draw(self, entry: Outcome, number: int, composed: bool, plants: Sequence[Plant]) -> bool:
        run, right = entry.runs[number], entry.expected[number]
        unexplained = {False, True} if right.draw.again is not None and run.again is not None else {False}
        for plant in plants:
            planted = self.planted(entry, number, composed, plant)
            if isinstance(planted, Run):
                unexplained -= _explained(run, planted, right, self.allowed(entry, number))
            if not unexplained:
                return True
        return False

    def planted(self, entry: Outcome, number: int, composed: bool, plant: Plant) -> Run | Raised:
        """A draw on the reference with a bug, or what it raises. The result for the first draw is cached."""
        run = self._first if number == self.quickest(entry) else self._planted
        return run(entry, number, composed, plant)

    def _planted(self, entry: Outcome, number: int, composed: bool, plant: Plant) -> Run | Raised:
        self.runs += 1
        if self.runs > MOST_RUNS:
            raise OverBudget
        known = entry.expected[number].planted
        if (composed, plant) not in known:
            run = _with_a_bug(entry.program, entry.expected[number].draw, composed, plant)
            if size_of(entry) > LARGEST_KEPT:
                return run
            known[composed, plant] = run
        return known[composed, plant]


def _quickest(entry: Outcome) -> int:
    """The draw to begin with: one without a second backward call, if there is any."""
    return next((n for n, _ in enumerate(entry.runs) if entry.expected[n].draw.again is None), 0)


def size_of(entry: Outcome) -> int:
    """The numbers in the largest draw of an expression."""
    return max(sum(array.size for array in right.draw.inputs) for right in entry.expected)


def _with_a_bug(program: Program, draw: Draw, composed: bool, plant: Plant) -> Run | Raised:
    """A draw on the reference with a bug, or what it raises."""
    try:
        with composed_arithmetic() if composed else nullcontext(), plant():
            return _run(program, draw)
    except Exception as error:
        return Raised(type(error).__name__, str(error))


def _allowed(entry: Outcome, number: int) -> list[float]:
    """The largest allowed distance for each gradient of a draw."""
    return [float(np.max(array)) for array in entry.expected[number].tolerance.gradients]


def graph_of(entry: Outcome, composed: bool) -> RecordedGraph:
    """The graph that the reference records for an expression."""
    with composed_arithmetic() if composed else nullcontext():
        leaves = REFERENCE.leaves(entry.expected[0].draw)
        root = GraphRoot((entry.program.function(*leaves).gradient_edge,))
    nodes = reachable(root)
    names = {type(node).__qualname__ for node in nodes if not isinstance(node, AccumulateGrad | GraphRoot)}
    sizes = [array.ndim for right in entry.expected for array in right.draw.inputs]
    sizes += [len(shape) for node in nodes for shape, _ in node.outputs]
    return RecordedGraph(root, tuple(sorted(names)), any(sizes), composed)


def _run(program: Program, draw: Draw) -> Run:
    """A draw on the reference, with what it did to the inputs and to their precision."""
    leaves = REFERENCE.leaves(draw)
    value, gradients = REFERENCE.first(program.function, leaves, draw)
    after = [(n, np.array(leaf.array)) for n, leaf in enumerate(leaves)]
    changed = tuple((n, array) for n, array in after if not np.array_equal(array, draw.inputs[n]))
    again = REFERENCE.second(program.function, leaves, draw)
    narrowed = any(g is not None and g.dtype.itemsize < 8 for g in gradients)
    return Run(value, gradients, again, changed, narrowed)


def _raises(planted: Run | Raised, error: Raised) -> bool:
    """Whether an engine with that bug would raise this. If NumPy gives nan, Python's `math` raises."""
    if isinstance(planted, Raised):
        return planted.is_like(error)
    not_finite = not all(np.all(np.isfinite(gradient)) for gradient in planted.dense)
    return not_finite and error.message.startswith("math ")


def _explained(run: Run, planted: Run, right: Expected, allowed: Sequence[float]) -> set[bool]:
    """Which gradients a planted run explains: the first (False), or those after the second call (True)."""
    if not same_effects(planted, run, right.draw.epsilon):
        return set()
    if run.narrowed:
        allowed = [
            max(one, NARROW * float(np.max(np.abs(gradient), initial=0.0)))
            for one, gradient in zip(allowed, planted.dense, strict=True)
        ]
    wrong, students, count = planted.dense, run.dense, len(run.gradients)
    if not all(map(_same_shape, run.gradients, planted.gradients)):
        return set()
    found = set()
    for second in (False, True)[: 1 if run.again is None or planted.again is None else 2]:
        part = slice(count, None) if second else slice(count)
        if all(map(same_numbers, students[part], wrong[part], allowed[part], repeat(right.draw.epsilon))):
            found.add(second)
    # last, because a bug seldom changes the value
    return found if found and within(planted.value, right.reference.value, right.tolerance.value) else set()


def _same_shape(student: Array | None, planted: Array | None) -> bool:
    """Whether a gradient that is not None has the shape of the planted one: a number 0 is not a row of zeros."""
    return student is None or planted is None or student.shape == planted.shape


def same_effects(planted: Run, run: Run, epsilon: float = EPSILON) -> bool:
    """Whether the same inputs were changed in the same way, and digits were lost in both runs or in none."""
    if planted.narrowed != run.narrowed or [n for n, _ in planted.changed] != [n for n, _ in run.changed]:
        return False
    pairs = zip(planted.changed, run.changed, strict=True)
    return all(np.allclose(first, second, rtol=ROUNDINGS * epsilon) for (_, first), (_, second) in pairs)


def same_numbers(students: Array, planted: Array, allowed: float, epsilon: float = EPSILON) -> bool:
    """Whether numbers agree within the allowed distance, widened if the wrong gradient is larger than the right one."""
    if students.shape != planted.shape and students.shape != () and planted.shape != ():
        return False
    largest = float(np.abs(planted).max(initial=0.0))
    return within(students, planted, np.asarray(4 * max(allowed, ROUNDINGS * epsilon * largest)))
