"""Losses, each in one step with its reduction.

The one idea to know: cross entropy is always -sum(q log p), with p the softmax of the input and q the target's
distribution, however it is given, so its gradient is p sum(q) - q.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from mini_autograd.graph.function import Function, Value, as_array, wrap
from mini_autograd.numerics import arrays
from mini_autograd.operations.neural.fused import recorded, total
from mini_autograd.operations.neural.targets import (
    check_keeps_shape,
    check_probabilities,
    check_reduction,
    check_weight_shape,
    classes_of_target,
    over_classes,
    over_target,
    refuse_gradient,
    refuse_integers,
    same_shape,
    torch_size,
    weighted_classes,
)
from mini_autograd.operations.pointwise.elementwise import check_broadcast, exp, log, quiet, relu, where
from mini_autograd.operations.pointwise.mathematical import log1p, sigmoid
from mini_autograd.operations.pointwise.rounding import sign
from mini_autograd.operations.reductions.extremes import clamp
from mini_autograd.operations.reductions.softmax import (
    check_floating,
    log_and_plain_probabilities,
    log_softmax,
    softmax,
)

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cross_entropy", "l1_loss", "mse_loss", "nll_loss",
    "smooth_l1_loss",
]  # fmt: skip

INPUT_NAMES = ("self", "target", "weight", "pos_weight")


class OfDifference(Function):
    """Base of the losses of input - target. `slope(moved, difference)` is the derivative of one loss, times `moved`."""

    input_names = INPUT_NAMES
    prepare = staticmethod(arrays.promoted)
    __slots__ = ("reduction",)
    slope: Callable[..., Value]

    @staticmethod
    def backward(ctx, grad):
        input, target = ctx.saved_tensors
        step = ctx.slope(spread(grad, ctx.reduction, input), input - target)
        return step, -step

    @staticmethod
    def jvp(ctx, input_tangent, target_tangent):
        input, target = ctx.saved_tensors
        return reduced(ctx.slope(difference_of(input_tangent, target_tangent), input - target), ctx.reduction)


class MseLoss(OfDifference):
    """(input - target)^2."""

    @staticmethod
    def forward(ctx, input, target, reduction):
        ctx.save_for_backward(input, target)
        ctx.reduction = reduction
        difference = input - target
        return reduced(difference * difference, reduction)

    def slope(self, moved: Value, difference: Value) -> Value:
        return moved * (2.0 * difference)


class L1Loss(OfDifference):
    """|input - target|. At 0 the derivative is 0."""

    @staticmethod
    def forward(ctx, input, target, reduction):
        ctx.save_for_backward(input, target)
        ctx.reduction = reduction
        return reduced(abs(input - target), reduction)

    def slope(self, moved: Value, difference: Value) -> Value:
        return along_slope(moved, difference, 0.0)


class SmoothL1Loss(OfDifference):
    """d^2 / (2 beta) where d = |input - target| < beta, and d - beta/2 elsewhere; times `scale`."""

    __slots__ = ("beta", "scale")
    beta: float
    scale: float

    @staticmethod
    def forward(ctx, input, target, reduction, beta, scale):
        ctx.save_for_backward(input, target)
        ctx.reduction, ctx.beta, ctx.scale = reduction, beta, scale
        distance = abs(input - target)
        near = np.minimum(distance, beta)
        return reduced((distance - near + near * near / (2.0 * beta)) * scale, reduction)

    def slope(self, moved: Value, difference: Value) -> Value:
        return along_slope(moved * self.scale, difference, self.beta)


class BinaryCrossEntropy(Function):
    """-(target log(input) + (1 - target) log(1 - input)), with the logarithms cut off at -100."""

    input_names = INPUT_NAMES
    __slots__ = ("reduction",)

    @staticmethod
    @quiet
    def forward(ctx, input, target, weight, reduction):
        ctx.save_for_backward(input, target, weight)
        ctx.reduction = reduction
        positive, negative = np.maximum(np.log(input), -100.0), np.maximum(np.log1p(-input), -100.0)
        return reduced(weighted(-(target * positive + (1.0 - target) * negative), weight), reduction)

    @staticmethod
    def backward(ctx, grad):
        input, target, weight = ctx.saved_tensors
        grad = weighted(spread(grad, ctx.reduction, input), weight)
        variance = input * (1.0 - input)
        return (
            grad * (input - target) / (variance + relu(1e-12 - variance)),
            grad * (log(1.0 - input) - log(input)),
            None,
        )

    @staticmethod
    def jvp(ctx, input_tangent, target_tangent, weight_tangent):
        input, target, weight = ctx.saved_tensors
        by_input = None if input_tangent is None else (input - target) / (input * (1.0 - input)) * input_tangent
        by_target = None if target_tangent is None else (log(1.0 - input) - log(input)) * target_tangent
        return reduced(weighted(total(by_input, by_target), weight), ctx.reduction)


class BinaryCrossEntropyWithLogits(Function):
    """(1 - target) x + (1 + (pos_weight - 1) target) softplus(-x), the cross entropy of sigmoid(x) without overflow.

    The derivative with respect to x is (1 - target) - (1 + (pos_weight - 1) target) sigmoid(-x).
    """

    input_names = INPUT_NAMES
    __slots__ = ("reduction",)

    @staticmethod
    def forward(ctx, input, target, weight, pos_weight, reduction):
        ctx.save_for_backward(input, target, weight, pos_weight)
        ctx.reduction = reduction
        loss = (1.0 - target) * input + positive_factor(target, pos_weight) * softplus(-input)
        return reduced(weighted(loss, weight), reduction)

    @staticmethod
    def backward(ctx, grad):
        input, target, weight, pos_weight = ctx.saved_tensors
        by_input, by_target = BinaryCrossEntropyWithLogits.derivatives(input, target, pos_weight)
        grad = weighted(spread(grad, ctx.reduction, input), weight)
        return grad * by_input, grad * by_target, None, None

    @staticmethod
    def jvp(ctx, input_tangent, target_tangent, weight_tangent, pos_weight_tangent):
        input, target, weight, pos_weight = ctx.saved_tensors
        by_input, by_target = BinaryCrossEntropyWithLogits.derivatives(input, target, pos_weight)
        moved_input = None if input_tangent is None else by_input * input_tangent
        moved_target = None if target_tangent is None else by_target * target_tangent
        return reduced(weighted(total(moved_input, moved_target), weight), ctx.reduction)

    @staticmethod
    def derivatives(input: Value, target: Value, pos_weight: Value | None) -> tuple[Value, Value]:
        """The derivatives of each loss with respect to its input and its target."""
        by_input = (1.0 - target) - positive_factor(target, pos_weight) * sigmoid(-input)
        return by_input, (-input if pos_weight is None else (pos_weight - 1.0) * softplus(-input) - input)


class NllLoss(Function):
    """-sum(q * input) over the classes, where input holds logarithms of probabilities and q is the target."""

    input_names = ("self",)  # it saves the target's distribution, not the class numbers
    __slots__ = ("axis", "count", "reduction")

    @staticmethod
    @quiet
    def forward(ctx, input, q, axis, reduction, count):
        ctx.save_for_backward(input, q)
        ctx.axis, ctx.reduction, ctx.count = axis, reduction, count
        return reduced(-over_target(q, input, True).sum(axis=axis), reduction, count)

    @staticmethod
    def backward(ctx, grad):
        input, q = ctx.saved_tensors
        grad = over_classes(spread(grad, ctx.reduction, input, ctx.count), ctx.axis)
        return -(grad * q), -(grad * input)

    @staticmethod
    def jvp(ctx, input_tangent, q_tangent):
        input, q = ctx.saved_tensors
        moved = total(
            None if input_tangent is None else q * input_tangent, None if q_tangent is None else q_tangent * input
        )
        return reduced(-moved.sum(axis=ctx.axis), ctx.reduction, ctx.count)


class CrossEntropy(Function):
    """-sum(q log softmax(input)) over the classes. With p = softmax(input): d/d input = p sum(q) - q."""

    torch_name = "NllLossBackward0"
    input_names = ()  # it saves scores where PyTorch saves the logarithms of probabilities
    __slots__ = ("axis", "count", "reduction")

    @staticmethod
    @quiet
    def forward(ctx, input, q, axis, reduction, count, of_classes):
        log_p, p = log_and_plain_probabilities(input, axis)
        ctx.save_for_backward(input, q, p)
        ctx.axis, ctx.reduction, ctx.count = axis, reduction, count
        terms = over_target(q, log_p, of_classes)
        return 0.0 - reduced(terms.sum(axis=axis) if reduction == "none" else terms, reduction, count)  # never -0.0

    @staticmethod
    def backward(ctx, grad):
        input, q, p = CrossEntropy.with_probabilities(ctx, grad)
        _, needs_q = ctx.needs_input_grad
        grad = over_classes(spread(grad, ctx.reduction, q, ctx.count), ctx.axis)
        grad_input = grad * (p * q.sum(axis=ctx.axis, keepdims=True) - q)
        return grad_input, -(grad * log_softmax(input, ctx.axis)) if needs_q else None

    @staticmethod
    def jvp(ctx, input_tangent, q_tangent):
        input, q, p = CrossEntropy.with_probabilities(ctx, input_tangent, q_tangent)
        by_input = None
        if input_tangent is not None:
            by_input = input_tangent * (p * q.sum(axis=ctx.axis, keepdims=True) - q)
        moved = total(by_input, None if q_tangent is None else -(q_tangent * log_softmax(input, ctx.axis)))
        return reduced(moved.sum(axis=ctx.axis), ctx.reduction, ctx.count)

    @staticmethod
    def with_probabilities(ctx: Any, *given: Value) -> tuple[Value, Value, Value]:
        """The input, q and p. In a recorded pass, p is computed again from the input."""
        input, q, p = ctx.saved_tensors
        return input, q, softmax(input, ctx.axis) if recorded(*given) else p


@quiet
def reduced(losses: Value, reduction: str, count: float | None = None) -> Value:
    """The losses themselves, their sum, or their sum divided by their number (or by `count`)."""
    if reduction == "none":
        return losses
    added = losses.sum()
    return added if reduction == "sum" else added / (math.prod(losses.shape) if count is None else count)


def spread(grad: Value, reduction: str, like: Value, count: float | None = None) -> Value:
    """The gradient of every single loss, from the gradient of their reduction; it may still have to be broadcast.

    If all targets are ignored (`count` is nan) it is 0, even for a gradient that is nan.
    """
    if reduction != "mean":
        return grad
    if isinstance(count, float) and math.isnan(count):  # all targets are ignored: see classes_of_target
        return wrap(np.zeros((), grad.dtype), grad)
    return grad / (math.prod(like.shape) if count is None else count)


def weighted(values: Value, weight: Value | None) -> Value:
    return values if weight is None else values * weight


def difference_of(a: Value | None, b: Value | None) -> Value:
    return total(a, None if b is None else -b)


def along_slope(grad: Value, x: Value, beta: float) -> Value:
    """`grad` times the derivative of the smooth |x|: x / beta between -beta and beta, and -1 or 1 outside."""
    return grad * (sign(x) if beta == 0 else where((x >= beta) | (x <= -beta), sign(x), x / beta))


def softplus(x: Value) -> Value:
    """log(1 + e^x) = max(x, 0) + log(1 + e^-|x|).

    Here -|x| is min(x, 0) - max(x, 0): its slope at 0 is 1, not 0, so that the slope of the whole is right there too.
    """
    return relu(x) + log1p(exp(clamp(x, max=0.0) - relu(x)))


def positive_factor(target: Value, pos_weight: Value | None) -> Value:
    """1 for a target of 0, `pos_weight` for a target of 1."""
    return 1.0 if pos_weight is None else (pos_weight - 1.0) * target + 1.0


def mse_loss(input: Value, target: Value, reduction: str = "mean") -> Value:
    """Mean (or sum, or each) of (input - target)^2."""
    check_reduction(reduction)
    refuse_integers("mse_cpu", input, target)
    return MseLoss.apply(*same_shape(input, target), reduction=reduction)


def l1_loss(input: Value, target: Value, reduction: str = "mean") -> Value:
    """Mean (or sum, or each) of |input - target|."""
    check_reduction(reduction)
    return L1Loss.apply(*same_shape(input, target), reduction=reduction)


def smooth_l1_loss(input: Value, target: Value, reduction: str = "mean", beta: float = 1.0) -> Value:
    """Like `l1_loss`, but a parabola where |input - target| < beta. Raises RuntimeError if beta < 0."""
    check_reduction(reduction)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    if beta == 0:
        return l1_loss(input, target, reduction)
    refuse_integers("smooth_l1_cpu", input, target)
    return SmoothL1Loss.apply(*same_shape(input, target), reduction=reduction, beta=arrays.number(beta), scale=1.0)


def binary_cross_entropy(input: Value, target: Value, weight: Value | None = None, reduction: str = "mean") -> Value:
    """Cross entropy of probabilities `input` and targets between 0 and 1.

    Raises RuntimeError if `input` is outside, or if `weight` requires grad: it gets no gradient.
    """
    check_reduction(reduction)
    if target.shape != input.shape:
        raise ValueError(
            f"Using a target size ({torch_size(target)}) that is different to the input size ({torch_size(input)}) is "
            "deprecated. Please ensure they have the same size."
        )
    if target.dtype != input.dtype:
        got, wanted = arrays.dtype_name(target.dtype), arrays.dtype_name(input.dtype)
        raise RuntimeError(f"Found dtype {got} but expected {wanted}")
    x = as_array(input)
    if x.size and not arrays.holds(((x >= 0) & (x <= 1)).all()):
        raise RuntimeError("all elements of input should be between 0 and 1")
    if weight is not None:
        check_weight_shape(weight.shape, input.shape)
        refuse_gradient("binary_cross_entropy", "weight", weight)
    return BinaryCrossEntropy.apply(input, target, weight, reduction=reduction)


def binary_cross_entropy_with_logits(
    input: Value,
    target: Value,
    weight: Value | None = None,
    reduction: str = "mean",
    pos_weight: Value | None = None,
) -> Value:
    """Cross entropy of sigmoid(input) and targets between 0 and 1; `pos_weight` multiplies the positive part.

    Raises ValueError if the shapes differ, RuntimeError for integer targets, and for a `weight` or `pos_weight` that
    requires grad: they get no gradient.
    """
    check_reduction(reduction)
    if target.shape != input.shape:
        raise ValueError(f"Target size ({torch_size(target)}) must be the same as input size ({torch_size(input)})")
    if pos_weight is not None:
        check_broadcast(pos_weight.shape, input.shape)
        check_keeps_shape(pos_weight.shape, input.shape)
    if weight is not None:
        check_keeps_shape(weight.shape, input.shape)
    arrays.check_floating(input, "log_sigmoid_cpu")
    if not arrays.is_floating(target.dtype):
        got, wanted = arrays.dtype_name(input.dtype), arrays.dtype_name(target.dtype)
        raise RuntimeError(f"result type {got} can't be cast to the desired output type {wanted}")
    refuse_gradient("binary_cross_entropy_with_logits", "weight", weight)
    refuse_gradient("binary_cross_entropy_with_logits", "pos_weight", pos_weight)
    return BinaryCrossEntropyWithLogits.apply(input, target, weight, pos_weight, reduction=reduction)


def nll_loss(
    input: Value, target: Value, weight: Value | None = None, ignore_index: int = -100, reduction: str = "mean"
) -> Value:
    """Minus the logarithm of the probability of each sample's class.

    `input` (C,), (N, C) or (N, C, *sizes) holds logarithms of probabilities; `target` lacks the C and holds class
    numbers. The mean is over the samples whose class is not `ignore_index`, weighted by the `weight` (C,) of their
    class. Raises IndexError for a class that does not exist, ValueError or RuntimeError for shapes that do not fit, and
    RuntimeError for a `weight` that requires grad: it gets no gradient.
    """
    check_reduction(reduction)
    scores, labels = as_array(input), as_array(target)
    axis, q, count = classes_of_target(scores, labels, weight, ignore_index)
    if not arrays.is_floating(scores.dtype):
        kernel = "nll_loss2d_forward_out_frame" if scores.ndim > 2 else "nll_loss_out_frame"
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{arrays.dtype_name(scores.dtype)}'")
    q = weighted_classes(q, weight, axis)
    return NllLoss.apply(input, q, axis=axis, reduction=reduction, count=count)


def cross_entropy(
    input: Value,
    target: Value,
    weight: Value | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Value:
    """Cross entropy of softmax(input) and the target: class numbers, or a distribution with the shape of `input`.

    `input` (C,), (N, C) or (N, C, *sizes) holds unnormalized logarithms of probabilities (logits). `label_smoothing`
    mixes the target with the uniform distribution. Raises like `nll_loss`, and RuntimeError unless `label_smoothing` is
    between 0 and 1.
    """
    check_reduction(reduction)
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}")
    scores, labels = as_array(input), as_array(target)
    axis = max(min(scores.ndim - 1, 1), 0)
    probabilities = labels.shape == scores.shape
    if probabilities:
        check_probabilities(scores, labels, weight, axis, ignore_index)
        q, count = target, math.prod(scores.shape) // (scores.shape[axis] if scores.ndim else 1)
    check_floating("log_softmax", scores, axis)
    if not probabilities:
        axis, q, count = classes_of_target(scores, labels, weight, ignore_index)
    if label_smoothing > 0.0:
        visible = 1.0 if probabilities else q.sum(axis=axis, keepdims=True)  # 0 for ignored samples
        q = q * (1.0 - label_smoothing) + visible * (label_smoothing / scores.shape[axis])
    q = weighted_classes(q, weight, axis)
    return CrossEntropy.apply(input, q, axis=axis, reduction=reduction, count=count, of_classes=not probabilities)
