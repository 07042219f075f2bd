"""Modules that pad: ZeroPad2d, ConstantPad2d, ReflectionPad2d, ReplicationPad2d, and the same in one dimension.

Imports tensor, module and functional. The one idea to know: `padding` lists how much to add before and after the last
axis, then the one before it; one number stands for all.
"""

from __future__ import annotations

from collections.abc import Sequence

from mini_autograd.nn import functional
from mini_autograd.nn.module import Module
from mini_autograd.tensor import Tensor


class Pad(Module):
    """What all share; a subclass says how many axes are padded, and with what."""

    axes = 2
    mode = "constant"

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__()
        self.padding = (padding,) * (2 * self.axes) if isinstance(padding, int) else tuple(padding)

    def forward(self, input: Tensor) -> Tensor:
        return functional.pad(input, self.padding, self.mode)

    def extra_repr(self) -> str:
        return f"{self.padding}"


class ConstantPad2d(Pad):
    """With a number, on the last two axes."""

    def __init__(self, padding: int | Sequence[int], value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return functional.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(ConstantPad2d):
    """With a number, on the last axis."""

    axes = 1


class ZeroPad2d(Pad):
    """With zeros, on the last two axes."""


class ZeroPad1d(Pad):
    """With zeros, on the last axis."""

    axes = 1


class ReflectionPad2d(Pad):
    """With the mirror image, on the last two axes."""

    mode = "reflect"


class ReflectionPad1d(Pad):
    """With the mirror image, on the last axis."""

    axes, mode = 1, "reflect"


class ReplicationPad2d(Pad):
    """With the outermost elements, on the last two axes."""

    mode = "replicate"


class ReplicationPad1d(Pad):
    """With the outermost elements, on the last axis."""

    axes, mode = 1, "replicate"
