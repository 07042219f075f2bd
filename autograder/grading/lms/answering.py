"""Writes files that an LMS can import: feedback pages in an archive, and marks with comments in a worksheet.

Canvas (*Upload Submissions*) and Moodle (*Upload multiple feedback files in a zip*) identify a file's owner by the name
that the file has in the download. So each page gets the name that the notebook it is about has there.
"""

from __future__ import annotations

import csv
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

from nbgrader.api import Gradebook, SubmittedAssignment

from autograder.files import atomic_write
from autograder.grading.course import Course
from autograder.grading.gradebook.exporters import harmless, marks_by_student, number, points_in, scaled
from autograder.grading.gradebook.tables import read_table, require_columns
from autograder.grading.lms.archives import Archive
from autograder.grading.lms.importing import (
    NOTEBOOK,
    HandedIn,
    Imported,
    required_notebooks,
    roster_for,
    uploads_by_student,
)
from autograder.grading.lms.names import MOODLE, Upload
from autograder.grading.lms.roster import NUMBER, roster_of

# Columns of Moodle's grading worksheet.
IDENTIFIER, NAME, GRADE, MAXIMUM = "Identifier", "Full name", "Grade", "Maximum Grade"
COMMENTS = "Feedback comments"


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
    """Write the feedback pages of everybody in a download. Raises CourseError if the assignment has no notebook or the
    table cannot be used.
    """
    done, answered = Imported(platform), PagesWritten()
    notebooks, roster = required_notebooks(course, assignment), roster_for(course, platform, table)
    with atomic_write(target) as draft, zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as file:
        for student, uploads in uploads_by_student(download.names, roster, done):
            chosen = HandedIn(download, notebooks, uploads).chosen(student, [])
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
    """The name of an upload in the download, with another file's name instead of the submitted file's."""
    return upload.member.removesuffix(upload.file) + name


def fill_worksheet(gradebook: Gradebook, assignment: str, worksheet: Path, target: Path) -> list[str]:
    """Write Moodle's grading worksheet with marks and comments filled in, and everything else as it was.

    Returns the students without a row. Marks are converted to the scale of the column Maximum Grade. Raises CourseError
    if the file is not such a worksheet.
    """
    head, rows = read_table(worksheet)
    require_columns(worksheet, head, (IDENTIFIER, NAME, GRADE), "Moodle grading worksheet")
    roster, marks = roster_of(gradebook, MOODLE, worksheet), marks_by_student(gradebook, [assignment])[assignment]
    maximum, left = float(gradebook.find_assignment(assignment).max_score or 0.0), set(marks)
    for row in rows:
        key = NUMBER.search(row[IDENTIFIER] or "")
        student = roster.student_of(Upload("", MOODLE, key[0] if key else "", row[NAME] or "", ""))
        if student not in marks:
            continue
        left.discard(student)
        row[GRADE] = number(scaled(marks[student], maximum, points_in(row.get(MAXIMUM)) or maximum))
        if COMMENTS in head:
            row[COMMENTS] = harmless(comment(gradebook, assignment, student))
    with atomic_write(target) as draft, open(draft, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, head, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    return sorted(left)


def comment(gradebook: Gradebook, assignment: str, student: str) -> str:
    """A short explanation of a mark: the sum, the tests that lost points, and what people wrote."""
    submission: SubmittedAssignment = gradebook.find_submission(assignment, student)
    parts = [f"{number(submission.score)} of {number(submission.max_score)} points."]
    if submission.late_submission_penalty:
        parts.append(f"{number(submission.late_submission_penalty)} points taken off for lateness.")
    for notebook in submission.notebooks:
        lost = [grade for grade in notebook.grades if grade.score < grade.max_score]
        parts += [f"{grade.name}: {number(grade.score)} of {number(grade.max_score)}." for grade in lost]
        parts += [written.manual_comment for written in notebook.comments if written.manual_comment]
    return " ".join(parts)
