"""Losses that compare, as modules: TripletMarginLoss, CosineEmbeddingLoss and so on; and measures of two vectors.

Imports tensor, module, functional and losses. The one idea to know: each holds the options of one function.
"""

from __future__ import annotations

from typing import Any

from mini_autograd.nn import functional
from mini_autograd.nn.losses import Loss
from mini_autograd.nn.module import Module
from mini_autograd.tensor import Tensor


class TripletMarginLoss(Loss):
    """max(0, margin + |anchor - positive| - |anchor - negative|)."""

    def __init__(
        self, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False, reduction: str = "mean"
    ) -> None:
        super().__init__(reduction)
        if margin <= 0:
            raise ValueError(f"TripletMarginLoss: expected margin to be greater than 0, got {margin} instead")
        self.margin, self.p, self.eps, self.swap = margin, p, eps, swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        options = (self.margin, self.p, self.eps, self.swap, self.reduction)
        return functional.triplet_margin_loss(anchor, positive, negative, *options)


class WithMargin(Loss):
    """A loss with a margin."""

    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin


class MarginRankingLoss(WithMargin):
    """max(0, margin - target (input1 - input2))."""

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return functional.margin_ranking_loss(input1, input2, target, self.margin, self.reduction)


class CosineEmbeddingLoss(WithMargin):
    """1 - cos of the angle where target is 1, and max(0, cos - margin) where it is -1."""

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return functional.cosine_embedding_loss(input1, input2, target, self.margin, self.reduction)


class HingeEmbeddingLoss(WithMargin):
    """The distance where target is 1, and max(0, margin - distance) where it is -1."""

    def __init__(self, margin: float = 1.0, reduction: str = "mean") -> None:
        super().__init__(margin, reduction)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return functional.hinge_embedding_loss(input, target, self.margin, self.reduction)


class SoftMarginLoss(Loss):
    """log(1 + e^(-target input))."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return functional.soft_margin_loss(input, target, self.reduction)


class MultiMarginLoss(WithMargin):
    """The mean over all other classes of max(0, margin - x[target] + x[other])^p."""

    def __init__(self, p: int = 1, margin: float = 1.0, weight: Tensor | None = None, reduction: str = "mean") -> None:
        super().__init__(margin, reduction)
        if p not in (1, 2):
            raise ValueError("only p == 1 and p == 2 supported")
        if weight is not None and weight.ndim != 1:
            raise ValueError("weight must be one-dimensional")
        self.register_buffer("weight", weight)
        self.p = p

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return functional.multi_margin_loss(input, target, self.p, self.margin, self.weight, self.reduction)


class GaussianNLLLoss(Loss):
    """(log var + (input - target)^2 / var) / 2."""

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.full, self.eps = full, eps

    def forward(self, input: Tensor, target: Tensor, var: Any) -> Tensor:
        return functional.gaussian_nll_loss(input, target, var, self.full, self.eps, self.reduction)


class PairwiseDistance(Module):
    """The p-norm of x1 - x2 + eps along the last axis."""

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return functional.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


class CosineSimilarity(Module):
    """The cosine of the angle between vectors along `dim`."""

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return functional.cosine_similarity(x1, x2, self.dim, self.eps)
