"""Pooling layers: MaxPool1d, MaxPool2d, AvgPool1d, AvgPool2d, AdaptiveAvgPool2d.

The one idea to know: they hold options only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mini_autograd.nn import functional
from mini_autograd.nn.modules.module import Module
from mini_autograd.tensors.tensor import Tensor

Numbers = int | Sequence[int]


class MaxPool(Module):
    """What the max pools share."""

    def __init__(
        self,
        kernel_size: Numbers,
        stride: Numbers | None = None,
        padding: Numbers = 0,
        dilation: Numbers = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.dilation = padding, dilation
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def options(self) -> tuple:
        """The arguments of the function after the input."""
        return self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
            f"ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(MaxPool):
    """The largest of every window of (N, C, L)."""

    def forward(self, input: Tensor) -> Any:
        return functional.max_pool1d(input, *self.options())


class MaxPool2d(MaxPool):
    """The largest of every window of (N, C, H, W)."""

    def forward(self, input: Tensor) -> Any:
        return functional.max_pool2d(input, *self.options())


class AvgPool1d(Module):
    """The mean of every window of (N, C, L)."""

    def __init__(
        self,
        kernel_size: Numbers,
        stride: Numbers | None = None,
        padding: Numbers = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.ceil_mode, self.count_include_pad = padding, ceil_mode, count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        options = self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad
        return functional.avg_pool1d(input, *options)

    def extra_repr(self) -> str:
        sizes = [
            value if isinstance(value, Sequence) else (value,)
            for value in (self.kernel_size, self.stride, self.padding)
        ]
        return "kernel_size={}, stride={}, padding={}".format(*map(tuple, sizes))


class AvgPool2d(Module):
    """The mean of every window of (N, C, H, W)."""

    def __init__(
        self,
        kernel_size: Numbers,
        stride: Numbers | None = None,
        padding: Numbers = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.ceil_mode, self.count_include_pad = padding, ceil_mode, count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        options = self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad
        return functional.avg_pool2d(input, *options, self.divisor_override)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AdaptiveAvgPool2d(Module):
    """Means of `output_size` parts of (N, C, H, W), as equal as possible; parts may overlap."""

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        return functional.adaptive_avg_pool2d(input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"
