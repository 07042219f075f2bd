"""What all learning-rate schedules share.

The one idea to know: a schedule computes the next rate from the current one, so several can be used together.
"""

from __future__ import annotations

import functools
import warnings
import weakref
from typing import Any

from mini_autograd.optim.optimizer import Optimizer

TOO_EARLY = (
    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, you should call "
    "them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.  Failure to do this will result in "
    "PyTorch skipping the first value of the learning rate schedule. See more details at "
    "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
)


class LRScheduler:
    """The base of all schedules. A subclass gives `get_lr`."""

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
        note_steps(optimizer)
        self.step()

    @property
    def rates(self) -> list[float]:
        """The current learning rate of every group."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def get_lr(self) -> list[float]:
        """The learning rates of epoch `last_epoch`, from those of the epoch before (`rates`)."""
        raise NotImplementedError

    @property
    def is_first(self) -> bool:
        """Whether the schedule is being made: its first step sets the rates of the epoch from which it starts."""
        return self._step_count == 1

    def step(self) -> None:
        """Go to the next epoch. Warns if that happens before the optimizer's first step."""
        if self._step_count == 1 and getattr(self.optimizer.step, "called", True) is False:
            warnings.warn(TOO_EARLY, UserWarning, stacklevel=2)
        self._step_count += 1
        self.last_epoch += 1
        self._set(self.get_lr())

    def _set(self, rates: list[float]) -> None:
        """Give every group its rate."""
        self._last_lr = rates
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate

    def get_last_lr(self) -> list[float]:
        """The rates that the last `step` set."""
        return self._last_lr

    def state_dict(self) -> dict[str, Any]:
        """All numbers of the schedule; no functions, no optimizer."""
        left_out = ("optimizer", "lr_lambdas")
        return {name: value for name, value in self.__dict__.items() if name not in left_out}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state."""
        self.__dict__.update(state_dict)


def note_steps(optimizer: Optimizer) -> None:
    """Let the `step` of this optimizer, whatever its class, note that it was called."""
    if "step" in vars(optimizer):
        return
    step, owner = type(optimizer).step, weakref.ref(optimizer)

    @functools.wraps(step)
    def noted(*args: Any, **options: Any) -> Any:
        noted.called = True  # type: ignore[attr-defined]
        return step(owner(), *args, **options)  # type: ignore[arg-type]  # the optimizer is there: it holds this

    noted.called = False  # type: ignore[attr-defined]
    optimizer.step = noted  # type: ignore[method-assign]


def for_each_group(optimizer: Optimizer, name: str, given: Any) -> list[Any]:
    """One value, or one function, for each group of parameters."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")
    groups = len(optimizer.param_groups)
    if not isinstance(given, (list, tuple)):
        return [given] * groups
    if len(given) != groups:
        raise ValueError(f"Expected {groups} {name}, but got {len(given)}")
    return list(given)
