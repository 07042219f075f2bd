"""Activations that are used less: Hardtanh, Threshold, the shrinking ones, CELU, GLU.

Imports tensor, module, functional and activations.
"""

from __future__ import annotations

from mini_autograd.nn import functional
from mini_autograd.nn.activations import ReLU
from mini_autograd.nn.module import Module
from mini_autograd.tensor import Tensor


class Hardsigmoid(ReLU):
    """min(max(x + 3, 0), 6) / 6."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.hardsigmoid(input)

    def extra_repr(self) -> str:
        return ""


class Hardtanh(Module):
    """x, but at least `min_val` and at most `max_val`."""

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        if not max_val > min_val:
            raise AssertionError(f"max_val ({max_val}) must be greater than min_val ({min_val})")
        self.min_val, self.max_val, self.inplace = min_val, max_val, inplace

    def forward(self, input: Tensor) -> Tensor:
        return functional.hardtanh(input, self.min_val, self.max_val)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}" + (", inplace=True" if self.inplace else "")


class Threshold(Module):
    """x where it is larger than `threshold`, `value` elsewhere."""

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold, self.value, self.inplace = threshold, value, inplace

    def forward(self, input: Tensor) -> Tensor:
        return functional.threshold(input, self.threshold, self.value)

    def extra_repr(self) -> str:
        return f"threshold={self.threshold}, value={self.value}" + (", inplace=True" if self.inplace else "")


class CELU(Module):
    """max(0, x) + min(0, alpha (e^(x / alpha) - 1))."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha, self.inplace = alpha, inplace

    def forward(self, input: Tensor) -> Tensor:
        return functional.celu(input, self.alpha)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class Hardshrink(Module):
    """x where |x| > lambd, 0 elsewhere."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return functional.hardshrink(input, self.lambd)

    def extra_repr(self) -> str:
        return f"{self.lambd}"


class Softshrink(Hardshrink):
    """x moved towards 0 by lambd, and 0 if it is nearer."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.softshrink(input, self.lambd)


class Tanhshrink(Module):
    """x - tanh(x)."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.tanhshrink(input)


class GLU(Module):
    """a sigmoid(b), where a and b are the halves of x along `dim`."""

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return functional.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"
