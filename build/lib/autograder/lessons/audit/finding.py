"""What a gate found in a lesson: the rows of an audit's table and of its JSON file."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Finding:
    """What a gate found. `problems` name the place and what is wrong there; `note` is worth knowing either way."""

    lesson: str
    gate: str
    problems: tuple[str, ...] = ()
    note: str = ""
    seconds: float = 0.0
    fingerprint: str = ""  # of everything that decided it
    kept: bool = False  # it passed before, and has not run again

    @property
    def passed(self) -> bool:
        return not self.problems

    def as_record(self) -> dict[str, Any]:
        return {**asdict(self), "passed": self.passed}
