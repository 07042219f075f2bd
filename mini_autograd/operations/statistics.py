"""Statistics that are put together from other operations: quantiles, covariances, correlations, pairwise distances.

Imports arrays, function and many of the operations. The one idea to know: nothing here has a rule of its own; gradients
come from the operations it is made of.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from mini_autograd.arrays import beside, float32, float64, holds, normalize_dim
from mini_autograd.function import Value, as_array, wrap
from mini_autograd.operations.binary import lerp
from mini_autograd.operations.comparison import any, isnan
from mini_autograd.operations.diagonals import diagonal
from mini_autograd.operations.elementwise import where
from mini_autograd.operations.extremes import clamp
from mini_autograd.operations.gathering import index_select
from mini_autograd.operations.linear_algebra import matmul
from mini_autograd.operations.mathematical import sqrt
from mini_autograd.operations.norms import vector_norm
from mini_autograd.operations.shape import movedim, reshape, squeeze, unsqueeze
from mini_autograd.operations.sorting import sort

WAYS = ("linear", "lower", "higher", "nearest", "midpoint")


def quantile(
    input: Value, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
) -> Value:
    """The number below which a fraction `q` of the elements lies, along `dim` or of all; nan if one is nan.

    For a vector of fractions the results get a new first axis. Between two elements, `interpolation` says what to take.

    Raises RuntimeError for `q` outside of 0 and 1, another dtype, or another interpolation.
    """
    if input.dtype not in (float32, float64):
        raise RuntimeError("quantile() input tensor must be either float or double dtype")
    q = q if hasattr(q, "ndim") else wrap(beside(np.asarray(q, dtype=input.dtype), as_array(input)), input)
    if q.dtype != input.dtype:
        raise RuntimeError("quantile() q tensor must be same dtype as the input tensor")
    if not input.numel():
        raise RuntimeError("quantile() input tensor must be non-empty")
    fractions = as_array(q)
    if not holds(((fractions >= 0) & (fractions <= 1)).all()):
        got = f" but got {fractions.item():g}" if fractions.ndim == 0 else ""
        raise RuntimeError(f"quantile() q {'must' if got else 'values must'} be in the range [0, 1]{got}")
    if interpolation not in WAYS:
        raise RuntimeError(
            "quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but got "
            f"{interpolation}"
        )
    axis = 0 if dim is None else normalize_dim(dim, input.ndim)
    x = reshape(input, (-1,)) if dim is None or input.ndim == 0 else input
    ranked = sort(x, axis).values
    places = q.reshape(-1) * (x.shape[axis] - 1)
    found = between(ranked, places, axis, interpolation)
    found = movedim(where(any(isnan(x), axis, keepdim=True), float("nan"), found), axis, 0)
    if keepdim and input.ndim:
        found = reshape(found, (len(places), *[1] * input.ndim)) if dim is None else unsqueeze(found, axis + 1)
    return found if fractions.ndim else squeeze(found, 0)


def between(ranked: Value, places: Value, axis: int, interpolation: str) -> Value:
    """The elements at `places` along an axis of sorted ones; where these are not whole, between two neighbours."""
    exact = as_array(places)
    exact = np.rint(exact) if interpolation == "nearest" else exact
    below = np.floor(exact)
    low, high = (index_select(ranked, axis, wrap(x.astype(np.int64), ranked)) for x in (below, np.ceil(exact)))
    if interpolation in ("lower", "nearest"):
        return low
    if interpolation == "higher":
        return high
    weights = places - wrap(below, places) if interpolation == "linear" else wrap(np.full_like(exact, 0.5), ranked)
    return lerp(low, high, weights.reshape([-1 if i == axis else 1 for i in range(ranked.ndim)]))


def cov(input: Value, *, correction: int = 1) -> Value:
    """The covariances of variables, one per row of `input` (variables, observations); of a single one a 0-d tensor."""
    check_rows("cov", input)
    rows = input if input.ndim == 2 else reshape(input, (1, -1))
    if rows.shape[1] <= correction:
        warnings.warn(
            "cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations.",
            stacklevel=2,
        )
    centered = rows - rows.mean(1, keepdim=True)
    result = matmul(centered, centered.mT) / max(rows.shape[1] - correction, 0)
    return reshape(result, ()) if len(rows) == 1 else result


def corrcoef(input: Value) -> Value:
    """The correlations of variables, one per row of `input` (variables, observations), between -1 and 1."""
    check_rows("corrcoef", input)
    covariances = cov(input)
    if covariances.ndim == 0:
        return covariances / covariances
    deviations = sqrt(diagonal(covariances))
    return clamp(covariances / deviations[:, None] / deviations[None], -1.0, 1.0)


def check_rows(name: str, input: Value) -> None:
    """PyTorch's error unless there is one variable, or a row for each."""
    if input.ndim > 2:
        raise RuntimeError(
            f"{name}(): expected input to have two or fewer dimensions but got an input with {input.ndim} dimensions"
        )


def cdist(x1: Value, x2: Value, p: float = 2.0, compute_mode: str | None = None) -> Value:
    """The distance of every row of x1 (..., n, d) from every row of x2 (..., m, d), as (..., n, m).

    `compute_mode` is ignored: the differences are always formed.

    Raises RuntimeError for vectors of two lengths.
    """
    for name, x in (("X1", x1), ("X2", x2)):
        if x.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {x.ndim}D")
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}")
    return vector_norm(x1[..., :, None, :] - x2[..., None, :, :], p, -1)


def pairwise_distance(x1: Value, x2: Value, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Value:
    """The p-norm of x1 - x2 + eps along the last axis."""
    return vector_norm(x1 - x2 + eps, p, -1, keepdim)
