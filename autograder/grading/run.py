"""A whole class run: check the request, hand the submissions to the workers, collect the records.

Knows nothing of terminals: whoever calls it gets each record as soon as it is there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from autograder.grading.courses import CourseError, open_course, prepare, submitted_students
from autograder.grading.pool import Died, WorkerPool
from autograder.grading.records import SubmissionRecord
from autograder.grading.warm import PRELOAD
from autograder.grading.worker import Job, grade_in_worker, open_worker
from autograder.sandbox import isolation_available


@dataclass(frozen=True)
class Request:
    """What to grade and how."""

    assignment: str
    course: Path
    student: str = "*"
    workers: int = 2
    unsafe: bool = False
    feedback: bool = False


def grade_class(
    request: Request,
    on_start: Callable[[int], None] = lambda total: None,
    on_record: Callable[[SubmissionRecord], None] = lambda record: None,
) -> list[SubmissionRecord]:
    """Grade the submissions of one assignment in parallel. Raises `CourseError` for a request that cannot be met."""
    if not request.unsafe and not isolation_available():
        raise CourseError(
            "Submissions run only in a sandbox, and there is none on this machine: install bubblewrap "
            "(apt-get install bubblewrap), or pass --unsafe-no-sandbox if you trust every submission."
        )
    students = _students(request)
    on_start(len(students))
    job = Job(request.course.resolve(), request.assignment, request.unsafe, request.feedback)
    pool = WorkerPool(grade_in_worker, request.workers, open_worker, (job,), PRELOAD)
    records = []
    for student, outcome in pool.run(students):
        record = _died(student, request) if isinstance(outcome, Died) else outcome
        records.append(record)
        on_record(record)
    return sorted(records, key=lambda record: record.student)


def _students(request: Request) -> list[str]:
    """The students to grade. Opening the gradebook here, once, spares the workers a race for creating its tables."""
    with open_course(request.course, unsafe=request.unsafe) as course:
        prepare(course, request.assignment)
        students = submitted_students(course, request.assignment, request.student)
        if not students:
            where = course.folder("submitted", request.student, request.assignment)
            raise CourseError(f"There are no submissions of {request.assignment!r}: nothing matches {where}.")
    return students


def _died(student: str, request: Request) -> SubmissionRecord:
    reason = "The process that graded this submission was killed, twice. Nobody else's marks are touched."
    return SubmissionRecord(student, request.assignment, "died", reason=reason)
