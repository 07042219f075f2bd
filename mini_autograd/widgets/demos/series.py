"""Logged numbers, each with its step: a monitor keeps them, and its picture shows them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field


@dataclass
class Series:
    """Numbers, and the steps at which they were logged."""

    steps: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)

    def append(self, step: int, value: float) -> None:
        self.steps.append(step)
        self.values.append(value)

    def first_lost(self) -> int | None:
        """The first step with a number that is not finite."""
        return next((s for s, v in zip(self.steps, self.values, strict=True) if not math.isfinite(v)), None)
