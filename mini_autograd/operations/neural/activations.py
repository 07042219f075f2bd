"""The functions between the layers of a network, such as GELU. ReLU, tanh and sigmoid are in pointwise.

The one idea to know: a mask chooses between the two sides of a kink; at the kink itself the rule does what PyTorch's
does.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mini_autograd.graph import function
from mini_autograd.graph.function import Value
from mini_autograd.numerics.arrays import check_floating, number
from mini_autograd.numerics.blocks import in_blocks
from mini_autograd.operations.pointwise.elementwise import Elementwise, exp, quiet, where
from mini_autograd.operations.pointwise.mathematical import ERF_BY_TANH, erf, polynomial, sigmoid, tanh

__all__ = ["gelu", "leaky_relu", "silu", "softplus"]


def only_floats(kernel: str) -> Any:
    """The `prepare` of an operation that PyTorch does not have for integers."""

    def prepare(x: Any) -> tuple[Any]:
        check_floating(x, kernel)
        return (x,)

    return staticmethod(prepare)


class Silu(Elementwise):
    """x s(x) with the sigmoid s. d = s (1 + x (1 - s)) dx. (Elfwing and others 2017; also called swish.)"""

    prepare = only_floats("silu_cpu")

    @staticmethod
    @quiet
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return plain_silu(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return silu_gradient(x, grad)


@in_blocks
def plain_silu(x: Any) -> Any:
    """x s(x)."""
    return x / (1.0 + np.exp(-x))


@in_blocks
def silu_gradient(x: Value, grad: Value) -> Value:
    """The rule of `Silu`."""
    s = sigmoid(x)
    return grad * (s * (1.0 + x * (1.0 - s)))


class Gelu(Elementwise):
    """x Phi(x), with Phi the normal distribution function and phi its density. d = (Phi(x) + x phi(x)) dx.

    Phi(x) = (1 + erf(x / sqrt 2)) / 2. (Hendrycks and Gimpel 2016.)
    """

    prepare = only_floats("GeluKernelImpl")

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return gelu_exact(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return gelu_exact_gradient(x, grad)


@in_blocks
def gelu_exact(x: Value) -> Value:
    """x Phi(x)."""
    return x * normal_distribution(x)


@in_blocks
def gelu_exact_gradient(x: Value, grad: Value) -> Value:
    """The rule of `Gelu`."""
    density = exp(x * x * -0.5) * (1.0 / math.sqrt(2.0 * math.pi))
    return grad * (normal_distribution(x) + x * density)


class GeluTanh(Elementwise):
    """GELU by a formula without erf: x (1 + tanh u) / 2, with u = sqrt(2/pi) (x + 0.044715 x^3).

    d = ((1 + tanh u) + x (1 - tanh(u)^2) du/dx) / 2 dx. (Hendrycks and Gimpel 2016.)
    """

    torch_name = "GeluBackward0"
    prepare = only_floats("GeluKernelImpl")

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return gelu_tanh(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return gelu_tanh_gradient(x, grad)


class Softplus(Elementwise):
    """log(1 + e^(bx)) / b, with the derivative sigmoid(bx); just x, with 1, where bx is above the threshold."""

    __slots__ = ("beta", "threshold")
    prepare = only_floats("softplus_cpu")

    @staticmethod
    @quiet
    def forward(ctx, x, beta, threshold):
        ctx.save_for_backward(x)
        ctx.beta, ctx.threshold = beta, threshold
        return np.where(x * beta > threshold, x, np.log1p(np.exp(x * beta)) / beta)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return where(x * ctx.beta > ctx.threshold, grad, grad * sigmoid(x * ctx.beta))


class LeakyRelu(Elementwise):
    """x where it is positive, elsewhere x times a slope. At 0 the derivative is that slope. (Maas and others 2013.)"""

    __slots__ = ("slope",)
    prepare = only_floats("leaky_relu_cpu")

    @staticmethod
    def forward(ctx, x, slope):
        ctx.save_for_backward(x)
        ctx.slope = slope
        return np.maximum(x, 0) + slope * np.minimum(x, 0)  # where() is slow on random signs

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return where(x > 0, grad, grad * ctx.slope)


PHI_BY_TANH = tuple(coefficient * 0.5 ** (power + 0.5) for power, coefficient in enumerate(ERF_BY_TANH))
"""The coefficients of P in Phi(x) = (1 + tanh(x P(x^2))) / 2, in single precision."""


@quiet
def normal_distribution(x: Value) -> Value:
    """Phi(x), the probability that a standard normal number is below x."""
    if isinstance(x, function.Tensor) or x.dtype != np.float32:
        return (erf(x * math.sqrt(0.5)) + 1.0) * 0.5
    return (np.tanh(x * polynomial(x * x, PHI_BY_TANH)) + 1.0) * 0.5


def gelu_argument(x: Value) -> Value:
    """u = sqrt(2/pi) (x + 0.044715 x^3), factored so that few arrays are made."""
    return (x * x * (0.044715 * math.sqrt(2.0 / math.pi)) + math.sqrt(2.0 / math.pi)) * x


@in_blocks
def gelu_tanh(x: Value) -> Value:
    """x (1 + tanh u) / 2."""
    return (tanh(gelu_argument(x)) + 1.0) * x * 0.5


@in_blocks
def gelu_tanh_gradient(x: Value, grad: Value) -> Value:
    """The rule of `GeluTanh`, with (1 + t) / 2 taken out of both terms."""
    t = tanh(gelu_argument(x))
    slope = x * x * (3.0 * 0.044715 * math.sqrt(2.0 / math.pi)) + math.sqrt(2.0 / math.pi)
    return grad * (((1.0 - t) * slope * x + 1.0) * ((1.0 + t) * 0.5))


def silu(input: Value, inplace: bool = False) -> Value:
    """x sigmoid(x) of each element."""
    return Silu.apply(input)


def gelu(input: Value, *, approximate: str = "none") -> Value:
    """x Phi(x) of each element, with Phi the normal distribution function; approximate="tanh" avoids erf.

    Raises RuntimeError for any other `approximate`, and NotImplementedError for integers.
    """
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    return Gelu.apply(input) if approximate == "none" else GeluTanh.apply(input)


def softplus(input: Value, beta: float = 1.0, threshold: float = 20.0) -> Value:
    """log(1 + e^(beta x)) / beta of each element; just x where beta x is above `threshold`."""
    return Softplus.apply(input, beta=number(beta), threshold=number(threshold))


def leaky_relu(input: Value, negative_slope: float = 0.01, inplace: bool = False) -> Value:
    """Each element, or `negative_slope` times it where it is negative."""
    return LeakyRelu.apply(input, slope=number(negative_slope))
