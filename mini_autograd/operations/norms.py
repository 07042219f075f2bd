"""Lengths of vectors and matrices: norm, vector_norm, dist, normalize, cosine similarity.

Imports arrays, function, elementwise, comparison, rounding, shape, reduction and extremes. The one idea to know: every
p has its own formula, and where a norm is 0 or has a kink the gradient is PyTorch's subgradient, which is finite.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mini_autograd.arrays import dtype_name, is_floating, normalize_dims
from mini_autograd.function import Value
from mini_autograd.operations.comparison import isfinite
from mini_autograd.operations.elementwise import cast, where
from mini_autograd.operations.extremes import amax, amin, clamp
from mini_autograd.operations.reduction import Dims, Norm, sum
from mini_autograd.operations.rounding import abs
from mini_autograd.operations.shape import broadcast_tensors


def vector_norm(
    x: Value, ord: float = 2, dim: Dims = None, keepdim: bool = False, *, dtype: np.dtype | None = None
) -> Value:
    """(sum |x|^ord)^(1/ord) along `dim`, or of all; for inf the largest |x|, for -inf the smallest, for 0 how many.

    Raises RuntimeError for integers.
    """
    x = x if dtype is None else cast(x, dtype)
    if not is_floating(x.dtype):
        kind = dtype_name(x.dtype)
        raise RuntimeError(f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {kind}")
    dims = normalize_dims(dim, x.ndim)
    if ord == math.inf:
        return amax(abs(x), () if dims is None else dims, keepdim) if x.ndim and dims != () else abs(x)
    if ord == -math.inf:
        return amin(abs(x), () if dims is None else dims, keepdim) if x.ndim and dims != () else abs(x)
    if ord == 0:
        return sum(cast(x != 0, x.dtype) + where(isfinite(x), x, 0.0) * 0.0, dims, keepdim)
    if ord == 1:
        return sum(abs(x), dims, keepdim)
    return Norm.apply(x, p=ord, dim=dims, keepdim=keepdim)


def norm(
    input: Value, p: Any = "fro", dim: Dims = None, keepdim: bool = False, *, dtype: np.dtype | None = None
) -> Value:
    """The p-norm of all elements, or along `dim`; "fro" (Frobenius) and None are p = 2.

    Raises NotImplementedError for the nuclear norm.
    """
    if p == "nuc":
        raise NotImplementedError("the nuclear norm needs singular values, which are not covered")
    return vector_norm(input, 2 if p in ("fro", None) else p, dim, keepdim, dtype=dtype)


def dist(input: Value, other: Value, p: float = 2) -> Value:
    """The p-norm of the difference."""
    return vector_norm(input - other, p)


def normalize(input: Value, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Value:
    """Vectors along `dim` divided by their p-norm, or by `eps` if that is larger."""
    return input / clamp(vector_norm(input, p, dim, keepdim=True), min=eps)


def cosine_similarity(x1: Value, x2: Value, dim: int = 1, eps: float = 1e-8) -> Value:
    """The cosine of the angle between vectors along `dim`."""
    pair = broadcast_tensors(x1, x2)
    first, second = (x / clamp(vector_norm(x, 2, dim, keepdim=True), min=eps) for x in pair)
    return sum(first * second, dim)
