"""The targets of losses over classes: class numbers as distributions, and PyTorch's errors for those that do not fit.

Imports arrays and elementwise.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mini_autograd import arrays
from mini_autograd.function import Value
from mini_autograd.operations.elementwise import multiply


def class_axis(scores: Any, labels: Any) -> int:
    """Where the classes are: axis 1, or 0 if there is no batch. PyTorch's errors if the shapes do not fit."""
    if labels.dtype not in (arrays.int64, arrays.uint8):
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {arrays.dtype_name(labels.dtype)}")
    axis = min(scores.ndim - 1, 1)
    if scores.ndim > 1 and labels.ndim and scores.shape[0] != labels.shape[0]:
        raise ValueError(
            f"Expected input batch_size ({scores.shape[0]}) to match target batch_size ({labels.shape[0]})."
        )
    expected = (*scores.shape[:axis], *scores.shape[axis + 1 :])
    if labels.shape != expected:
        raise RuntimeError(f"Expected target size {list(expected)}, got {list(labels.shape)}")
    return axis


def one_hot(scores: Any, labels: Any, axis: int, ignore_index: int) -> tuple[Any, int]:
    """An array as `scores`, with 1 at the class of each sample and 0 elsewhere, and how many ones: none if ignored."""
    classes = scores.shape[axis]
    hot = over_classes(labels, axis) == along(np.arange(classes, like=scores), scores.ndim, axis)
    count = arrays.count(hot)
    if count < labels.size:
        wrong = labels[((labels < 0) | (labels >= classes)) & (labels != ignore_index)]
        if wrong.size:
            raise IndexError(f"Target {wrong[0].item()} is out of bounds.")
    if 0 <= ignore_index < classes:
        hot &= over_classes(labels != ignore_index, axis)
        count = arrays.count(hot)
    return hot.astype(scores.dtype), count


def weighted_classes(q: Value, weight: Value | None, axis: int) -> Value:
    """The target's distribution, each class multiplied with its weight."""
    return q if weight is None else multiply(q, along(weight, q.ndim, axis))


def along(values: Value, ndim: int, axis: int) -> Value:
    """A vector laid along one axis of `ndim`."""
    return values.reshape(*(1,) * axis, -1, *(1,) * (ndim - axis - 1))


def over_classes(grad: Value, axis: int) -> Value:
    """With an axis for the classes, if there is a gradient for every sample."""
    return grad if grad.ndim == 0 else grad.reshape(*grad.shape[:axis], 1, *grad.shape[axis:])
