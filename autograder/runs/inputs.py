"""What a check feeds to an expression: specifications of inputs, and the random draws made from them.

Numbers are float64 and drawn away from 0, where a kink (relu), a pole (1 / x) or a gradient that happens to vanish is
most likely. Cotangents are random and not uniform, because an all-ones cotangent hides many wrong rules.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autograder.runs.errors import LessonError

Array = NDArray[np.float64]
SMALLEST, LARGEST = 0.3, 2.0
FLOAT64, FLOAT32 = "float64", "float32"


@dataclass(frozen=True)
class Between:
    """Inputs of the given shape, drawn uniformly between two bounds."""

    low: float
    high: float
    shape: tuple[int, ...] = ()

    def draw(self, generator: np.random.Generator) -> Array:
        return np.asarray(generator.uniform(self.low, self.high, self.shape), dtype=np.float64)


@dataclass(frozen=True)
class AwayFromZero:
    """Inputs of both signs whose absolute value lies between SMALLEST and LARGEST. What a bare shape means."""

    shape: tuple[int, ...] = ()

    def draw(self, generator: np.random.Generator) -> Array:
        return signed(generator, SMALLEST, LARGEST, self.shape)


@dataclass(frozen=True)
class Fixed:
    """The same numbers in every draw."""

    value: Array

    def draw(self, generator: np.random.Generator) -> Array:
        return self.value.copy()


@dataclass(frozen=True)
class Traveling:
    """A function that is itself an input (of `check_function`); it is passed on as it is."""

    function: Callable[..., Any]

    def draw(self, generator: np.random.Generator) -> Any:
        return self.function


def key_of(spec: Spec) -> tuple[Any, ...]:
    """A hashable key that is the same for equal specs."""
    if isinstance(spec, Fixed):
        return (spec.value.shape, spec.value.tobytes())
    return (type(spec).__name__, *vars(spec).values())


Spec = Between | AwayFromZero | Fixed | Traveling


def between(low: float, high: float, shape: tuple[int, ...] = ()) -> Between:
    """Inputs drawn uniformly between `low` and `high`."""
    if not low < high:
        raise LessonError(f"between({low}, {high}): the first bound must be the smaller one")
    return Between(float(low), float(high), tuple(shape))


def positive(shape: tuple[int, ...] = ()) -> Between:
    """Positive inputs, for logarithms, roots and the like."""
    return between(SMALLEST, LARGEST, shape)


def cases_of(inputs: Sequence[Any]) -> tuple[tuple[Spec, ...], ...]:
    """One tuple of specs per case: `inputs` is a list of specs, or a list of such lists (several shape cases)."""
    if len(inputs) == 0:
        raise LessonError("a check needs at least one input")
    several = all(isinstance(entry, list) for entry in inputs)
    cases = tuple(tuple(spec_of(entry) for entry in case) for case in (inputs if several else [inputs]))
    if len({len(case) for case in cases}) != 1:
        raise LessonError("every case of a check must have the same number of inputs")
    return cases


def spec_of(entry: Any) -> Spec:
    """A tuple of integers is a shape; numbers and arrays are fixed; a function travels."""
    if isinstance(entry, Between | AwayFromZero | Fixed | Traveling):
        return entry
    if isinstance(entry, tuple) and all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in entry):
        return AwayFromZero(entry)
    if isinstance(entry, tuple):
        raise LessonError(f"a shape is a tuple of sizes, not {entry!r:.60}; write fixed numbers as an array")
    if callable(entry):
        return Traveling(entry)
    value = np.asarray(entry)
    if value.dtype.kind not in "iuf":
        raise LessonError(f"an input must be a shape, numbers, between(...) or positive(...), not {entry!r:.60}")
    return Fixed(value.astype(np.float64))


def draw_cotangent(generator: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Incoming gradients of both signs, none of them near 0 or equal to 1."""
    return signed(generator, 0.5, 1.5, shape)


def rounded(array: Array, dtype: str) -> Array:
    """The nearest numbers that the dtype can hold, as float64: an engine of that dtype really works with these."""
    return array if dtype == FLOAT64 else np.asarray(array.astype(dtype), dtype=np.float64)


def signed(generator: np.random.Generator, low: float, high: float, shape: tuple[int, ...]) -> Array:
    """Uniform in absolute value between the bounds, with random signs."""
    size = generator.uniform(low, high, shape)
    return np.asarray(np.where(generator.random(shape) < 0.5, -size, size), dtype=np.float64)
