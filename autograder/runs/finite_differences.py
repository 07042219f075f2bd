"""Derivatives from values alone: the route that shares no rule with any engine.

The values of a function at five points along a line give a central difference of fourth order (error about 1e-12
for smooth functions of ordinary size), one of second order (the distance between the two says how far to trust the
first), and the two one-sided derivatives, which differ at a kink such as relu at 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from autograder.runs.inputs import Array

STEP = 1e-3
AGREEMENT = 1e-6  # relative: how well a right gradient must agree with a central difference
ONE_SIDED = 1e-5  # relative: how well a one-sided derivative is known
GAP = 1e-3  # relative: one-sided derivatives further apart than this show a kink


@dataclass(frozen=True)
class Slope:
    """The derivative along a line: from the right, from the left, central, and how uncertain the latter is."""

    right: float
    left: float
    central: float
    uncertainty: float

    def kink(self, scale: float) -> bool:
        return abs(self.right - self.left) > GAP * scale

    def agrees(self, expected: float, scale: float) -> bool:
        return abs(self.central - expected) <= AGREEMENT * scale + self.uncertainty


def slope(
    evaluate: Callable[[Sequence[Array]], float], inputs: Sequence[Array], line: Sequence[Array], here: float
) -> Slope:
    """The derivative of `evaluate` at `inputs`, where its value is `here`, in the direction `line` (one array per
    input).
    """
    far_left, left, right, far_right = (
        evaluate([array + step * STEP * direction for array, direction in zip(inputs, line, strict=True)])
        for step in (-2, -1, 1, 2)
    )
    second = (right - left) / (2 * STEP)
    fourth = (8 * (right - left) - (far_right - far_left)) / (12 * STEP)
    return Slope(
        right=(-3 * here + 4 * right - far_right) / (2 * STEP),
        left=(3 * here - 4 * left + far_left) / (2 * STEP),
        central=fourth,
        uncertainty=0.1 * abs(fourth - second),
    )


def random_line(generator: np.random.Generator, inputs: Sequence[Array]) -> list[Array]:
    """A direction that moves every element by an amount that suits its size. Equal elements move by different amounts,
    since a maximum of two that stay equal shows no kink."""
    signs = [np.where(generator.random(x.shape) < 0.5, -1.0, 1.0) for x in inputs]
    return [
        s * generator.uniform(0.5, 1.5, x.shape) * np.maximum(1.0, np.abs(x))
        for s, x in zip(signs, inputs, strict=True)
    ]


def axis(inputs: Sequence[Array], number: int, index: tuple[int, ...]) -> list[Array]:
    """The direction that moves one element of one input."""
    line = [np.zeros_like(array) for array in inputs]
    line[number][index] = 1.0
    return line
