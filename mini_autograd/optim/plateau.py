"""ReduceLROnPlateau: the learning rate falls when a measure no longer improves.

Imports optimizer. The one idea to know: unlike the other schedules it looks at what training achieves.
"""

from __future__ import annotations

import math
from typing import Any

from mini_autograd.optim.optimizer import Optimizer


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
