"""TransformerEncoderLayer: attention and a feed-forward network.

The one idea to know: the output of each part is added to its input. Either this sum is normalized or, with
`norm_first`, the input of the part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mini_autograd.nn import functional
from mini_autograd.nn.modules.attention import MultiheadAttention
from mini_autograd.nn.modules.layers import Linear
from mini_autograd.nn.modules.module import Module
from mini_autograd.nn.modules.normalizations import Dropout, LayerNorm
from mini_autograd.tensors.tensor import Tensor

Activation = str | Callable[[Tensor], Tensor]


class TransformerEncoderLayer(Module):
    """Self-attention and a feed-forward network over (T, N, d_model), or (N, T, d_model) with `batch_first`."""

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = functional.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        options = {"bias": bias, "device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(d_model, nhead, dropout=dropout, batch_first=batch_first, **options)
        self.linear1 = Linear(d_model, dim_feedforward, **options)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **options)
        self.norm_first, self.activation = norm_first, activation_of(activation)
        self.norm1, self.norm2 = (LayerNorm(d_model, eps=layer_norm_eps, **options) for _ in range(2))
        self.dropout1, self.dropout2 = Dropout(dropout), Dropout(dropout)

    def add(self, number: int, part: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        """x plus the output of a part of the layer for x, with normalization and dropout."""
        norm, dropout = getattr(self, f"norm{number}"), getattr(self, f"dropout{number}")
        return x + dropout(part(norm(x))) if self.norm_first else norm(x + dropout(part(x)))

    def feed_forward(self, x: Tensor) -> Tensor:
        """The feed-forward network, applied to each time separately."""
        return self.linear2(self.dropout(self.activation(self.linear1(x))))

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        def attend(x: Tensor) -> Tensor:
            return self.self_attn(x, x, x, src_key_padding_mask, False, src_mask, is_causal=is_causal)[0]

        return self.add(2, self.feed_forward, self.add(1, attend, src))


def activation_of(activation: Activation) -> Callable[[Tensor], Tensor]:
    """The activation function, which may be given by name. Raises RuntimeError for an unknown name."""
    if not isinstance(activation, str):
        return activation
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return getattr(functional, activation)
