"""What a judge decides about a notebook."""

from __future__ import annotations

from dataclasses import dataclass, field

from autograder.notebooks.verdicts import CellVerdict


@dataclass
class Verdict:
    """The verdict on a notebook. `test_seconds`: how long each test took. `isolation`: how its code was isolated."""

    cells: list[CellVerdict] = field(default_factory=list)
    test_seconds: list[float] = field(default_factory=list)
    seconds: float = 0.0
    isolation: str = ""
    restarts: int = 0

    @property
    def points(self) -> float:
        return sum(cell.points or 0.0 for cell in self.cells)

    @property
    def max_points(self) -> float:
        return sum(cell.max_points for cell in self.cells)
