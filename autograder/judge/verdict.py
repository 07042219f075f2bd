"""What a judge decides about a notebook."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class CellVerdict:
    """What one test cell earned, and why it is not more. `inside`: the test ran in the submission's process, or used
    names of given cells that the submission has bound otherwise.
    """

    grade_id: str
    points: float
    max_points: float
    message: str
    seconds: float
    inside: bool = False


@dataclass
class Verdict:
    """The verdict on a notebook. `isolation` says how the student's code was isolated."""

    cells: list[CellVerdict] = field(default_factory=list)
    seconds: float = 0.0
    isolation: str = ""
    restarts: int = 0

    @property
    def points(self) -> float:
        return sum(cell.points for cell in self.cells)

    @property
    def max_points(self) -> float:
        return sum(cell.max_points for cell in self.cells)
