"""Running sums: cumsum.

The one idea to know: an element is in its own result and in all later ones, so gradients are summed from the end: a
reversed running sum.
"""

from __future__ import annotations

import numpy as np

from mini_autograd.graph.function import Function, Unary, Value
from mini_autograd.numerics.arrays import int64, is_floating, normalize_dim
from mini_autograd.operations.pointwise.elementwise import cast
from mini_autograd.operations.shapes.shape import flip, shaped


class CumulativeSum(Unary):
    """Sums of the elements up to each, along one axis. Each gets the sum of the gradients from its place on."""

    torch_name = "CumsumBackward0"
    __slots__ = ("dim",)

    @staticmethod
    def forward(ctx, x, dim):
        ctx.dim = dim
        return x.cumsum(axis=dim, dtype=x.dtype)

    @staticmethod
    def backward(ctx, grad):
        return sum_to_the_end(grad, ctx.dim)

    @staticmethod
    def jvp(ctx, tangent):
        return cumsum(tangent, ctx.dim)


def sum_to_the_end(grad: Value, dim: int) -> Value:
    """Sums of the elements from each on."""
    return flip(cumsum(flip(grad, dim), dim), dim)


def cumsum(input: Value, dim: int, *, dtype: np.dtype | None = None) -> Value:
    """Sums of the elements up to each, along `dim`. Integers and bools are summed as int64."""
    return _along(CumulativeSum, _summable(input, dtype), dim)


def _summable(input: Value, dtype: np.dtype | None) -> Value:
    return cast(input, dtype or int64) if dtype is not None or not is_floating(input.dtype) else input


def _along(operation: type[Function], input: Value, dim: int) -> Value:
    axis = normalize_dim(dim, input.ndim)
    return operation.apply(input, dim=axis) if input.ndim else shaped(operation.apply(input.reshape(1), dim=0), ())
