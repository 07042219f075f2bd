"""Lengths of vectors and matrices: norm, vector_norm, normalize.

The one idea to know: every p has its own formula, and where a norm is 0 or has a kink the gradient is PyTorch's
subgradient, which is finite.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mini_autograd.graph.function import Unary, Value
from mini_autograd.numerics.arrays import dtype_name, is_floating, normalize_dims, number
from mini_autograd.operations.pointwise.comparison import isfinite
from mini_autograd.operations.pointwise.elementwise import cast, where
from mini_autograd.operations.pointwise.rounding import abs, sign
from mini_autograd.operations.reductions.extremes import Amax, Amin, checked_dims, clamp
from mini_autograd.operations.reductions.reduction import Dims, restore, sum

__all__ = ["norm"]


class Norm(Unary):
    """(sum |x|^p)^(1/p). d = sign(x) (|x| / norm)^(p-1) dx, and 0 where the norm is 0."""

    torch_name = "LinalgVectorNormBackward0"
    __slots__ = ("dim", "keepdim", "p")

    @staticmethod
    @np.errstate(all="ignore")
    def forward(ctx, x, p, dim, keepdim):
        ctx.p, ctx.dim, ctx.keepdim = p, dim, keepdim
        if p == 2:
            output = np.sqrt((x * x).sum(axis=dim, keepdims=keepdim))
        else:
            output = (np.abs(x) ** p).sum(axis=dim, keepdims=keepdim) ** (1.0 / p)
        ctx.save_for_backward(x, output)
        return output

    @staticmethod
    def backward(ctx, grad):
        x, output = ctx.saved_tensors
        return restore(grad, ctx.dim, x.shape) * norm_slope(x, restore(output, ctx.dim, x.shape), ctx.p)

    @staticmethod
    def jvp(ctx, tangent):
        x, output = ctx.saved_tensors
        slope = norm_slope(x, restore(output, ctx.dim, x.shape), ctx.p)
        return (tangent * slope).sum(ctx.dim, keepdims=ctx.keepdim)


def norm_slope(x: Value, output: Value, p: float) -> Value:
    """sign(x) (|x| / norm)^(p-1), for p = 2 simply x / norm; the subgradient 0 where that is 0/0."""
    zero = output == 0
    output = where(zero, 1.0, output)
    if p == 2:
        return where(zero, 0.0, x / output)
    size = where(x == 0, 1.0, abs(x))
    return where((x == 0) | zero, 0.0, sign(x) * (size / output) ** (p - 1))


def vector_norm(
    x: Value, ord: float = 2, dim: Dims = None, keepdim: bool = False, *, dtype: np.dtype | None = None
) -> Value:
    """(sum |x|^ord)^(1/ord) along `dim`, or of all elements.

    For inf it is the largest |x|, for -inf the smallest, for 0 the number of non-zero elements. Raises RuntimeError for
    integers.
    """
    x = x if dtype is None else cast(x, dtype)
    if not is_floating(x.dtype):
        kind = dtype_name(x.dtype)
        raise RuntimeError(f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {kind}")
    dims = normalize_dims(dim, x.ndim)
    if ord in (math.inf, -math.inf):
        extreme, name = (Amax, "amax") if ord > 0 else (Amin, "amin")
        reduced = checked_dims(name, x, dims)
        return extreme.apply(abs(x), dim=reduced, keepdim=keepdim, nan_ties=True) if x.ndim else abs(x)
    if ord == 0:
        return sum(cast(x != 0, x.dtype) + where(isfinite(x), x, 0.0) * 0.0, dims, keepdim)
    if ord == 1:
        return sum(abs(x), dims, keepdim)
    return Norm.apply(x, p=number(ord), dim=dims, keepdim=keepdim)


def norm(
    input: Value, p: Any = "fro", dim: Dims = None, keepdim: bool = False, *, dtype: np.dtype | None = None
) -> Value:
    """The p-norm of all elements, or along `dim`; "fro" (Frobenius) and None are p = 2.

    Raises NotImplementedError for the nuclear norm.
    """
    if p == "nuc":
        raise NotImplementedError("the nuclear norm is not supported: it needs singular values")
    return vector_norm(input, 2 if p in ("fro", None) else p, dim, keepdim, dtype=dtype)


def normalize(input: Value, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Value:
    """Vectors along `dim` divided by their p-norm, or by `eps` if that is larger."""
    return input / clamp(vector_norm(input, p, dim, keepdim=True), min=eps)
