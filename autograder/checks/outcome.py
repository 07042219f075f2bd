"""One expression of a check after it ran."""

from __future__ import annotations

from dataclasses import dataclass

from autograder.runs.answers import Comparison, Problem
from autograder.runs.expected import Expected
from autograder.runs.programs import Program
from autograder.runs.replay import Evidence


@dataclass(frozen=True)
class Outcome:
    """One program of a check after it ran: what was expected, and how the student's answer compares."""

    program: Program
    expected: tuple[Expected, ...]
    comparison: Comparison

    @property
    def problem(self) -> Problem | None:
        return self.comparison.problem

    def evidence(self) -> Evidence:
        """The evidence that a diagnosis starts from."""
        compared = self.comparison
        return Evidence(self.program, self.expected, compared.runs, self.problem is None, compared.raised)
