"""Normalization: layer and batch norm, each with its whole rule in one step.

The one idea to know: standardizing n numbers takes away two directions (their mean and their length), and its
derivative takes the same two away from the gradient. That map is symmetric, so forward mode and reverse mode share it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from mini_autograd.graph.function import Function, Value, as_array
from mini_autograd.graph.versions import note_change
from mini_autograd.operations.neural.fused import average, recorded, sum_of_products, total

__all__ = ["batch_norm", "layer_norm"]

Axes = tuple[int, ...]


class LayerNorm(Function):
    """(x - mean) / sqrt(variance + eps) * weight + bias, with the mean and variance over the last axes.

    With n the normalized x and g = weight * grad: dx = (g - mean(g) - n mean(g n)) / sqrt(variance + eps).
    """

    torch_name = "NativeLayerNormBackward0"
    __slots__ = ("axes", "eps")

    @staticmethod
    def forward(ctx, x, weight, bias, axes, eps):
        ctx.axes, ctx.eps = axes, eps
        normalized, mean, _, inverse_std = standardize(x, axes, eps)
        ctx.save_for_backward(x, weight, mean, inverse_std)
        return scaled_in_place(normalized, weight, bias)

    @staticmethod
    def backward(ctx, grad):
        weight, normalized, inverse_std = standardized(ctx, grad)
        by_normalized = grad if weight is None else grad * weight
        return through_standardizing(by_normalized, normalized, inverse_std, ctx.axes), grad * normalized, grad

    @staticmethod
    def jvp(ctx, x_tangent, weight_tangent, bias_tangent):
        weight, normalized, inverse_std = standardized(ctx, x_tangent, weight_tangent, bias_tangent)
        tangent = normalized * 0.0
        if x_tangent is not None:
            tangent = scaled(through_standardizing(x_tangent, normalized, inverse_std, ctx.axes), weight, None)
        return total(tangent, None if weight_tangent is None else normalized * weight_tangent, bias_tangent)


class BatchNorm(LayerNorm):
    """Like LayerNorm, with the mean and variance of each channel over the whole batch.

    `running`, a pair of arrays, is moved toward this batch's mean and (unbiased) variance by `momentum`, in place.
    """

    torch_name = "NativeBatchNormBackward0"
    __slots__ = ()

    @staticmethod
    def forward(ctx, x, weight, bias, axes, eps, running, momentum):  # type: ignore[override]  # it has two more options
        ctx.axes, ctx.eps = axes, eps
        normalized, mean, variance, inverse_std = standardize(x, axes, eps)
        ctx.save_for_backward(x, weight, mean, inverse_std)
        if running is not None:
            count = math.prod(x.shape[axis] for axis in axes)
            for kept, new in zip(running, (mean, variance * (count / max(count - 1, 1))), strict=True):
                kept += momentum * (new.reshape(kept.shape) - kept)
        return scaled_in_place(normalized, weight, bias)


def moments(x: Value, axes: Axes, eps: float) -> tuple[Value, Value, Value, Value]:
    """x without its mean along `axes`, the mean, the variance and 1 / sqrt(variance + eps)."""
    mean = average(x, axes)
    centered = x - mean
    variance = sum_of_products(centered, centered, axes) / math.prod([x.shape[axis] for axis in axes])
    return centered, mean, variance, (variance + eps) ** -0.5


def standardize(x: Any, axes: Axes, eps: float) -> tuple[Any, Any, Any, Any]:
    """The normalized array (a new one), the mean, the variance and 1 / sqrt(variance + eps)."""
    normalized, mean, variance, inverse_std = moments(x, axes, eps)
    normalized *= inverse_std
    return normalized, mean, variance, inverse_std


def standardized(ctx: Any, *given: Value) -> tuple[Value, Value, Value]:
    """The weight, the normalized x and 1 / sqrt(variance + eps), as saved or, in a recorded pass, from x."""
    x, weight, mean, inverse_std = ctx.saved_tensors
    if recorded(*given):
        _, mean, _, inverse_std = moments(x, ctx.axes, ctx.eps)
    return weight, (x - mean) * inverse_std, inverse_std


def through_standardizing(grad: Value, normalized: Value, inverse_std: Value, axes: Axes) -> Value:
    """The derivative of standardizing, applied to a gradient or to a tangent."""
    count = math.prod([grad.shape[axis] for axis in axes])
    taken = normalized * (sum_of_products(grad, normalized, axes) / count)
    taken += average(grad, axes)
    taken -= grad
    taken *= -inverse_std
    return taken


def scaled(normalized: Value, weight: Value | None, bias: Value | None) -> Value:
    """`normalized * weight + bias`; each of the two may be None."""
    result = normalized if weight is None else normalized * weight
    return result if bias is None else result + bias


def scaled_in_place(normalized: Any, weight: Any, bias: Any) -> Any:
    """`scaled`, written into `normalized` itself."""
    if weight is not None:
        normalized *= weight
    if bias is not None:
        normalized += bias
    return normalized


def layer_norm(
    input: Value,
    normalized_shape: Sequence[int],
    weight: Value | None = None,
    bias: Value | None = None,
    eps: float = 1e-5,
) -> Value:
    """Standardize over the last axes, whose lengths are `normalized_shape`; `weight` and `bias` have that shape."""
    shape = tuple(normalized_shape)
    if tuple(input.shape[input.ndim - len(shape) :]) != shape or not shape:
        expected = ", ".join(map(str, ("*", *shape)))
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape [{expected}], but got input of size"
            f"{list(input.shape)}"
        )
    for name, parameter in (("weight", weight), ("bias", bias)):
        if parameter is not None and tuple(parameter.shape) != shape:
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape "
                f"{list(parameter.shape)} and normalized_shape = {list(shape)}"
            )
    axes = tuple(range(input.ndim - len(shape), input.ndim))
    return LayerNorm.apply(input, weight, bias, axes=axes, eps=eps)


def batch_norm(
    input: Value,
    running_mean: Value | None,
    running_var: Value | None,
    weight: Value | None = None,
    bias: Value | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Value:
    """Standardize each channel of `input` (N, C, *sizes): in training with the batch's own mean and variance.

    The running mean and variance, if given, are then updated in place; outside of training they are used instead.

    Raises RuntimeError for a parameter without one number per channel, ValueError in training for a single value.
    """
    axes = (0, *range(2, input.ndim))
    if training and math.prod(input.shape[axis] for axis in axes) == 1:
        raise ValueError(
            f"Expected more than 1 value per channel when training, got input size torch.Size({list(input.shape)})"
        )
    if not training and (running_mean is None or running_var is None):
        raise RuntimeError("Expected running_mean and running_var to be defined when training=False")
    check_channels(input, running_mean=running_mean, running_var=running_var, weight=weight, bias=bias)
    weight, bias = along_channels(weight, input.ndim), along_channels(bias, input.ndim)
    if not training:
        mean: Value = along_channels(running_mean, input.ndim)
        variance: Value = along_channels(running_var, input.ndim)
        return scaled((input - mean) * (variance + eps) ** -0.5, weight, bias)
    if 0 in input.shape:
        return scaled(input * 1.0, weight, bias)
    running = None if running_mean is None else (as_array(running_mean), as_array(running_var))
    output = BatchNorm.apply(input, weight, bias, axes=axes, eps=eps, running=running, momentum=momentum)
    for kept in (running_mean, running_var):
        if getattr(kept, "version", None) is not None:
            note_change(kept.version)  # type: ignore[union-attr]
    return output


def check_channels(input: Value, **parameters: Value | None) -> None:
    """Raise PyTorch's error for a parameter that does not have one number per channel of `input`."""
    channels = input.shape[1] if input.ndim > 1 else 0
    for name, values in parameters.items():
        if values is not None and math.prod(values.shape) != channels:
            raise RuntimeError(f"{name} should contain {channels} elements not {math.prod(values.shape)}")


def along_channels(values: Value | None, ndim: int) -> Value | None:
    """One number per channel, shaped so that it broadcasts against (N, C, *sizes)."""
    return None if values is None else values.reshape(*values.shape, *(1,) * (ndim - 2))
