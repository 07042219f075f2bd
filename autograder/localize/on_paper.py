"""The same mistake on numbers that can be checked on paper, for the example that a card shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from autograder.localize.subexpressions import Trial, try_parts
from autograder.runs.engines import Draw
from autograder.runs.inputs import Array

NUMBERS = (2.0, 3.0, 0.5, 1.5, 4.0, 2.5, 5.0, 3.5, 1.0, 6.0, 4.5, 7.0)
ARRIVING = 10.0  # and two and three times that, to show where the incoming gradient has gone


def on_paper(engine: Any, trial: Trial) -> Trial:
    """The part of a trial tried again on small integers and halves, if the same goes wrong there; else the trial.

    Numbers keep their signs and their order by size, so that logarithms and maxima stay what they are.
    """
    problem = trial.problem
    if problem is None or problem.worst is None:
        return trial
    draw = trial.part.draws[min(problem.draw, len(trial.part.draws) - 1)]
    simple = simple_draw(draw)
    if simple is None:
        return trial
    again = try_parts(engine, [replace(trial.part, draws=(simple,))])[0]
    if again is None or again.raised or again.problem is None:
        return trial
    worst = again.problem.worst
    if worst is None or (worst.place, worst.accumulated) != (problem.worst.place, problem.worst.accumulated):
        return trial
    finite = all(np.all(np.isfinite(array)) for array in again.expected[0].reference.dense)
    return again if finite else trial


def simple_draw(draw: Draw) -> Draw | None:
    """A draw with small integers and halves in place of its numbers; None if there are too many, or none."""
    arriving = [] if draw.cotangent is None else [draw.cotangent]
    if not 0 < sum(array.size for array in draw.inputs) <= len(NUMBERS) or sum(a.size for a in arriving) > len(NUMBERS):
        return None
    inputs = _replaced(draw.inputs, NUMBERS)
    cotangent = next(iter(_replaced(arriving, [ARRIVING * (n + 1) for n in range(len(NUMBERS))])), None)
    return replace(draw, inputs=tuple(inputs), cotangent=cotangent, again=None)


def _replaced(arrays: Sequence[Array], numbers: Sequence[float]) -> list[Array]:
    """Arrays with other numbers in the same order by size, and with the same signs. Equal numbers stay equal."""
    if not arrays:
        return []
    flat = np.concatenate([np.ravel(array) for array in arrays])
    _, ranks = np.unique(np.abs(flat), return_inverse=True)
    chosen = np.sort(numbers[: int(ranks.max()) + 1])[ranks] * np.where(flat < 0, -1.0, 1.0)
    ends = np.cumsum([array.size for array in arrays])[:-1]
    return [part.reshape(array.shape) for part, array in zip(np.split(chosen, ends), arrays, strict=True)]
