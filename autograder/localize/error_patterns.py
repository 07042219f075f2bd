"""What wrong results of a function have in common, as a fact: one factor everywhere, another order, too few digits.

A factor of 2 or a wrong sign is clear once it is named, but hard to see in eight numbers. Nothing is said if the
results are wrong in another way. Besides NumPy, this imports only what turns a result into an array.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any

import numpy as np

from autograder.runs.answers import Unusable, number_or_array
from autograder.runs.inputs import Array

MOST_IN_ANOTHER_ORDER = 5
NEARLY = 1e-5
SINGLE = (6, 7, 8)  # digits that float32 keeps
ONE_SIDED = 8  # digits that one-sided differences have at most
EVERYWHERE = "at every input that was tried"
FEWEST = 3  # different numbers that one factor has to explain
FACTORS = {
    0.0: "the value 0",
    -1.0: "the right size and the wrong sign",
    0.5: "half the right size",
    2.0: "twice the right size",
}

Results = Sequence[Sequence[Array]]
"""The results of each call: one, or the gradient for each input."""


def arrays_of(results: Sequence[Any], right: Sequence[Any]) -> list[Array] | None:
    """The results of one call as arrays of the right shapes; None if any of them is not such an array."""
    try:
        arrays = [number_or_array(result) for result in results]
    except Unusable:
        return None
    fits = len(arrays) == len(right) and all(a.shape == np.shape(b) for a, b in zip(arrays, right, strict=True))
    return arrays if fits and all(np.all(np.isfinite(array)) for array in arrays) else None


def in_common(got: Results, right: Results, allowed: Results, names: Sequence[str], where: str = EVERYWHERE) -> str:
    """A sentence about what all wrong results have in common; empty if they have nothing known in common.

    got, right, allowed: one entry per call, with one array for each gradient, or the result alone.
    names: of the inputs to which the gradients belong; empty for the result of a function
    where: the calls, in words
    """
    count = len(names) or 1
    wrong = [number for number in range(count) if not _are(got, right, allowed, number, number, 1.0)]
    if not wrong:
        return ""
    subject = _subject([names[number] for number in wrong] if names else [])
    factor = _factor(got, right, wrong)
    if factor is not None and all(_are(got, right, allowed, number, number, factor) for number in wrong):
        verb = "has" if len(wrong) == 1 else "have"
        size = FACTORS.get(factor, f"{factor:.3g} times the right size")
        return f"{subject} {verb} {size} {where}."
    return _in_another_order(got, right, allowed, names) or _nearly(got, right, wrong, subject, bool(names))


def _are(got: Results, right: Results, allowed: Results, number: int, other: int, factor: float) -> bool:
    """Whether result `number` is the right result `other` times a factor, in every call."""
    for mine, theirs, tolerance in zip(got, right, allowed, strict=True):
        if mine[number].shape != np.shape(theirs[other]):
            return False
        distance = np.abs(mine[number] - factor * np.asarray(theirs[other]))
        if not np.all(distance <= max(abs(factor), 1e-300) * np.asarray(tolerance[other])):  # nor where it is nan
            return False
    return True


def _factor(got: Results, right: Results, wrong: Sequence[int]) -> float | None:
    """The factor that fits best, or the known factor that is practically equal to it.

    None if the right results have too few different numbers for a factor to mean anything, or if it would be shown
    as 1.
    """
    pairs = [(mine[n].ravel(), np.ravel(theirs[n])) for mine, theirs in zip(got, right, strict=True) for n in wrong]
    mine, theirs = (np.concatenate(part) for part in zip(*pairs, strict=True))
    if len(np.unique(theirs[theirs != 0])) < FEWEST:
        return None
    with np.errstate(all="ignore"):  # an overflow or a nan is no factor, and no news for a learner
        factor = float(mine @ theirs / max(float(theirs @ theirs), 1e-300))
    if f"{factor:.3g}" == "1":
        return None
    return next((known for known in FACTORS if abs(factor - known) <= NEARLY * abs(known)), factor)


def _in_another_order(got: Results, right: Results, allowed: Results, names: Sequence[str]) -> str:
    """A sentence if each gradient is right for another input; empty if several orders fit."""
    numbers = range(len(names))
    if not 1 < len(names) <= MOST_IN_ANOTHER_ORDER:
        return ""
    fit = [[_are(got, right, allowed, number, other, 1.0) for other in numbers] for number in numbers]
    orders = [order for order in permutations(numbers) if all(fit[n][m] for n, m in enumerate(order))]
    if len(orders) != 1:
        return ""
    moved = [f"`{names[n]}` got that of `{names[m]}`" for n, m in enumerate(orders[0]) if n != m]
    return f"the right gradients came back in the wrong order: {', '.join(moved)}."


def _nearly(got: Results, right: Results, wrong: Sequence[int], subject: str, gradients: bool) -> str:
    """Whether the wrong results are right to some digits, as estimates are. Only gradients are usually estimated."""
    largest = 0.0
    for mine, theirs in zip(got, right, strict=True):
        for number in wrong:
            sizes, distances = np.abs(theirs[number]), np.abs(mine[number] - theirs[number])
            sizes = np.where(sizes > 0, sizes, np.max(sizes, initial=0.0))  # an estimate of 0 is not exact either
            errors = np.where(sizes > 0, distances / np.where(sizes > 0, sizes, 1.0), distances > 0)
            largest = max(largest, float(np.max(errors, initial=0.0)))
    if not 0 < largest < NEARLY:
        return ""
    verb = "is" if len(wrong) == 1 else "are"
    digits = int(-np.log10(largest))
    fact = f"{subject} {verb} right to only about {digits} digits."
    if not gradients:
        return fact
    causes = ["float32 numbers"] if digits in SINGLE else []
    causes.append(f"an estimate by {'one-sided' if digits <= ONE_SIDED else 'central'} differences")
    causes.append("too large a step")
    why = ", ".join([*causes, "or a tiny number that was added and is still there"])
    return f"{fact} Possible causes: {why}."


def _subject(names: Sequence[str]) -> str:
    quoted = [f"`{name}`" for name in names]
    if len(quoted) < 2:
        return f"the gradient for {quoted[0]}" if quoted else "the result"
    return f"the gradients for {', '.join(quoted[:-1])} and {quoted[-1]}"
