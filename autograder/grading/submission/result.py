"""The result of grading one submission: everything that the gradebook and a report need, as JSON.

A result is self-contained. Writing it into the gradebook twice is the same as writing it once, which is what makes a
run resumable.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import Any

from autograder.grading.submission.class_records import Status


@dataclass(frozen=True)
class GradedCell:
    """One graded cell. `auto` is None if a person has to grade it; `bugs` are names of the bug bank; `inside` says that
    its test ran in the submission's process.
    """

    notebook: str
    name: str
    auto: float | None
    max_points: float
    message: str = ""
    bugs: tuple[str, ...] = ()
    inside: bool = False


@dataclass(frozen=True)
class Result:
    """The outcome of grading one submission. `comments` and `penalties` are nbgrader's, by notebook and cell.

    `fingerprint` covers the submission, the tests and the grader; it is empty if the result must not be reused.
    `handed_in` is the digest of the submission alone.
    """

    student: str
    assignment: str
    status: Status
    fingerprint: str = ""
    handed_in: str = ""
    seconds: float = 0.0
    reason: str = ""
    isolation: str = ""
    timestamp: str | None = None
    cells: tuple[GradedCell, ...] = ()
    comments: tuple[tuple[str, str, str | None], ...] = ()
    penalties: tuple[tuple[str, float | None], ...] = ()
    notebooks: tuple[str, ...] = ()

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Result:
        """Raises ValueError or TypeError for a text that is not a result."""
        found: dict[str, Any] = json.loads(text)
        result = cls(**found)
        return replace(
            result,
            cells=tuple(GradedCell(**{**cell, "bugs": tuple(cell["bugs"])}) for cell in found["cells"]),
            comments=tuple((notebook, cell, text) for notebook, cell, text in found["comments"]),
            penalties=tuple((notebook, penalty) for notebook, penalty in found["penalties"]),
            notebooks=tuple(found["notebooks"]),
        )
