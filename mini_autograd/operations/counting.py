"""What occurs how often: unique values, counts of whole numbers, histograms, and places among sorted numbers.

Imports arrays, function, return_types and elementwise. The one idea to know: counts do not change when the numbers
change a little, so there are no gradients here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mini_autograd import return_types
from mini_autograd.arrays import check_floating, dtype_name, float32, float64, holds, int64, normalize_dim
from mini_autograd.function import Value, as_array, wrap
from mini_autograd.operations.elementwise import quiet


def unique(
    input: Value,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The values that occur, sorted; along `dim`, the slices that occur.

    With them, if asked for: where each element stands among the values, and how often each value occurs.
    """
    array, axis = array_and_axis(input, dim)
    options: dict[str, Any] = {"return_inverse": True, "return_counts": True, "axis": axis, "equal_nan": False}
    values, inverse, counts = np.unique(array, **options)
    inverse = inverse.reshape(array.shape if axis is None else -1)
    return asked_for(input, values, inverse if return_inverse else None, counts if return_counts else None)


def unique_consecutive(
    input: Value, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """As `unique`, but in the order in which they stand: only neighbours that are equal count as one."""
    array, axis = array_and_axis(input, dim)
    rows = np.moveaxis(array.reshape(-1) if axis is None else array, axis or 0, 0)
    differs = (rows[1:] != rows[:-1]).any(axis=tuple(range(1, rows.ndim)))
    starts = np.concatenate([np.ones(min(len(rows), 1), bool), differs])
    places = np.flatnonzero(starts)
    inverse = (np.cumsum(starts) - 1).reshape(array.shape if axis is None else -1)
    counts = np.diff(np.append(places, len(rows)))
    values = np.moveaxis(rows[places], 0, axis or 0)
    return asked_for(input, values, inverse if return_inverse else None, counts if return_counts else None)


def array_and_axis(input: Value, dim: int | None) -> tuple[Any, int | None]:
    """The array, and the axis counted from the front."""
    array = as_array(input)
    if dim is not None and array.ndim == 0:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    axis = None if dim is None else normalize_dim(dim, array.ndim)
    if axis is not None and not array.size and array.shape[axis]:
        raise RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
    return array, axis


def asked_for(input: Value, values: Any, *others: Any) -> Any:
    """The values alone, or in a tuple with those of the others that there are."""
    found = [wrap(values, input), *[wrap(x.astype(int64), input) for x in others if x is not None]]
    return found[0] if len(found) == 1 else tuple(found)


def bincount(input: Value, weights: Value | None = None, minlength: int = 0) -> Value:
    """How often each of the numbers 0, 1, 2, ... occurs in a vector of them; with `weights`, the sums of those.

    Raises RuntimeError for negative numbers, for more axes, and for another number of weights; NotImplementedError for
    floats.
    """
    numbers = as_array(input)
    if numbers.dtype.kind not in "iu":
        raise NotImplementedError(f"\"bincount_cpu\" not implemented for '{dtype_name(numbers.dtype)}'")
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if numbers.ndim != 1 or (numbers.size and numbers.min() < 0):
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is None:
        return wrap(np.bincount(numbers, minlength=minlength), input)
    amounts = as_array(weights)
    if amounts.shape != numbers.shape:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    dtype = float32 if amounts.dtype == float32 else float64
    return wrap(np.bincount(numbers, amounts, minlength).astype(dtype), input)


def histc(input: Value, bins: int = 100, min: float = 0, max: float = 0) -> Value:
    """How many elements lie in each of `bins` equal parts of the range; by default that of the elements.

    Raises RuntimeError unless `bins` is positive and `max` not below `min`.
    """
    numbers = as_array(input)
    check_floating(numbers, "histogram_cpu")
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    if max < min:
        raise RuntimeError("torch.histc: max must be larger than min")
    low, high = (min, max) if min < max else whole_range(numbers, "histc")
    counts, _ = np.histogram(numbers, bins, (low, high) if low < high else (low - 1, high + 1))
    return wrap(counts.astype(numbers.dtype), input)


def whole_range(numbers: Any, name: str) -> tuple[float, float]:
    """The smallest and the largest number; RuntimeError if they are not finite."""
    low, high = (numbers.min().item(), numbers.max().item()) if numbers.size else (0.0, 0.0)
    if not holds(np.isfinite(high - low)):
        raise RuntimeError(f"torch.{name}: range of [{low:g}, {high:g}] is not finite")
    return low, high


@quiet
def histogram(
    input: Value, bins: Any, *, range: Any = None, weight: Value | None = None, density: bool = False
) -> return_types.Histogram:
    """Counts (or densities) in `bins` equal parts of `range`, or between given edges; and the edges."""
    numbers = as_array(input)
    check_floating(numbers, "histogram_cpu")
    edges = bins if isinstance(bins, int) else as_array(bins)
    limits = range
    if isinstance(bins, int) and range is None:
        low, high = whole_range(numbers, "histogram") if numbers.size else (0.0, 1.0)
        limits = (low, high) if low < high else (low - 0.5, high + 0.5)
    amounts = None if weight is None else as_array(weight)
    counts, found = np.histogram(numbers, edges, limits, density, amounts)
    return return_types.histogram(wrap(counts.astype(numbers.dtype), input), wrap(found.astype(numbers.dtype), input))


def searchsorted(sorted_sequence: Value, input: Any, *, right: bool = False) -> Value:
    """Where each number would have to stand among sorted ones; before equal ones, with `right` after them.

    The sorted numbers are a vector, or have a row for each row of `input`.

    Raises RuntimeError if the axes before the last differ.
    """
    order, numbers = as_array(sorted_sequence), np.asarray(as_array(input))
    side: Any = "right" if right else "left"
    if order.ndim == 1:
        return wrap(np.searchsorted(order, numbers, side), sorted_sequence)
    if order.shape[:-1] != numbers.shape[:-1]:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries "
            f"tensor and input value tensor must match, but we got boundaries tensor {list(order.shape)} and input "
            f"value tensor {list(numbers.shape)}"
        )
    rows = zip(order.reshape(-1, order.shape[-1]), numbers.reshape(-1, numbers.shape[-1]), strict=True)
    places = [np.searchsorted(row, wanted, side) for row, wanted in rows]
    return wrap(np.asarray(places, dtype=int64).reshape(numbers.shape), sorted_sequence)


def bucketize(input: Any, boundaries: Value, *, right: bool = False) -> Value:
    """In which of the intervals between sorted boundaries each number lies: `searchsorted` the other way round."""
    return searchsorted(boundaries, input, right=right)
