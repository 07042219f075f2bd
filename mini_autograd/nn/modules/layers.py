"""Linear layers, embeddings, and layers that only rearrange: Linear, Embedding, Flatten, Identity.

The one idea to know: a layer holds parameters and options; the computation is in `functional`.
"""

from __future__ import annotations

import math
from typing import Any

from mini_autograd.nn import functional, init
from mini_autograd.nn.modules.module import Module
from mini_autograd.nn.parameter import Parameter, empty_parameter
from mini_autograd.tensors.tensor import Tensor


class Identity(Module):
    """The input itself."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        return input


class Linear(Module):
    """x W^T + b, from (..., in_features) to (..., out_features). The weight has shape (out_features, in_features)."""

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = empty_parameter(out_features, in_features, dtype=dtype, device=device)
        self.bias = empty_parameter(out_features, dtype=dtype, device=device) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw weight and bias uniformly between -1 and 1 over the square root of in_features."""
        reset_uniformly(self.weight, self.bias)

    def forward(self, input: Tensor) -> Tensor:
        return functional.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


def reset_uniformly(weight: Tensor, bias: Tensor | None) -> None:
    """PyTorch's initial values of linear layers and convolutions."""
    init.kaiming_uniform_(weight, a=math.sqrt(5))
    if bias is not None:
        fan_in, _ = init.fans(weight)
        bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
        init.uniform_(bias, -bound, bound)


class Embedding(Module):
    """A table of vectors: numbers (...) pick rows, giving (..., embedding_dim).

    Rows that are looked up are first shortened, in place, to a `norm_type` norm of at most `max_norm`. The gradient of
    a row is the sum over its lookups, or their mean with `scale_grad_by_freq`. PyTorch's `sparse` is left out.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        device: Any = None,
        dtype: Any = None,
        *,
        _weight: Tensor | None = None,
        _freeze: bool = False,
    ) -> None:
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise AssertionError("Padding_idx must be within num_embeddings")
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        self.max_norm, self.norm_type, self.scale_grad_by_freq = max_norm, norm_type, scale_grad_by_freq
        if _weight is not None:
            self.weight = Parameter(_weight, requires_grad=not _freeze)
            return
        self.weight = empty_parameter(num_embeddings, embedding_dim, dtype=dtype, device=device)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw normal numbers; the row of `padding_idx` is 0."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            init.zeros_(self.weight.detach()[self.padding_idx])

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
    ) -> Embedding:
        """An embedding with given vectors, which are not trained if `freeze`."""
        if embeddings.ndim != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        options = (padding_idx, max_norm, norm_type, scale_grad_by_freq)
        return cls(embeddings.shape[0], embeddings.shape[1], *options, _weight=embeddings, _freeze=freeze)

    def forward(self, input: Tensor) -> Tensor:
        options = (self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq)
        return functional.embedding(input, self.weight, *options)

    def extra_repr(self) -> str:
        shown = {"padding_idx": None, "max_norm": None, "norm_type": 2.0, "scale_grad_by_freq": False}  # if not these
        options = [f", {name}={getattr(self, name)}" for name, usual in shown.items() if getattr(self, name) != usual]
        return f"{self.num_embeddings}, {self.embedding_dim}{''.join(options)}"


class Flatten(Module):
    """Merge the axes from `start_dim` to `end_dim`: by default all but the batch."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Tensor) -> Tensor:
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"
