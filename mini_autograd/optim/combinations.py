"""Schedules that are made of others: SequentialLR, ChainedScheduler.

Imports optimizer, schedule and plateau. The one idea to know: each part goes on from the rates that it finds, so parts
need not know of each other.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from mini_autograd.optim.optimizer import Optimizer
from mini_autograd.optim.plateau import ReduceLROnPlateau
from mini_autograd.optim.schedule import LRScheduler


class Combination(LRScheduler):
    """The base of schedules that are made of others, `schedulers`, for one optimiser."""

    purpose = ""

    def __init__(self, schedulers: Sequence[Any], optimizer: Optimizer | None) -> None:
        name = type(self).__name__
        if not schedulers:
            raise ValueError(f"{name} expects at least one scheduler{self.purpose}, but got no scheduler.")
        optimizer = optimizer or schedulers[0].optimizer
        for number, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(f"{name} at index {number} should have `optimizer` as its attribute.")
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(
                    f"{name} does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to be "
                    f"specified when calling `step`, but got one at index {number} in the given schedulers sequence."
                )
            if scheduler.optimizer is not optimizer:
                raise ValueError(
                    f"{name} expects all schedulers to belong to the same optimizer, but got scheduler "
                    f"{type(scheduler).__name__} at index {number} has {scheduler.optimizer}, which is different from "
                    f"{type(optimizer).__name__}."
                )
        self._schedulers, self.optimizer = list(schedulers), optimizer

    def state_dict(self) -> dict[str, Any]:
        """All numbers of the schedules; no functions, no optimiser."""
        return {**super().state_dict(), "_schedulers": [scheduler.state_dict() for scheduler in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a state."""
        own = {name: value for name, value in state_dict.items() if name != "_schedulers"}
        super().load_state_dict(own)
        for scheduler, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            scheduler.load_state_dict(state)


class SequentialLR(Combination):
    """One schedule after the other: the next begins, at its epoch 0, at each of the epochs `milestones`."""

    def __init__(
        self, optimizer: Optimizer, schedulers: Sequence[LRScheduler], milestones: Sequence[int], last_epoch: int = -1
    ) -> None:
        super().__init__(schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of "
                f"milestone points, but got number of schedulers {len(schedulers)} and the number of milestones to be "
                f"equal to {len(milestones)}"
            )
        self._milestones, self.last_epoch = list(milestones), last_epoch + 1
        for group in optimizer.param_groups:
            group["lr"] = group["initial_lr"]
        for scheduler in self._schedulers:  # each made its first step when it was made
            scheduler.last_epoch -= 1
        first = self._schedulers[bisect_right(self._milestones, 0)]
        first.step()
        self._last_lr = first.get_last_lr()

    def step(self) -> None:
        """Go to the next epoch."""
        self.last_epoch += 1
        number = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[number]
        if number > 0 and self._milestones[number - 1] == self.last_epoch:
            scheduler._restart()
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(Combination):
    """Several schedules at once: `step` steps each, in turn."""

    purpose = " to be chained"

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        super().__init__(schedulers, optimizer)
        self._last_lr = self.rates

    def step(self) -> None:
        """Go to the next epoch."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = self.rates
