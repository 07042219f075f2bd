"""Marks as CSV for Canvas and Moodle, as nbgrader export plugins: `nbgrader export --exporter=...` takes them too.

Scores are nbgrader's: automatic or given by hand, with extra credit, less the late penalty, never below zero. A student
who handed nothing in, whose submission could not be graded, or some of whose points wait for a person, has no mark: a
sum with open points would look like lost points.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook, Student, SubmittedAssignment
from nbgrader.plugins import CsvExportPlugin, ExportPlugin
from traitlets import Unicode

from autograder.grading.gradebook.tables import read_table, require_columns
from autograder.grading.gradebook.zeros import states

FORMULA = tuple("=+-@\uff1d\uff0b\uff0d\uff20")  # the last four are full-width forms of the first four
IDENTITIES = (
    "Student",
    "ID",
    "SIS User ID",
    "SIS Login ID",
    "Section",
)  # the columns of Canvas's gradebook before the marks
KEYS = ("ID", "SIS User ID", "SIS Login ID")  # the columns that identify a student
# Places in a row of nbgrader's CSV. It quotes nothing, so a name with a comma takes up two places.
ASSIGNMENT, STUDENT, SCORES = 0, 3, slice(-4, -1)


class _Table(ExportPlugin):
    """The base of both exporters: one row per student, one column per assignment."""

    file_name = "grades.csv"

    def export(self, gradebook: Gradebook) -> None:
        marks = marks_by_student(gradebook, self.assignment)
        wanted = set(map(str, self.student))
        students = [student for student in gradebook.students if not wanted or student.id in wanted]
        maxima = {assignment: self._maximum(gradebook, assignment) for assignment in marks}
        rows = list(self.rows(students, marks, maxima))  # an error here leaves the file as it was
        with open(self.to or self.file_name, "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(rows)

    @staticmethod
    def _maximum(gradebook: Gradebook, assignment: str) -> float:
        return float(gradebook.find_assignment(assignment).max_score or 0.0)

    def rows(
        self, students: Sequence[Student], marks: dict[str, dict[str, float]], maxima: dict[str, float]
    ) -> Iterable[list[str]]:
        raise NotImplementedError


class CanvasExportPlugin(_Table):
    """The CSV that Canvas imports. If `gradebook` names a file that Canvas exported, its rows and columns are kept.

    Canvas finds students by its own ID, which only its export has, or by SIS Login ID, which is taken to be nbgrader's
    student id. After an export, `without_row` holds the students whose marks are not in the file because `gradebook`
    has no row for them, and `remarks` says how marks were scaled.
    """

    file_name = "canvas.csv"
    gradebook = Unicode("", help="a gradebook exported from Canvas, whose rows are filled in").tag(config=True)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.without_row: set[str] = set()
        self.remarks: list[str] = []

    def export(self, gradebook: Gradebook) -> None:
        super().export(gradebook)
        for remark in self.remarks:
            self.log.warning(remark)
        if self.without_row:
            self.log.warning("Canvas's gradebook has no row for: %s", ", ".join(sorted(self.without_row)))

    def rows(
        self, students: Sequence[Student], marks: dict[str, dict[str, float]], maxima: dict[str, float]
    ) -> Iterable[list[str]]:
        if self.gradebook:
            yield from self._filled(students, marks, maxima)
            return
        yield [*IDENTITIES, *marks]
        yield ["Points Possible", "", "", "", "", *(number(maxima[name]) for name in marks)]
        for student in students:
            own = [number(scores.get(student.id)) for scores in marks.values()]
            identity = [_name(student), student.lms_user_id or "", "", student.id, ""]
            yield [*map(harmless, identity), *own]

    def _filled(
        self, students: Sequence[Student], marks: dict[str, dict[str, float]], maxima: dict[str, float]
    ) -> Iterable[list[str]]:
        """Fill in Canvas's table. Its columns are named "lesson (12345)"; Canvas makes an assignment of a new one."""
        head, table = read_table(Path(self.gradebook))
        require_columns(Path(self.gradebook), head, ("Student", "ID"), "Canvas gradebook")
        identities = [name for name in IDENTITIES if name in head]
        columns = {name: next((title for title in head if _is_column(title, name)), name) for name in marks}
        scales = self._scales(table, columns, maxima)
        known = _known(students)
        found: set[str] = set()
        yield [*identities, *columns.values()]
        for row in table:
            about = [row[name] or "" for name in identities]
            if _has_points_possible(row):
                yield [*about, *(number(scales[name]) for name in marks)]
                continue
            keys = ((row.get(name) or "").strip() for name in KEYS)
            student = next((known[key] for key in keys if key in known), "")
            found.add(student)
            about = [
                harmless(text) if name == "Student" else text for name, text in zip(identities, about, strict=True)
            ]
            own = (scaled(scores.get(student), maxima[name], scales[name]) for name, scores in marks.items())
            yield [*about, *map(number, own)]
        self.without_row = {student.id for student in students if any(student.id in own for own in marks.values())}
        self.without_row -= found

    def _scales(
        self, table: Sequence[dict[str, str]], columns: dict[str, str], maxima: dict[str, float]
    ) -> dict[str, float]:
        """The maximum points of each lesson in Canvas, or in the course if Canvas has none."""
        possible = next(filter(_has_points_possible, table), {})
        scales = {name: points_in(possible.get(title)) or maxima[name] for name, title in columns.items()}
        self.remarks = [
            f"{name}: marks are scaled from the lesson's {number(maxima[name])} points to the {number(scale)} points "
            "possible in Canvas."
            for name, scale in scales.items()
            if maxima[name] and scale != maxima[name]
        ]
        return scales


class HarmlessCsvExportPlugin(CsvExportPlugin):
    """nbgrader's own CSV, with names that no spreadsheet takes for formulas, and no marks where grading failed or a
    person has not given all points yet.
    """

    def export(self, gradebook: Gradebook) -> None:
        super().export(gradebook)
        path = Path(self.to or "grades.csv")
        with open(path, newline="", encoding="utf-8") as file:
            rows = [[text if _is_number(text) else harmless(text) for text in row] for row in csv.reader(file)]
        without = {it.name: states(gradebook, it.name).unmarked for it in gradebook.assignments}
        for row in rows:
            if row[STUDENT] in without.get(row[ASSIGNMENT], ()):
                row[SCORES] = [""] * len(row[SCORES])
        with open(path, "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(rows)


class MoodleExportPlugin(_Table):
    """The CSV for Moodle's grade import: identify students by "Username", and map each lesson to its grade item."""

    file_name = "moodle.csv"

    def rows(
        self, students: Sequence[Student], marks: dict[str, dict[str, float]], maxima: dict[str, float]
    ) -> Iterable[list[str]]:
        yield ["Username", "First name", "Last name", "ID number", "Email address", *marks]
        for student in students:
            about = (student.id, student.first_name, student.last_name, student.lms_user_id, student.email)
            own = [number(scores.get(student.id)) for scores in marks.values()]
            yield [*(harmless(text or "") for text in about), *own]


def marks_by_student(gradebook: Gradebook, assignments: Sequence[str] = ()) -> dict[str, dict[str, float]]:
    """Assignment -> student -> marks."""
    found: dict[str, dict[str, float]] = {}
    for assignment in gradebook.assignments:
        if assignments and assignment.name not in assignments:
            continue
        submissions = gradebook.db.query(SubmittedAssignment).filter(SubmittedAssignment.assignment_id == assignment.id)
        without = states(gradebook, assignment.name).unmarked
        found[assignment.name] = {
            submission.student_id: max(0.0, submission.score - (submission.late_submission_penalty or 0.0))
            for submission in submissions
            if submission.student_id not in without
        }
    return dict(sorted(found.items()))


def number(value: float | None) -> str:
    return "" if value is None else f"{value:.10g}"


def points_in(text: str | None) -> float | None:
    """The points in a cell of an LMS's table; None if there are none. The last point or comma is the decimal mark: both
    platforms write numbers in the user's locale, such as 1,000.00 or 1.000,00. Neither writes three decimals, so 1,000
    is a thousand.
    """
    whole, mark, decimals = "".join((text or "").split()).replace(",", ".").rpartition(".")
    if len(decimals) == 3 and not whole.startswith("0"):
        mark = ""
    try:
        points = float(whole.replace(".", "") + mark + decimals)
    except ValueError:
        return None
    return points if 0 < points < math.inf else None


def scaled(mark: float | None, maximum: float, scale: float) -> float | None:
    """Convert a mark out of `maximum` points to one out of `scale`. If there is nothing to scale by, it stays."""
    return mark if mark is None or not maximum or scale == maximum else mark / maximum * scale


def harmless(text: str) -> str:
    """Mark a name as text if a spreadsheet would take it for a formula."""
    return f"'{text}" if text.lstrip().startswith(FORMULA) or text[:1] in ("\t", "\r", "\n") else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _name(student: Student) -> str:
    names = [name for name in (student.last_name, student.first_name) if name]
    return ", ".join(names) or str(student.id)


def _known(students: Iterable[Student]) -> dict[str, str]:
    """The students by each identifier that Canvas may use for them."""
    return {key: student.id for student in students for key in (student.id, student.lms_user_id, student.email) if key}


def _has_points_possible(row: dict[str, str]) -> bool:
    return (row["Student"] or "").strip() == "Points Possible"


def _is_column(title: str, assignment: str) -> bool:
    return title == assignment or (title.startswith(f"{assignment} (") and title.endswith(")"))
