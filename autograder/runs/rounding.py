"""How far rounding can move a gradient: the conditioning of a program, measured by exaggerating its rounding.

Every arithmetic operation of the reference, forward and backward, is made wrong by a random relative DISTURBANCE, which
is far above rounding and far below anything visible. The sensitivity of value and gradients is how far they move,
divided by DISTURBANCE. Multiplied by eps, it estimates what rounding alone can do to another engine's result. Unlike a
disturbance of the inputs, this also sees cancellation between intermediate results.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from autograder.runs.engines import REFERENCE, Draw, Run, run_trusted
from autograder.runs.inputs import Array
from autograder.runs.programs import Program
from autograder.runs.reference_patch import disturbed

DISTURBANCE = 2.0**-30
SAMPLES = 3
LARGEST = float(np.finfo(np.float64).max)


def sensitivities(program: Program, draws: Sequence[Draw], references: Sequence[Run]) -> list[Run]:
    """For the value and each gradient of each run: how far it moves per relative disturbance, element by element."""
    with disturbed(DISTURBANCE, np.random.default_rng(0)):
        runs = run_trusted(REFERENCE, program, [draw for draw in draws for _ in range(SAMPLES)])
    return [
        _sensitivity(draw, reference, runs[SAMPLES * number : SAMPLES * (number + 1)])
        for number, (draw, reference) in enumerate(zip(draws, references, strict=True))
    ]


def _sensitivity(draw: Draw, reference: Run, runs: Sequence[Run]) -> Run:
    with np.errstate(invalid="ignore"):
        value = np.maximum.reduce([_moved(run.value, reference.value) for run in runs])
        gradients = [[_moved(a, b) for a, b in zip(run.dense, reference.dense, strict=True)] for run in runs]
    largest = [np.maximum.reduce(list(samples)) for samples in zip(*gradients, strict=True)]
    count = len(draw.inputs)
    return Run(value, tuple(largest[:count]), tuple(largest[count:]) or None)


def _moved(disturbed: Array, undisturbed: Array) -> Array:
    """The distance per disturbance: 0 for NaN, and finite even for infinity."""
    return np.minimum(np.fmax(np.abs(disturbed - undisturbed) / DISTURBANCE, 0.0), LARGEST)
