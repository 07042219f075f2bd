"""Activations as modules: ReLU, GELU, Tanh, Sigmoid, Softmax and so on.

Imports tensor, parameter, init, functional and module. The one idea to know: each is one function with its options
fixed.
"""

from __future__ import annotations

from mini_autograd.nn import functional, init
from mini_autograd.nn.module import Module
from mini_autograd.nn.parameter import empty_parameter
from mini_autograd.tensor import Tensor


class ReLU(Module):
    """max(x, 0)."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return functional.relu(input)

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class ReLU6(ReLU):
    """min(max(x, 0), 6)."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.relu6(input)


class SiLU(ReLU):
    """x sigmoid(x)."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.silu(input)


class Mish(ReLU):
    """x tanh(softplus(x))."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.mish(input)


class SELU(ReLU):
    """A scaled ELU that keeps mean 0 and variance 1."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.selu(input)


class Hardswish(ReLU):
    """x min(max(x + 3, 0), 6) / 6."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.hardswish(input)


class Tanh(Module):
    """tanh(x)."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.tanh(input)


class Sigmoid(Module):
    """1 / (1 + e^-x)."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.sigmoid(input)


class LogSigmoid(Module):
    """log(sigmoid(x))."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.logsigmoid(input)


class Softsign(Module):
    """x / (1 + |x|)."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.softsign(input)


class GELU(Module):
    """x times the probability that a normal number is smaller than x."""

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return functional.gelu(input, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class ELU(Module):
    """x where positive, alpha (e^x - 1) elsewhere."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha, self.inplace = alpha, inplace

    def forward(self, input: Tensor) -> Tensor:
        return functional.elu(input, self.alpha)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class LeakyReLU(Module):
    """x where positive, negative_slope x elsewhere."""

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope, self.inplace = negative_slope, inplace

    def forward(self, input: Tensor) -> Tensor:
        return functional.leaky_relu(input, self.negative_slope)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}" + (", inplace=True" if self.inplace else "")


class PReLU(Module):
    """A leaky ReLU whose slope is learned, one for all or one per channel."""

    def __init__(self, num_parameters: int = 1, init: float = 0.25) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.weight = filled(num_parameters, init)

    def forward(self, input: Tensor) -> Tensor:
        return functional.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class Softplus(Module):
    """log(1 + e^(beta x)) / beta."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, input: Tensor) -> Tensor:
        return functional.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class Softmax(Module):
    """e^x over its sum along `dim`."""

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return functional.softmax(input, self.dim, _stacklevel=5)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class LogSoftmax(Softmax):
    """The logarithm of softmax."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.log_softmax(input, self.dim, _stacklevel=5)


class Softmin(Softmax):
    """softmax of the negative numbers."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.softmin(input, self.dim, _stacklevel=5)


def filled(count: int, value: float) -> Tensor:
    """A parameter of equal numbers."""
    return init.constant_(empty_parameter(count), value)
