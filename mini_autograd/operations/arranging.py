"""Windows, pairs and triangles picked by index: unfold, combinations, cartesian_prod; and sums of neighbours.

Imports arrays, size, function, shape, gathering and joining. The one idea to know: the places are computed in NumPy,
and what stands there is picked with operations that have rules.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from mini_autograd.arrays import int64, normalize_dim, on_device
from mini_autograd.function import Value, tensor_of, wrap
from mini_autograd.operations.gathering import index_select
from mini_autograd.operations.joining import meshgrid, narrow, stack
from mini_autograd.operations.shape import movedim, unflatten
from mini_autograd.size import Size, size_of


def unfold(input: Value, dimension: int, size: int, step: int) -> Value:
    """All windows of `size` elements along an axis, each `step` after the last; they become a new last axis.

    PyTorch gives a view; this is a copy.
    """
    axis = normalize_dim(dimension, input.ndim)
    length = input.shape[axis] if input.ndim else 1
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > length:
        raise RuntimeError(f"maximum size for tensor at dimension {axis} is {length} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    starts = np.arange(0, length - size + 1, step)
    places = (starts[:, None] + np.arange(size)).reshape(-1)
    if input.ndim == 0:
        return input.reshape((1,))[: max(size, 0)]
    windows = index_select(input, axis, wrap(places, input))
    return movedim(unflatten(windows, axis, (len(starts), size)), axis + 1, -1)


def combinations(input: Value, r: int = 2, with_replacement: bool = False) -> Value:
    """All choices of `r` elements of a vector in their order, one per row; each element several times if allowed."""
    if input.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return input[:0]
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    rows = np.array(list(choose(range(len(input)), r)), np.int64).reshape(-1, r)
    return index_select(input, 0, wrap(rows.reshape(-1), input)).reshape(rows.shape)


def cartesian_prod(*tensors: Value) -> Value:
    """All choices of one element of each vector, one per row; of a single vector, itself."""
    if len(tensors) == 1:
        return tensors[0]
    return stack([grid.reshape((-1,)) for grid in meshgrid(*tensors, indexing="ij")], 1)


def trapezoid(y: Value, x: Value | None = None, *, dx: float = 1.0, dim: int = -1) -> Value:
    """The integral along an axis by the trapezoidal rule, at points `x` or at a distance `dx`."""
    if y.ndim == 0:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    axis = normalize_dim(dim, y.ndim)
    after, before = neighbours(y, axis)
    if x is None:
        return (after + before).sum(axis) * (dx / 2.0)
    if x.ndim == 1:
        x = x.reshape([-1 if i == axis else 1 for i in range(y.ndim)])
    later, earlier = neighbours(x, axis - y.ndim)
    return ((after + before) * (later - earlier)).sum(axis) / 2.0


trapz = trapezoid


def triangle(name: str, inside: Callable[..., np.ndarray]) -> Callable[..., Value]:
    """The function that gives the places of a triangle of a matrix."""

    def indices(row: int, col: int, offset: int = 0, *, dtype: np.dtype = int64, device: Any = None) -> Value:
        places = np.argwhere(inside(np.ones((row, col)), offset)).T
        return tensor_of(on_device(places.astype(dtype), device or "cpu"))

    indices.__name__ = name
    indices.__doc__ = f"Rows and columns of the elements that `{name[:4]}` keeps, as the two rows of a tensor."
    return indices


tril_indices, triu_indices = triangle("tril_indices", np.tril), triangle("triu_indices", np.triu)


def neighbours(x: Value, axis: int) -> tuple[Value, Value]:
    """All elements along an axis but the first, and all but the last."""
    count = max(x.shape[axis] - 1, 0)
    return narrow(x, axis, x.shape[axis] - count, count), narrow(x, axis, 0, count)


def is_nonzero(input: Value) -> bool:
    """Whether the only element is not 0. RuntimeError if there are more."""
    return bool(input)


def broadcast_shapes(*shapes: Any) -> Size:
    """The shape that tensors of these shapes broadcast to; RuntimeError if they do not."""
    try:
        return size_of(np.broadcast_shapes(*shapes))
    except ValueError as error:
        raise RuntimeError(
            "Shape mismatch: objects cannot be broadcast to a single shape, got " + ", ".join(map(str, shapes))
        ) from error
