"""The marks of each exercise and question as CSV, a row per student, for an instructor's own statistics."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path

from nbgrader.api import Grade, Gradebook, MissingEntry, SubmittedAssignment

from autograder.files import atomic_write
from autograder.grading.course import Course, absent_students
from autograder.grading.gradebook.tables import harmless, number
from autograder.grading.gradebook.zeros import States, states
from autograder.grading.questions import Place, titles_in_order
from autograder.nbgrader_plugins.times import seconds_late, span
from autograder.notebooks.verdicts import is_waiting

POSSIBLE = "points possible"  # the first row, as in Canvas's table
ABSENT, UNGRADED = "handed in nothing", "not graded"
FAILED, WAITING = "grading failed", "waiting for a person"


def write_questions(course: Course, gradebook: Gradebook, lessons: Sequence[str], target: Path) -> None:
    """Write the table. An exercise that has several questions has a column for its sum, and one for each of them. An
    entry is empty if there is no mark: nothing was handed in, grading failed, or a person has to give the points.
    """
    students = gradebook.students
    table = [["student", "last name", "first name"], [POSSIBLE, "", ""]]
    table += [[harmless(text or "") for text in (it.id, it.last_name, it.first_name)] for it in students]
    for lesson in lessons:
        prefix = f"{lesson}: " if len(lessons) > 1 else ""
        for head, possible, *marks in _columns(course, gradebook, lesson, [it.id for it in students]):
            for row, text in zip(table, (harmless(prefix + head), possible, *marks), strict=True):
                row.append(text)
    with atomic_write(target) as draft, open(draft, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(table)


def _columns(course: Course, gradebook: Gradebook, lesson: str, students: Sequence[str]) -> Iterator[list[str]]:
    """The columns of one lesson: what they are called, the points possible, and an entry for each student."""
    found, submissions = states(gradebook, lesson), [_submission(gradebook, lesson, student) for student in students]
    grades = [_grades(submission, found) for submission in submissions]
    absent, both = set(absent_students(course, lesson)), zip(students, submissions, strict=True)
    yield ["state", "", *(_state(it, found, ABSENT if who in absent else UNGRADED) for who, it in both)]
    yield ["late penalty", "", *(number(it.late_submission_penalty or None) if it else "" for it in submissions)]
    for title, questions in _exercises(course, gradebook, lesson).items():
        total = [number(_sum([own.get(place) for place in questions])) for own in grades]
        yield [title, number(sum(questions.values())), *total]
        if len(questions) > 1:
            for place, points in questions.items():
                yield [f"{title}: {place[1]}", number(points), *(number(own.get(place)) for own in grades)]


def _exercises(course: Course, gradebook: Gradebook, lesson: str) -> dict[str, dict[Place, float]]:
    """The points of each question, by the heading above it, in the order of the lesson."""
    points: dict[Place, float] = {}
    for notebook in gradebook.find_assignment(lesson).notebooks:
        points |= {(notebook.name, it.name): it.max_score for it in [*notebook.grade_cells, *notebook.task_cells]}
    titles = titles_in_order(course, lesson)
    found: dict[str, dict[Place, float]] = {}
    for place in [*(place for place in titles if place in points), *(place for place in points if place not in titles)]:
        found.setdefault(titles.get(place, place[1]), {})[place] = points[place]
    return found


def _submission(gradebook: Gradebook, lesson: str, student: str) -> SubmittedAssignment | None:
    try:
        return gradebook.find_submission(lesson, student)
    except MissingEntry:
        return None


def _grades(submission: SubmittedAssignment | None, found: States) -> dict[Place, float]:
    """The marks of a submission, without those that a person still has to give."""
    if submission is None or submission.student_id in found.failed | found.unscored:
        return {}
    rows: list[Grade] = [grade for notebook in submission.notebooks for grade in notebook.grades]
    given = [it for it in rows if not is_waiting(it.needs_manual_grade, it.auto_score, it.manual_score)]
    return {(it.notebook.name, it.name): it.score for it in given}


def _sum(marks: Sequence[float | None]) -> float | None:
    given = [mark for mark in marks if mark is not None]
    return sum(given) if len(given) == len(marks) else None


def _state(submission: SubmittedAssignment | None, found: States, without: str) -> str:
    """What to know about the marks of a submission. `without`: what to say if there are none."""
    if submission is None or submission.student_id in found.unscored:
        return without
    if submission.student_id in found.failed:
        return FAILED
    late = seconds_late(submission.timestamp, submission.assignment.duedate, submission.extension)
    said = [f"late by {span(late)}"] if late else []
    return ", ".join(said + [WAITING] * (submission.student_id in found.waiting))
