"""Operations that combine the elements along axes: sum, mean, prod, var, std, logsumexp. Norms are in norms.

The one idea to know: the transpose of summing is repeating. A result is brought back to the rank of its input
(`restore`), and then broadcasts with it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mini_autograd.graph.function import Unary, Value, as_array, wrap
from mini_autograd.numerics.arrays import (
    dtype_name,
    floating,
    holds,
    int64,
    is_floating,
    normalize_dim,
    normalize_dims,
    number,
)
from mini_autograd.operations.pointwise.elementwise import cast, exp, module_of, where
from mini_autograd.operations.pointwise.mathematical import sqrt
from mini_autograd.operations.shapes.shape import expand, reshape, transpose

__all__ = ["logsumexp", "mean", "prod", "std", "sum", "var"]

Dims = int | Sequence[int] | None


class Sum(Unary):
    """Sum over some axes, or all. Every summand gets the gradient of its sum."""

    __slots__ = ("dim", "keepdim", "shape")
    dim: tuple[int, ...] | None

    @staticmethod
    def forward(ctx, x, dim, keepdim):
        ctx.shape, ctx.dim, ctx.keepdim = x.shape, dim, keepdim
        if type(x) is np.ndarray:  # what `x.sum` calls, without the warnings of that method
            return np.add.reduce(x, dim, None, None, keepdim)  # type: ignore[call-overload]
        return x.sum(axis=dim, keepdims=keepdim)

    @staticmethod
    def backward(ctx, grad):
        return spread(grad, ctx.dim, ctx.shape)

    @staticmethod
    def jvp(ctx, tangent):
        return tangent.sum(ctx.dim, keepdims=ctx.keepdim)

    def name(self) -> str:
        return "SumBackward0" if self.dim is None else "SumBackward1"


class Mean(Unary):
    """Mean over some axes, or all. Each of n elements gets 1/n of the gradient of their mean."""

    __slots__ = ("dim", "keepdim", "shape")
    dim: tuple[int, ...] | None

    @staticmethod
    @np.errstate(all="ignore")
    def forward(ctx, x, dim, keepdim):
        ctx.shape, ctx.dim, ctx.keepdim = x.shape, dim, keepdim
        return x.sum(axis=dim, keepdims=keepdim) / count(x.shape, dim)

    @staticmethod
    def backward(ctx, grad):
        return spread(grad / count(ctx.shape, ctx.dim), ctx.dim, ctx.shape)

    @staticmethod
    def jvp(ctx, tangent):
        return tangent.sum(ctx.dim, keepdims=ctx.keepdim) / count(ctx.shape, ctx.dim)

    def name(self) -> str:
        return "MeanBackward0" if self.dim is None else "MeanBackward1"


class Product(Unary):
    """Product along one axis. The derivative with respect to one factor is the product of the others."""

    torch_name = "ProdBackward1"
    __slots__ = ("dim", "keepdim")

    @staticmethod
    def forward(ctx, x, dim, keepdim):
        output = x.prod(axis=dim, keepdims=keepdim, dtype=x.dtype)
        ctx.dim, ctx.keepdim = dim, keepdim
        ctx.save_for_backward(x, output)
        return output

    @staticmethod
    def backward(ctx, grad):
        x, output = ctx.saved_tensors
        dim = (ctx.dim,)
        return restore(grad, dim, x.shape) * products_of_others(x, restore(output, dim, x.shape), ctx.dim)

    @staticmethod
    def jvp(ctx, tangent):
        x, output = ctx.saved_tensors
        others = products_of_others(x, restore(output, (ctx.dim,), x.shape), ctx.dim)
        return (tangent * others).sum(ctx.dim, keepdims=ctx.keepdim)


def products_of_others(x: Value, product: Value, dim: int) -> Value:
    """For every element, the product of all others along `dim`. This takes n^2 factors, but only if `x` has a 0."""
    if not holds((as_array(x) == 0).any()):
        return product / x
    others = ~module_of(x).eye(x.shape[dim], dtype=bool)
    columns = transpose(x, dim, -1)[..., None, :]
    return transpose(prod(where(others, columns, 1.0), -1), dim, -1)


class Variance(Unary):
    """The mean squared distance from the mean, with n - correction instead of n. d = 2 (x - mean) dx / (n - c)."""

    torch_name = "VarBackward0"
    __slots__ = ("correction", "dim", "keepdim")

    @staticmethod
    @np.errstate(all="ignore")
    def forward(ctx, x, dim, keepdim, correction):
        ctx.save_for_backward(x)
        ctx.dim, ctx.keepdim, ctx.correction = dim, keepdim, correction
        n = count(x.shape, dim)
        centered = x - x.sum(axis=dim, keepdims=True) / max(n, 1)
        centered *= centered
        return centered.sum(axis=dim, keepdims=keepdim) / max(n - correction, 0)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return restore(grad, ctx.dim, x.shape) * variance_slope(x, ctx.dim, ctx.correction)

    @staticmethod
    def jvp(ctx, tangent):
        (x,) = ctx.saved_tensors
        return (tangent * variance_slope(x, ctx.dim, ctx.correction)).sum(ctx.dim, keepdims=ctx.keepdim)


def variance_slope(x: Value, dim: tuple[int, ...] | None, correction: float) -> Value:
    """The derivative of the variance, 2 (x - mean) / (n - correction)."""
    n = count(x.shape, dim)
    centered = x - x.sum(dim, keepdims=True) / max(n, 1)
    return centered * (2.0 / (n - correction) if n > correction else math.nan)


class LogSumExp(Unary):
    """log of the sum of e^x, without overflow. Each element gets e^(x - output) of the gradient.

    If the output is infinite, that is nan for the elements that made it so, as in PyTorch.
    """

    torch_name = "LogsumexpBackward0"
    sign = "logsumexp"
    __slots__ = ("dim", "keepdim")
    prepare = staticmethod(floating)

    @staticmethod
    @np.errstate(all="ignore")
    def forward(ctx, x, dim, keepdim):
        ctx.dim, ctx.keepdim = dim, keepdim
        top = x.max(axis=dim, keepdims=True) if count(x.shape, dim) else x.sum(axis=dim, keepdims=True)
        top = np.where(np.isfinite(top), top, 0).astype(x.dtype)
        output = np.log(np.exp(x - top).sum(axis=dim, keepdims=True)) + top
        output = output if keepdim else output.squeeze(dim)[()]
        ctx.save_for_backward(x, output)
        return output

    @staticmethod
    def backward(ctx, grad):
        x, output = ctx.saved_tensors
        return restore(grad, ctx.dim, x.shape) * exp(x - restore(output, ctx.dim, x.shape))

    @staticmethod
    def jvp(ctx, tangent):
        x, output = ctx.saved_tensors
        weights = exp(x - restore(output, ctx.dim, x.shape))
        return (tangent * weights).sum(ctx.dim, keepdims=ctx.keepdim)


def spread(grad: Value, dim: tuple[int, ...] | None, shape: tuple[int, ...]) -> Value:
    """Repeat the gradient of a reduction along the axes that were reduced."""
    if isinstance(grad, (np.ndarray, np.generic)) and not grad.ndim:  # reduced over all axes: one number in memory
        return np.ndarray(shape, grad.dtype, grad, 0, (0,) * len(shape)) if shape else grad
    return expand(restore(grad, dim, shape), shape)


def restore(output: Value, dim: tuple[int, ...] | None, shape: tuple[int, ...]) -> Value:
    """The result of a reduction with its reduced axes restored at size 1, so that it broadcasts with the input."""
    if output.ndim == len(shape):
        return output
    return reshape(output, tuple([1 if dim is None or axis in dim else size for axis, size in enumerate(shape)]))


def count(shape: tuple[int, ...], dim: tuple[int, ...] | None) -> int:
    """How many elements each result of a reduction combines."""
    return math.prod(shape if dim is None else [shape[axis] for axis in dim])


def sum(
    input: Value, dim: Dims = None, keepdim: bool = False, *, dtype: np.dtype | None = None, **numpy: Value
) -> Value:
    """Sum of the elements, along `dim` (an axis, several, or None: all). Integers and bools are summed as int64.

    NumPy's names `axis` and `keepdims` are understood too, as in PyTorch.
    """
    if numpy:
        dim, keepdim = numpy.pop("axis", dim), numpy.pop("keepdims", keepdim)
    if dtype is not None or not is_floating(input.dtype):
        input = cast(input, dtype or int64)
        if not is_floating(input.dtype):  # NumPy would widen it
            axes = normalize_dims(dim, input.ndim)
            return wrap(as_array(input).sum(axis=axes, keepdims=keepdim, dtype=input.dtype), input)
    return Sum.apply(input, dim=normalize_dims(dim, input.ndim), keepdim=keepdim)


def mean(
    input: Value, dim: Dims = None, keepdim: bool = False, *, dtype: np.dtype | None = None, **numpy: Value
) -> Value:
    """Mean of the elements, along `dim` (an axis, several, or None: all); nan where there are none.

    Raises RuntimeError for integers.
    """
    dim, keepdim = numpy.pop("axis", dim), numpy.pop("keepdims", keepdim)
    if dtype is not None:
        input = cast(input, dtype)
    if not is_floating(input.dtype):
        which = "Input" if dtype is None else "Optional"
        raise RuntimeError(
            f"mean(): could not infer output dtype. {which} dtype must be either a floating point or complex dtype. "
            f"Got: {dtype_name(input.dtype)}"
        )
    return Mean.apply(input, dim=normalize_dims(dim, input.ndim), keepdim=keepdim)


def prod(input: Value, dim: int | None = None, keepdim: bool = False, *, dtype: np.dtype | None = None) -> Value:
    """Product of the elements, along the axis `dim` or of all. Integers and bools are multiplied as int64."""
    if dtype is not None or not is_floating(input.dtype):
        input = cast(input, dtype or int64)
    if dim is None:
        return Product.apply(reshape(input, -1), dim=0, keepdim=False)
    axis = normalize_dim(dim, input.ndim)
    return Product.apply(input, dim=axis, keepdim=keepdim) if input.ndim else prod(input)


def var(
    input: Value, dim: Dims | bool = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float = 1
) -> Value:
    """Variance along `dim` (an axis, several, or None: all), with n - correction in the denominator.

    Raises RuntimeError for integers.
    """
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    correction = correction if unbiased is None else float(unbiased)
    checked_floating("std and var", input)
    dims = normalize_dims(dim, input.ndim)
    return Variance.apply(input, dim=dims, keepdim=keepdim, correction=1 if correction is None else number(correction))


def std(
    input: Value, dim: Dims | bool = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: float = 1
) -> Value:
    """Standard deviation: the square root of `var`. Where it is 0, so is its gradient."""
    return root_of_variance(var(input, dim, unbiased, keepdim, correction=correction))


def root_of_variance(variance: Value) -> Value:
    """The square root, with the derivative 0 at 0, as in PyTorch's `std`."""
    zero = variance == 0
    return where(zero, 0.0, sqrt(where(zero, 1.0, variance)))


def logsumexp(input: Value, dim: Dims, keepdim: bool = False) -> Value:
    """log of the sum of e^x along `dim`, an axis or several."""
    return LogSumExp.apply(input, dim=normalize_dims(dim, input.ndim), keepdim=keepdim)


def checked_floating(name: str, input: Value) -> None:
    """Raise PyTorch's error for integers."""
    if not is_floating(input.dtype):
        raise RuntimeError(f"{name} only support floating point and complex dtypes")
