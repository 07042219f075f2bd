"""Functions of one number, such as sqrt, sin and tanh. exp and log are in elementwise.

The one idea to know: a rule multiplies the incoming gradient by the derivative, written with the output where that is
shorter than with the input.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from mini_autograd.graph.function import Value
from mini_autograd.numerics.blocks import in_blocks
from mini_autograd.operations.pointwise.elementwise import OfFloats, exp, quiet

__all__ = ["cos", "erf", "log1p", "log10", "reciprocal", "rsqrt", "sigmoid", "sin", "sqrt", "square", "tanh"]
IN_PLACE = __all__


class Sqrt(OfFloats):
    """Square root. d(sqrt x) = dx / (2 sqrt x)."""

    @staticmethod
    @quiet
    def forward(ctx, x):
        output = np.sqrt(x)
        ctx.save_for_backward(output)
        return output

    @staticmethod
    def backward(ctx, grad):
        (output,) = ctx.saved_tensors
        return grad / (2.0 * output)


class Rsqrt(OfFloats):
    """1 / sqrt(x). d(x^(-1/2)) = -x^(-3/2) dx / 2."""

    @staticmethod
    @quiet
    def forward(ctx, x):
        output = 1.0 / np.sqrt(x)
        ctx.save_for_backward(output)
        return output

    @staticmethod
    def backward(ctx, grad):
        (output,) = ctx.saved_tensors
        return -0.5 * grad * (output * output * output)


class Reciprocal(OfFloats):
    """1 / x. d(1/x) = -dx / x^2."""

    @staticmethod
    @quiet
    def forward(ctx, x):
        output = 1.0 / x
        ctx.save_for_backward(output)
        return output

    @staticmethod
    def backward(ctx, grad):
        (output,) = ctx.saved_tensors
        return -grad * (output * output)


class Log10(OfFloats):
    """The logarithm to base 10. d(log10 x) = dx / (x log 10)."""

    @staticmethod
    @quiet
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return np.log10(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad / (x * math.log(10.0))


class Log1p(OfFloats):
    """log(1 + x), exact for small x. d(log(1 + x)) = dx / (1 + x)."""

    @staticmethod
    @quiet
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return np.log1p(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad / (x + 1.0)


class Sin(OfFloats):
    """Sine. d(sin x) = cos(x) dx."""

    @staticmethod
    @quiet
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return np.sin(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * cos(x)


class Cos(OfFloats):
    """Cosine. d(cos x) = -sin(x) dx."""

    @staticmethod
    @quiet
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return np.cos(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return -grad * sin(x)


class Tanh(OfFloats):
    """Elementwise hyperbolic tangent. d(tanh x) = (1 - tanh(x)^2) dx."""

    @staticmethod
    def forward(ctx, x):
        output = np.tanh(x)
        ctx.save_for_backward(output)
        return output

    @staticmethod
    def backward(ctx, grad):
        (output,) = ctx.saved_tensors
        return tanh_gradient(grad, output)


@in_blocks
def tanh_gradient(grad: Value, output: Value) -> Value:
    """The rule of `Tanh`."""
    return grad * (1.0 - output * output)


class Sigmoid(OfFloats):
    """s(x) = 1 / (1 + e^(-x)). ds = s (1 - s) dx."""

    @staticmethod
    @quiet
    def forward(ctx, x):
        output = 1.0 / (1.0 + np.exp(-x))
        ctx.save_for_backward(output)
        return output

    @staticmethod
    def backward(ctx, grad):
        (output,) = ctx.saved_tensors
        return sigmoid_gradient(grad, output)


@in_blocks
def sigmoid_gradient(grad: Value, output: Value) -> Value:
    """The rule of `Sigmoid`."""
    return grad * (output * (1.0 - output))


class Erf(OfFloats):
    """The error function, 2/sqrt(pi) times the integral of exp(-t^2) from 0 to x. Its derivative is the integrand.

    NumPy has no erf. Up to where erf is 1, erf(x)/x is a smooth function of x^2, so a polynomial in x^2 approximates
    it. For single precision a shorter polynomial inside tanh is enough: tanh is already close to erf, and NumPy's is
    fast.
    """

    @staticmethod
    @quiet
    def forward(ctx, x):
        ctx.save_for_backward(x)
        if x.dtype.itemsize == 8:
            return erf_of_double(np.clip(x, -6.0, 6.0))
        return erf_of_single(x) if x.dtype.itemsize == 4 else erf_of_single(x.astype(np.float32)).astype(x.dtype)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (2.0 / math.sqrt(math.pi) * exp(-x * x))


@functools.cache
def erf_polynomial(end: float, degree: int) -> tuple[float, ...]:
    """The polynomial in t, from -1 to 1, that equals erf(x)/x at the Chebyshev points, with x^2 = end^2 (t + 1)/2.

    The absolute values of its coefficients (t^0 first) sum to at most 2.4, so a sum in powers of t loses no digits.
    """

    def quotient(points: Any) -> Any:
        roots = [end * math.sqrt((t + 1) / 2) for t in points]
        return np.array([math.erf(root) / root for root in roots])

    chebyshev = np.polynomial.chebyshev
    return tuple(chebyshev.cheb2poly(chebyshev.chebinterpolate(quotient, degree)).tolist())


ERF_BY_TANH = (
    *(1.12837964, 0.102766302, -1.86846823e-4, -6.22810338e-4),
    *(8.81208097e-5, -5.56094468e-6, 1.0599325e-7, 2.44056243e-9),
)
"""The coefficients of P in erf(x) = tanh(x P(x^2)), x^0 first. Of all polynomials of its degree, P has the least error
in erf, 5e-8, up to x = 3.9. Rounding in single precision adds 9e-8. Beyond that, x P(x^2) keeps growing, and tanh is 1.
"""


@in_blocks
def erf_of_single(x: Any) -> Any:
    """erf in single precision, to 1.4e-7."""
    return np.tanh(x * polynomial(x * x, ERF_BY_TANH))


@in_blocks
def erf_of_double(x: Any) -> Any:
    """erf of numbers between -6 and 6, to 5e-14."""
    return x * polynomial(x * x * (2.0 / 6.0**2) - 1.0, erf_polynomial(6.0, 40))


def polynomial(t: Any, coefficients: tuple[float, ...]) -> Any:
    """The sum of c_k t^k, by Horner's rule, in one array."""
    result = t * coefficients[-1]
    for coefficient in coefficients[-2:0:-1]:
        result += coefficient
        result *= t
    return result + coefficients[0]


def sqrt(input: Value) -> Value:
    """Square root of each element; nan where it is negative."""
    return Sqrt.apply(input)


def rsqrt(input: Value) -> Value:
    """1 / sqrt(x) of each element."""
    return Rsqrt.apply(input)


def reciprocal(input: Value) -> Value:
    """1 / x of each element."""
    return Reciprocal.apply(input)


def square(input: Value) -> Value:
    """The square of each element."""
    return input**2


def log10(input: Value) -> Value:
    """The logarithm of each element to base 10."""
    return Log10.apply(input)


def log1p(input: Value) -> Value:
    """log(1 + x) of each element, exact for small x."""
    return Log1p.apply(input)


def sin(input: Value) -> Value:
    """Sine of each element."""
    return Sin.apply(input)


def cos(input: Value) -> Value:
    """Cosine of each element."""
    return Cos.apply(input)


def tanh(input: Value) -> Value:
    """Hyperbolic tangent of each element."""
    return Tanh.apply(input)


def sigmoid(input: Value) -> Value:
    """1 / (1 + e^(-x)) of each element."""
    return Sigmoid.apply(input)


def erf(input: Value) -> Value:
    """The error function of each element: 2/sqrt(pi) times the integral of exp(-t^2) from 0 to it."""
    return Erf.apply(input)
