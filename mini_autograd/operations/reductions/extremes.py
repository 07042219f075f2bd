"""Extremes: maximum, minimum, clamp, amax, amin. Functions that also say *where* they found it are in sorting.

The one idea to know: the chosen element gets the whole gradient of the result, and where several elements tie they
share it evenly. Only `clamp` gives it all to x where x equals the bound.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mini_autograd.graph.function import Function, Unary, Value
from mini_autograd.numerics.arrays import normalize_dims, number, result_type, wrapped
from mini_autograd.operations.pointwise.comparison import isnan
from mini_autograd.operations.pointwise.elementwise import Arithmetic, cast, check_broadcast, elementwise_jvp, where
from mini_autograd.operations.reductions.reduction import Dims, restore, spread

__all__ = ["amax", "amin", "clamp", "clip", "maximum", "minimum"]
IN_PLACE = ["clamp", "clip"]


class Maximum(Arithmetic):
    """The larger of two numbers. It gets the gradient; if they are equal, each gets half."""

    exact = True

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return np.maximum(a, b)

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        shared = where(a == b, grad / 2.0, grad)
        return where(a < b, 0.0, shared), where(b < a, 0.0, shared)


class Minimum(Arithmetic):
    """The smaller of two numbers. It gets the gradient; if they are equal, each gets half."""

    exact = True

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return np.minimum(a, b)

    @staticmethod
    def backward(ctx, grad):
        of_larger, of_smaller = Maximum.backward(ctx, grad)
        return of_smaller, of_larger


class Clamp(Function):
    """x limited to the range between two bounds (None: no bound). The gradient goes to x, even where x equals a bound,
    else to the bound that was taken.
    """

    torch_name = "ClampBackward1"
    exact = True
    jvp = staticmethod(elementwise_jvp)

    @staticmethod
    def complain(x: Any, *bounds: Any) -> None:
        """Raise PyTorch's error for a bound whose shape does not broadcast."""
        for bound in bounds:
            check_broadcast(np.shape(x), np.shape(bound))

    @staticmethod
    def forward(ctx, x, low, high):
        ctx.save_for_backward(x, low, high)
        output = x if low is None else np.maximum(x, low)
        return output if high is None else np.minimum(output, high)

    @staticmethod
    def backward(ctx, grad):
        x, low, high = ctx.saved_tensors
        inside = (x == x) if low is None else (x >= low)
        inside = inside if high is None else inside & (x <= high)
        below, above = None if low is None else x < low, None if high is None else x > high
        if below is not None and above is not None:
            below, above = below & (low < high), above | (high < low)
        bounds = [None if taken is None else where(taken, grad, 0.0) for taken in (below, above)]
        return where(inside, grad, 0.0), *bounds


class Extreme(Unary):
    """The largest or smallest element along some axes, or of all. Elements that tie share the gradient evenly.

    With `nan_ties`, as in `max` and norms, nan counts as equal to nan; without, as in `amax`, the gradient is 0/0, nan.
    """

    exact = True
    __slots__ = ("dim", "nan_ties")
    dim: tuple[int, ...] | None
    nan_ties: bool

    @staticmethod
    def backward(ctx, grad):
        x, output = ctx.saved_tensors
        chosen = ties(x, output, ctx.dim, ctx.nan_ties)
        number = chosen.sum(ctx.dim, keepdims=True)
        whole = spread(grad, ctx.dim, x.shape)
        return where(chosen, whole / number, 0.0) if ctx.nan_ties else whole * chosen / number

    @staticmethod
    def jvp(ctx, tangent):
        x, output = ctx.saved_tensors
        chosen = ties(x, output, ctx.dim, ctx.nan_ties)
        return ((tangent * chosen).sum(ctx.dim) / chosen.sum(ctx.dim)).reshape(output.shape)


def ties(x: Value, output: Value, dim: tuple[int, ...] | None, nan_ties: bool = True) -> Value:
    """Where `x` equals the extreme found along `dim`."""
    output = restore(output, dim, x.shape)
    return (x == output) | (isnan(x) & isnan(output)) if nan_ties else x == output


class Amax(Extreme):
    """The largest element. Elements that tie share the gradient evenly."""

    sign = "max"

    @staticmethod
    def forward(ctx, x, dim, keepdim, nan_ties):
        output = x.max(axis=dim, keepdims=keepdim)
        ctx.dim, ctx.nan_ties = dim, nan_ties
        ctx.save_for_backward(x, output)
        return output

    def name(self) -> str:
        return "MaxBackward1" if self.nan_ties else "AmaxBackward0"


class Amin(Extreme):
    """The smallest element. Elements that tie share the gradient evenly."""

    sign = "min"

    @staticmethod
    def forward(ctx, x, dim, keepdim, nan_ties):
        output = x.min(axis=dim, keepdims=keepdim)
        ctx.dim, ctx.nan_ties = dim, nan_ties
        ctx.save_for_backward(x, output)
        return output

    def name(self) -> str:
        return "MinBackward1" if self.nan_ties else "AminBackward0"


def maximum(input: Value, other: Value) -> Value:
    """The larger of the two, element by element; nan if either is."""
    return Maximum.apply(input, other)


def minimum(input: Value, other: Value) -> Value:
    """The smaller of the two, element by element; nan if either is."""
    return Minimum.apply(input, other)


def clamp(input: Value, min: Value = None, max: Value = None) -> Value:
    """Each element clamped to `min` and `max`, numbers or tensors; None is no bound. If min > max, the result is max.

    Raises RuntimeError if both are None.
    """
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    min, max = number(min), number(max)
    common = result_type(input, *[bound for bound in (min, max) if bound is not None])
    low, high = (cast(bound, common) if hasattr(bound, "dtype") else wrapped(bound, common) for bound in (min, max))
    return Clamp.apply(cast(input, common), low, high)


clip = clamp


def amax(input: Value, dim: Dims = (), keepdim: bool = False) -> Value:
    """The largest element along `dim` (an axis, several, or (): all). Elements that tie share the gradient."""
    return Amax.apply(input, dim=checked_dims("amax", input, dim), keepdim=keepdim, nan_ties=False)


def amin(input: Value, dim: Dims = (), keepdim: bool = False) -> Value:
    """The smallest element along `dim` (an axis, several, or (): all). Elements that tie share the gradient."""
    return Amin.apply(input, dim=checked_dims("amin", input, dim), keepdim=keepdim, nan_ties=False)


def checked_dims(name: str, input: Value, dim: Dims) -> tuple[int, ...] | None:
    """The axes to reduce, or PyTorch's error if there is nothing to choose from."""
    dims = normalize_dims(dim, input.ndim)
    if dims is None and 0 in input.shape:
        raise RuntimeError(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with "
            "the 'dim' argument."
        )
    for axis in dims or ():
        if input.shape[axis] == 0:
            raise IndexError(f"{name}(): Expected reduction dim {axis} to have non-zero size.")
    return dims
