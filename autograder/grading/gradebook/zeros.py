"""Finds who has a 0 because there was no notebook to read or grading failed: in the gradebook, this mark looks like any
other.
"""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbgrader.api import Grade, Gradebook, SubmittedAssignment, SubmittedNotebook
from sqlalchemy import inspect, select

from autograder.grading.course import Course
from autograder.grading.gradebook.mark_writer import RESULTS
from autograder.grading.submission.class_records import NEEDS_A_LOOK
from autograder.grading.submission.result import Result
from autograder.notebooks.reading import note_of


def without_notebook(course: Course, gradebook: Gradebook, assignment: str) -> set[str]:
    """The students with no points for a notebook that could not be read or was not handed in.

    `autograder grade` keeps the reason with its result. For submissions that nbgrader itself graded, the graded
    notebook shows it.
    """
    zeros = _zeros(gradebook, assignment)
    reasons = _reasons(gradebook, assignment)
    folders = {student: course.folder("autograded", student, assignment) for student in zeros.keys() - reasons.keys()}
    by_nbgrader = {
        student for student, folder in folders.items() if any(_has_none(folder, name) for name in zeros[student])
    }
    return by_nbgrader | {student for student in zeros if reasons.get(student)}


def failed_students(gradebook: Gradebook, assignment: str) -> set[str]:
    """The students whose submission could not be graded, so that their 0 says nothing. They have a mark again once a
    person has marked a cell, or nbgrader has graded the submission: neither leaves every cell for a person to grade.
    """
    failed = {
        student for student, result in kept_results(gradebook, assignment).items() if result.status in NEEDS_A_LOOK
    }
    own = SubmittedAssignment.assignment_id == gradebook.find_assignment(assignment).id
    submitted = gradebook.db.query(SubmittedAssignment.student_id).filter(own)
    joined = submitted.join(SubmittedNotebook, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
    marked = joined.join(Grade, Grade.notebook_id == SubmittedNotebook.id).filter(~Grade.needs_manual_grade)
    return failed - {student for (student,) in marked.distinct()} if failed else set()


def _zeros(gradebook: Gradebook, assignment: str) -> dict[str, list[str]]:
    """Student -> the notebooks that got no points although they could have."""
    found: dict[str, list[str]] = {}
    own = SubmittedAssignment.assignment_id == gradebook.find_assignment(assignment).id
    rows = gradebook.db.query(SubmittedNotebook).join(SubmittedAssignment).filter(own, SubmittedNotebook.score == 0)
    for row in rows:
        if row.max_score > 0:
            found.setdefault(row.student.id, []).append(row.name)
    return found


def _reasons(gradebook: Gradebook, assignment: str) -> dict[str, str]:
    """Student -> why a notebook was not read, or the empty string, as `autograder grade` kept it. Submissions that a
    person has to look at are named elsewhere.
    """
    results = kept_results(gradebook, assignment)
    return {student: "" if result.status in NEEDS_A_LOOK else result.reason for student, result in results.items()}


def kept_results(gradebook: Gradebook, assignment: str) -> dict[str, Result]:
    """Student -> the result that `autograder grade` kept."""
    if not inspect(gradebook.engine).has_table(RESULTS.name):
        return {}
    rows = gradebook.db.execute(select(RESULTS.c.student, RESULTS.c.result).where(RESULTS.c.assignment == assignment))
    return {student: Result.from_json(text) for student, text in rows}


def _has_none(folder: Path, notebook: str) -> bool:
    """Whether a folder of graded notebooks lacks this one, or has a stand-in because it could not be read."""
    path = folder / f"{notebook}.ipynb"
    return folder.is_dir() and (not path.is_file() or bool(note_of(nbformat.read(path, as_version=4), "problem")))
