"""Elements found along an axis, together with their places: max, min, argmax, sort, topk, median.

The one idea to know: once the places are known, the result is `x[places]`, and only the element that was picked gets
the gradient, whatever it ties with.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mini_autograd.graph.function import Value, as_array, wrap
from mini_autograd.graph.versions import note_needed
from mini_autograd.numerics import return_types
from mini_autograd.numerics.arrays import bool_, holds, is_floating, normalize_dim
from mini_autograd.numerics.return_types import Found
from mini_autograd.operations.pointwise.elementwise import where
from mini_autograd.operations.pointwise.rounding import refuse_bools
from mini_autograd.operations.reductions.extremes import Amax, Amin, amax, amin, checked_dims, maximum, minimum, ties
from mini_autograd.operations.reductions.reduction import sum
from mini_autograd.operations.shapes.gathering import along, at_least_1d
from mini_autograd.operations.shapes.indexing import Index
from mini_autograd.operations.shapes.shape import shaped

__all__ = ["aminmax", "argmax", "argmin", "argsort", "max", "median", "min", "sort", "topk"]


class Pick(Index):
    """Elements that were found along one axis. Each passes its gradient to its place."""

    results: Any  # the tuple of values and indices that the function returns

    def name(self) -> str:
        return type(self).__name__


class Max(Pick):
    """The largest element along one axis, which gets the gradient."""

    results = return_types.max


class Min(Pick):
    """The smallest element along one axis, which gets the gradient."""

    results = return_types.min


class Sort(Pick):
    """All elements along one axis in order. The gradient is put back in the order of the input."""

    results = return_types.sort


class Topk(Pick):
    """The largest (or smallest) few along one axis, which get the gradients."""

    results = return_types.topk


class Median(Pick):
    """The middle element along one axis (the lower of two), which gets the gradient."""

    results = return_types.median


def pick(operation: type[Pick], input: Value, places: Any, axis: int, keepdim: bool = True) -> Found:
    """The elements of `input` at `places` along `axis`; without `keepdim`, that axis (of size 1) is dropped."""
    index = along(places, axis)
    if not keepdim:
        index, places = tuple([part.squeeze(axis) for part in index]), places.squeeze(axis)
    values = operation.apply(at_least_1d(input), index=index)
    found = wrap(places if input.ndim else places.reshape(()), input)
    note_needed(values, found)
    return operation.results(values if input.ndim else shaped(values, ()), found)


def max(input: Value, dim: Any = None, keepdim: bool = False, *, other: Value = None) -> Any:
    """The largest of all elements (ties share the gradient); or along one axis, with its place (one element gets the
    whole gradient); or `max(input, other)`, the larger of two tensors element by element.
    """
    if other is not None or hasattr(dim, "shape"):
        return maximum(input, dim if other is None else other)
    if dim is None:
        return Amax.apply(input, dim=checked_dims("max", input, None), keepdim=False, nan_ties=True)
    axis = checked_axis("max", input, dim)
    return pick(Max, input, at_least_1d(as_array(input)).argmax(axis=axis, keepdims=True), axis, keepdim)


def min(input: Value, dim: Any = None, keepdim: bool = False, *, other: Value = None) -> Any:
    """The smallest of all elements (ties share the gradient); or along one axis, with its place (one element gets the
    whole gradient); or `min(input, other)`, the smaller of two tensors element by element.
    """
    if other is not None or hasattr(dim, "shape"):
        return minimum(input, dim if other is None else other)
    if dim is None:
        return Amin.apply(input, dim=checked_dims("min", input, None), keepdim=False, nan_ties=True)
    axis = checked_axis("min", input, dim)
    return pick(Min, input, at_least_1d(as_array(input)).argmin(axis=axis, keepdims=True), axis, keepdim)


def aminmax(input: Value, *, dim: int | None = None, keepdim: bool = False) -> return_types.Extremes:
    """The smallest and the largest element, of all or along one axis.

    Raises RuntimeError or IndexError if there are no elements.
    """
    if dim is None and 0 in input.shape:
        raise RuntimeError(
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
        )
    dims: Any = () if dim is None else dim
    if dim is not None and input.ndim and input.shape[axis := normalize_dim(dim, input.ndim)] == 0:
        raise IndexError(f"aminmax: Expected reduction dim {axis} to have non-zero size.")
    return return_types.aminmax(amin(input, dims, keepdim), amax(input, dims, keepdim))


def checked_axis(name: str, input: Value, dim: int) -> int:
    """The axis, or PyTorch's error if it has no elements."""
    axis = normalize_dim(dim, input.ndim)
    if input.ndim and input.shape[axis] == 0:
        raise IndexError(f"{name}(): Expected reduction dim {axis} to have non-zero size.")
    return axis


def argmax(input: Value, dim: int | None = None, keepdim: bool = False) -> Value:
    """The place of the largest element, in the flattened input or along one axis; the first one if several tie.

    Raises RuntimeError for bools, IndexError if there is none.
    """
    return _place("argmax", input, dim, keepdim)


def argmin(input: Value, dim: int | None = None, keepdim: bool = False) -> Value:
    """The place of the smallest element, in the flattened input or along one axis; the first one if several tie.

    Raises RuntimeError for bools, IndexError if there is none.
    """
    return _place("argmin", input, dim, keepdim)


def _place(name: str, input: Value, dim: int | None, keepdim: bool) -> Value:
    array = as_array(input)
    if array.dtype == bool_:
        raise RuntimeError(f"{name}(): does not support bool input")
    if dim is None:
        if array.size == 0:
            raise IndexError(f"{name}(): Expected reduction dim to be specified for input.numel() == 0.")
        place = getattr(array.reshape(-1), name)()
        return wrap(place.reshape((1,) * array.ndim) if keepdim else place, input)
    axis = checked_axis(name, input, dim)
    place = getattr(at_least_1d(array), name)(axis=axis, keepdims=keepdim)
    return wrap(place if array.ndim else place.reshape(()), input)


def order(array: Any, axis: int, descending: bool) -> Any:
    """The indices that sort an array along an axis. Ties keep their order, and nan counts as the largest."""
    if not descending:
        return array.argsort(axis=axis, kind="stable")
    last = array.shape[axis] - 1
    return last - np.flip(np.flip(array, axis).argsort(axis=axis, kind="stable"), axis)


def sort(input: Value, dim: int = -1, descending: bool = False, stable: bool = False) -> Found:
    """All elements along `dim` in order, and their places in `input`."""
    axis = normalize_dim(dim, input.ndim)
    return pick(Sort, input, order(at_least_1d(as_array(input)), axis, descending), axis)


def argsort(input: Value, dim: int = -1, descending: bool = False, stable: bool = False) -> Value:
    """The indices that sort `input` along `dim`."""
    axis = normalize_dim(dim, input.ndim)
    return wrap(order(at_least_1d(as_array(input)), axis, descending).reshape(input.shape), input)


def topk(input: Value, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Found:
    """The `k` largest elements along `dim` (smallest, if not `largest`) in order, and their places in `input`.

    Raises RuntimeError if there are fewer than `k`, and for bools.
    """
    axis = normalize_dim(dim, input.ndim)
    array = at_least_1d(as_array(input))
    if array.dtype == bool_:
        raise RuntimeError("topk does not support bool dtypes on CPU")
    if not 0 <= k <= array.shape[axis]:
        raise RuntimeError("selected index k out of range")
    places = order(array, axis, largest)[(*[slice(None)] * axis, slice(k))]
    return pick(Topk, input, places, axis)


def median(input: Value, dim: int | None = None, keepdim: bool = False) -> Any:
    """The middle element (the lower of two): of all (ties share the gradient), or along `dim` with its place."""
    array = at_least_1d(as_array(input))
    refuse_bools(array, "median_cpu" if dim is None else "median_out")
    if dim is None:
        if array.size == 0:
            return wrap(np.full_like(array, np.nan, shape=()), input)
        middle = np.sort(array.reshape(-1))[-1 if holds(has_nan(array).any()) else (array.size - 1) // 2]
        if not is_floating(array.dtype):
            return wrap(middle, input)
        chosen = ties(at_least_1d(input), wrap(middle, input), None)
        return sum(where(chosen, input, 0.0)) / as_array(chosen).sum().item()
    axis = normalize_dim(dim, input.ndim)
    middle = (array.shape[axis] - 1) // 2
    ordered = order(array, axis, False)
    places = ordered[(*[slice(None)] * axis, slice(middle, middle + 1))]
    if holds((nan := has_nan(array)).any()):  # then nan is the median
        places = np.where(nan.any(axis=axis, keepdims=True), nan.argmax(axis=axis, keepdims=True), places)
    return pick(Median, input, places, axis, keepdim)


def has_nan(array: Any) -> Any:
    """Where an array of any dtype is nan."""
    return array != array
