"""Convolution in one or two dimensions, and its transpose.

The one idea to know: sum(g * convolution(x, w)) is linear in x, in w and in g. The gradient with respect to any of the
three is again an operation that is linear in the other two, so three operations (`Convolution`, `ConvolutionInput`,
`ConvolutionWeight`) are each other's rules, to any order.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mini_autograd.graph.function import Function, Value, as_array
from mini_autograd.numerics.arrays import c_dtype, is_compact
from mini_autograd.numerics.blocks import LARGE_BLOCK
from mini_autograd.operations.neural.fused import total
from mini_autograd.operations.neural.windows import Sizes, Windows, count_windows, one_per_axis

__all__ = ["conv1d", "conv2d", "conv_transpose1d", "conv_transpose2d"]

Numbers = int | Sequence[int]


class Sliding(Function):
    """Base of the three operations. Two of them take two arrays, and are linear in each."""

    torch_name = "ConvolutionBackward0"
    __slots__ = ("groups", "windows")
    groups: int
    windows: Windows

    @property
    def options(self) -> dict[str, Any]:
        """The options with which the three were and will be applied."""
        return {"windows": self.windows, "groups": self.groups}

    @staticmethod
    def jvp(ctx, first_tangent, second_tangent):
        first, second = ctx.saved_tensors
        return total(
            None if first_tangent is None else ctx.apply(first_tangent, second, **ctx.options),
            None if second_tangent is None else ctx.apply(first, second_tangent, **ctx.options),
        )


class Convolution(Sliding):
    """Every output is the sum of a window of x times a kernel, over all input channels, plus a bias.

    x (N, C, *size), weight (O, C/groups, *kernel), bias (O) or None; the output is (N, O, *output).
    """

    @staticmethod
    def forward(ctx, x, weight, bias, windows, groups):
        ctx.windows, ctx.groups = windows, groups
        columns = columns_of(x, windows, groups)
        ctx.save_for_backward(x, weight, columns)
        output = rows_of(weight, groups) @ columns
        output = output.reshape(len(x), len(weight), *windows.output)
        if bias is not None:
            output += per_channel(bias, output.ndim)
        return output

    @staticmethod
    def backward(ctx, grad):
        x, weight, columns = ctx.saved_tensors
        need_x, need_weight, need_bias = ctx.needs_input_grad
        return (
            ConvolutionInput.apply(grad, weight, **ctx.options) if need_x else None,
            ConvolutionWeight.apply(x, grad, columns=as_array(columns), **ctx.options) if need_weight else None,
            sum_per_channel(grad) if need_bias else None,
        )

    @staticmethod
    def jvp(ctx, x_tangent, weight_tangent, bias_tangent):  # type: ignore[override]
        x, weight, _ = ctx.saved_tensors
        return total(
            None if x_tangent is None else Convolution.apply(x_tangent, weight, None, **ctx.options),
            None if weight_tangent is None else Convolution.apply(x, weight_tangent, None, **ctx.options),
            None if bias_tangent is None else spread_per_channel(bias_tangent, len(x), ctx.windows),
        )


class ConvolutionInput(Sliding):
    """The gradient of a convolution with respect to its input, and the transposed convolution.

    Every element of `grad` (N, O, *output) adds the kernel, times that element, to the window that it came from.
    """

    @staticmethod
    def forward(ctx, grad, weight, windows, groups):
        ctx.windows, ctx.groups = windows, groups
        ctx.save_for_backward(grad, weight)
        add_up = add_up_lines if set(windows.stride) == {1} else add_up_columns
        return add_up(rows_of(weight, groups).mT, grad, weight.shape[1] * groups, windows)

    @staticmethod
    def backward(ctx, cotangent):
        grad, weight = ctx.saved_tensors
        need_grad, need_weight = ctx.needs_input_grad
        return (
            Convolution.apply(cotangent, weight, None, **ctx.options) if need_grad else None,
            ConvolutionWeight.apply(cotangent, grad, **ctx.options) if need_weight else None,
        )


class ConvolutionWeight(Sliding):
    """The gradient of a convolution with respect to its weight: every window of x times the gradient of its output."""

    @staticmethod
    def forward(ctx, x, grad, windows, groups, columns=None):
        ctx.windows, ctx.groups = windows, groups
        ctx.save_for_backward(x, grad)
        columns = columns_of(x, windows, groups) if columns is None else columns
        products = channel_rows(grad, groups) @ columns.mT  # (N, groups, O/groups, C/groups * kernel)
        return products.sum(axis=0).reshape(grad.shape[1], x.shape[1] // groups, *windows.kernel)

    @staticmethod
    def backward(ctx, cotangent):
        x, grad = ctx.saved_tensors
        need_x, need_grad = ctx.needs_input_grad
        return (
            ConvolutionInput.apply(grad, cotangent, **ctx.options) if need_x else None,
            Convolution.apply(x, cotangent, None, **ctx.options) if need_grad else None,
        )


def columns_of(x: Any, windows: Windows, groups: int) -> Any:
    """Every window of x as a column: (N, groups, C/groups * kernel, number of windows). A convolution is then `@`.

    Copies along the last axis first: if the stride is 1, the elements that the kernel's places along the other axes
    meet are then contiguous, and a 3x3 kernel needs three copies row by row instead of nine.
    """
    padded = windows.pad(x)
    *others, last = windows.slices()
    columns = np.empty_like(x, shape=(*x.shape[:2], math.prod(windows.kernel[:-1]), len(last), *windows.output))
    for j, along in enumerate(last):
        met = padded[..., along].copy()
        for i, place in enumerate(itertools.product(*others)):
            columns[:, :, i, j] = met[(..., *place, slice(None))]
    kernel, places = math.prod(windows.kernel), math.prod(windows.output)
    return columns.reshape(len(x), groups, x.shape[1] // groups * kernel, places)


def add_up_columns(rows: Any, grad: Any, channels: int, windows: Windows) -> Any:
    """The transpose of `rows.mT @ columns_of(x)`: every element of grad adds its row to the window it came from."""
    columns = rows @ channel_rows(grad, len(rows))  # (N, groups, C/groups * kernel, number of windows)
    columns = columns.reshape(len(grad), channels, math.prod(windows.kernel), *windows.output)
    padded = windows.frame_for(columns[:, :, 0])
    for number, place in enumerate(windows.places()):
        padded[place] += columns[:, :, number]
    return padded[windows.inside]


def add_up_lines(rows: Any, grad: Any, channels: int, windows: Windows) -> Any:
    """`add_up_columns` for stride 1: each place of the kernel is then a shift of the padded plane as one line.

    `grad` is spread out to such lines, with zeros where no window begins. This takes some more multiplications, but
    additions along a line are twice as fast as along many short rows.
    """
    shifts, length = windows.shifts()
    result = np.empty_like(grad, shape=(len(grad), channels, *windows.size))
    for images in blocks_of_images(grad, channels * len(shifts) * length):
        spread = windows.frame_for(grad[images])
        spread[windows.first] = grad[images]
        columns = rows @ channel_rows(spread, len(rows))[..., :length]
        columns = columns.reshape(len(spread), channels, len(shifts), length)
        padded = windows.frame_for(result[images])
        lines = padded.reshape(len(spread), channels, math.prod(windows.padded))
        for number, shift in enumerate(shifts):
            lines[..., shift : shift + length] += columns[:, :, number]
        result[images] = padded[windows.inside]
    return result


def blocks_of_images(grad: Any, size: int) -> Sequence[slice]:
    """Slices of the batch whose columns, `size` elements per image, stay in the cache. One slice for other arrays than
    NumPy's.
    """
    step = max(1, LARGE_BLOCK // size) if type(grad) is np.ndarray else len(grad)
    return [slice(start, start + step) for start in range(0, len(grad), step)]


def rows_of(weight: Any, groups: int) -> Any:
    """Every kernel as a row: (groups, O/groups, C/groups * kernel)."""
    return weight.reshape(groups, len(weight) // groups, math.prod(weight.shape[1:]))


def channel_rows(output: Any, groups: int) -> Any:
    """(N, O, *output) as (N, groups, O/groups, number of windows)."""
    batch, channels, *sizes = output.shape
    return output.reshape(batch, groups, channels // groups, math.prod(sizes))


def per_channel(bias: Value, ndim: int) -> Value:
    """One number per channel, shaped so that it broadcasts against (N, O, *output)."""
    return bias.reshape(-1, *(1,) * (ndim - 2))


def sum_per_channel(grad: Value) -> Value:
    """The gradient of the bias. In NumPy a product with ones adds up the planes, in a third of the time of `sum`."""
    if not is_compact(grad):
        return grad.sum(axis=(0, *range(2, grad.ndim)))
    planes = grad.reshape(len(grad), grad.shape[1], math.prod(grad.shape[2:]))
    return (planes @ np.ones(planes.shape[2], grad.dtype)).sum(axis=0)


def spread_per_channel(bias: Value, batch: int, windows: Windows) -> Value:
    """The tangent of the bias, repeated at every place of the output."""
    shaped = per_channel(bias, len(windows.output) + 2)
    return shaped + np.zeros_like(as_array(bias), shape=(batch, len(bias), *windows.output))


def conv1d(
    input: Value,
    weight: Value,
    bias: Value | None = None,
    stride: Numbers = 1,
    padding: Numbers | str = 0,
    dilation: Numbers = 1,
    groups: int = 1,
) -> Value:
    """Convolve `input` (N, C, L) or (C, L) with `weight` (O, C/groups, k)."""
    return _convolution(input, weight, bias, stride, padding, dilation, groups, axes=1)


def conv2d(
    input: Value,
    weight: Value,
    bias: Value | None = None,
    stride: Numbers = 1,
    padding: Numbers | str = 0,
    dilation: Numbers = 1,
    groups: int = 1,
) -> Value:
    """Convolve `input` (N, C, H, W) or (C, H, W) with `weight` (O, C/groups, kH, kW).

    Padding is a number, one per axis, "valid" (none) or "same" (as many outputs as inputs). As everywhere in deep
    learning, the kernel is not flipped, so this is what mathematics calls cross-correlation.
    """
    return _convolution(input, weight, bias, stride, padding, dilation, groups, axes=2)


def conv_transpose1d(
    input: Value,
    weight: Value,
    bias: Value | None = None,
    stride: Numbers = 1,
    padding: Numbers = 0,
    output_padding: Numbers = 0,
    groups: int = 1,
    dilation: Numbers = 1,
) -> Value:
    """The transpose of `conv1d` with the same numbers: `input` (N, O, L), `weight` (O, C/groups, k)."""
    return _transposed(input, weight, bias, stride, padding, output_padding, groups, dilation, axes=1)


def conv_transpose2d(
    input: Value,
    weight: Value,
    bias: Value | None = None,
    stride: Numbers = 1,
    padding: Numbers = 0,
    output_padding: Numbers = 0,
    groups: int = 1,
    dilation: Numbers = 1,
) -> Value:
    """The transpose of `conv2d` with the same numbers: `input` (N, O, H, W), `weight` (O, C/groups, kH, kW)."""
    return _transposed(input, weight, bias, stride, padding, output_padding, groups, dilation, axes=2)


def _convolution(
    input: Value,
    weight: Value,
    bias: Value | None,
    stride: Numbers,
    padding: Numbers | str,
    dilation: Numbers,
    groups: int,
    axes: int,
) -> Value:
    batched = _batched(input, axes, f"conv{axes}d")
    if weight.ndim != axes + 2:
        raise RuntimeError(_wrong_rank(input, weight))
    kernel = tuple(weight.shape[2:])
    stride, dilation = one_per_axis(stride, axes, "stride"), one_per_axis(dilation, axes, "dilation")
    before, after = _padding(padding, kernel, stride, dilation)
    _check_numbers(stride, before, dilation, groups)
    _check_channels(batched, weight, groups)
    _check_bias(input, weight, bias)
    size = tuple(batched.shape[2:])
    _check_kernel(size, before, after, kernel, dilation)
    output = tuple(map(count_windows, size, kernel, stride, before, after, dilation, (False,) * axes))
    windows = Windows(size, kernel, stride, before, after, dilation, output)
    result = Convolution.apply(batched, weight, bias, windows=windows, groups=groups)
    return result if batched is input else result[0]


def _transposed(
    input: Value,
    weight: Value,
    bias: Value | None,
    stride: Numbers,
    padding: Numbers,
    output_padding: Numbers,
    groups: int,
    dilation: Numbers,
    axes: int,
) -> Value:
    batched = _batched(input, axes, f"conv_transpose{axes}d")
    kernel, output = tuple(weight.shape[2:]), tuple(batched.shape[2:])
    stride, dilation = one_per_axis(stride, axes, "stride"), one_per_axis(dilation, axes, "dilation")
    padding, extra = one_per_axis(padding, axes, "padding"), one_per_axis(output_padding, axes, "output_padding")
    per_axis = zip(output, stride, kernel, dilation, padding, extra, strict=True)
    size = tuple((o - 1) * s + (k - 1) * d + 1 - 2 * p + e for o, s, k, d, p, e in per_axis)
    windows = Windows(size, kernel, stride, padding, padding, dilation, output)
    result = ConvolutionInput.apply(batched, weight, windows=windows, groups=groups)
    if bias is not None:
        result = result + per_channel(bias, result.ndim)
    return result if batched is input else result[0]


def _batched(input: Value, axes: int, name: str) -> Value:
    """`input` with a batch axis."""
    if input.ndim not in (axes + 1, axes + 2):
        raise RuntimeError(
            f"Expected {axes + 1}D (unbatched) or {axes + 2}D (batched) input to {name}, but got input of size: "
            f"{list(input.shape)}"
        )
    return input if input.ndim == axes + 2 else input.reshape(1, *input.shape)


def _padding(padding: Numbers | str, kernel: Any, stride: Any, dilation: Any) -> tuple[tuple, tuple]:
    """How much to pad in front and behind, per axis."""
    if padding == "same":
        if any(step != 1 for step in stride):
            raise RuntimeError("padding='same' is not supported for strided convolutions")
        sums = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
        return tuple(n // 2 for n in sums), tuple(n - n // 2 for n in sums)
    if isinstance(padding, str) and padding != "valid":
        raise RuntimeError(f"Invalid padding string: '{padding}'")
    both = one_per_axis(0 if isinstance(padding, str) else padding, len(kernel), "padding")
    return both, both


def _wrong_rank(input: Value, weight: Value) -> str:
    if weight.ndim < 3:
        return "weight should have at least three dimensions"
    return (
        f"Expected {weight.ndim}-dimensional input for {weight.ndim}-dimensional weight{list(weight.shape)}, but got "
        f"{input.ndim}-dimensional input of size {list(input.shape)} instead"
    )


def _check_numbers(stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> None:
    if min(padding) < 0:
        raise RuntimeError("negative padding is not supported")
    if min(stride) < 1:
        raise RuntimeError("non-positive stride is not supported")
    if min(dilation) < 1:
        raise RuntimeError("dilation should be greater than zero")
    if groups < 1:
        raise RuntimeError("non-positive groups is not supported")


def _check_bias(input: Value, weight: Value, bias: Value | None) -> None:
    if bias is None:
        return
    if bias.dtype != input.dtype:
        kinds = c_dtype(input.dtype), c_dtype(bias.dtype)
        raise RuntimeError(f"Input type ({kinds[0]}) and bias type ({kinds[1]}) should be the same")
    if tuple(bias.shape) != (weight.shape[0],):
        raise RuntimeError(
            f"Given weight of size {list(weight.shape)}, expected bias to be 1-dimensional with {weight.shape[0]} "
            f"elements, but got bias of size {list(bias.shape)} instead"
        )


def _check_channels(input: Value, weight: Value, groups: int) -> None:
    if weight.shape[0] < groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got weight of size "
            f"{list(weight.shape)} instead"
        )
    if weight.shape[0] % groups:
        raise RuntimeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of "
            f"size [{', '.join(map(str, weight.shape))}] instead"
        )
    expected = weight.shape[1] * groups
    if input.shape[1] != expected:
        raise RuntimeError(
            f"Given groups={groups}, weight of size {list(weight.shape)}, expected input{list(input.shape)} to have "
            f"{expected} channels, but got {input.shape[1]} channels instead"
        )


def _check_kernel(size: Any, before: Any, after: Any, kernel: Any, dilation: Any) -> None:
    padded = [n + b + a for n, b, a in zip(size, before, after, strict=True)]
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    if any(n < k for n, k in zip(padded, reach, strict=True)):
        lengths, kernels = (" x ".join(map(str, numbers)) for numbers in (padded, reach))
        raise RuntimeError(
            f"Calculated padded input size per channel: ({lengths}). Kernel size: ({kernels}). Kernel size can't be "
            "greater than actual input size"
        )
