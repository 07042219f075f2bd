"""Schedules of the learning rate: StepLR, MultiStepLR, ExponentialLR, CosineAnnealingLR, LinearLR, LambdaLR,
ReduceLROnPlateau.

Imports optimizer. The one idea to know: a schedule says how the next rate follows from the present one, so that several
may be used together; `step()` once per epoch.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from mini_autograd.optim.optimizer import Optimizer


class LRScheduler:
    """The base of all schedules but ReduceLROnPlateau. A subclass gives `next_rates`."""

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
        self.optimizer = optimizer
        for number, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{number}] when resuming scheduler with "
                    "last_epoch >= 0."
                )
        self.base_lrs = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch, self._step_count = last_epoch, 0
        self.step()

    @property
    def rates(self) -> list[float]:
        """The present learning rate of every group."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def next_rates(self) -> list[float]:
        """The learning rates of epoch `last_epoch`, from those of the epoch before (`rates`)."""
        raise NotImplementedError

    def step(self) -> None:
        """Go to the next epoch."""
        self._step_count += 1
        self.last_epoch += 1
        self._last_lr = self.next_rates()
        for group, rate in zip(self.optimizer.param_groups, self._last_lr, strict=True):
            group["lr"] = rate

    def get_last_lr(self) -> list[float]:
        """The rates that the last `step` set."""
        return self._last_lr

    def state_dict(self) -> dict[str, Any]:
        """All numbers of the schedule; no functions, no optimiser."""
        return {name: value for name, value in self.__dict__.items() if name not in ("optimizer", "lr_lambdas")}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a state."""
        self.__dict__.update(state_dict)


class StepLR(LRScheduler):
    """Times gamma every `step_size` epochs."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def next_rates(self) -> list[float]:
        turn = self.last_epoch > 0 and self.last_epoch % self.step_size == 0
        return [rate * self.gamma if turn else rate for rate in self.rates]


class MultiStepLR(LRScheduler):
    """Times gamma at each of the epochs `milestones`."""

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def next_rates(self) -> list[float]:
        return [rate * self.gamma ** self.milestones[self.last_epoch] for rate in self.rates]


class ExponentialLR(LRScheduler):
    """Times gamma every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def next_rates(self) -> list[float]:
        return [rate * self.gamma if self.last_epoch > 0 else rate for rate in self.rates]


class CosineAnnealingLR(LRScheduler):
    """Half a cosine from the first rate down to `eta_min` in `T_max` epochs, and up again (Loshchilov, Hutter 2016)."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:  # noqa: N803
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def next_rates(self) -> list[float]:
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

    def next_rates(self) -> list[float]:
        if self.last_epoch == 0:
            return [rate * self.start_factor for rate in self.rates]
        if self.last_epoch > self.total_iters:
            return self.rates
        scale = self.factor(self.last_epoch) / self.factor(self.last_epoch - 1)
        return [rate * scale for rate in self.rates]

    def factor(self, epoch: int) -> float:
        """By how much the first rate is multiplied at an epoch."""
        return self.start_factor + (self.end_factor - self.start_factor) * epoch / self.total_iters


class LambdaLR(LRScheduler):
    """The first rate times a function of the epoch: one function, or one for each group."""

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        groups = len(optimizer.param_groups)
        self.lr_lambdas = [lr_lambda] * groups if callable(lr_lambda) else list(lr_lambda)
        if len(self.lr_lambdas) != groups:
            raise ValueError(f"Expected {groups} lr_lambdas, but got {len(self.lr_lambdas)}")
        super().__init__(optimizer, last_epoch)

    def next_rates(self) -> list[float]:
        pairs = zip(self.base_lrs, self.lr_lambdas, strict=True)
        return [base * function(self.last_epoch) for base, function in pairs]


class ReduceLROnPlateau:
    """Times `factor` when a measure has not become better for more than `patience` epochs."""

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        if mode not in ("min", "max"):
            raise ValueError("mode " + mode + " is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError("threshold mode " + threshold_mode + " is unknown!")
        self.optimizer, self.mode, self.factor, self.patience = optimizer, mode, factor, patience
        self.threshold, self.threshold_mode, self.cooldown = threshold, threshold_mode, cooldown
        self.min_lr, self.eps = min_lr, eps
        self.best = math.inf if mode == "min" else -math.inf
        self.last_epoch = self.num_bad_epochs = self.cooldown_counter = 0

    def step(self, metrics: Any) -> None:
        """Look at this epoch's measure, and lower the rates if it is time."""
        current = float(metrics)
        self.last_epoch += 1
        better = self.is_better(current)
        self.best = current if better else self.best
        self.num_bad_epochs = 0 if better else self.num_bad_epochs + 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            for group in self.optimizer.param_groups:
                rate = max(group["lr"] * self.factor, self.min_lr)
                group["lr"] = rate if group["lr"] - rate > self.eps else group["lr"]
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0

    def is_better(self, current: float) -> bool:
        """Whether a measure beats the best by more than the threshold."""
        sign = 1 if self.mode == "min" else -1
        margin = self.threshold if self.threshold_mode == "abs" else self.threshold * self.best * sign
        margin = 0.0 if math.isinf(self.best) else margin
        return sign * current < sign * self.best - margin

    def get_last_lr(self) -> list[float]:
        """The present rates."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def state_dict(self) -> dict[str, Any]:
        """All numbers of the schedule."""
        return {name: value for name, value in self.__dict__.items() if name != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a state."""
        self.__dict__.update(state_dict)
