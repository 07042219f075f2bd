"""Helpers of the operations that fuse several steps into one: layer norm, cross entropy, attention.

The one idea to know: such an operation keeps intermediate results (a mean, probabilities) as plain arrays, next to its
inputs. That is right for an ordinary backward pass. In a pass that is itself recorded these would count as constants,
so a rule computes them again from the saved inputs, which are then Tensors.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mini_autograd.graph import function
from mini_autograd.graph.function import Value


def recorded(*values: Value) -> bool:
    """Whether a rule runs in a recorded pass, in which it is given Tensors."""
    return any(isinstance(value, function.Tensor) for value in values)


def average(x: Value, axes: tuple[int, ...]) -> Value:
    """The mean along `axes`, which stay as axes of length 1.

    For an array along its last axis, it is a product with a vector: several times faster than `sum` for short rows.
    """
    count = math.prod([x.shape[axis] for axis in axes])
    if axes == (x.ndim - 1,) and count and not recorded(x):
        return x @ np.full_like(x, 1.0 / count, shape=(count, 1))
    return x.sum(axis=axes, keepdims=True) / count


def sum_of_products(a: Value, b: Value, axes: tuple[int, ...]) -> Value:
    """`(a * b).sum(axes)`, with `axes` kept at length 1; along the last axis of arrays, no products are stored."""
    if axes == (a.ndim - 1,) and not recorded(a, b):
        return np.einsum("...i,...i->...", a, b)[..., None]
    return (a * b).sum(axis=axes, keepdims=True)


def total(*terms: Any) -> Any:
    """The sum of the terms that are not None: a tangent has a term for each input that has a tangent."""
    there = [term for term in terms if term is not None]
    result = there[0]
    for term in there[1:]:
        result = result + term
    return result
