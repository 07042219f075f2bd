"""What an instructor wants to know about a graded class, as data. The template decides how it looks."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from autograder.bugs.bank import BUGS
from autograder.grading.journal import Answered
from autograder.grading.report.similarity import AsReference, Group
from autograder.grading.submission.class_records import Move, Standing, SubmissionRecord
from autograder.notebooks.reading import NOT_ISOLATED, UNPROTECTED
from autograder.notebooks.verdicts import CellVerdict

BARS = 10
SLOWEST = 5


@dataclass(frozen=True)
class Bar:
    """The students with between `low` and `high` percent of the points."""

    low: int
    high: int
    students: tuple[str, ...]


@dataclass(frozen=True)
class Exercise:
    """How a class did at one graded cell. `ungraded`: how many still need points from a person. `mean`: of the others,
    None if there are none. `inside`: the test ran in the submissions' processes.
    """

    name: str
    max_points: float
    full: int
    partial: int
    none: int
    ungraded: int
    mean: float | None
    inside: bool = False

    @property
    def graded(self) -> int:
        return self.full + self.partial + self.none

    @property
    def students(self) -> int:
        return self.graded + self.ungraded


@dataclass(frozen=True)
class Mistake:
    """A bug of the bank, and the exercises and students for which it was named."""

    title: str
    explanation: str
    exercises: tuple[str, ...]
    students: tuple[str, ...]


@dataclass(frozen=True)
class Stuck:
    """A test, the students who lost their first point there, and in how many attempts of all students it was lost
    there.
    """

    name: str
    students: tuple[str, ...]
    attempts: int


@dataclass(frozen=True)
class ClassReport(Standing):
    """One lesson of one class. `titles` are the headings above tests, `answers` the attempts that were answered while
    the class was watched, by student and in order. `as_reference`: answers that are nearly the reference solution.
    `moves`: marks that changed although the submission did not.
    """

    lesson: str
    course: str
    made: str
    feedback: dict[str, str]
    groups: Sequence[Group] = ()
    compared_all: bool = True
    notices: Sequence[str] = ()
    titles: Mapping[str, str] = field(default_factory=dict)
    answers: Mapping[str, Sequence[Answered]] = field(default_factory=dict)
    as_reference: Sequence[AsReference] = ()
    moves: Sequence[Move] = ()

    @property
    def people(self) -> dict[str, list[tuple[str, str]]]:
        moved = [(it.student, f"{it.before:g} -> {it.after:g}") for it in sorted(self.moves, key=lambda it: it.student)]
        return super().people | ({"mark moved": moved} if moved else {})

    @property
    def slowest(self) -> list[SubmissionRecord]:
        return sorted(self.graded, key=lambda record: -record.seconds)[:SLOWEST]

    @property
    def warning(self) -> str:
        """What has to be known before anything else is read."""
        return UNPROTECTED if any(record.isolation == NOT_ISOLATED for record in self.records) else ""

    @property
    def isolation(self) -> str:
        return "; ".join(sorted({record.isolation for record in self.records if record.isolation}))

    @property
    def median(self) -> float | None:
        return statistics.median(scores) if (scores := self.scores) else None

    @property
    def full_marks(self) -> int:
        return sum(score >= self.max_points > 0 for score in self.scores)

    @property
    def bars(self) -> list[Bar]:
        """The students with a final mark, grouped by their percentage of the points."""
        found: list[list[str]] = [[] for _ in range(BARS)]
        for record in self.final:
            share = (record.points or 0.0) / record.max_points if record.max_points else 0.0
            found[min(BARS - 1, max(0, int(share * BARS)))].append(record.student)
        step = 100 // BARS
        return [Bar(index * step, (index + 1) * step, tuple(names)) for index, names in enumerate(found)]

    @property
    def exercises(self) -> list[Exercise]:
        """How the class did at each graded cell, in the order of the lesson."""
        cells: dict[tuple[str, str], list[CellVerdict]] = {}
        for record in self.graded:
            for cell in record.cells:
                cells.setdefault(cell.place, []).append(cell)
        return [_exercise(name, met) for (_, name), met in cells.items()]

    @property
    def stuck(self) -> list[Stuck]:
        """Where students lost their first point, in the order of the lesson."""
        first: dict[str, list[str]] = {}
        for record in self.graded:
            if name := record.first_lost:
                first.setdefault(name, []).append(record.student)
        ended = Counter(answer.failing for answers in self.answers.values() for answer in answers)
        return [
            Stuck(exercise.name, tuple(first.get(exercise.name, ())), ended[exercise.name])
            for exercise in self.exercises
            if exercise.name in first or ended[exercise.name]
        ]

    @property
    def hardest(self) -> Stuck | None:
        """Where most students lost their first point, or None if nobody lost any."""
        places = [place for place in self.stuck if place.students]
        return max(places, key=lambda place: len(place.students), default=None)

    @property
    def like_reference(self) -> dict[str, list[str]]:
        """The students whose answer is nearly the reference solution, by exercise."""
        found: dict[str, list[str]] = {}
        for answer in self.as_reference:
            found.setdefault(answer.exercise, []).append(answer.student)
        return found

    def attempts(self, student: str) -> str:
        """The points of a student's attempts in chronological order."""
        answers = self.answers.get(student, ())
        return ", ".join(f"{it.points:g}" + (f" ({it.open_points:g} open)" if it.open_points else "") for it in answers)

    @property
    def mistakes(self) -> list[Mistake]:
        """The bugs that were named, most frequent first."""
        met: dict[str, dict[str, None]] = {}
        where: dict[str, dict[str, None]] = {}
        for record, cell, bug in _named(self.graded):
            met.setdefault(bug, {})[record.student] = None
            where.setdefault(bug, {})[cell] = None
        told = {bug.name: bug.explanation for bug in BUGS}
        found = [
            Mistake(bug.replace("_", " "), told.get(bug, ""), tuple(where[bug]), tuple(students))
            for bug, students in met.items()
        ]
        return sorted(found, key=lambda mistake: (-len(mistake.students), mistake.title))

    @property
    def other_messages(self) -> list[tuple[str, str, int]]:
        """Exercise, message and number of students, for messages without a bug's name to more than one student."""
        said: Counter[tuple[str, str]] = Counter()
        for record in self.graded:
            lost = {
                (cell.grade_id, cell.message.splitlines()[0][:200])
                for cell in record.cells
                if cell.message and not cell.bugs and cell.lost
            }
            said.update(lost)
        return [(name, message, count) for (name, message), count in said.most_common(10) if count > 1]


def made_now() -> str:
    return datetime.now().strftime("%d %B %Y, %H:%M")


def _exercise(name: str, met: Sequence[CellVerdict]) -> Exercise:
    given = [(cell.points, cell.max_points) for cell in met if cell.points is not None]
    full = sum(points >= most for points, most in given)
    none = sum(points <= 0 < most for points, most in given)
    shares = [points / most for points, most in given if most]
    return Exercise(
        name,
        max((cell.max_points for cell in met), default=0.0),
        full,
        len(given) - full - none,
        none,
        len(met) - len(given),
        statistics.fmean(shares) if shares else None,
        any(cell.inside for cell in met),
    )


def _named(records: Iterable[SubmissionRecord]) -> Iterable[tuple[SubmissionRecord, str, str]]:
    for record in records:
        for cell in record.cells:
            for bug in cell.bugs:
                yield record, cell.grade_id, bug
