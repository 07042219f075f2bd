"""Multi-head attention.

The one idea to know: queries, keys and values are projected and split into heads along the features, and each head
attends on its own.
"""

from __future__ import annotations

import math
from typing import Any

from mini_autograd.nn import functional, init
from mini_autograd.nn.modules.layers import Linear
from mini_autograd.nn.modules.module import Module
from mini_autograd.nn.parameter import empty_parameter
from mini_autograd.numerics import arrays
from mini_autograd.operations.pointwise.elementwise import where
from mini_autograd.operations.shapes.joining import cat
from mini_autograd.tensors.creation import zeros
from mini_autograd.tensors.tensor import Tensor


class NonDynamicallyQuantizableLinear(Linear):
    """A Linear with the name that PyTorch prints for it."""


class MultiheadAttention(Module):
    """Attention with `num_heads` heads over (L, N, E), or (N, L, E) with `batch_first`; (L, E) without a batch.

    `in_proj_weight` stacks the projections of queries, keys and values. If the number of features of keys or
    values (`kdim`, `vdim`) is not `embed_dim`, there are three weights instead. `add_bias_kv` adds a learned key and
    value, `add_zero_attn` a key and value of zeros.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} "
                "instead"
            )
        self.embed_dim, self.num_heads, self.dropout = embed_dim, num_heads, dropout
        self.kdim, self.vdim = embed_dim if kdim is None else kdim, embed_dim if vdim is None else vdim
        self.batch_first, self.head_dim, self.add_zero_attn = batch_first, embed_dim // num_heads, add_zero_attn
        assert self.head_dim * num_heads == embed_dim, "embed_dim must be divisible by num_heads"
        options = {"device": device, "dtype": dtype}
        lengths = [embed_dim, self.kdim, self.vdim]
        together = lengths == [embed_dim] * 3
        for name, length in zip(("q_proj_weight", "k_proj_weight", "v_proj_weight"), lengths, strict=True):
            self.register_parameter(name, None if together else empty_parameter(embed_dim, length, **options))
        joint = empty_parameter(3 * embed_dim, embed_dim, **options) if together else None
        self.register_parameter("in_proj_weight", joint)
        self.in_proj_bias = empty_parameter(3 * embed_dim, **options) if bias else None
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, **options)
        self.bias_k = empty_parameter(1, 1, embed_dim, **options) if add_bias_kv else None
        self.bias_v = empty_parameter(1, 1, embed_dim, **options) if add_bias_kv else None
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        for vector in (self.in_proj_bias, self.out_proj.bias):
            if vector is not None:
                init.zeros_(vector)
        for row in (self.bias_k, self.bias_v):
            if row is not None:
                init.xavier_normal_(row)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """The attended values and, if `need_weights`, the probabilities (their mean over the heads)."""
        if is_causal and attn_mask is None:
            raise RuntimeError(
                "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
                "`generate_square_subsequent_mask` to create this mask."
            )
        batched = query.ndim == 3
        swap = batched and not self.batch_first
        inputs = [x.transpose(0, 1) if swap else x if batched else x.reshape(1, *x.shape) for x in (query, key, value)]
        queries, keys, values = (self._heads(x, number) for number, x in enumerate(inputs))
        count = keys.shape[2]
        keys, values = (self._longer(x, row) for x, row in ((keys, self.bias_k), (values, self.bias_v)))
        mask = self._mask(attn_mask, key_padding_mask, query)
        if mask is not None and keys.shape[2] > count:
            mask = functional.pad(mask, (0, keys.shape[2] - count))  # the added keys are always visible
        probability = self.dropout if self.training else 0.0
        weights = None
        if need_weights:
            scores = (queries * (1 / math.sqrt(self.head_dim))) @ keys.mT
            weights = functional.softmax(scores if mask is None else scores + mask, -1)
            weights = functional.dropout(weights, probability)
            attended = weights @ values
            weights = weights.mean(1) if average_attn_weights else weights
        else:
            attended = functional.scaled_dot_product_attention(queries, keys, values, mask, probability)
        joined = self.out_proj(attended.transpose(1, 2).flatten(2))
        output = joined.transpose(0, 1) if swap else joined if batched else joined[0]
        return output, weights if weights is None or batched else weights[0]

    def _heads(self, x: Tensor, number: int) -> Tensor:
        """Queries, keys or values (`number`) of x (N, L, E) as (N, heads, L, head_dim)."""
        rows = slice(number * self.embed_dim, (number + 1) * self.embed_dim)
        bias = None if self.in_proj_bias is None else self.in_proj_bias[rows]
        weights = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        weight = weights[number] if self.in_proj_weight is None else self.in_proj_weight[rows]
        projected = functional.linear(x, weight, bias)
        return projected.reshape(*x.shape[:2], self.num_heads, self.head_dim).transpose(1, 2)

    def _longer(self, x: Tensor, row: Tensor | None) -> Tensor:
        """Keys or values (N, heads, S, head_dim) with the learned `row` and the row of zeros, if used."""
        shape = (x.shape[0], self.num_heads, 1, self.head_dim)
        if row is not None:
            x = cat([x, row.reshape(1, *shape[1:]).expand(shape)], 2)
        return cat([x, zeros(shape, dtype=x.dtype, device=x.device)], 2) if self.add_zero_attn else x

    def _mask(self, attn_mask: Tensor | None, padding: Tensor | None, like: Tensor) -> Tensor | None:
        """Both masks as one to add to the scores (N, heads, L, S). In a bool mask, True hides a key."""
        mask = None if attn_mask is None else added(attn_mask, like)
        if mask is not None and mask.ndim == 3:
            mask = mask.reshape(-1, self.num_heads, *mask.shape[1:])
        if padding is None:
            return mask
        hidden = added(padding, like)
        hidden = hidden.reshape(-1, 1, 1, hidden.shape[-1])
        return hidden if mask is None else mask + hidden


def added(mask: Tensor, like: Tensor) -> Tensor:
    """The mask to add to the scores, for a mask of that form or a bool mask in which True hides a key."""
    return where(mask, -math.inf, zeros(mask.shape, dtype=like.dtype)) if mask.dtype == arrays.bool_ else mask
