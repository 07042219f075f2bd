"""The functions between the layers of a network: sigmoid, softplus, GELU and their relatives. ReLU is in elementwise.

Imports arrays, blocks, function, elementwise, mathematical and extremes. The one idea to know: what is left of a kink
and right of it is chosen by a mask; at the kink itself the rule says what PyTorch's says.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mini_autograd.arrays import bool_, check_floating, dtype_name, floating, is_floating, normalize_dim
from mini_autograd.blocks import in_blocks
from mini_autograd.function import Function, Unary, Value
from mini_autograd.operations.elementwise import Elementwise, elementwise_jvp, exp, quiet, relu, tanh, where
from mini_autograd.operations.extremes import clamp
from mini_autograd.operations.mathematical import OfFloats, erf


def only_floats(kernel: str) -> Any:
    """The `prepare` of an operation that PyTorch does not have for integers."""

    def prepare(x: Any) -> tuple[Any]:
        check_floating(x, kernel)
        return (x,)

    return staticmethod(prepare)


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


class LogSigmoid(Elementwise):
    """log(1 / (1 + e^(-x))), which is -softplus(-x). The derivative is sigmoid(-x)."""

    torch_name = "LogSigmoidBackward0"
    prepare = only_floats("log_sigmoid_cpu")

    @staticmethod
    @quiet
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return -np.logaddexp(0.0, -x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * sigmoid(-x)


class Logit(Unary):
    """log(x / (1 - x)), of x brought into [eps, 1 - eps] if eps is given. d = dx / (x (1 - x)); outside nan, or 0."""

    torch_name = "LogitBackward0"
    __slots__ = ("eps",)
    prepare = staticmethod(floating)
    jvp = staticmethod(elementwise_jvp)

    @staticmethod
    @quiet
    def forward(ctx, x, eps):
        ctx.eps = eps
        ctx.save_for_backward(x)
        x = x if eps is None else np.clip(x, eps, 1.0 - eps)
        return np.log(x / (1.0 - x))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        low, outside = (0.0, math.nan) if ctx.eps is None else (ctx.eps, 0.0)
        is_outside = (x < low) | (x > 1.0 - low)
        return where(is_outside, outside, grad / (x * (1.0 - x)))


class Silu(Elementwise):
    """x s(x) with the sigmoid s. d = s (1 + x (1 - s)) dx. (Elfwing and others 2017; also called swish.)"""

    prepare = only_floats("silu_cpu")

    @staticmethod
    @quiet
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x / (1.0 + np.exp(-x))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        s = sigmoid(x)
        return grad * (s * (1.0 + x * (1.0 - s)))


class Gelu(Elementwise):
    """x Phi(x) with the normal distribution's Phi and its density phi. d = (Phi(x) + x phi(x)) dx.

    Phi(x) = (1 + erf(x / sqrt 2)) / 2. (Hendrycks and Gimpel 2016.)
    """

    prepare = only_floats("GeluKernelImpl")

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * normal_distribution(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
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


class Softplus(Unary):
    """log(1 + e^(bx)) / b, or just x where bx is above the threshold. The derivative is sigmoid(bx), there 1."""

    torch_name = "SoftplusBackward0"
    __slots__ = ("beta", "threshold")
    prepare = only_floats("softplus_cpu")
    jvp = staticmethod(elementwise_jvp)

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


class LeakyRelu(Unary):
    """x where it is positive, elsewhere x times a slope. At 0 the derivative is that slope. (Maas and others 2013.)"""

    torch_name = "LeakyReluBackward0"
    __slots__ = ("slope",)
    prepare = only_floats("leaky_relu_cpu")
    jvp = staticmethod(elementwise_jvp)

    @staticmethod
    def forward(ctx, x, slope):
        ctx.save_for_backward(x)
        ctx.slope = slope
        return np.maximum(x, 0) + slope * np.minimum(x, 0)  # where() is slow on signs at random

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * (x > 0) + grad * ctx.slope * (x <= 0)


class Elu(Unary):
    """scale x where x > 0, elsewhere scale a (e^(bx) - 1). The derivative is scale, or scale a b e^(bx).

    ELU has scale 1 and b 1 (Clevert and others 2015), CELU scale 1 and b 1/a (Barron 2017), SELU a scale.
    """

    torch_name = "EluBackward0"
    __slots__ = ("factors",)
    prepare = only_floats("elu_cpu")
    jvp = staticmethod(elementwise_jvp)

    @staticmethod
    def forward(ctx, x, alpha, scale, input_scale):
        ctx.save_for_backward(x)
        ctx.factors = alpha, scale, input_scale
        return np.where(x > 0, x * scale, np.expm1(np.minimum(x, 0) * input_scale) * (alpha * scale))

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        alpha, scale, input_scale = ctx.factors
        below = exp(clamp(x, max=0.0) * input_scale) * (alpha * scale * input_scale)
        return grad * where(x > 0, scale, below)


class Prelu(Function):
    """x where it is positive, elsewhere w x. d = (1 or w) dx + (0 or x) dw. (He and others 2015.)"""

    torch_name = "PreluKernelBackward0"
    jvp = staticmethod(elementwise_jvp)

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return np.where(x > 0, x, x * weight)

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        return where(x > 0, grad, grad * weight), where(x > 0, 0.0, grad * x)


def normal_distribution(x: Value) -> Value:
    """Phi(x), the probability that a standard normal number is below x."""
    return (erf(x * math.sqrt(0.5)) + 1.0) * 0.5


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


def sigmoid(input: Value) -> Value:
    """1 / (1 + e^(-x)) of each element."""
    return Sigmoid.apply(input)


def logsigmoid(input: Value) -> Value:
    """log(sigmoid(x)) of each element, finite for very negative x too."""
    return LogSigmoid.apply(input)


def logit(input: Value, eps: float | None = None) -> Value:
    """log(x / (1 - x)) of each element, the inverse of sigmoid; with `eps`, x is first brought into [eps, 1 - eps]."""
    return Logit.apply(input, eps=eps)


def silu(input: Value, inplace: bool = False) -> Value:
    """x sigmoid(x) of each element."""
    return Silu.apply(input)


def gelu(input: Value, *, approximate: str = "none") -> Value:
    """x Phi(x) of each element, with the normal distribution's Phi; approximate="tanh" is a formula without erf.

    Raises RuntimeError for another `approximate`, and NotImplementedError for integers.
    """
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    return Gelu.apply(input) if approximate == "none" else GeluTanh.apply(input)


def softplus(input: Value, beta: float = 1.0, threshold: float = 20.0) -> Value:
    """log(1 + e^(beta x)) / beta of each element; where beta x is above `threshold`, x."""
    return Softplus.apply(input, beta=beta, threshold=threshold)


def leaky_relu(input: Value, negative_slope: float = 0.01, inplace: bool = False) -> Value:
    """Each element, or `negative_slope` times it where it is negative."""
    return LeakyRelu.apply(input, slope=negative_slope)


def elu(input: Value, alpha: float = 1.0, inplace: bool = False) -> Value:
    """Each element, or alpha (e^x - 1) where it is negative."""
    return Elu.apply(input, alpha=alpha, scale=1.0, input_scale=1.0)


def celu(input: Value, alpha: float = 1.0, inplace: bool = False) -> Value:
    """Each element, or alpha (e^(x/alpha) - 1) where it is negative."""
    return Elu.apply(input, alpha=alpha, scale=1.0, input_scale=1.0 / alpha)


SELU_ALPHA = 1.6732632423543772848170429916717
SELU_SCALE = 1.0507009873554804934193349852946
"""With these numbers, a deep network keeps mean 0 and variance 1 from layer to layer (Klambauer and others, 2017)."""


def selu(input: Value, inplace: bool = False) -> Value:
    """ELU times a scale, with the constants of self-normalising networks."""
    return Elu.apply(input, alpha=SELU_ALPHA, scale=SELU_SCALE, input_scale=1.0)


def prelu(input: Value, weight: Value) -> Value:
    """Each element, or `weight` times it where it is negative; a weight for all, or one per channel (axis 1).

    Raises RuntimeError for a weight of more axes, of another number of channels, or of another dtype.
    """
    if weight.ndim > 1:
        raise RuntimeError(f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.ndim}")
    if input.dtype != weight.dtype:
        kinds = f"{dtype_name(input.dtype)} and {dtype_name(weight.dtype)}"
        raise RuntimeError(f"prelu: Type promoting not supported. Got {kinds}")
    if weight.ndim and weight.shape[0] != 1:
        if input.ndim == 0:
            raise RuntimeError("Not allow zero-dim input tensor.")
        channels = input.shape[1] if input.ndim > 1 else 1
        if weight.shape[0] != channels:
            raise RuntimeError(
                "Mismatch of parameter numbers and input channel size. Found parameter numbers = "
                f"{weight.shape[0]} and channel size = {channels}."
            )
    if weight.ndim == 1 and input.ndim > 1:
        weight = weight.reshape((weight.shape[0], *[1] * (input.ndim - 2)))
    return Prelu.apply(input, weight if input.ndim else weight.reshape(()))


def mish(input: Value, inplace: bool = False) -> Value:
    """x tanh(softplus(x)) of each element (Misra 2019)."""
    check_floating(input, "mish_cpu")
    return input * tanh(softplus(input))


def hardtanh(input: Value, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Value:
    """Each element, brought into [min_val, max_val]. At the two ends the derivative is 0.

    Raises ValueError if min_val > max_val, RuntimeError for bools.
    """
    if min_val > max_val:
        raise ValueError("min_val cannot be greater than max_val")
    if input.dtype == bool_:
        raise RuntimeError("Bool inputs not supported for hardtanh")
    if not is_floating(input.dtype):
        min_val, max_val = int(min_val), int(max_val)
    inside = (input > min_val) & (input < max_val)
    return where(inside, input, clamp(input.detach() if hasattr(input, "detach") else input, min_val, max_val))


def relu6(input: Value, inplace: bool = False) -> Value:
    """Each element, brought into [0, 6]."""
    return hardtanh(input, 0.0, 6.0)


def hardsigmoid(input: Value, inplace: bool = False) -> Value:
    """x/6 + 1/2 of each element, brought into [0, 1]."""
    check_floating(input, "hardsigmoid_cpu")
    return relu6(input + 3.0) / 6.0


def hardswish(input: Value, inplace: bool = False) -> Value:
    """x times hardsigmoid(x) (Howard and others 2019)."""
    check_floating(input, "hardswish_cpu")
    return input * hardsigmoid(input)


def softsign(input: Value) -> Value:
    """x / (1 + |x|) of each element."""
    return input / (input.abs() + 1.0)


def tanhshrink(input: Value) -> Value:
    """x - tanh(x) of each element."""
    return input - tanh(input)


def hardshrink(input: Value, lambd: float = 0.5) -> Value:
    """Each element, or 0 where it is between -lambd and lambd."""
    check_floating(input, "hardshrink_cpu")
    return where((input >= -lambd) & (input <= lambd), 0.0, input)


def softshrink(input: Value, lambd: float = 0.5) -> Value:
    """Each element moved towards 0 by `lambd`, and 0 where that would change its sign.

    Raises RuntimeError for a negative `lambd`.
    """
    check_floating(input, "softshrink_check")
    if lambd < 0:
        largest, kind = np.finfo(input.dtype).max, dtype_name(input.dtype)
        raise RuntimeError(f"lambda must be in range [0, {largest:g}] for input dtype {kind}, but found {lambd}")
    return relu(input - lambd) - relu(-input - lambd)


def threshold(input: Value, threshold: float, value: float, inplace: bool = False) -> Value:
    """Each element, or `value` where it is not above `threshold`."""
    return where(input <= threshold, value, input)


def glu(input: Value, dim: int = -1) -> Value:
    """The first half along `dim`, times the sigmoid of the second (Dauphin and others 2016).

    Raises RuntimeError if `dim` has an odd length, or the input no axis.
    """
    if input.ndim == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    axis = normalize_dim(dim, input.ndim)
    size = input.shape[axis]
    if size % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {axis} is size {size}")
    check_floating(input, "glu_cpu")
    before = (slice(None),) * axis
    return input[(*before, slice(size // 2))] * sigmoid(input[(*before, slice(size // 2, size))])
