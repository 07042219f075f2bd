"""Finds whose mark is not what it looks like in the gradebook: because there was no notebook to read, because grading
failed, or because a person has not given all points yet.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbgrader.api import Grade, Gradebook, SubmittedAssignment, SubmittedNotebook
from sqlalchemy import inspect, select

from autograder.grading.course import Course
from autograder.grading.gradebook.mark_writer import RESULTS
from autograder.grading.submission.class_records import NEEDS_A_LOOK
from autograder.grading.submission.result import Result
from autograder.notebooks.reading import note_of
from autograder.notebooks.verdicts import is_waiting


def without_notebook(course: Course, gradebook: Gradebook, assignment: str) -> set[str]:
    """The students with no points for a notebook that could not be read or was not handed in.

    `autograder grade` keeps the reason with its result. For submissions that nbgrader itself graded, the graded
    notebook shows it.
    """
    unscored = states(gradebook, assignment).unscored
    zeros = {student: names for student, names in _zeros(gradebook, assignment).items() if student not in unscored}
    reasons = _reasons(gradebook, assignment)
    folders = {student: course.folder("autograded", student, assignment) for student in zeros.keys() - reasons.keys()}
    by_nbgrader = {
        student for student, folder in folders.items() if any(_has_none(folder, name) for name in zeros[student])
    }
    return by_nbgrader | {student for student in zeros if reasons.get(student)}


@dataclass(frozen=True)
class States:
    """The students whose mark is not simply a mark. `failed`: the submission could not be graded, so that its 0 says
    nothing. `waiting`: a person has to give some of the points. `unscored`: the gradebook has rows for them, but no
    score, as nbgrader makes them for an extension. `looked_at`: a person has to look at their mark again.
    """

    failed: set[str]
    waiting: set[str]
    unscored: set[str]
    looked_at: set[str]

    @property
    def unmarked(self) -> set[str]:
        """The students without a mark. nbgrader counts what is not there as 0."""
        return self.failed | self.waiting | self.unscored


def states(gradebook: Gradebook, assignment: str) -> States:
    """What the gradebook's marks of an assignment are."""
    own = SubmittedAssignment.assignment_id == gradebook.find_assignment(assignment).id
    columns = (SubmittedAssignment.student_id, Grade.needs_manual_grade, Grade.auto_score, Grade.manual_score)
    submissions = gradebook.db.query(*columns).select_from(SubmittedAssignment).filter(own)
    notebooks = submissions.join(SubmittedNotebook, SubmittedNotebook.assignment_id == SubmittedAssignment.id)
    rows = notebooks.join(Grade, Grade.notebook_id == SubmittedNotebook.id).all()
    asked = {student for student, by_hand, _, _ in rows if by_hand}
    waiting = {student for student, *score in rows if is_waiting(*score)}
    scored = {student for student, _, auto, manual in rows if auto is not None or manual is not None}
    # A person who marks a cell, or nbgrader when it grades, leaves not every cell for a person.
    left = {student for student, result in kept_results(gradebook, assignment).items() if result.status in NEEDS_A_LOOK}
    failed = left - {student for student, by_hand, _, _ in rows if not by_hand}
    unscored = {student for student, *_ in rows} - scored - waiting
    return States(failed, waiting - failed, unscored, asked - waiting - failed)


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
