"""Schedules of the learning rate, all of PyTorch's. Here are the simple ones.

Imports optimizer, schedule, plateau, cycles and combinations, whose schedules users find here as in PyTorch. The one
idea to know: call `step()` once per epoch (CyclicLR, OneCycleLR: per batch), after the optimiser's.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from mini_autograd.optim.combinations import ChainedScheduler, SequentialLR
from mini_autograd.optim.cycles import CosineAnnealingWarmRestarts, CyclicLR, OneCycleLR
from mini_autograd.optim.optimizer import Optimizer
from mini_autograd.optim.plateau import ReduceLROnPlateau
from mini_autograd.optim.schedule import LRScheduler, for_each_group

__all__ = [
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]


class StepLR(LRScheduler):
    """Times gamma every `step_size` epochs."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        turn = self.last_epoch > 0 and self.last_epoch % self.step_size == 0
        return [rate * self.gamma if turn else rate for rate in self.rates]


class MultiStepLR(LRScheduler):
    """Times gamma at each of the epochs `milestones`."""

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return [rate * self.gamma ** self.milestones[self.last_epoch] for rate in self.rates]


class ExponentialLR(LRScheduler):
    """Times gamma every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return [rate * self.gamma if self.last_epoch > 0 else rate for rate in self.rates]


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the first rate down to `eta_min` in `T_max` epochs, and up again (Loshchilov, Hutter 2016)."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:  # noqa: N803
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return self.rates
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:  # the present rate is eta_min: nothing to scale
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            return [rate + (base - self.eta_min) * rise for rate, base in zip(self.rates, self.base_lrs, strict=True)]
        scale = self.height(self.last_epoch) / self.height(self.last_epoch - 1)
        return [scale * (rate - self.eta_min) + self.eta_min for rate in self.rates]

    def height(self, epoch: int) -> float:
        """The cosine, lifted to between 0 and 2."""
        return 1 + math.cos(math.pi * epoch / self.T_max)


class LinearLR(LRScheduler):
    """From `start_factor` times the first rate to `end_factor` times it, in `total_iters` equal steps."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if not 0 <= end_factor <= 1:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return [rate * self.start_factor for rate in self.rates]
        if self.last_epoch > self.total_iters:
            return self.rates
        scale = self.factor(self.last_epoch) / self.factor(self.last_epoch - 1)
        return [rate * scale for rate in self.rates]

    def factor(self, epoch: int) -> float:
        """By how much the first rate is multiplied at an epoch."""
        return self.start_factor + (self.end_factor - self.start_factor) * epoch / self.total_iters


class ConstantLR(LRScheduler):
    """`factor` times the first rate for `total_iters` epochs, then the first rate."""

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        if not 0 <= factor <= 1:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return [rate * self.factor for rate in self.rates]
        return [rate * (1.0 / self.factor) if self.last_epoch == self.total_iters else rate for rate in self.rates]


class PolynomialLR(LRScheduler):
    """The first rate times (1 - epoch / total_iters)^power, until it is 0."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if not 0 < self.last_epoch <= self.total_iters:
            return self.rates
        left = (self.total_iters - self.last_epoch) / (self.total_iters - self.last_epoch + 1)
        return [rate * left**self.power for rate in self.rates]


class OfFunctions(LRScheduler):
    """What follows from functions of the epoch: one function, or one for each group."""

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        self.lr_lambdas = for_each_group(optimizer, "lr_lambdas", lr_lambda)
        super().__init__(optimizer, last_epoch)


class LambdaLR(OfFunctions):
    """The first rate times a function of the epoch: one function, or one for each group."""

    def get_lr(self) -> list[float]:
        pairs = zip(self.base_lrs, self.lr_lambdas, strict=True)
        return [base * function(self.last_epoch) for base, function in pairs]


class MultiplicativeLR(OfFunctions):
    """The present rate times a function of the epoch: one function, or one for each group."""

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return self.rates
        return [rate * function(self.last_epoch) for rate, function in zip(self.rates, self.lr_lambdas, strict=True)]

    def _restart(self) -> None:  # from the present rates, not from the first, as in PyTorch
        self.last_epoch = 0
        self._set([rate * function(0) for rate, function in zip(self.rates, self.lr_lambdas, strict=True)])
