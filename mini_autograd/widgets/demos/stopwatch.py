"""Times that are shown to readers: the median of repeated runs and how far they spread, never a single lucky run."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mini_autograd.system import processor_time

FINE = 1e-5  # seconds; Windows counts the time of a thread in steps of a sixtieth of a second
FINE_ENOUGH = hasattr(time, "thread_time") and time.get_clock_info("thread_time").resolution < FINE
now = processor_time if FINE_ENOUGH else time.perf_counter
"""A clock in seconds. The clock of this thread, used if fine enough, stops while the machine does something else."""


@dataclass(frozen=True)
class Times:
    """The median of some times in seconds, and the quartiles around it."""

    median: float
    low: float
    high: float

    def apart(self, other: Times) -> bool:
        """Whether the difference to other times is larger than the spread of both."""
        return self.high < other.low or other.high < self.low

    def __str__(self) -> str:
        return f"{1e3 * self.median:.2g} ms ({1e3 * self.low:.2g} to {1e3 * self.high:.2g} ms)"


def times(seconds: Sequence[float]) -> Times:
    """The median and spread of repeated runs."""
    low, median, high = np.quantile(seconds, (0.25, 0.5, 0.75))
    return Times(float(median), float(low), float(high))
