"""Operations that combine the elements along axes: sum and mean.

Imports arrays, function and the shape operations. The one idea to know: the transpose of summing is repeating.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mini_autograd.arrays import dtype_name, int64, is_floating, normalize_dims
from mini_autograd.function import Function, Value
from mini_autograd.operations.elementwise import cast
from mini_autograd.operations.shape import expand, reshape

Dims = int | Sequence[int] | None


class Sum(Function):
    """Sum over some axes, or all. Every summand gets the gradient of its sum."""

    __slots__ = ("dim", "shape")
    dim: tuple[int, ...] | None

    @staticmethod
    def forward(ctx, x, dim, keepdim):
        ctx.shape, ctx.dim = x.shape, dim
        return x.sum(axis=dim, keepdims=keepdim)

    @staticmethod
    def backward(ctx, grad):
        return spread(grad, ctx.dim, ctx.shape)

    def name(self) -> str:
        return "SumBackward0" if self.dim is None else "SumBackward1"


class Mean(Function):
    """Mean over some axes, or all. Each of n elements gets 1/n of the gradient of their mean."""

    __slots__ = ("dim", "shape")
    dim: tuple[int, ...] | None

    @staticmethod
    @np.errstate(all="ignore")
    def forward(ctx, x, dim, keepdim):
        ctx.shape, ctx.dim = x.shape, dim
        return x.sum(axis=dim, keepdims=keepdim) / count(x.shape, dim)

    @staticmethod
    def backward(ctx, grad):
        return spread(grad / count(ctx.shape, ctx.dim), ctx.dim, ctx.shape)

    def name(self) -> str:
        return "MeanBackward0" if self.dim is None else "MeanBackward1"


def spread(grad: Value, dim: tuple[int, ...] | None, shape: tuple[int, ...]) -> Value:
    """Repeat the gradient of a reduction along the axes that were reduced."""
    if grad.ndim != len(shape):
        grad = reshape(grad, tuple(1 if dim is None or axis in dim else size for axis, size in enumerate(shape)))
    return expand(grad, shape)


def count(shape: tuple[int, ...], dim: tuple[int, ...] | None) -> int:
    """How many elements each result of a reduction combines."""
    return math.prod(shape if dim is None else [shape[axis] for axis in dim])


def sum(
    input: Value, dim: Dims = None, keepdim: bool = False, *, dtype: np.dtype | None = None, **numpy: Value
) -> Value:
    """Sum of the elements, along `dim` (an axis, several, or None: all). Integers and bools are summed as int64.

    NumPy's names `axis` and `keepdims` are understood too, as in PyTorch.
    """
    dim, keepdim = numpy.pop("axis", dim), numpy.pop("keepdims", keepdim)
    if dtype is not None or not is_floating(input.dtype):
        input = cast(input, dtype or int64)
    return Sum.apply(input, dim=normalize_dims(dim, input.ndim), keepdim=keepdim)


def mean(
    input: Value, dim: Dims = None, keepdim: bool = False, *, dtype: np.dtype | None = None, **numpy: Value
) -> Value:
    """Mean of the elements, along `dim` (an axis, several, or None: all); nan where there are none."""
    dim, keepdim = numpy.pop("axis", dim), numpy.pop("keepdims", keepdim)
    if dtype is not None:
        input = cast(input, dtype)
    if not is_floating(input.dtype):
        raise RuntimeError(
            "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
            f"Got: {dtype_name(input.dtype)}"
        )
    return Mean.apply(input, dim=normalize_dims(dim, input.ndim), keepdim=keepdim)
