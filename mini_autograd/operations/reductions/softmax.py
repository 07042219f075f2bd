"""softmax and log_softmax: numbers turned into probabilities, along one axis.

The one idea to know: shifting all numbers by the same amount changes nothing, so the largest is subtracted first and
nothing overflows; and the gradient has no component along such a shift.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mini_autograd.graph.function import Function, Unary, Value
from mini_autograd.numerics.arrays import dtype_name, floating, is_floating, normalize_dim
from mini_autograd.operations.pointwise.elementwise import cast, exp, quiet
from mini_autograd.operations.shapes.shape import shaped

__all__ = ["log_softmax", "softmax"]

SHORT = 32
"""Up to this many classes, probabilities are computed column by column; otherwise NumPy calls a loop for each row."""


class Softmax(Unary):
    """p = e^x / sum e^x along one axis. dp = p (dx - sum p dx), and the same matrix serves the backward pass."""

    __slots__ = ("dim",)
    prepare = staticmethod(floating)

    @staticmethod
    @quiet
    def forward(ctx, x, dim):
        ctx.dim = dim
        output = x - highest(x, dim)
        np.exp(output, out=output)
        output /= output.sum(axis=dim, keepdims=True)
        ctx.save_for_backward(output)
        return output

    @staticmethod
    def backward(ctx, grad):
        (p,) = ctx.saved_tensors
        if type(grad) is not np.ndarray:
            return p * (grad - (grad * p).sum(ctx.dim, keepdims=True))
        along: Any = {"axis": ctx.dim}
        result = grad - np.expand_dims(np.vecdot(grad, p, **along), **along)
        result *= p
        return result

    @staticmethod
    def jvp(ctx, tangent):
        return ctx.backward(ctx, tangent)


class LogSoftmax(Unary):
    """log p = x - log sum e^x along one axis. d(log p) = dx - sum p dx."""

    __slots__ = ("dim",)
    prepare = staticmethod(floating)

    @staticmethod
    @quiet
    def forward(ctx, x, dim):
        ctx.dim = dim
        output = log_probabilities(x, dim)
        ctx.save_for_backward(output)
        return output

    @staticmethod
    def backward(ctx, grad):
        (output,) = ctx.saved_tensors
        return grad - exp(output) * grad.sum(ctx.dim, keepdims=True)

    @staticmethod
    def jvp(ctx, tangent):
        (output,) = ctx.saved_tensors
        return tangent - (exp(output) * tangent).sum(ctx.dim, keepdims=True)


def log_probabilities(x: Any, dim: int) -> Any:
    """log_softmax of an array, with the largest number subtracted first so that nothing overflows."""
    if type(x) is np.ndarray and x.ndim == 2 and dim == 1 and x.shape[1] <= SHORT:
        return np.ascontiguousarray(log_probabilities(np.ascontiguousarray(x.T), 0).T)
    output = x - highest(x, dim)
    output -= np.log(np.exp(output).sum(axis=dim, keepdims=True))
    return output


def log_and_plain_probabilities(x: Any, dim: int) -> tuple[Any, Any]:
    """log_softmax and softmax of an array: if both are needed, the second costs only one more division."""
    if type(x) is np.ndarray and x.ndim == 2 and dim == 1 and x.shape[1] <= SHORT:
        columns = log_and_plain_probabilities(np.ascontiguousarray(x.T), 0)
        return np.ascontiguousarray(columns[0].T), np.ascontiguousarray(columns[1].T)
    log_p = x - highest(x, dim)
    p = np.exp(log_p)
    total = p.sum(axis=dim, keepdims=True)
    log_p -= np.log(total)
    p /= total
    return log_p, p


def highest(x: Any, dim: int) -> Any:
    """The largest numbers along an axis, which is kept; if it has no elements, anything that broadcasts."""
    return x.max(axis=dim, keepdims=True) if x.shape[dim] else x.sum(axis=dim, keepdims=True)


def softmax(input: Value, dim: int, dtype: np.dtype | None = None) -> Value:
    """Probabilities along `dim`: e^x divided by its sum.

    Raises NotImplementedError for integers, unless a floating `dtype` is given.
    """
    return _along(Softmax, input, dim, dtype)


def log_softmax(input: Value, dim: int, dtype: np.dtype | None = None) -> Value:
    """The logarithms of the softmax probabilities along `dim`, without the loss of digits of `log(softmax(x))`.

    Raises NotImplementedError for integers, unless a floating `dtype` is given.
    """
    return _along(LogSoftmax, input, dim, dtype)


def _along(operation: type[Function], input: Value, dim: int, dtype: np.dtype | None) -> Value:
    name = "log_softmax" if operation is LogSoftmax else "softmax"
    if not isinstance(dim, int | np.integer):
        raise TypeError(f"{name}(): argument 'dim' must be int, not {type(dim).__name__}")
    input = input if dtype is None else cast(input, dtype)
    axis = normalize_dim(dim, input.ndim)
    check_floating(name, input, axis)
    if input.ndim == 0:
        return shaped(operation.apply(input.reshape(1), dim=0), ())
    return operation.apply(input, dim=axis)


def check_floating(name: str, input: Value, axis: int) -> None:
    """Raise PyTorch's error unless the input is of a floating dtype."""
    if not is_floating(input.dtype):
        kernel = f"{name}_lastdim_kernel_impl" if axis == max(input.ndim - 1, 0) else f"{name}_kernel_impl"
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{dtype_name(input.dtype)}'")
