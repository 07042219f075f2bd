"""How far rounding can move a gradient: the conditioning of a program, measured by disturbing it.

The inputs and the cotangent are changed by a random relative DISTURBANCE, which is far above rounding and far below
anything visible; how far value and gradients move, divided by DISTURBANCE, is their sensitivity to relative errors.
"""

from __future__ import annotations

import numpy as np

from autograder.checks.engines import REFERENCE, Draw, Run, run_trusted
from autograder.checks.inputs import Array
from autograder.checks.programs import Program

DISTURBANCE = 2.0**-30
SAMPLES = 2


def sensitivity(program: Program, draw: Draw, reference: Run) -> Run:
    """For the value and each gradient of a run: how far it moves per relative disturbance, element by element."""
    generator = np.random.default_rng(0)
    disturbed = [_disturbed(generator, draw) for _ in range(SAMPLES)]
    runs = run_trusted(REFERENCE, program, disturbed)
    moved = [_moved(run.value, reference.value) for run in runs]
    gradients = [[_moved(a, b) for a, b in zip(run.dense(), reference.dense(), strict=True)] for run in runs]
    largest = [np.maximum.reduce(list(samples)) for samples in zip(*gradients, strict=True)]
    count = len(draw.inputs)
    return Run(np.maximum.reduce(moved), tuple(largest[:count]), tuple(largest[count:]) or None)


def _disturbed(generator: np.random.Generator, draw: Draw) -> Draw:
    def disturb(array: Array) -> Array:
        return array * (1 + DISTURBANCE * np.where(generator.random(array.shape) < 0.5, -1.0, 1.0))

    inputs = tuple(disturb(array) for array in draw.inputs)
    cotangent = None if draw.cotangent is None else disturb(draw.cotangent)
    return Draw(inputs, cotangent, None if draw.again is None else disturb(draw.again))


def _moved(disturbed: Array, undisturbed: Array) -> Array:
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(np.abs(disturbed - undisturbed) / DISTURBANCE)
