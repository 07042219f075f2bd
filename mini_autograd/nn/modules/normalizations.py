"""Layers that normalize, and dropout: LayerNorm, BatchNorm1d, BatchNorm2d, Dropout, Dropout2d.

The one idea to know: batch norm and dropout look at `training`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mini_autograd.nn import functional, init
from mini_autograd.nn.modules.module import Module
from mini_autograd.nn.parameter import empty_parameter
from mini_autograd.numerics import arrays
from mini_autograd.tensors.creation import tensor, zeros
from mini_autograd.tensors.tensor import Tensor


class LayerNorm(Module):
    """Standardize over the last axes, whose lengths are `normalized_shape`; then multiply by weight and add bias."""

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        shape = self.normalized_shape
        self.weight = empty_parameter(*shape, dtype=dtype, device=device) if elementwise_affine else None
        self.bias = empty_parameter(*shape, dtype=dtype, device=device) if elementwise_affine and bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Weight 1, bias 0."""
        reset_to_identity(self.weight, self.bias)

    def forward(self, input: Tensor) -> Tensor:
        return functional.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class BatchNorm(Module):
    """What BatchNorm1d and BatchNorm2d share: standardize each channel over the batch, or with running statistics."""

    ranks: tuple[int, ...]
    running_mean: Any
    running_var: Any
    num_batches_tracked: Any

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self.weight = empty_parameter(num_features, dtype=dtype, device=device) if affine else None
        self.bias = empty_parameter(num_features, dtype=dtype, device=device) if affine else None
        dtype = dtype or arrays.default_dtype
        self.register_buffer("running_mean", zeros(num_features, dtype=dtype) if track_running_stats else None)
        self.register_buffer("running_var", zeros(num_features, dtype=dtype) if track_running_stats else None)
        self.register_buffer("num_batches_tracked", tensor(0) if track_running_stats else None)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Mean 0, variance 1, no batch seen."""
        if self.track_running_stats:
            init.zeros_(self.running_mean)
            init.ones_(self.running_var)
            init.zeros_(self.num_batches_tracked)

    def reset_parameters(self) -> None:
        """Weight 1, bias 0."""
        self.reset_running_stats()
        reset_to_identity(self.weight, self.bias)

    def forward(self, input: Tensor) -> Tensor:
        if input.ndim not in self.ranks:
            expected = " or ".join(f"{rank}D" for rank in self.ranks)
            raise ValueError(f"expected {expected} input (got {input.ndim}D input)")
        factor = self.momentum
        if self.training and self.track_running_stats:
            self.num_batches_tracked.add_(1)
            factor = 1.0 / int(self.num_batches_tracked) if factor is None else factor
        own = self.training or self.running_mean is None
        mean, variance = (self.running_mean, self.running_var) if self.track_running_stats else (None, None)
        return functional.batch_norm(input, mean, variance, self.weight, self.bias, own, factor or 0.0, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )


class BatchNorm1d(BatchNorm):
    """Batch norm of (N, C) or (N, C, L)."""

    ranks = (2, 3)


class BatchNorm2d(BatchNorm):
    """Batch norm of (N, C, H, W)."""

    ranks = (4,)


class Dropout(Module):
    """In training, set elements to 0 with probability p and scale up the others."""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p, self.inplace = p, inplace

    def forward(self, input: Tensor) -> Tensor:
        return functional.dropout(input, self.p, self.training)

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout2d(Dropout):
    """In training, set whole channels to 0 with probability p and scale up the others."""

    def forward(self, input: Tensor) -> Tensor:
        return functional.dropout2d(input, self.p, self.training)


def reset_to_identity(weight: Tensor | None, bias: Tensor | None) -> None:
    if weight is not None:
        init.ones_(weight)
    if bias is not None:
        init.zeros_(bias)
