"""What a class run says about each submission, as plain data: the rows of the table and of the JSON file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from autograder.nbgrader_plugins.times import span
from autograder.notebooks.verdicts import ENDED, CellVerdict

Status = Literal["graded", "unreadable", "missing", "failed", "died", "not graded"]
# graded: marked as usual. unreadable, missing: marked, but there was no notebook to read.
# failed: nbgrader could not process it. died: the process that graded it was killed. A person should look at these.
# not graded: its sandbox did not start. The gradebook and the graded notebooks are as before.
NEEDS_A_LOOK: tuple[Status, ...] = ("failed", "died", "not graded")

ABSENT = "handed in nothing"


@dataclass(frozen=True)
class Move:
    """One mark, after the late penalty, before and after. `cells`: the names of those that moved, with their points
    before and after. `version` identifies the tests and rules that moved it.
    """

    student: str
    before: float
    after: float
    of_points: float
    cells: tuple[tuple[str, float, float], ...]
    penalty: tuple[float, float]
    version: str
    at: str = ""

    def why(self, titles: Mapping[str, str]) -> str:
        """What moved, in words. `titles`: what the cells are called."""
        said = [f"{titles.get(name, name)}: {before:g} -> {after:g}" for name, before, after in self.cells]
        before, after = self.penalty
        return "; ".join(said + [f"late penalty: {before:g} -> {after:g}"] * (before != after))


@dataclass(frozen=True)
class SubmissionRecord:
    """The result of one submission. Points are the gradebook's, messages the judge's. `handed_in`: when, as the time in
    `timestamp.txt` was understood; empty if there is none. `late_seconds`: how long after the due date that was, with
    the student's extension. `move`: what this run has moved, if the same submission had another mark.
    """

    student: str
    assignment: str
    status: Status
    points: float | None = None
    max_points: float | None = None
    seconds: float = 0.0
    cells: tuple[CellVerdict, ...] = ()
    reason: str = ""
    isolation: str = ""
    late_penalty: float = 0.0
    unchanged: bool = False
    handed_in: str = ""
    late_seconds: float = 0.0
    move: Move | None = None

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "open_points": self.open_points}

    @property
    def open_points(self) -> float:
        """The points that wait for a person. As long as there are any, the mark is not final."""
        return sum(cell.max_points for cell in self.cells if cell.waiting)

    @property
    def counts(self) -> float:
        """The points that count: after the late penalty."""
        return max(0.0, (self.points or 0.0) - self.late_penalty)

    @property
    def what_is_open(self) -> str:
        """The open points in words, to follow the points, or the empty string."""
        return f", {self.open_points:g} open" if self.open_points else ""

    @property
    def first_lost(self) -> str:
        """The first test that lost points, or the empty string. A cell that a person has to grade has lost none."""
        return next((cell.grade_id for cell in self.cells if cell.lost), "")

    @property
    def first_message(self) -> str:
        """Why points were lost, in one line: the reason, or the first cell's message."""
        first = next((cell for cell in self.cells if cell.message and cell.lost), None)
        return self.reason or (first.message.splitlines()[0] if first else "")

    @property
    def stopped(self) -> str:
        """The message of the first test that says that the submission ended its own process, or the empty string."""
        return next((cell.message.splitlines()[0] for cell in self.cells if ENDED in cell.message), "")

    @property
    def by_hand(self) -> str:
        """What a person has to do, in words, or the empty string."""
        why = {cell.grade_id: f" ({cell.message})" for cell in self.cells if cell.message and self.status == "graded"}
        new = ", ".join(cell.grade_id + why.get(cell.grade_id, "") for cell in self.cells if cell.waiting)
        again = ", ".join(cell.grade_id for cell in self.cells if cell.by_hand and not cell.waiting)
        found = (
            f"waiting for a person: {new}" if new else "",
            f"marked by hand before, look again: {again}" if again else "",
        )
        return "; ".join(filter(None, found))

    @property
    def lateness(self) -> str:
        """By how much it is late, what that takes from the points and what it leaves, or the empty string."""
        late = f"late by {span(self.late_seconds)}" if self.late_seconds else "late"
        if not self.late_penalty:
            return late if self.late_seconds else ""
        return f"{late}: {self.late_penalty:g} taken off, {self.counts:g} left"

    @property
    def finding(self) -> str:
        """Why the mark is below full marks: lateness (which the points do not include), the first test that failed, and
        what is left for a person to grade.
        """
        found = ". ".join(part for part in (self.lateness, self.first_message) if part)
        return f"{found} ({self.by_hand})" if found and self.by_hand else found or self.by_hand


@dataclass(frozen=True)
class Standing:
    """Where a class stands with one assignment. `absent`: the students in the gradebook who have handed in nothing."""

    records: Sequence[SubmissionRecord]
    absent: Sequence[str] = field(default=(), kw_only=True)

    @property
    def graded(self) -> list[SubmissionRecord]:
        """The judged submissions. A notebook that could not be read says nothing about the lesson."""
        return [record for record in self.records if record.status == "graded"]

    @property
    def final(self) -> list[SubmissionRecord]:
        """The judged submissions whose mark is final: none of its points waits for a person."""
        return [record for record in self.graded if not record.open_points]

    @property
    def late(self) -> list[SubmissionRecord]:
        return [record for record in self.records if record.lateness]

    @property
    def waiting(self) -> list[SubmissionRecord]:
        """The submissions in which a person has something to mark."""
        return [record for record in self.records if record.by_hand]

    @property
    def troubled(self) -> list[SubmissionRecord]:
        """The submissions that a person should look at."""
        return [one for one in self.records if one.status != "graded" or one.reason or one.stopped or one.by_hand]

    @property
    def people(self) -> dict[str, list[tuple[str, str]]]:
        """Whom an instructor looks for: what is true of them, and who they are, each with a word about it."""
        looked_at = [one for one in self.troubled if one not in self.waiting]
        found = {
            ABSENT: [(student, "") for student in self.absent],
            "late": [(it.student, f"by {span(it.late_seconds)}" if it.late_seconds else "") for it in self.late],
            "waiting for a person": [(it.student, "") for it in self.waiting],
            "need a look": [(it.student, _trouble(it)) for it in looked_at],
        }
        return {what: students for what, students in found.items() if students}

    @property
    def max_points(self) -> float:
        return max((record.max_points or 0.0 for record in self.records), default=0.0)

    @property
    def scores(self) -> list[float]:
        """The final marks, before late penalties."""
        return [record.points or 0.0 for record in self.final]

    @property
    def mean(self) -> float | None:
        scores = self.scores
        return sum(scores) / len(scores) if scores else None


def _trouble(record: SubmissionRecord) -> str:
    return "stopped its process" if record.stopped else "" if record.status == "graded" else record.status
