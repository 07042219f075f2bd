"""Running sums and products: cumsum, cumprod, logcumsumexp, diff.

Imports arrays, function, elementwise, shape and joining. The one idea to know: an element is in its own result and in
all later ones, so gradients are summed from the end: a reversed running sum.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mini_autograd.arrays import floating, holds, int64, is_floating, normalize_dim
from mini_autograd.function import Function, Unary, Value, as_array
from mini_autograd.operations.elementwise import cast, clone, exp, module_of, quiet, where
from mini_autograd.operations.joining import cat
from mini_autograd.operations.shape import flip, transpose


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


class CumulativeProduct(Unary):
    """Products of the elements up to each, along one axis.

    Output j holds the factor i if j >= i, and its derivative is the product of the others. Without zeros that is
    output / x; with one, the n^2 products are made anew.
    """

    torch_name = "CumprodBackward0"
    __slots__ = ("dim",)

    @staticmethod
    def forward(ctx, x, dim):
        output = x.cumprod(axis=dim, dtype=x.dtype)
        ctx.dim = dim
        ctx.save_for_backward(x, output)
        return output

    @staticmethod
    def backward(ctx, grad):
        x, output = ctx.saved_tensors
        if not holds((as_array(x) == 0).any()):
            return sum_to_the_end(grad * output, ctx.dim) / x
        weighted = transpose(grad, ctx.dim, -1)[..., None, :] * cumulative_products_of_others(x, ctx.dim)
        return transpose(weighted.sum(-1), ctx.dim, -1)

    @staticmethod
    def jvp(ctx, tangent):
        x, output = ctx.saved_tensors
        if not holds((as_array(x) == 0).any()):
            return cumsum(tangent / x, ctx.dim) * output
        weighted = transpose(tangent, ctx.dim, -1)[..., :, None] * cumulative_products_of_others(x, ctx.dim)
        return transpose(weighted.sum(-2), ctx.dim, -1)


def cumulative_products_of_others(x: Value, dim: int) -> Value:
    """Of shape (..., n, n): at [i, j] the derivative of output j with respect to factor i."""
    n = x.shape[dim]
    xp = module_of(x)
    itself, contains = xp.eye(n, dtype=bool), xp.tri(n, dtype=bool).T
    factors = where(itself, 1.0, transpose(x, dim, -1)[..., None, :])
    return where(contains, cumprod(factors, -1), 0.0)


def running(combine: np.ufunc, x: Any, axis: int) -> Any:
    """`combine` over the elements up to each along an axis, for a `combine` whose order of brackets does not matter.

    NumPy has it. Elsewhere in log2(n) steps: what spans 1, 2, 4, ... elements is combined with what ends before it.
    """
    if isinstance(x, np.ndarray):
        return combine.accumulate(x, axis=axis)
    before = (slice(None),) * (axis % x.ndim)
    result, span = x.copy(), 1
    while span < x.shape[axis]:
        later, earlier = (*before, slice(span, None)), (*before, slice(None, -span))
        result[later] = combine(result[later], result[earlier])
        span *= 2
    return result


class LogCumSumExp(Unary):
    """log of the running sums of e^x, without overflow. Element i gets e^(x_i - output_j) of every gradient j >= i."""

    torch_name = "LogcumsumexpBackward0"
    __slots__ = ("dim",)
    prepare = staticmethod(floating)

    @staticmethod
    @quiet
    def forward(ctx, x, dim):
        output = running(np.logaddexp, x, dim)
        ctx.dim = dim
        ctx.save_for_backward(x, output)
        return output

    @staticmethod
    def backward(ctx, grad):
        x, output = ctx.saved_tensors
        weighted = transpose(grad, ctx.dim, -1)[..., None, :] * shares(x, output, ctx.dim)
        return transpose(weighted.sum(-1), ctx.dim, -1)

    @staticmethod
    def jvp(ctx, tangent):
        x, output = ctx.saved_tensors
        weighted = transpose(tangent, ctx.dim, -1)[..., :, None] * shares(x, output, ctx.dim)
        return transpose(weighted.sum(-2), ctx.dim, -1)


def shares(x: Value, output: Value, dim: int) -> Value:
    """Of shape (..., n, n): at [i, j] the share e^(x_i - output_j) of element i in the running sum j >= i."""
    contains = module_of(x).tri(x.shape[dim], dtype=bool).T
    exponents = transpose(x, dim, -1)[..., :, None] - transpose(output, dim, -1)[..., None, :]
    return where(contains, exp(where(contains, exponents, 0.0)), 0.0)


def sum_to_the_end(grad: Value, dim: int) -> Value:
    """Sums of the elements from each on."""
    return flip(cumsum(flip(grad, dim), dim), dim)


def cumsum(input: Value, dim: int, *, dtype: np.dtype | None = None) -> Value:
    """Sums of the elements up to each, along `dim`. Integers and bools are summed as int64."""
    return _along(CumulativeSum, _summable(input, dtype), dim)


def cumprod(input: Value, dim: int, *, dtype: np.dtype | None = None) -> Value:
    """Products of the elements up to each, along `dim`. Integers and bools are multiplied as int64."""
    return _along(CumulativeProduct, _summable(input, dtype), dim)


def logcumsumexp(input: Value, dim: int) -> Value:
    """log of the running sums of e^x along `dim`."""
    return _along(LogCumSumExp, input, dim)


def _summable(input: Value, dtype: np.dtype | None) -> Value:
    return cast(input, dtype or int64) if dtype is not None or not is_floating(input.dtype) else input


def _along(operation: type[Function], input: Value, dim: int) -> Value:
    axis = normalize_dim(dim, input.ndim)
    return operation.apply(input, dim=axis) if input.ndim else operation.apply(input.reshape(1), dim=0).reshape(())


def diff(input: Value, n: int = 1, dim: int = -1, prepend: Value = None, append: Value = None) -> Value:
    """Differences of neighbours along `dim`, `n` times over; `prepend` and `append` are joined to the ends first.

    Raises RuntimeError if there is no axis, or if `n` is negative.
    """
    if input.ndim == 0:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    axis = normalize_dim(dim, input.ndim)
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    if n == 0:
        return clone(input)
    parts = [part for part in (prepend, input, append) if part is not None]
    output = cat(parts, axis) if len(parts) > 1 else input
    before = (slice(None),) * axis
    for _ in range(min(n, output.shape[axis])):
        later, earlier = output[(*before, slice(1, None))], output[(*before, slice(0, max(output.shape[axis] - 1, 0)))]
        output = later != earlier if output.dtype == bool else later - earlier
    return output
