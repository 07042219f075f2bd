"""Dropout: elements set to 0 at random.

Imports function and the generator. The one idea to know: it is a product with a mask that is drawn in the forward pass
and kept for the backward pass; the mask holds 0 and 1 / (1 - p), so that the expected value does not change.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mini_autograd import arrays
from mini_autograd.function import Function, Value, as_array
from mini_autograd.generator import default_generator


class Dropout(Function):
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


def keep_mask(shape: tuple[int, ...], p: float, like: Any) -> Any:
    """Zeros with probability p, else 1 / (1 - p), in the dtype of `like` and on its device."""
    kept = default_generator.uniform(shape, arrays.float64) < 1.0 - p
    return np.asarray(kept, dtype=like.dtype, like=like) * (1.0 / (1.0 - p) if p < 1.0 else 0.0)


def dropout(input: Value, p: float = 0.5, training: bool = True, inplace: bool = False) -> Value:
    """Set each element to 0 with probability `p`, and scale up the others; outside of training, the input itself.

    After the same `manual_seed` the mask is PyTorch's. `inplace` is ignored.
    """
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0.0:
        return input
    return Dropout.apply(input, mask=keep_mask(tuple(input.shape), p, as_array(input)))


def dropout_channels(input: Value, p: float = 0.5, training: bool = True, inplace: bool = False) -> Value:
    """As `dropout`, but whole channels of `input` (N, C, *sizes) at a time."""
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0.0:
        return input
    shape = (*input.shape[:2], *(1,) * (input.ndim - 2))
    return Dropout.apply(input, mask=keep_mask(shape, p, as_array(input)))
