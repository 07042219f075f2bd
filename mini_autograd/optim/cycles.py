"""Schedules that go up and down: CosineAnnealingWarmRestarts, CyclicLR, OneCycleLR.

Imports optimizer and schedule. The one idea to know: a rate lies between two limits, at the share of the way between
two turns that has been gone.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence

from mini_autograd.optim.optimizer import Group, Optimizer
from mini_autograd.optim.schedule import LRScheduler, for_each_group


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine down to `eta_min` in `T_0` epochs, again and again; each takes `T_mult` times as long as the last.

    Loshchilov and Hutter 2016. The argument of PyTorch's `step(epoch)` is left out.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,  # noqa: N803
        T_mult: int = 1,  # noqa: N803
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        self.T_i, self.T_cur = T_0, last_epoch
        super().__init__(optimizer, last_epoch)

    def step(self) -> None:
        """Go to the next epoch, and after the last one of a cosine to the next cosine."""
        self.T_cur += 1
        if self.T_cur >= self.T_i:
            self.T_cur, self.T_i = 0, self.T_i * self.T_mult
        super().step()

    def get_lr(self) -> list[float]:
        height = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * height for base in self.base_lrs]


class CyclicLR(LRScheduler):
    """Up from `base_lr` to `max_lr` in `step_size_up` steps, down again, and so on; momentum the other way.

    How high cycle n = 1, 2, ... goes is the difference of the two times 1 ("triangular"), 1 / 2^(n - 1)
    ("triangular2"), `gamma` to the power of the step ("exp_range"), or `scale_fn` of the cycle or of the step
    (`scale_mode` "cycle" or "iterations"). Smith 2017.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | Sequence[float],
        max_lr: float | Sequence[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.8,
        max_momentum: float | Sequence[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        base_lrs = one_per_group(optimizer, "base_lr", base_lr)
        if last_epoch == -1:
            note(optimizer, "lr", base_lrs)
        self.max_lrs = one_per_group(optimizer, "max_lr", max_lr)
        down = step_size_up if step_size_down is None else step_size_down
        self.total_size = float(step_size_up + down)
        self.step_ratio = step_size_up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode, self.gamma, self.scale_fn = mode, gamma, scale_fn
        self.scale_mode = scale_mode if scale_fn else "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
                raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
            note(optimizer, "base_momentum", base_momentum)
            note(optimizer, "max_momentum", max_momentum)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def get_lr(self) -> list[float]:
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        place = 1.0 + self.last_epoch / self.total_size - cycle
        height = place / self.step_ratio if place <= self.step_ratio else (place - 1) / (self.step_ratio - 1)
        height *= self.scale(cycle if self.scale_mode == "cycle" else self.last_epoch)
        for group in self.optimizer.param_groups if self.cycle_momentum else ():
            set_momentum(group, group["max_momentum"] - (group["max_momentum"] - group["base_momentum"]) * height)
        return [base + (top - base) * height for base, top in zip(self.base_lrs, self.max_lrs, strict=True)]

    def scale(self, x: float) -> float:
        """How high the cycle `x`, or that of step `x`, goes."""
        if self.scale_fn is not None:
            return self.scale_fn(x)
        if self.mode == "exp_range":
            return self.gamma**x
        return 1 / 2.0 ** (x - 1) if self.mode == "triangular2" else 1.0


class OneCycleLR(LRScheduler):
    """Up from `max_lr / div_factor` to `max_lr`, then down far below; momentum the other way. One step per batch.

    The way up takes the share `pct_start` of all steps; with `three_phase` the way down to the first rate takes as
    long. The momentum is `momentum` or the first of `betas`. After Smith and Topin 2017.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | Sequence[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.85,
        max_momentum: float | Sequence[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        self.total_steps = number_of_steps(total_steps, epochs, steps_per_epoch)
        if not 0 <= pct_start <= 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        momentum_known = "momentum" in optimizer.defaults or "betas" in optimizer.defaults
        if cycle_momentum and not momentum_known:
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        self.anneal_strategy, self.cycle_momentum = anneal_strategy, cycle_momentum
        turns = [pct_start * self.total_steps - 1, 2 * pct_start * self.total_steps - 2][: 2 if three_phase else 1]
        self.turns = [0.0, *turns, self.total_steps - 1.0]
        self.names = ["initial_lr", "max_lr", *["initial_lr"] * three_phase, "min_lr"]
        self.momentum_names = ["max_momentum", "base_momentum", *["max_momentum"] * (three_phase + 1)]
        if last_epoch == -1:
            note(optimizer, "max_lr", max_lr)
            for group in optimizer.param_groups:
                group["initial_lr"] = group["max_lr"] / div_factor
                group["min_lr"] = group["initial_lr"] / final_div_factor
            if cycle_momentum:
                note(optimizer, "base_momentum", base_momentum)
                note(optimizer, "max_momentum", max_momentum)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        if self.last_epoch > self.total_steps:
            raise ValueError(
                f"Tried to step {self.last_epoch} times. The specified number of total steps is {self.total_steps}"
            )
        phase = min(bisect_left(self.turns, self.last_epoch, lo=1), len(self.turns) - 1)
        start, end = self.turns[phase - 1 : phase + 1]
        share = (self.last_epoch - start) / (end - start)
        for group in self.optimizer.param_groups if self.cycle_momentum else ():
            set_momentum(group, self.between(group, self.momentum_names[phase - 1 : phase + 1], share))
        return [self.between(group, self.names[phase - 1 : phase + 1], share) for group in self.optimizer.param_groups]

    def between(self, group: Group, names: Sequence[str], share: float) -> float:
        """The number a `share` of the way from one option of a group to another, along a line or half a cosine."""
        start, end = (group[name] for name in names)
        if self.anneal_strategy == "linear":
            return (end - start) * share + start
        return end + (start - end) / 2.0 * (1 + math.cos(math.pi * share))


def note(optimizer: Optimizer, name: str, given: float | Sequence[float]) -> None:
    """Add an option to each group: one value for all, or a list with one for each."""
    for group, value in zip(optimizer.param_groups, one_per_group(optimizer, name, given), strict=True):
        group[name] = value


def one_per_group(optimizer: Optimizer, name: str, given: float | Sequence[float]) -> list[float]:
    """The value of an option for each group, or PyTorch's error if there are too many or too few."""
    if isinstance(optimizer, Optimizer) and isinstance(given, (list, tuple)):
        groups = len(optimizer.param_groups)
        if len(given) != groups:
            raise ValueError(
                f"{name} must have the same length as optimizer.param_groups. {name} has {len(given)} values, "
                f"param_groups has {groups}."
            )
    return for_each_group(optimizer, name, given)


def number_of_steps(total_steps: int | None, epochs: int | None, steps_per_epoch: int | None) -> int:
    """How many steps a cycle has: as said, or of epochs of so many batches."""
    factors = {"total_steps": total_steps}
    if total_steps is None:
        factors = {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
    count = 1
    for name, factor in factors.items():
        if factor is None:
            raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
        if not isinstance(factor, int) or factor <= 0:
            raise ValueError(f"Expected positive integer {name}, but got {factor}")
        count *= factor
    return count


def set_momentum(group: Group, momentum: float) -> None:
    """Set the momentum of SGD or RMSprop, or the first beta of Adam."""
    if "betas" in group:
        group["betas"] = (momentum, *group["betas"][1:])
    else:
        group["momentum"] = momentum
