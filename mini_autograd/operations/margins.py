"""Losses that compare: distances of triplets and pairs, rankings, margins between classes, and a normal likelihood.

Imports arrays, function and many of the operations. The one idea to know: each is put together from others and has no
rule of its own; a loss with a margin is 0 where its two sides are at least that far apart.
"""

from __future__ import annotations

import math
from typing import Any

from mini_autograd.arrays import dtype_name, holds, int64
from mini_autograd.function import Value, as_array, wrap
from mini_autograd.operations.elementwise import log, relu, where
from mini_autograd.operations.extremes import clamp_min, minimum
from mini_autograd.operations.gathering import gather
from mini_autograd.operations.losses import reduced, softplus
from mini_autograd.operations.mathematical import sqrt
from mini_autograd.operations.statistics import pairwise_distance
from mini_autograd.operations.targets import check_keeps_shape, check_reduction

LEAST = 1e-12
"""What PyTorch adds to squared lengths before it divides by them."""


def triplet_margin_loss(
    anchor: Value,
    positive: Value,
    negative: Value,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Value:
    """max(0, margin + |anchor - positive| - |anchor - negative|), for vectors along the last axis.

    With `swap`, the distance of positive and negative counts if it is smaller than that of anchor and negative.

    Raises ValueError unless the margin is positive, RuntimeError if the three differ in rank.
    """
    check_reduction(reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.ndim}D, positive {positive.ndim}D, and negative {negative.ndim}D inputs"
        )
    far = pairwise_distance(anchor, negative, p, eps)
    if swap:
        far = minimum(far, pairwise_distance(positive, negative, p, eps))
    return reduced(clamp_min(pairwise_distance(anchor, positive, p, eps) - far + margin, 0.0), reduction)


def margin_ranking_loss(
    input1: Value, input2: Value, target: Value, margin: float = 0.0, reduction: str = "mean"
) -> Value:
    """max(0, margin - target (input1 - input2)), where target is 1 if input1 should be the larger one, and else -1.

    Raises RuntimeError if the three differ in rank.
    """
    check_reduction(reduction)
    if not input1.ndim == input2.ndim == target.ndim:
        sizes = [f"torch.Size({list(x.shape)})" for x in (input1, input2, target)]
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {sizes[0]}, input2: {sizes[1]}, target: {sizes[2]} "
        )
    return reduced(clamp_min(-target * (input1 - input2) + margin, 0.0), reduction)


def hinge_embedding_loss(input: Value, target: Value, margin: float = 1.0, reduction: str = "mean") -> Value:
    """The distance `input` where target is 1, and max(0, margin - input) where it is -1."""
    check_reduction(reduction)
    near = where(target == -1, 0.0, input)
    return reduced(near + where(target == 1, 0.0, clamp_min(margin - input, 0.0)), reduction)


def cosine_embedding_loss(
    input1: Value, input2: Value, target: Value, margin: float = 0.0, reduction: str = "mean"
) -> Value:
    """1 - cos of the angle where target is 1, and max(0, cos - margin) where it is -1.

    Inputs (n, d) and target (n,), or (d,) and ().

    Raises RuntimeError unless the inputs have one axis more than the target.
    """
    check_reduction(reduction)
    if target.ndim > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if not input1.ndim == input2.ndim == target.ndim + 1:
        raise RuntimeError(
            f"{target.ndim}D target tensor expects {target.ndim + 1}D input tensors, but found inputs with sizes "
            f"{list(input1.shape)} and {list(input2.shape)}."
        )
    lengths = sqrt(((input1 * input1).sum(-1) + LEAST) * ((input2 * input2).sum(-1) + LEAST))
    cosine = (input1 * input2).sum(-1) / lengths
    apart = where(target == -1, clamp_min(cosine - margin, 0.0), 0.0)
    return reduced(where(target == 1, 1.0 - cosine, 0.0) + apart, reduction)


def soft_margin_loss(input: Value, target: Value, reduction: str = "mean") -> Value:
    """log(1 + e^(-target input)), for targets 1 and -1. Raises RuntimeError if the loss had not the input's shape."""
    check_reduction(reduction)
    check_keeps_shape(target.shape, input.shape)
    return reduced(softplus(-target * input), reduction)


def multi_margin_loss(
    input: Value,
    target: Value,
    p: int = 1,
    margin: float = 1.0,
    weight: Value | None = None,
    reduction: str = "mean",
) -> Value:
    """The mean over all other classes of max(0, margin - x[target] + x[other])^p, for scores (N, C) or (C,)."""
    check_reduction(reduction)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.ndim != 1:
        raise ValueError("weight must be one-dimensional")
    scores, labels = (input, target) if input.ndim == 2 else (input.reshape((1, -1)), target.reshape((1,)))
    if labels.shape != scores.shape[:1]:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch "
            f"size). Expected target size [{scores.shape[0]}], but got {list(labels.shape)}. Input has shape "
            f"{list(scores.shape)}."
        )
    if weight is not None and weight.shape != scores.shape[1:]:
        raise RuntimeError(f"inconsistent weight size, expected {scores.shape[1]} but got {list(weight.shape)}")
    if weight is not None and weight.dtype != input.dtype:
        wanted, got = dtype_name(input.dtype), dtype_name(weight.dtype)
        raise RuntimeError(f"expected scalar type {wanted} but found {got}")
    check_labels(as_array(labels), scores.shape[1])
    places = labels.reshape((-1, 1))
    gaps = relu(margin - gather(scores, 1, places) + scores)
    gaps = gaps if p == 1 else gaps * gaps
    if weight is not None:
        gaps = gaps * weight[labels].reshape((-1, 1))
    own = as_array(places) == range(scores.shape[1])
    losses = where(wrap(own, input), 0.0, gaps).sum(1) / scores.shape[1]
    return reduced(losses if input.ndim == 2 else losses[0], reduction)


def check_labels(labels: Any, classes: int) -> None:
    """Raise PyTorch's error for what is no number of a class."""
    if labels.dtype != int64:
        raise RuntimeError(f"expected scalar type Long but found {dtype_name(labels.dtype)}")
    if labels.size and not holds(((labels >= 0) & (labels < classes)).all()):
        raise RuntimeError("target out of range")


def gaussian_nll_loss(
    input: Value, target: Value, var: Any, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Value:
    """(log var + (input - target)^2 / var) / 2: minus the logarithm of a normal density, up to a constant.

    `var` is a number or has the shape of `input`, or 1 (or nothing) in place of the last axis. It counts as at least
    `eps`, but its gradient is as if it did not. With `full` the constant is added.

    Raises ValueError for a negative variance.
    """
    if not isinstance(var, float):
        var = with_last_axis(var, input)
    if not holds((as_array(var) >= 0).all() if hasattr(var, "ndim") and var.ndim else bool(var >= 0)):
        raise ValueError("var has negative entry/entries")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    if isinstance(var, float):
        var = input.detach() * 0.0 + var
    safe = var + clamp_min(eps - var.detach(), 0.0)
    difference = input - target
    losses = 0.5 * (log(safe) + difference * difference / safe)
    return reduced(losses + 0.5 * math.log(2 * math.pi) if full else losses, reduction)


def with_last_axis(var: Value, input: Value) -> Value:
    """Variances that broadcast with `input`; ValueError if they do not fit it."""
    if var.shape == input.shape:
        return var
    if var.shape == input.shape[:-1]:
        return var.reshape((*var.shape, 1))
    differing = [b for a, b in zip(input.shape, var.shape, strict=False) if a != b]
    if var.ndim != input.ndim or differing != [1]:
        raise ValueError("var is of incorrect size")
    return var
