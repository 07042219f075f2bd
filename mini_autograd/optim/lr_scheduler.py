"""The learning-rate schedules that training scripts use most.

The one idea to know: call `step()` once per epoch, after the optimizer's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from mini_autograd.numerics.left_out import answers as _answers
from mini_autograd.optim.optimizer import Optimizer
from mini_autograd.optim.schedule import LRScheduler, for_each_group

__all__ = [
    "CosineAnnealingLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "StepLR",
]

__getattr__ = _answers(__name__)


class StepLR(LRScheduler):
    """Multiply the rate by gamma every `step_size` epochs."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        turn = self.last_epoch > 0 and self.last_epoch % self.step_size == 0
        return [rate * self.gamma if turn else rate for rate in self.rates]


class ExponentialLR(LRScheduler):
    """Multiply the rate by gamma every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return [rate if self.is_first else rate * self.gamma for rate in self.rates]


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the first rate down to `eta_min` in `T_max` epochs, and up again (Loshchilov, Hutter 2016)."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:  # noqa: N803
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.is_first:
            return self.rates
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:  # the current rate is eta_min: nothing to scale
            rise = (1 - math.cos(math.pi / self.T_max)) / 2
            return [rate + (base - self.eta_min) * rise for rate, base in zip(self.rates, self.base_lrs, strict=True)]
        scale = self.height(self.last_epoch) / self.height(self.last_epoch - 1)
        return [scale * (rate - self.eta_min) + self.eta_min for rate in self.rates]

    def height(self, epoch: int) -> float:
        """The cosine, shifted to between 0 and 2."""
        return 1 + math.cos(math.pi * epoch / self.T_max)


class LambdaLR(LRScheduler):
    """The first rate times a function of the epoch: one function, or one for each group."""

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        self.lr_lambdas = for_each_group(optimizer, "lr_lambdas", lr_lambda)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        pairs = zip(self.base_lrs, self.lr_lambdas, strict=True)
        return [base * function(self.last_epoch) for base, function in pairs]
