"""Scaled dot-product attention, in one step.

The one idea to know: the rule of softmax, dS = P (dP - sum(dP P)), stands between the rules of two matrix products.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mini_autograd.graph.function import Function, Value, as_array
from mini_autograd.numerics import arrays
from mini_autograd.operations.neural.dropout import keep_mask
from mini_autograd.operations.neural.fused import recorded, sum_of_products, total
from mini_autograd.operations.pointwise.elementwise import quiet
from mini_autograd.operations.reductions.softmax import softmax

__all__ = ["scaled_dot_product_attention"]


class Attention(Function):
    """softmax(Q K^T scale + mask) V, with the softmax over the keys.

    query (..., L, E), key (..., S, E), value (..., S, V), mask (..., L, S) or None; `kept`, if given, is the dropout
    mask by which the probabilities are multiplied.
    """

    torch_name = "ScaledDotProductFlashAttentionForCpuBackward0"
    __slots__ = ("kept", "scale")

    @staticmethod
    def forward(ctx, query, key, value, mask, scale, kept):
        ctx.scale, ctx.kept = scale, kept
        probabilities = softmax_in_place(scores(query, key, mask, scale))
        ctx.save_for_backward(query, key, value, mask, probabilities)
        return dropped(probabilities, kept) @ value

    @staticmethod
    def backward(ctx, grad):
        query, key, value, _, _ = ctx.saved_tensors
        probabilities = probabilities_of(ctx, grad)
        grad_value = dropped(probabilities, ctx.kept).mT @ grad
        grad_scores = through_softmax(dropped(grad @ transposed(value), ctx.kept), probabilities)
        grad_products = grad_scores * ctx.scale
        return grad_products @ key, grad_products.mT @ query, grad_value, grad_scores

    @staticmethod
    def jvp(ctx, query_tangent, key_tangent, value_tangent, mask_tangent):
        query, key, value, _, _ = ctx.saved_tensors
        probabilities = probabilities_of(ctx, query_tangent, key_tangent, value_tangent, mask_tangent)
        tangent = None
        if query_tangent is not None or key_tangent is not None or mask_tangent is not None:
            by_query = None if query_tangent is None else query_tangent @ key.mT * ctx.scale
            by_key = None if key_tangent is None else query @ key_tangent.mT * ctx.scale
            moved = through_softmax(total(by_query, by_key, mask_tangent), probabilities)
            tangent = dropped(moved, ctx.kept) @ value
        by_value = None if value_tangent is None else dropped(probabilities, ctx.kept) @ value_tangent
        return total(tangent, by_value)


def scores(query: Value, key: Value, mask: Value | None, scale: float) -> Value:
    """How well each key fits each query, plus the mask."""
    products = (query * scale) @ transposed(key)
    if mask is not None:
        products += mask
    return products


def transposed(x: Value) -> Value:
    """The matrices of x, transposed. Arrays are copied, as BLAS is slow at reading small matrices across their rows."""
    return x.mT if recorded(x) else x.mT.copy()


def largest_of_rows(x: Any) -> Any:
    """The largest number along the last axis, which is kept at size 1. NumPy is twice as fast if it gets an initial
    value; CuPy takes none.
    """
    start = {"initial": -math.inf} if isinstance(x, np.ndarray) else {}
    return x.max(axis=-1, keepdims=True, **start)


@quiet
def softmax_in_place(x: Any) -> Any:
    """Softmax along the last axis, written into `x`, which nothing else uses: memory may not hold the scores twice."""
    if x.shape[-1]:
        x -= largest_of_rows(x)
        np.exp(x, out=x)
        x /= x @ np.ones_like(x, shape=(x.shape[-1], 1))
    return x


def probabilities_of(ctx: Any, *given: Value) -> Value:
    """The probabilities, as saved or, in a recorded pass, computed from the inputs."""
    query, key, _, mask, probabilities = ctx.saved_tensors
    return softmax(scores(query, key, mask, ctx.scale), -1) if recorded(*given) else probabilities


def through_softmax(grad: Value, probabilities: Value) -> Value:
    """The derivative of softmax along the last axis, which is symmetric, applied to a gradient or a tangent."""
    result = grad - sum_of_products(grad, probabilities, (grad.ndim - 1,))
    result *= probabilities
    return result


def dropped(probabilities: Value, kept: Value | None) -> Value:
    return probabilities if kept is None else probabilities * kept


def scaled_dot_product_attention(
    query: Value,
    key: Value,
    value: Value,
    attn_mask: Value | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
) -> Value:
    """Every query's mixture of the values, weighted by the softmax of its products with the keys.

    query (..., L, E), key (..., S, E), value (..., S, V) give (..., L, V). A bool mask (..., L, S) says which keys
    count, a floating mask is added to the scores; `is_causal` lets query i see the keys 0 to i. `scale` defaults to
    1/sqrt(E).
    """
    if is_causal and attn_mask is not None:
        raise RuntimeError("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
    shape = (query.shape[-2], key.shape[-2])
    if is_causal:
        attn_mask = np.tri(*shape, dtype=bool, like=as_array(query))
    if attn_mask is not None and attn_mask.dtype == arrays.bool_:
        attn_mask = added_mask(as_array(attn_mask), as_array(query))
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else arrays.number(scale)
    kept = None
    if dropout_p > 0.0:
        kept = keep_mask((*np.broadcast_shapes(query.shape[:-2], key.shape[:-2]), *shape), dropout_p, as_array(query))
    return Attention.apply(query, key, value, attn_mask, scale=scale, kept=kept)


def added_mask(visible: Any, like: Any) -> Any:
    """The mask that is added to the scores: 0 where a key counts and -inf elsewhere."""
    mask = np.zeros_like(like, shape=visible.shape)
    mask[~visible] = -math.inf
    return mask
