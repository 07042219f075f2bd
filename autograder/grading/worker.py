"""What one worker process does: grade one submission after another with nbgrader's own converter and our preprocessors.

A worker opens the course once. What it returns is plain data; the marks themselves are in the gradebook, where
nbgrader put them.
"""

from __future__ import annotations

import contextlib
import glob
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

from nbgrader.api import Gradebook
from nbgrader.converters import Autograde, GenerateFeedback
from nbgrader.converters.base import BaseConverter
from nbgrader.utils import capture_log, temp_attrs

from autograder.grading.courses import Course, complaint, open_course
from autograder.grading.records import SubmissionRecord
from autograder.grading.results import record_of

LOCK_RETRIES = 5


@dataclass(frozen=True)
class Job:
    """What every worker of a run is told once."""

    course: Path
    assignment: str
    unsafe: bool = False
    feedback: bool = False


@dataclass(frozen=True)
class _Opened:
    job: Job
    course: Course


_opened: _Opened | None = None


def open_worker(job: Job) -> None:
    """Open the course in this process, for all submissions that it will grade."""
    global _opened
    warnings.filterwarnings("ignore", module=r"nbgrader|nbformat|sqlalchemy|nbconvert")
    course = contextlib.ExitStack().enter_context(open_course(job.course, unsafe=job.unsafe))
    _opened = _Opened(job, course)


def grade_in_worker(student: str) -> SubmissionRecord:
    """Grade one submission in a process that `open_worker` has prepared."""
    if _opened is None:
        raise RuntimeError("grade_in_worker needs open_worker first.")
    try:
        return grade_submission(_opened.course, _opened.job, student)
    except Exception as error:  # a fault of ours or of the machine; the others go on
        reason = f"{type(error).__name__}: {error}".splitlines()[0][:300]
        return SubmissionRecord(student, _opened.job.assignment, "failed", reason=reason)


def grade_submission(course: Course, job: Job, student: str) -> SubmissionRecord:
    """Grade one submission, and write its feedback where the job asks for it. Never raises for what a student did."""
    started = time.perf_counter()
    if glob.escape(student) != student:
        reason = "nbgrader takes names with *, ? or [ for patterns and would grade somebody else's notebook."
        return SubmissionRecord(student, job.assignment, "failed", reason=reason)
    if not _has_notebook(course, job.assignment, student):
        _record_missing(course, job.assignment, student)
        reason = "No notebook of this assignment was handed in."
        return record_of(course, job.assignment, student, "missing", time.perf_counter() - started, reason)
    outcome = _run(course, Autograde(coursedir=course.coursedir, parent=course.app), job.assignment, student)
    if not outcome["success"]:
        seconds = time.perf_counter() - started
        return SubmissionRecord(student, job.assignment, "failed", seconds=seconds, reason=complaint(outcome))
    if job.feedback:
        _run(course, GenerateFeedback(coursedir=course.coursedir, parent=course.app), job.assignment, student)
    return record_of(course, job.assignment, student, "graded", time.perf_counter() - started)


def _run(course: Course, converter: BaseConverter, assignment: str, student: str) -> dict[str, str]:
    """Run one of nbgrader's converters for one student, again where the gradebook was locked by another worker."""
    converter.force = True
    outcome: dict[str, str] = {}
    for attempt in range(LOCK_RETRIES):
        with temp_attrs(course.coursedir, assignment_id=assignment, student_id=student):
            outcome = capture_log(converter)
        if outcome["success"] or "database is locked" not in outcome.get("log", ""):
            break
        time.sleep(0.2 * 2**attempt)
    return outcome


def _notebook_names(gradebook: Gradebook, assignment: str) -> list[str]:
    return [notebook.name for notebook in gradebook.find_assignment(assignment).notebooks]


def _has_notebook(course: Course, assignment: str, student: str) -> bool:
    folder = course.folder("submitted", student, assignment)
    with course.gradebook() as gradebook:
        return any((folder / f"{name}.ipynb").exists() for name in _notebook_names(gradebook, assignment))


def _record_missing(course: Course, assignment: str, student: str) -> None:
    """Zero points, as nbgrader gives them for one missing notebook among several."""
    with course.gradebook() as gradebook:
        gradebook.update_or_create_student(student)
        submission = gradebook.update_or_create_submission(assignment, student)
        for notebook in submission.notebooks:
            for grade in notebook.grades:
                grade.auto_score, grade.needs_manual_grade = 0, False
        gradebook.db.commit()
