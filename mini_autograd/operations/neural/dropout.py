"""Dropout: elements set to 0 at random.

The one idea to know: it is a product with a mask that is drawn in the forward pass and kept for the backward pass; the
mask holds 0 and 1 / (1 - p), so that the expected value does not change.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from mini_autograd.graph.function import Unary, Value, as_array
from mini_autograd.numerics import arrays
from mini_autograd.numerics.generator import default_generator

__all__ = ["dropout", "dropout2d"]

WITHOUT_BATCH = (
    "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is desired - input "
    "is interpreted as shape (N, C, L), where C is the channel dim. This behavior will change in a future release to "
    "interpret the input as one without a batch dimension, i.e. shape (C, H, W). To maintain the 1D channel-wise "
    "dropout behavior, please switch to using dropout1d instead."
)
WRONG_AXES = (
    "dropout2d: Received a {ndim}-D input to dropout2d, which is deprecated and will result in an error in a future "
    "release. To retain the behavior and silence this warning, please use dropout instead. Note that dropout2d exists "
    "to provide channel-wise dropout on inputs with 2 spatial dimensions, a channel dimension, and an optional batch "
    "dimension (i.e. 3D or 4D inputs)."
)


class Dropout(Unary):
    """`x` times a mask of zeros and 1 / (1 - p)."""

    torch_name = "NativeDropoutBackward0"

    @staticmethod
    def forward(ctx, x, mask):
        ctx.save_for_backward(mask)
        return x * mask

    @staticmethod
    def backward(ctx, grad):
        (mask,) = ctx.saved_tensors
        return grad * mask

    @staticmethod
    def jvp(ctx, tangent):
        (mask,) = ctx.saved_tensors
        return tangent * mask


def refuse_integers(input: Value, p: float) -> None:
    """Raise PyTorch's error for integers, which cannot be scaled up; dropping them all is allowed."""
    if not arrays.is_floating(input.dtype) and p < 1.0 and input.numel():
        kind = arrays.dtype_name(input.dtype)
        raise RuntimeError(f"result type Float can't be cast to the desired output type {kind}")


def keep_mask(shape: tuple[int, ...], p: float, like: Any) -> Any:
    """Zeros with probability p, else 1 / (1 - p), in the dtype of `like` and on its device."""
    kept = default_generator.uniform(shape, arrays.float64) < 1.0 - p
    mask = np.asarray(kept, dtype=like.dtype, like=like)
    return mask * (1.0 / (1.0 - p)) if p < 1.0 and arrays.is_floating(like.dtype) else mask


def dropout(input: Value, p: float = 0.5, training: bool = True, inplace: bool = False) -> Value:
    """Set each element to 0 with probability `p`, and scale up the others; outside of training, return the input.

    After the same `manual_seed`, the mask is the same as PyTorch's. `inplace` is ignored.

    Raises ValueError unless `p` is between 0 and 1, RuntimeError for integers.
    """
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0.0:
        return input
    refuse_integers(input, p)
    return Dropout.apply(input, mask=keep_mask(tuple(input.shape), p, as_array(input)))


def dropout2d(input: Value, p: float = 0.5, training: bool = True, inplace: bool = False) -> Value:
    """Like `dropout`, but for whole channels of `input` (N, C, H, W). As in PyTorch, other shapes cause a warning.

    Raises like `dropout`, and RuntimeError for fewer than two axes.
    """
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if input.ndim != 4:
        warnings.warn(WITHOUT_BATCH if input.ndim == 3 else WRONG_AXES.format(ndim=input.ndim), stacklevel=2)
    if not training or p == 0.0:
        return input
    if input.ndim < 2 and p < 1.0:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    refuse_integers(input, p)
    shape = (*input.shape[:2], *(1,) * (input.ndim - 2))
    return Dropout.apply(input, mask=keep_mask(shape, p, as_array(input)))
