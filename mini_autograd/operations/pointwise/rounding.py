"""Functions that are straight lines between jumps or kinks: abs, sign, rounding, remainders.

The one idea to know: a step function has the derivative 0 wherever it has one, and PyTorch uses 0 at the steps too; so
a rounded value passes on zeros, not None.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mini_autograd.graph.function import Value, as_array
from mini_autograd.numerics.arrays import bool_, check_floating, holds, is_floating, number, result_type
from mini_autograd.operations.pointwise.elementwise import Arithmetic, Elementwise, divide, is_bool, no_slope, quiet

__all__ = ["abs", "absolute", "ceil", "div", "floor", "floor_divide", "positive", "remainder", "round", "sign", "trunc"]
IN_PLACE = [name for name in __all__ if name != "positive"]


def refuse_bools(x: Any, kernel: str) -> None:
    """Raise PyTorch's error for bools, which some operations do not take."""
    if is_bool(x):
        raise NotImplementedError(f"\"{kernel}\" not implemented for 'Bool'")


def not_of_bools(kernel: str) -> Any:
    """The `prepare` of an operation that PyTorch does not have for bools."""

    def prepare(x: Any) -> tuple[Any]:
        refuse_bools(x, kernel)
        return (x,)

    return staticmethod(prepare)


def check_division(a: Any, b: Any, kernel: str) -> None:
    """Raise PyTorch's error for a division of bools, or of integers by 0; for floats, the latter gives inf or nan."""
    common = result_type(a, b)
    if common == bool_:
        raise NotImplementedError(f"\"{kernel}\" not implemented for 'Bool'")
    if not is_floating(common) and np.size(a) and holds(np.any(b == 0)):
        raise RuntimeError("ZeroDivisionError")


class Abs(Elementwise):
    """Absolute value. The derivative is the sign of x, and 0 at 0."""

    prepare = not_of_bools("abs_cpu")

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return np.abs(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * sign(x)


class Flat(Elementwise):
    """A step function: the derivative is 0."""

    exact = True

    @staticmethod
    def backward(ctx, grad):
        return no_slope(grad)


class Sign(Flat):
    """-1, 0 or 1."""

    @staticmethod
    @quiet
    def forward(ctx, x):
        if is_bool(x):
            return x.copy()
        output = np.sign(x)
        return np.nan_to_num(output, nan=0.0) if is_floating(x.dtype) else output


class Floor(Flat):
    """The next integer below."""

    prepare = not_of_bools("floor_vml_cpu")

    @staticmethod
    def forward(ctx, x):
        return np.floor(x)


class Ceil(Flat):
    """The next integer above."""

    prepare = not_of_bools("ceil_vml_cpu")

    @staticmethod
    def forward(ctx, x):
        return np.ceil(x)


class Trunc(Flat):
    """The next integer toward 0."""

    prepare = not_of_bools("trunc_vml_cpu")

    @staticmethod
    def forward(ctx, x):
        return np.trunc(x)


class Round(Flat):
    """The nearest integer, the even one if there are two."""

    prepare = not_of_bools("round_vml_cpu")

    @staticmethod
    def forward(ctx, x):
        return np.rint(x) if is_floating(x.dtype) else x.copy()


class Remainder(Arithmetic):
    """a - b floor(a/b), which has the sign of b. Between the jumps d = da - floor(a/b) db."""

    @staticmethod
    @quiet
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        check_division(a, b, "remainder_cpu")
        return np.remainder(a, b)

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return grad, -grad * div(a, b, rounding_mode="floor")


class FloorDivide(Arithmetic):
    """floor(a / b). Flat between the jumps."""

    torch_name = "DivBackward2"
    exact = True

    @staticmethod
    @quiet
    def forward(ctx, a, b):
        check_division(a, b, "div_floor_cpu")
        return np.floor_divide(a, b)

    @staticmethod
    def backward(ctx, grad):
        return no_slope(grad), no_slope(grad)


class FloorQuotient(FloorDivide):
    """`a // b`. As in PyTorch, it has no rule: only `div` has one."""

    torch_name = "torch::autograd::NotImplemented"

    @staticmethod
    def backward(ctx, grad):
        raise RuntimeError("derivative for aten::floor_divide is not implemented")


class TruncDivide(FloorDivide):
    """a / b without its fraction. Flat between the jumps."""

    @staticmethod
    @quiet
    def forward(ctx, a, b):
        check_division(a, b, "div_trunc_cpu")
        common = result_type(a, b)
        return np.trunc(a / b) if is_floating(common) else ((a - np.fmod(a, b)) // b).astype(common)


def abs(input: Value) -> Value:
    """Absolute value of each element."""
    return Abs.apply(input)


absolute = abs


def sign(input: Value) -> Value:
    """The sign of each element: -1, 0 or 1; 0 for nan."""
    return Sign.apply(input)


def floor(input: Value) -> Value:
    """The next integer below each element."""
    return Floor.apply(input)


def ceil(input: Value) -> Value:
    """The next integer above each element."""
    return Ceil.apply(input)


def trunc(input: Value) -> Value:
    """Each element without its fraction."""
    return Trunc.apply(input)


def round(input: Value, *, decimals: int = 0) -> Value:
    """Each element rounded, halves to the even neighbor; `decimals` may be negative."""
    if decimals == 0:
        return Round.apply(input)
    check_floating(input, "round_cpu")
    scale = 10.0 ** np.abs(decimals)
    return Round.apply(input * scale) / scale if decimals > 0 else Round.apply(input / scale) * scale


def remainder(input: Value, other: Value) -> Value:
    """The remainder of a division rounded down; it has the sign of `other`, as in Python."""
    return Remainder.apply(input, number(other))


def floor_divide(input: Value, other: Value) -> Value:
    """`input / other` rounded down. Raises RuntimeError in a backward pass; `div(rounding_mode="floor")` gives 0."""
    return FloorQuotient.apply(input, number(other))


def div(input: Value, other: Value, *, rounding_mode: str | None = None) -> Value:
    """`input / other`, or that quotient rounded: down with "floor", toward 0 with "trunc".

    Raises RuntimeError for any other mode, and for a rounded division of integers by 0.
    """
    if rounding_mode is None:
        return divide(input, other)
    if rounding_mode == "floor":
        return FloorDivide.apply(input, number(other))
    if rounding_mode != "trunc":
        raise RuntimeError(
            f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'"
        )
    return TruncDivide.apply(input, number(other))


def positive(input: Value) -> Value:
    """`+input`, which is `input`. Raises RuntimeError for bools."""
    if is_bool(as_array(input)):
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input
