"""Transformers: layers of attention and a small network, alone or stacked: TransformerEncoder, TransformerDecoder.

Imports tensor, creation, init, functional, module, containers, layers, normalizations and attention. The one idea to
know: every part is added to what it reads, and either the sum is normalized or (`norm_first`) what the part reads.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

from mini_autograd.creation import full
from mini_autograd.nn import functional, init
from mini_autograd.nn.attention import MultiheadAttention
from mini_autograd.nn.containers import ModuleList
from mini_autograd.nn.layers import Linear
from mini_autograd.nn.module import Module
from mini_autograd.nn.normalizations import Dropout, LayerNorm
from mini_autograd.tensor import Tensor

Activation = str | Callable[[Tensor], Tensor]


class TransformerLayer(Module):
    """What layers of encoders and decoders share: attention, a network of two linear layers, and norms."""

    attentions: tuple[str, ...]

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
        for name in self.attentions:
            attention = MultiheadAttention(d_model, nhead, dropout=dropout, batch_first=batch_first, **options)
            self.add_module(name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, **options)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **options)
        self.norm_first, self.activation = norm_first, activation_of(activation)
        parts = range(1, len(self.attentions) + 2)
        for number in parts:
            self.add_module(f"norm{number}", LayerNorm(d_model, eps=layer_norm_eps, **options))
        for number in parts:
            self.add_module(f"dropout{number}", Dropout(dropout))

    def add(self, number: int, part: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        """x with what a part of the layer makes of it."""
        norm, dropout = getattr(self, f"norm{number}"), getattr(self, f"dropout{number}")
        return x + dropout(part(norm(x))) if self.norm_first else norm(x + dropout(part(x)))

    def feed_forward(self, x: Tensor) -> Tensor:
        """The network, at every time by itself."""
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(TransformerLayer):
    """Self-attention and a network over (T, N, d_model), or (N, T, d_model) with `batch_first`."""

    attentions = ("self_attn",)

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


class TransformerDecoderLayer(TransformerLayer):
    """As an encoder's layer, with attention to `memory`, what an encoder gave, between the two."""

    attentions = ("self_attn", "multihead_attn")

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        def attend(x: Tensor) -> Tensor:
            return self.self_attn(x, x, x, tgt_key_padding_mask, False, tgt_mask, is_causal=tgt_is_causal)[0]

        def look(x: Tensor) -> Tensor:
            masks = memory_key_padding_mask, False, memory_mask
            return self.multihead_attn(x, memory, memory, *masks, is_causal=memory_is_causal)[0]

        return self.add(3, self.feed_forward, self.add(2, look, self.add(1, attend, tgt)))


class TransformerEncoder(Module):
    """`num_layers` copies of a layer, one on the outputs of the other, and a norm if there is one.

    PyTorch's shortcut for padded positions in evaluation, which makes them 0, is left out, and its options are ignored.
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(encoder_layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        for layer in self.layers:
            src = layer(src, mask, src_key_padding_mask, bool(is_causal))
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """As TransformerEncoder, of a decoder's layers."""

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(decoder_layer) for _ in range(num_layers)])
        self.num_layers, self.norm = num_layers, norm

    def forward(self, tgt: Tensor, memory: Tensor, *masks: Any, **options: Any) -> Tensor:
        """`masks` and `options` are those of the layer."""
        options = {name: bool(value) if name.endswith("is_causal") else value for name, value in options.items()}
        for layer in self.layers:
            tgt = layer(tgt, memory, *masks, **options)
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """An encoder for `src` and a decoder for `tgt`, each with a norm at its end."""

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = functional.relu,
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        layer = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first)
        options = {"bias": bias, "device": device, "dtype": dtype}
        kinds: Any = ((TransformerEncoder, TransformerEncoderLayer), (TransformerDecoder, TransformerDecoderLayer))
        customs = ("encoder", custom_encoder, num_encoder_layers), ("decoder", custom_decoder, num_decoder_layers)
        for (name, custom, count), (stack, one) in zip(customs, kinds, strict=True):
            if custom is None:
                parts = one(*layer, **options)
                custom = stack(parts, count, LayerNorm(d_model, eps=layer_norm_eps, **options))
            self.add_module(name, custom)
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        masks = tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask
        return self.decoder(tgt, memory, *masks, tgt_is_causal=tgt_is_causal, memory_is_causal=memory_is_causal)

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """The mask that hides from every time those after it: -inf above the diagonal, and 0 elsewhere."""
        return full((sz, sz), -math.inf, dtype=dtype, device=device).triu(1)


def activation_of(activation: Activation) -> Callable[[Tensor], Tensor]:
    """A function, or that of a name. Raises RuntimeError for another name."""
    if not isinstance(activation, str):
        return activation
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return getattr(functional, activation)
