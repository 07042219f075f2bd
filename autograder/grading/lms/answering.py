"""Writes files that an LMS can import: feedback pages in an archive, and marks with comments in a worksheet.

Canvas (*Upload Submissions*) and Moodle (*Upload multiple feedback files in a zip*) identify a file's owner by the name
that the file has in the download. So each page gets the name that the notebook it is about has there.
"""

from __future__ import annotations

import csv
import html
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from nbgrader.api import Grade, Gradebook, SubmittedAssignment

from autograder.files import atomic_write
from autograder.grading.course import Course
from autograder.grading.gradebook.exporters import marks_by_student
from autograder.grading.gradebook.tables import (
    Entries,
    harmless,
    number,
    points_in,
    read_table,
    require_columns,
    scaled,
)
from autograder.grading.gradebook.zeros import kept_results, states
from autograder.grading.lms.archives import Archive
from autograder.grading.lms.importing import (
    NOTEBOOK,
    HandedIn,
    Imported,
    required_notebooks,
    required_platform,
    roster_for,
    uploads_by_student,
)
from autograder.grading.lms.names import MOODLE, Upload
from autograder.grading.lms.roster import IN_ENGLISH, NUMBER, roster_of
from autograder.grading.questions import Place, titles_in_order
from autograder.grading.submission.result import Result
from autograder.grading.watching.copying import WhatCounts
from autograder.notebooks.verdicts import CellVerdict, fresh_parts

# Columns of Moodle's grading worksheet.
IDENTIFIER, NAME, GRADE, MAXIMUM = "Identifier", "Full name", "Grade", "Maximum Grade"
COMMENTS = "Feedback comments"
SCALED = "{}: marks are scaled from the lesson's {} points to the worksheet's maximum of {}."


@dataclass
class PagesWritten:
    """Students with pages in the archive, those without a page, those without a notebook for one, and unknown ones."""

    pages: list[str] = field(default_factory=list)
    without: list[str] = field(default_factory=list)
    no_notebook: list[str] = field(default_factory=list)
    unknown: list[str] = field(default_factory=list)
    unlisted: bool = False


def write_feedback_archive(
    course: Course, assignment: str, download: Archive, platform: str, table: Path | None, target: Path
) -> PagesWritten:
    """Write the feedback pages of everybody in a download, except where grading failed: these pages are written for the
    instructor. Raises CourseError if the assignment has no notebook, or if the download or the table cannot be used.
    """
    required_platform(download.names, platform, "--for")
    with course.gradebook() as gradebook:
        failed = states(gradebook, assignment).failed
    done, answered = Imported(platform), PagesWritten()
    notebooks, roster = required_notebooks(course, assignment), roster_for(course, platform, table)
    limits = WhatCounts.of(course.coursedir)
    with atomic_write(target) as draft, zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as file:
        for student, uploads in uploads_by_student(download.names, roster, done):
            if student in failed:
                continue
            chosen = HandedIn(download, assignment, notebooks, uploads, limits).chosen(student, [])
            pages = sorted(course.folder("feedback", student, assignment).glob("*.html"))
            for page in pages:
                if upload := chosen.get(f"{page.stem}{NOTEBOOK}"):
                    file.write(page, _name_of(upload, page.name))
                    answered.pages.append(student)
            if student not in answered.pages:
                handed_in = any(f"{name}{NOTEBOOK}" in chosen for name in notebooks)
                (answered.without if handed_in else answered.no_notebook).append(student)
    answered.unknown, answered.unlisted = done.unknown, done.unlisted
    return answered


def _name_of(upload: Upload, name: str) -> str:
    """The name that the LMS gave an upload, with another file's name instead of the submitted file's."""
    return upload.member.removeprefix(upload.outer).removesuffix(upload.file) + name


def fill_worksheet(
    course: Course, gradebook: Gradebook, assignment: str, worksheet: Path, target: Path, remarks: list[str]
) -> Entries:
    """Write Moodle's grading worksheet with marks and comments filled in, and everything else as it was.

    Returns what that changes. `remarks` gets a sentence if marks are scaled. They are converted to the scale of the
    column Maximum Grade. Raises CourseError
    if the file is not such a worksheet.
    """
    head, rows = read_table(worksheet)
    require_columns(worksheet, head, (IDENTIFIER, NAME, GRADE), "Moodle grading worksheet", IN_ENGLISH)
    roster, marks = roster_of(gradebook, MOODLE, worksheet), marks_by_student(gradebook, [assignment])[assignment]
    maximum, entries = float(gradebook.find_assignment(assignment).max_score or 0.0), Entries(without_row=set(marks))
    titles, results = titles_in_order(course, assignment), kept_results(gradebook, assignment)
    for row in rows:
        key = NUMBER.search(row[IDENTIFIER] or "")
        student = roster.student_of(Upload("", MOODLE, key[0] if key else "", row[NAME] or "", ""))
        if student is None or student not in marks:
            continue
        entries.without_row.discard(student)
        scale = points_in(row.get(MAXIMUM)) or maximum
        mark = scaled(marks[student], maximum, scale)
        if maximum and scale != maximum and not remarks:
            remarks.append(SCALED.format(assignment, number(maximum), number(scale)))
        row[GRADE] = entries.entry(student, GRADE, row[GRADE] or "", mark)
        if COMMENTS in head:
            submission = gradebook.find_submission(assignment, student)
            row[COMMENTS] = harmless(comment(submission, titles, results.get(student)))
    with atomic_write(target) as draft, open(draft, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, head, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return entries


def comment(submission: SubmittedAssignment, titles: Mapping[Place, str], result: Result | None) -> str:
    """A short explanation of a mark, as HTML: the sum, the exercises that lost points, each with what its tests said,
    and what people wrote. `result`: what `autograder grade` kept of this submission.
    """
    earned, late = submission.score, submission.late_submission_penalty or 0.0
    less = f": {number(earned)}, less {number(late)} for a late submission" if late else ""
    parts = [f"{number(max(0.0, earned - late))} of {number(submission.max_score)} points{less}."]
    if result is not None and result.status == "missing" and not submission.score:
        names = " or ".join(sorted(f"{notebook.name}{NOTEBOOK}" for notebook in submission.notebooks))
        return " ".join([*parts, f"No notebook had the name {names}, so none was graded."])
    judged = {cell.place: cell for cell in result.cells} if result is not None else {}
    for notebook in sorted(submission.notebooks, key=lambda one: str(one.name)):
        exercises: dict[str, list[Grade]] = {}
        for grade in _sorted(notebook.grades, titles):
            exercises.setdefault(titles.get((notebook.name, grade.name), grade.name), []).append(grade)
        lost = [grade for grades in exercises.values() for grade in grades if grade.score < grade.max_score]
        said = fresh_parts(_reason(grade, judged.get((notebook.name, grade.name))) for grade in lost)
        reasons = dict(zip(lost, said, strict=True))
        for title, grades in exercises.items():
            if any(grade in reasons for grade in grades):
                earned, points = sum(grade.score for grade in grades), sum(grade.max_score for grade in grades)
                parts.append(f"{html.escape(title, quote=False)}: {number(earned)} of {number(points)}.")
                parts += [_as_sentence(reason) for grade in grades if (reason := reasons.get(grade))]
        written = _sorted(notebook.comments, titles)
        parts += [row.manual_comment for row in written if row.manual_comment]
    return " ".join(parts)


def _reason(grade: Grade, cell: CellVerdict | None) -> str:
    """What the test said, unless the mark is a person's or from another run."""
    if cell is None or grade.manual_score is not None or grade.auto_score != cell.points:
        return ""
    return cell.message


def _as_sentence(message: str) -> str:
    """A test's message in one line of HTML. Parts of it may be a student's, and Moodle shows comments as HTML."""
    line = html.escape(" ".join(message.split()), quote=False)
    return line if line.endswith((".", "?", "!")) else f"{line}."


def _sorted(rows: Iterable[Any], titles: Mapping[Place, str]) -> list[Any]:
    """Rows of the gradebook that are about cells, in the order of the cells. Cells that are gone come last."""
    order = {place: at for at, place in enumerate(titles)}
    return sorted(rows, key=lambda row: order.get((row.notebook.name, row.name), len(order)))
