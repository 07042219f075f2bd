"""Max and average pooling in one or two dimensions.

The one idea to know: once it is known which element of a window is the largest, max pooling is a linear operation (pick
that element), and so is averaging. A linear operation and its transpose are each other's rule, to any order.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mini_autograd.graph.function import Function, Value, as_array, wrap
from mini_autograd.numerics.arrays import holds
from mini_autograd.operations.neural.windows import Sizes, Windows, count_windows, one_per_axis

__all__ = ["avg_pool1d", "avg_pool2d", "max_pool1d", "max_pool2d"]

Numbers = int | Sequence[int]


class MaxPool(Function):
    """The largest element of every window, or the first of several equal ones. Only this element gets the gradient."""

    torch_name = "MaxPool2DWithIndicesBackward0"
    exact = True
    __slots__ = ("windows",)

    @staticmethod
    def forward(ctx, x, windows):
        ctx.windows = windows
        output, winners = largest(x, windows)
        ctx.save_for_backward(winners)
        return output

    @staticmethod
    def backward(ctx, grad):
        (winners,) = ctx.saved_tensors
        return GiveToWinners.apply(grad, winners=as_array(winners), windows=ctx.windows)

    @staticmethod
    def jvp(ctx, tangent):
        (winners,) = ctx.saved_tensors
        return PickWinners.apply(tangent, winners=as_array(winners), windows=ctx.windows)


class PickWinners(Function):
    """The element of every window that `winners` names."""

    exact = True
    __slots__ = ("windows",)

    @staticmethod
    def forward(ctx, x, winners, windows):
        ctx.windows = windows
        ctx.save_for_backward(winners)
        padded = windows.pad(x)
        output = np.zeros_like(x, shape=winners.shape)
        for number, place in enumerate(windows.places()):
            output += kept(padded[place], winners == number)
        return output

    backward = staticmethod(MaxPool.backward)
    jvp = staticmethod(MaxPool.jvp)


class GiveToWinners(Function):
    """The transpose of `PickWinners`: add each number to the element that won its window."""

    exact = True
    __slots__ = ("windows",)

    @staticmethod
    def forward(ctx, x, winners, windows):
        ctx.windows = windows
        ctx.save_for_backward(winners)
        padded = windows.frame_for(x)
        for number, place in enumerate(windows.places()):
            if windows.overlap:
                padded[place] += kept(x, winners == number)
            else:  # nothing was added there yet, so it need not be read
                padded[place] = kept(x, winners == number)
        return padded[windows.inside]

    backward = staticmethod(MaxPool.jvp)
    jvp = staticmethod(MaxPool.backward)


class AveragePool(Function):
    """The mean of every window: its sum divided by `divisor`, one number or one per window."""

    torch_name = "AvgPool2DBackward0"
    __slots__ = ("divisor", "windows")

    @staticmethod
    def forward(ctx, x, windows, divisor):
        ctx.windows, ctx.divisor = windows, divisor
        padded = windows.pad(x)
        output = np.zeros_like(x, shape=(*x.shape[: x.ndim - len(windows.size)], *windows.output))
        for place in windows.places():
            output += padded[place]
        return output / divisor

    @staticmethod
    def backward(ctx, grad):
        return GiveEqually.apply(grad, windows=ctx.windows, divisor=as_array(ctx.divisor))

    @staticmethod
    def jvp(ctx, tangent):
        return AveragePool.apply(tangent, windows=ctx.windows, divisor=as_array(ctx.divisor))


class GiveEqually(Function):
    """The transpose of `AveragePool`: every element of a window gets an equal part."""

    __slots__ = ("divisor", "windows")

    @staticmethod
    def forward(ctx, x, windows, divisor):
        ctx.windows, ctx.divisor = windows, divisor
        padded, part = windows.frame_for(x), x / divisor
        for place in windows.places():
            padded[place] += part
        return padded[windows.inside]

    backward = staticmethod(AveragePool.jvp)
    jvp = staticmethod(AveragePool.backward)


def kept(x: Any, mask: Any) -> Any:
    """The floats `x` where `mask` holds, and 0 elsewhere, where a product with 0 would be nan for inf.

    By bits: `where` is slow on random masks.
    """
    bits = f"i{x.itemsize}"
    return (x.view(bits) & -mask.astype(bits)).view(x.dtype)


def largest(x: Any, windows: Windows) -> tuple[Any, Any]:
    """The largest element of every window, and its place in the kernel."""
    lowest = -math.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    padded = windows.pad(x, lowest)
    small = np.uint8 if math.prod(windows.kernel) < 256 else np.int32
    output: Any = None
    winners: Any = None
    for number, place in enumerate(windows.places()):
        candidates = padded[place].copy()  # each element is needed twice, and a copy is nearer
        if output is None:
            output, winners = candidates, np.zeros_like(candidates, dtype=small)
        else:
            winners = np.maximum(winners, (candidates > output).astype(small) * small(number))
            np.maximum(output, candidates, out=output)
    if holds((output != output).any()):  # nan is larger than all others
        for number, place in enumerate(windows.places()):
            winners[padded[place] != padded[place]] = number
    return output, winners


def max_pool1d(
    input: Value,
    kernel_size: Numbers,
    stride: Numbers | None = None,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest element of every window of `input` (N, C, L) or (C, L). The stride defaults to `kernel_size`."""
    windows = _windows(input, kernel_size, stride, padding, dilation, ceil_mode, axes=1)
    return _max_pool(input, windows, return_indices)


def max_pool2d(
    input: Value,
    kernel_size: Numbers,
    stride: Numbers | None = None,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Any:
    """The largest element of every window of `input` (N, C, H, W) or (C, H, W). The stride defaults to `kernel_size`.

    With `return_indices`, also its index in its plane, counted row by row.
    """
    windows = _windows(input, kernel_size, stride, padding, dilation, ceil_mode, axes=2)
    return _max_pool(input, windows, return_indices)


def avg_pool1d(
    input: Value,
    kernel_size: Numbers,
    stride: Numbers | None = None,
    padding: Numbers = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Value:
    """The mean of every window of `input` (N, C, L) or (C, L)."""
    windows = _windows(input, kernel_size, stride, padding, 1, ceil_mode, axes=1)
    return AveragePool.apply(input, windows=windows, divisor=_divisor(windows, count_include_pad, as_array(input)))


def avg_pool2d(
    input: Value,
    kernel_size: Numbers,
    stride: Numbers | None = None,
    padding: Numbers = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Value:
    """The mean of every window of `input` (N, C, H, W) or (C, H, W), padding counted if `count_include_pad`."""
    windows = _windows(input, kernel_size, stride, padding, 1, ceil_mode, axes=2)
    if divisor_override == 0:
        raise RuntimeError("divisor must be not zero")
    divisor = divisor_override or _divisor(windows, count_include_pad, as_array(input))
    return AveragePool.apply(input, windows=windows, divisor=divisor)


def _windows(
    input: Value, kernel: Numbers, stride: Numbers | None, padding: Numbers, dilation: Numbers, ceil: bool, axes: int
) -> Windows:
    kernel = one_per_axis(kernel, axes)
    stride = kernel if stride is None or stride in ([], ()) else one_per_axis(stride, axes)
    padding, dilation = one_per_axis(padding, axes), one_per_axis(dilation, axes)
    _check_numbers(kernel, stride, padding, dilation)
    if any(p > ((k - 1) * d + 1) // 2 for p, k, d in zip(padding, kernel, dilation, strict=True)):
        raise RuntimeError(
            "pad should be at most half of effective kernel size, but got "
            f"pad={max(padding)}, kernel_size={max(kernel)} and dilation={max(dilation)}"
        )
    _check_input(input, axes)
    size = tuple(input.shape[-axes:])
    output = tuple(map(count_windows, size, kernel, stride, padding, padding, dilation, (ceil,) * axes))
    if any(length < 1 for length in output):
        planes = [1] * (3 - axes)
        before = "x".join(map(str, (input.shape[-axes - 1], *planes[1:], *size)))
        behind = "x".join(map(str, (input.shape[-axes - 1], *planes[1:], *output)))
        raise RuntimeError(
            f"Given input size: ({before}). Calculated output size: ({behind}). Output size is too small"
        )
    return Windows(size, kernel, stride, padding, padding, dilation, output)


def _check_numbers(kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> None:
    """Raise PyTorch's errors, which are worded differently in one dimension."""
    for name, numbers in (("kernel_size", kernel), ("stride", stride), ("dilation", dilation)):
        if min(numbers) < 1 and len(kernel) == 1:
            raise RuntimeError(f"max_pool1d() {name} must be greater than zero, but got {min(numbers)}")
    if min(stride) < 1:
        raise RuntimeError("stride should not be zero")
    if min(dilation) < 1:
        height, width = dilation
        raise RuntimeError(f"dilation should be greater than zero, but got dilationH: {height} dilationW: {width}")
    if min(padding) < 0:
        raise RuntimeError(f"pad must be non-negative, but got pad: {min(padding)}")


def _check_input(input: Value, axes: int) -> None:
    """Raise PyTorch's error for a wrong number of axes, and for an empty axis other than the batch."""
    if input.ndim not in (axes + 1, axes + 2) or 0 in input.shape[-axes - 1 :]:
        name, ndim = ("max_pool1d: ", 2) if axes == 1 else ("", 3)
        raise RuntimeError(
            f"{name}Expected {ndim}D or {ndim + 1}D (batch mode) tensor with optional 0 dim batch size for input, but "
            f"got:{list(input.shape)}"
        )


def _max_pool(input: Value, windows: Windows, return_indices: bool) -> Any:
    output = MaxPool.apply(input, windows=windows)
    return (output, wrap(_indices(as_array(input), windows), input)) if return_indices else output


def _indices(x: Any, windows: Windows) -> Any:
    """The index of the largest element of every window in its plane."""
    place: Any = largest(x, windows)[1].astype(np.int64)
    flat: Any = 0
    for axis, size in enumerate(windows.size):
        behind = math.prod(windows.kernel[axis + 1 :])
        in_kernel = place // behind % windows.kernel[axis] * windows.dilation[axis]
        start = np.arange(windows.output[axis], like=x) * windows.stride[axis] - windows.before[axis]
        flat = flat * size + in_kernel + start.reshape(-1, *(1,) * (len(windows.size) - axis - 1))
    return flat


def _divisor(windows: Windows, count_include_pad: bool, x: Any) -> Any:
    """How many elements each window has: one number if it is the same for all."""
    lengths = [
        _lengths(*numbers, count_include_pad)
        for numbers in zip(windows.size, windows.kernel, windows.stride, windows.before, windows.output, strict=True)
    ]
    if all(min(numbers) == max(numbers) for numbers in lengths):
        return math.prod(numbers[0] for numbers in lengths)
    table = np.ones(windows.output)
    for axis, numbers in enumerate(lengths):
        table *= np.array(numbers).reshape(-1, *(1,) * (len(lengths) - axis - 1))
    return np.asarray(table, dtype=x.dtype, like=x)


def _lengths(size: int, kernel: int, stride: int, padding: int, output: int, with_padding: bool) -> list[int]:
    """The length of each window along one axis, with or without the part that lies in the padding."""
    low, high = (-padding, size + padding) if with_padding else (0, size)
    starts = [number * stride - padding for number in range(output)]
    return [min(start + kernel, high) - max(start, low) for start in starts]
