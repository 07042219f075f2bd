"""How a card shows the arrays that were compared: their numbers, and pictures of where they are wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from autograder.cards.heat_map import HeatMap, heat_map
from autograder.runs.answers import Problem
from autograder.runs.engines import Run
from autograder.runs.expected import Expected

MOST_NUMBERS = 12
MOST_PICTURES = 3


def shown(value: Any) -> str:
    """The numbers of an array, one row per line, or only its shape if there are many. Integers and halves
    are written as such."""
    array = np.asarray(value)
    if array.size > MOST_NUMBERS:
        return f"array of shape {array.shape}"
    if array.dtype.kind == "f" and np.all(2 * array == np.round(2 * array)):
        return np.array2string(array, separator=", ", formatter={"float_kind": lambda number: f"{number:g}"})
    return np.array2string(array, precision=4, separator=", ", max_line_width=100)


def heat_maps(
    problem: Problem, expected: Sequence[Expected], runs: Sequence[Run], names: Sequence[str]
) -> tuple[HeatMap, ...]:
    """Pictures of the wrong gradients of the draw that failed."""
    if problem.draw >= min(len(runs), len(expected)):
        return ()
    right, run = expected[problem.draw], runs[problem.draw]
    accumulated = problem.worst is not None and problem.worst.accumulated
    gradients = (run.again, right.reference.again) if accumulated else (run.gradients, right.reference.gradients)
    got, wanted = gradients
    if right.low is not None or got is None or wanted is None:
        return ()
    cells = zip(names, got, wanted, right.tolerance.gradients, strict=False)
    pictures = [heat_map(f"{name}.grad", g, e, a) for name, g, e, a in cells if g is not None and e is not None]
    return tuple(picture for picture in pictures if picture is not None)[:MOST_PICTURES]
