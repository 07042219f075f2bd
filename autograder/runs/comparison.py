"""Whether two answers are equal, and what to say when they are not.

The tolerance follows from the arithmetic, not from a guess. A gradient computed in another order of operations differs
by the rounding of its intermediate results, so it is allowed to differ by

    ROUNDINGS * eps * max(largest gradient, largest cotangent, sensitivity)

element by element; eps belongs to the dtype, 2.2e-16 for float64 and 1.2e-7 for float32. `sensitivity` is how far that
element of the gradient moves, relative to the disturbance, when every operation of the reference is disturbed a little,
forward and backward (see `rounding.py`): it is large exactly where the problem is badly conditioned. ROUNDINGS = 512
leaves room for long expressions and for formulas that are a few digits less accurate than ours, and gives about 1e-13
for ordinary expressions. Measured over 40 seeds: right engines of other styles use less than 1 % of it, and a central
difference of second order (off by 1e-11 to 1e-9) exceeds it at least tenfold in some draw of every check, so it is not
accepted as a gradient. A difference of fourth order can come within 1e-13, and then no tolerance can tell it from
rounding.

Measuring the sensitivity takes as long as a quarter of everything else. So answers are first compared without it, with
the least tolerance; nearly all right answers are within that, and for the others it is measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from autograder.runs.engines import Draw, Run
from autograder.runs.inputs import Array
from autograder.runs.programs import Program
from autograder.runs.rounding import sensitivities

EPSILON = float(np.finfo(np.float64).eps)
ROUNDINGS = 512


@dataclass(frozen=True)
class Tolerance:
    """Allowed distance of the value and of each gradient (first the single ones, then the accumulated ones)."""

    value: Array
    gradients: tuple[Array, ...]

    def accepts(self, expected: Run, got: Run) -> bool:
        """Whether two runs of the same draw agree within this tolerance."""
        if not within(got.value, expected.value, self.value):
            return False
        pairs = zip(expected.dense, got.dense, self.gradients, strict=True)
        return all(within(right, other, allowed) for right, other, allowed in pairs)


@dataclass(frozen=True)
class Worst:
    """The element that is most wrong: where, the two numbers, by how many tolerances, and whether it belongs to the
    gradient accumulated over two calls."""

    place: str
    index: tuple[int, ...]
    expected: float
    got: float
    excess: float
    accumulated: bool = False

    def where(self) -> str:
        return self.place + (f"[{', '.join(map(str, self.index))}]" if self.index else "")


def tolerances_of(program: Program, draws: Sequence[Draw], references: Sequence[Run]) -> list[Tolerance]:
    """The tolerance for each draw; the formula stands at the top of this file."""
    tolerances = []
    for draw, reference, moved in zip(draws, references, sensitivities(program, draws, references), strict=True):
        least, rounding = least_tolerance(draw, reference), ROUNDINGS * draw.epsilon
        gradients = zip(least.gradients, moved.dense, strict=True)
        tolerances.append(
            Tolerance(
                np.maximum(least.value, rounding * moved.value),
                tuple(np.maximum(allowed, rounding * array) for allowed, array in gradients),
            )
        )
    return tolerances


def least_tolerance(draw: Draw, reference: Run) -> Tolerance:
    """The tolerance of a draw without its sensitivity: what is within it is within the whole one, too."""
    seeds = [draw.seed(reference.value.shape), *([] if draw.again is None else [draw.again])]
    largest = max([1e-300, *map(largest_finite, (*reference.dense, *seeds))])
    rounding = ROUNDINGS * draw.epsilon
    value = np.asarray(rounding * max(1e-300, largest_finite(reference.value)))
    return Tolerance(value, (np.asarray(rounding * largest),) * len(reference.dense))


def largest_finite(array: Array) -> float:
    """The largest absolute value that is a number: an infinity among the right answers must not excuse the others."""
    return float(np.max(np.abs(array), initial=0.0, where=np.isfinite(array)))


def within(got: Array, expected: Array, allowed: Array) -> bool:
    """Whether every element is near enough; NaN never is. Shapes must agree, except () for a missing gradient."""
    if got.shape != expected.shape and got.shape != () and expected.shape != ():
        return False
    with np.errstate(invalid="ignore"):
        return bool((np.abs(got - expected) <= allowed).all())


def difference(first: Run, second: Run) -> float:
    """The largest distance between two runs, over value and gradients; infinite if shapes do not fit."""
    pairs = [(first.value, second.value), *zip(first.dense, second.dense, strict=False)]
    if any(a.shape != b.shape and a.shape != () and b.shape != () for a, b in pairs):
        return float("inf")
    return max(float(np.max(np.abs(a - b), initial=0.0)) for a, b in pairs)


def worst_element(place: str, got: Array, low: Array, high: Array, allowed: Array) -> Worst | None:
    """The element furthest outside [low, high], in units of the allowed distance; None when all are inside."""
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        distance = np.maximum(low - got, got - high)
        if (distance < allowed).all():  # as a rule; never true of NaN, nor of an infinite distance
            return None
        got, low, high, allowed = np.broadcast_arrays(got, low, high, allowed)
        excess = distance / allowed
        same = (got == low) | (got == high) | (np.isnan(got) & np.isnan(low))  # equal infinities; NaN if it is right
    excess = np.where(same, 0.0, np.where(np.isfinite(got) & ~np.isnan(excess), excess, np.inf))
    index = tuple(int(n) for n in np.unravel_index(int(np.argmax(excess)), got.shape))
    if not excess[index] > 1:
        return None
    nearest = high[index] if got[index] > high[index] else low[index]
    return Worst(place, index, float(nearest), float(got[index]), float(excess[index]))


def most_wrong(candidates: Sequence[Worst | None]) -> Worst | None:
    """The worst of several, or None when nothing is wrong."""
    wrong = [candidate for candidate in candidates if candidate is not None]
    return max(wrong, key=lambda worst: worst.excess, default=None)


def explained(worst: Worst) -> str:
    """Both numbers, and the cause of a NaN or an infinity."""
    expected, got = two_numbers(worst.expected, worst.got)
    text = f"expected {expected}, got {got}"
    if np.isnan(worst.got):
        return f"{text} (the result of 0 / 0, of inf - inf, or of the logarithm or root of a negative number)"
    return f"{text} (an overflow, a division by zero, or the logarithm of 0)" if np.isinf(worst.got) else text


def two_numbers(expected: float, got: float) -> tuple[str, str]:
    """Both numbers with as many digits as it takes to tell them apart."""
    for digits in (4, 6, 9, 12, 15):
        first, second = f"{expected + 0.0:.{digits}g}", f"{got + 0.0:.{digits}g}"  # no -0
        if first != second:
            break
    return first, second
