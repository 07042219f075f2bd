"""What the wrong gradients of one operation, tried alone, have in common with the right ones: a fact for the card.

A rule without its mask, with one factor too many or with the derivative of another function is clear once it is named,
but hard to see in eight numbers. Each pattern has to fit every element of every draw that was tried; if none fits,
nothing is said.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from autograder.localize.error_patterns import in_common
from autograder.localize.subexpressions import Trial
from autograder.runs.inputs import Array

Mask = npt.NDArray[np.bool_]

FEWEST = 3  # elements that a pattern has to explain
PRECISE = 1e-9  # relative: how well a pattern has to fit

FACTORS: dict[float, str] = {1.0: "", -1.0: "minus ", 2.0: "twice ", 0.5: "half of "}
POWERS: dict[int, str] = {
    1: "the right one times {}",
    2: "the right one times {} squared",
    -1: "the right one divided by {}",
    -2: "the right one divided by {} squared",
}
DERIVATIVES: dict[str, Callable[[Array], Array]] = {
    "the logarithm": lambda x: 1 / x,
    "the square": lambda x: 2 * x,
    "the square root": lambda x: 0.5 / np.sqrt(x),
    "1 / x": lambda x: -1 / x**2,
    "exp": np.exp,
    "sin": np.cos,
    "cos": lambda x: -np.sin(x),
    "tanh": lambda x: 1 - np.tanh(x) ** 2,
    "the sigmoid": lambda x: np.exp(-x) / (1 + np.exp(-x)) ** 2,
}


@dataclass(frozen=True)
class Wrong:
    """The wrong gradient for one input: for each draw what came, what is right, and what the rule had at hand."""

    name: str
    got: list[Array]
    right: list[Array]
    arriving: list[Array]
    operands: dict[str, list[Array]]

    def everywhere(self, fits: Callable[[int], Mask]) -> bool:
        """Whether something is true of all elements of all draws."""
        with np.errstate(all="ignore"):
            return all(np.all(fits(number)) for number in range(len(self.got)))

    def flat(self, arrays: list[Array]) -> Array:
        """All elements of all draws, each array stretched to the shape of the gradient."""
        return np.concatenate([np.broadcast_to(a, r.shape).ravel() for a, r in zip(arrays, self.right, strict=True)])


def pattern(trial: Trial) -> str:
    """A sentence about the wrong gradients of an operation; empty if they follow no known pattern."""
    runs, expected = trial.runs, trial.expected
    if not runs or len(runs) != len(expected) or any(entry.low is not None for entry in expected):
        return ""
    found = _transposed(trial) or _in_common(trial)
    if found:
        return f"{found[0].upper()}{found[1:]}"
    wrongs = list(wrong_inputs(trial))
    sentences = [next((text for find in PATTERNS if (text := find(wrong))), "") for wrong in wrongs]
    if not wrongs or not all(sentences):
        return ""
    if len(set(sentences)) == 1 and len(wrongs) > 1:
        return f"The gradients for {' and '.join(f'`{wrong.name}`' for wrong in wrongs)}: each {sentences[0]}."
    return " ".join(f"The gradient for `{w.name}` {text}." for w, text in zip(wrongs, sentences, strict=True))


def _in_common(trial: Trial) -> str:
    """Patterns that results of any function may have: a factor, another order, too few digits."""
    count = len(trial.part.names)
    got = [run.dense[:count] for run in trial.runs]
    right = [entry.reference.dense[:count] for entry in trial.expected]
    allowed = [entry.tolerance.gradients[:count] for entry in trial.expected]
    for mine, theirs in zip(got, right, strict=True):
        if [array.shape for array in mine] != [array.shape for array in theirs]:
            return ""
        if not all(np.all(np.isfinite(array)) for array in mine):
            return ""
    shapes = [str(array.shape) if array.ndim else "()" for array in trial.part.draws[0].inputs]
    where = f"in each of {len(got)} trials, with inputs of shape {' and '.join(shapes)}"
    return in_common(got, right, allowed, trial.part.names, where)


def wrong_inputs(trial: Trial) -> Iterator[Wrong]:
    """The inputs whose gradient is wrong in some draw, if it has the right shape in every draw."""
    expected = trial.expected
    gradients = [run.dense for run in trial.runs]
    right_gradients = [entry.reference.dense for entry in expected]
    values = [entry.reference.value for entry in expected]
    arriving = [entry.draw.seed(value.shape) for entry, value in zip(expected, values, strict=True)]
    operands = {f"`{name}`": [entry.draw.inputs[n] for entry in expected] for n, name in enumerate(trial.part.names)}
    for number, name in enumerate(trial.part.names):
        got = [each[number] for each in gradients]
        right = [np.asarray(each[number]) for each in right_gradients]
        shapes = [entry.draw.inputs[number].shape for entry in expected]
        if any(a.shape != s or b.shape != s for a, b, s in zip(got, right, shapes, strict=True)):
            continue
        if not all(np.all(same(a, b)) for a, b in zip(got, right, strict=True)):
            yield Wrong(name, got, right, arriving, {**operands, "the output": values})


def same(first: Array, second: Array) -> Mask:
    """Whether elements are practically equal, one by one."""
    return np.asarray(np.abs(first - second) <= room(second), dtype=np.bool_)


def room(numbers: Array) -> Array:
    """How far from these numbers others may be that are practically equal."""
    return np.asarray(PRECISE * np.maximum(1e-3, np.abs(numbers)))


def _transposed(trial: Trial) -> str:
    """Whether matrices came back transposed."""
    found = []
    for number, name in enumerate(trial.part.names):
        pairs = [
            (run.dense[number], entry.reference.dense[number])
            for run, entry in zip(trial.runs, trial.expected, strict=True)
        ]
        if all(a.ndim == 2 and a.shape == b.T.shape and np.all(same(a, b.T)) for a, b in pairs):
            if not all(a.shape == b.shape and np.all(same(a, b)) for a, b in pairs):
                found.append(f"`{name}`")
        elif not all(a.shape == b.shape and np.all(same(a, b)) for a, b in pairs):
            return ""  # wrong in another way as well
    return f"the right gradient for {' and '.join(found)} came back transposed." if found else ""


def _as_it_arrived(wrong: Wrong) -> str:
    """The local derivative is missing."""
    if not stretch(wrong.arriving, wrong.right) or not wrong.everywhere(
        lambda n: same(wrong.got[n], wrong.arriving[n])
    ):
        return ""
    return "is the gradient that arrives, as if the slope were 1 at every element"


def _of_another_function(wrong: Wrong) -> str:
    """The slope of another function of the same input."""
    inputs = next(iter(wrong.operands.values()))
    if len(wrong.operands) > 2 or not stretch(wrong.arriving, wrong.right) or _few(wrong):
        return ""
    for name, derivative in DERIVATIVES.items():
        if wrong.everywhere(lambda n, slope=derivative: same(wrong.got[n], wrong.arriving[n] * slope(inputs[n]))):  # type: ignore[misc]
            return f"is right for another function: {name}"
    return ""


def _cut_off(wrong: Wrong) -> str:
    """Right up to a limit, and the limit beyond it."""
    got, right = wrong.flat(wrong.got), wrong.flat(wrong.right)
    limit = float(np.max(np.abs(got), initial=0.0))
    beyond = np.abs(right) > limit
    rounding = PRECISE * np.max(np.abs(right), initial=0.0)  # what should be 0 may be a little more
    if limit <= rounding or np.sum(beyond) < 2 or not np.all(same(got, np.clip(right, -limit, limit))):
        return ""
    return f"is right up to {limit:.4g} and cut off there: a larger one comes back as {limit:.4g}"


def _inverted(wrong: Wrong) -> str:
    """An inverted mask."""
    got, right = wrong.flat(wrong.got), wrong.flat(wrong.right)
    stopped = right == 0
    if min(np.sum(stopped), np.sum(~stopped)) < FEWEST or not np.array_equal(stopped, got != 0):
        return ""
    return "is 0 exactly where it must not be, as if a condition were inverted"


def _at_some_elements(wrong: Wrong) -> str:
    """Wrong exactly where some condition holds."""
    got, right = wrong.flat(wrong.got), wrong.flat(wrong.right)
    bad = ~same(got, right)
    if np.all(bad) and not _all_or_nothing(got, right, bad):
        return ""
    what = _all_or_nothing(got, right, bad) or (
        "has the wrong sign at some elements" if np.all(same(got[bad], -right[bad])) else "is wrong at some elements"
    )
    where = next((text for text, true in _conditions(wrong, right) if np.array_equal(true, bad)), "")
    if where:
        return f"{what}: those where {where}. It is right elsewhere"
    return f"{what}, and right elsewhere" if what.startswith(("is not 0", "is 0")) and not np.all(bad) else ""


def _all_or_nothing(got: Array, right: Array, bad: Mask) -> str:
    """Whether all wrong elements are 0, or all should be."""
    if np.all(right[bad] == 0):
        return "is not 0 at elements where it must be"
    return "is 0 at elements where it must not be" if np.all(got[bad] == 0) else ""


def _conditions(wrong: Wrong, right: Array) -> Iterator[tuple[str, Mask]]:
    """Conditions that hold for some elements and not for others, at least FEWEST of each."""
    candidates: list[tuple[str, Mask]] = []
    operands = {name: arrays for name, arrays in wrong.operands.items() if stretch(arrays, wrong.right)}
    for name, arrays in operands.items():
        flat = wrong.flat(arrays)
        candidates += [(f"{name} is negative", flat < 0), (f"{name} is positive", flat > 0)]
    inputs = [(name, wrong.flat(arrays)) for name, arrays in operands.items() if name != "the output"]
    if len(inputs) == 2:
        (first, a), (second, b) = inputs
        candidates += [(f"{first} is larger than {second}", a > b), (f"{second} is larger than {first}", b > a)]
    if stretch(wrong.arriving, wrong.right):
        flat = wrong.flat(wrong.arriving)
        candidates += [("the gradient that arrives is negative", flat < 0)]
    candidates += [("the right gradient is negative", right < 0), ("the right gradient is positive", right > 0)]
    for text, true in candidates:
        if FEWEST <= np.sum(true) <= true.size - FEWEST:
            yield text, true


def _with_a_factor(wrong: Wrong) -> str:
    """The right gradient times or divided by something that the rule has at hand."""
    if _few(wrong):
        return ""
    with np.errstate(all="ignore"):
        for name, arrays in wrong.operands.items():
            if not stretch(arrays, wrong.right):
                continue
            for power, text in POWERS.items():
                for factor, word in FACTORS.items():
                    if _fits_times(wrong, [factor * array**power for array in arrays]):
                        return f"is {word}{text.format(name)}"
    return ""


def _fits_times(wrong: Wrong, factors: list[Array]) -> bool:
    return wrong.everywhere(lambda number: same(wrong.got[number], wrong.right[number] * factors[number]))


def stretch(arrays: list[Array], right: list[Array]) -> bool:
    """Whether arrays can be compared with a gradient element by element."""
    return all(_stretches(array, gradient) for array, gradient in zip(arrays, right, strict=True))


def _stretches(array: Array, gradient: Array) -> bool:
    try:
        return np.broadcast_shapes(array.shape, gradient.shape) == gradient.shape
    except ValueError:
        return False


def _few(wrong: Wrong) -> bool:
    """Whether there are too few different numbers to tell one formula from another."""
    return len(np.unique(wrong.flat(wrong.right))) < FEWEST


PATTERNS = (_as_it_arrived, _of_another_function, _cut_off, _inverted, _at_some_elements, _with_a_factor)
