"""Turns the value of a test cell's last expression into points, by the rules of nbgrader's `determine_grade`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from autograder.cards.credit import Credit
from autograder.sandbox.handles import is_handle, reference

TOLERANCE = 1e-9


def added_up(value: Any, reports: Sequence[Any], max_points: float) -> Any:
    """The value of a test cell, with the points of all its checks that the value does not have already: a check earns
    its points wherever it stands. Left as it is if the cell counts by itself, or if its checks give other points.
    """
    giving = [report for report in reports if getattr(report, "points", None) is not None]
    if not (value is None or isinstance(value, Credit)) or not giving:
        return value
    if abs(sum(report.points for report in giving) - max_points) > TOLERANCE:
        return value
    known = getattr(value, "reports", ())
    others = [report for report in giving if not any(report is each for each in known)]
    return float(value or 0.0) + sum(report.earned for report in others)


def points_for_value(value: Any, max_points: float) -> tuple[float, str]:
    """Points and, if the value is not a possible score, the reason for zero.

    A number is that many points; None, booleans and everything else that is not a number are full marks, as in
    nbgrader. Where nbgrader would give full marks (NaN, a negative number) or drop the submission (more than the
    maximum), the points are 0.
    """
    if is_handle(value) and reference(value).tainted:
        return 0.0, "The test returned an object from the submission instead of a number of points."
    if (
        is_handle(value)
        or isinstance(value, (bool, np.bool_))
        or not isinstance(value, (int, float, np.integer, np.floating))
    ):
        return max_points, ""
    try:
        score = float(value)
    except (OverflowError, ValueError):
        score = math.inf
    if math.isnan(score) or math.isinf(score):
        return 0.0, "The test returned NaN or infinity instead of a number of points."
    if score < 0 or score > max_points * (1 + TOLERANCE) + TOLERANCE:
        return 0.0, f"The test gave {score:g} points, which is not between 0 and {max_points:g}."
    return min(score, max_points), ""
