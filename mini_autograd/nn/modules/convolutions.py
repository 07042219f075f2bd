"""Convolutional layers: Conv1d, Conv2d, ConvTranspose1d, ConvTranspose2d.

The one idea to know: they differ in the number of axes, and in which function they call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mini_autograd.nn import functional
from mini_autograd.nn.modules.layers import reset_uniformly
from mini_autograd.nn.modules.module import Module
from mini_autograd.nn.parameter import empty_parameter
from mini_autograd.operations.neural.windows import one_per_axis
from mini_autograd.tensors.tensor import Tensor

Numbers = int | Sequence[int]


class Convolutional(Module):
    """What the four layers share. Weights are (out, in / groups, *kernel); transposed, (in, out / groups, *kernel)."""

    axes: int
    transposed = False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Numbers,
        stride: Numbers = 1,
        padding: Numbers | str = 0,
        dilation: Numbers = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        check_groups(in_channels, out_channels, groups)
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size = one_per_axis(kernel_size, self.axes)
        self.stride, self.dilation = one_per_axis(stride, self.axes), one_per_axis(dilation, self.axes)
        self.padding = padding if isinstance(padding, str) else one_per_axis(padding, self.axes)
        self.padding_mode = padding_mode
        channels = (in_channels, out_channels) if self.transposed else (out_channels, in_channels)
        shape = (channels[0], channels[1] // groups, *self.kernel_size)
        self.weight = empty_parameter(*shape, dtype=dtype, device=device)
        self.bias = empty_parameter(out_channels, dtype=dtype, device=device) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias uniformly between -1/sqrt(f) and 1/sqrt(f); f is the fan-in as `init.fans` counts it."""
        reset_uniformly(self.weight, self.bias)

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        if isinstance(self.padding, str) or any(self.padding):
            text += f", padding={self.padding}"
        if any(step != 1 for step in self.dilation):
            text += f", dilation={self.dilation}"
        if any(getattr(self, "output_padding", ())):
            text += f", output_padding={self.output_padding}"
        text += "" if self.groups == 1 else f", groups={self.groups}"
        text += "" if self.bias is not None else ", bias=False"
        return text + ("" if self.padding_mode == "zeros" else f", padding_mode={self.padding_mode}")

    def padded(self, input: Tensor) -> tuple[Tensor, Any]:
        """The input, padded here unless `padding_mode` is zeros, and how much the convolution still has to pad."""
        if self.padding_mode == "zeros":
            return input, self.padding
        sums = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size, strict=True)]
        same = [(n // 2, n - n // 2) for n in sums]
        numbers = (0,) * self.axes if isinstance(self.padding, str) else self.padding
        both = same if self.padding == "same" else [(n, n) for n in numbers]
        return functional.pad(input, [n for pair in reversed(both) for n in pair], mode=self.padding_mode), 0


class Conv1d(Convolutional):
    """Convolution of (N, C, L)."""

    axes = 1

    def forward(self, input: Tensor) -> Tensor:
        input, padding = self.padded(input)
        return functional.conv1d(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)


class Conv2d(Convolutional):
    """Convolution of (N, C, H, W)."""

    axes = 2

    def forward(self, input: Tensor) -> Tensor:
        input, padding = self.padded(input)
        return functional.conv2d(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)


class Transposed(Convolutional):
    """What the transposed layers share; their arguments are in a different order."""

    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Numbers,
        stride: Numbers = 1,
        padding: Numbers = 0,
        output_padding: Numbers = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Numbers = 1,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        options: dict[str, Any] = {"groups": groups, "bias": bias, "device": device, "dtype": dtype}
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, **options)
        self.output_padding = one_per_axis(output_padding, self.axes)

    def options(self) -> tuple:
        """The arguments of the function after input, weight and bias."""
        return self.stride, self.padding, self.output_padding, self.groups, self.dilation


class ConvTranspose1d(Transposed):
    """The transpose of Conv1d."""

    axes = 1

    def forward(self, input: Tensor) -> Tensor:
        return functional.conv_transpose1d(input, self.weight, self.bias, *self.options())


class ConvTranspose2d(Transposed):
    """The transpose of Conv2d."""

    axes = 2

    def forward(self, input: Tensor) -> Tensor:
        return functional.conv_transpose2d(input, self.weight, self.bias, *self.options())


def check_groups(in_channels: int, out_channels: int, groups: int) -> None:
    if groups <= 0:
        raise ValueError("groups must be a positive integer")
    if in_channels % groups:
        raise ValueError("in_channels must be divisible by groups")
    if out_channels % groups:
        raise ValueError("out_channels must be divisible by groups")
