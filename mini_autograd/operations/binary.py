"""Further functions of two and three numbers: atan2, hypot, logaddexp, xlogy, lerp, addcmul, addcdiv.

Imports arrays, function, elementwise and activations. The one idea to know: as in elementwise, a rule gives one
derivative per input and says nothing of shapes.
"""

from __future__ import annotations

import math

import numpy as np

from mini_autograd.arrays import promoted_to_floating
from mini_autograd.function import Value
from mini_autograd.operations.activations import sigmoid
from mini_autograd.operations.elementwise import Arithmetic, cast, log, multiply, pow, quiet, where


class Atan2(Arithmetic):
    """The angle of the point (b, a), in (-pi, pi]. d = (b da - a db) / (a^2 + b^2), and 0 at the origin."""

    torch_name = "Atan2Backward0"
    prepare = staticmethod(promoted_to_floating)

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return np.arctan2(a, b)

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        squares = a * a + b * b
        scaled = grad / where(squares == 0, 1.0, squares)
        return scaled * b, -scaled * a


class Hypot(Arithmetic):
    """sqrt(a^2 + b^2). d = (a da + b db) / output."""

    torch_name = "HypotBackward0"

    @staticmethod
    def forward(ctx, a, b):
        output = np.hypot(a, b)
        ctx.save_for_backward(a, b, output)
        return output

    @staticmethod
    def backward(ctx, grad):
        a, b, output = ctx.saved_tensors
        return grad * (a / output), grad * (b / output)


class LogAddExp(Arithmetic):
    """log(e^a + e^b), without overflow. d = s(a - b) da + s(b - a) db with the sigmoid s."""

    torch_name = "LogaddexpBackward0"

    @staticmethod
    @quiet
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return np.logaddexp(a, b)

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return grad * sigmoid(a - b), grad * sigmoid(b - a)


class XLogY(Arithmetic):
    """a log(b), and 0 where a is 0. d = log(b) da + a/b db."""

    torch_name = "XlogyBackward0"
    prepare = staticmethod(promoted_to_floating)

    @staticmethod
    @quiet
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return np.where((a == 0) & ~np.isnan(b), 0.0, a * np.log(b)).astype((a * b).dtype, copy=False)

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        return where((a == 0) & (b <= 0), 0.0, grad * log(b)), grad * (a / b)


def atan2(input: Value, other: Value) -> Value:
    """The angle of the point (other, input) with the first axis, in radians."""
    return Atan2.apply(input, other)


def hypot(input: Value, other: Value) -> Value:
    """sqrt(input^2 + other^2), without overflow."""
    return Hypot.apply(input, other)


def logaddexp(input: Value, other: Value) -> Value:
    """log(e^input + e^other), without overflow."""
    return LogAddExp.apply(input, other)


def logaddexp2(input: Value, other: Value) -> Value:
    """log2(2^input + 2^other), without overflow."""
    return logaddexp(input * math.log(2), other * math.log(2)) / math.log(2)


def xlogy(input: Value, other: Value) -> Value:
    """input log(other), and 0 where `input` is 0."""
    return XLogY.apply(input, other)


def lerp(input: Value, end: Value, weight: Value) -> Value:
    """From `input` to `end`, so far as `weight` says: input + weight (end - input)."""
    return input + multiply(end - input, weight)


def addcmul(input: Value, tensor1: Value, tensor2: Value, *, value: float = 1) -> Value:
    """input + value * tensor1 * tensor2."""
    return input + (tensor1 * tensor2 if value == 1 else value * tensor1 * tensor2)


def addcdiv(input: Value, tensor1: Value, tensor2: Value, *, value: float = 1) -> Value:
    """input + value * tensor1 / tensor2."""
    return input + (tensor1 / tensor2 if value == 1 else value * tensor1 / tensor2)


def float_power(input: Value, exponent: Value) -> Value:
    """`input ** exponent` in float64."""
    wide = [
        x.astype(float) if isinstance(x, np.ndarray) else x.double() if hasattr(x, "double") else x
        for x in (input, exponent)
    ]
    return pow(*[float(x) if isinstance(x, int) else x for x in wide])


def ldexp(input: Value, other: Value) -> Value:
    """input times 2 to the power of `other`."""
    return input * pow(2.0, other)


def heaviside(input: Value, values: Value) -> Value:
    """0 where `input` is negative, 1 where it is positive, and `values` where it is 0."""
    return where(input == 0, values, cast(input > 0, values.dtype))
