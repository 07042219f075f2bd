"""Marks as CSV for Canvas and Moodle, as nbgrader export plugins: `nbgrader export --exporter=...` takes them too.

Scores are nbgrader's: automatic or given by hand, with extra credit, less the late penalty, never below zero. A student
who handed nothing in has an empty field, which both platforms read as "no mark yet".
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

from nbgrader.api import Gradebook, Student, SubmittedAssignment
from nbgrader.plugins import CsvExportPlugin, ExportPlugin
from traitlets import Unicode

FORMULA = tuple("=+-@\uff1d\uff0b\uff0d\uff20")  # the last four are the first four as wide as Chinese letters


class _Table(ExportPlugin):
    """What both have in common: one row per student, one column per assignment."""

    file_name = "grades.csv"

    def export(self, gradebook: Gradebook) -> None:
        marks = marks_by_student(gradebook, self.assignment)
        wanted = set(map(str, self.student))
        students = [student for student in gradebook.students if not wanted or student.id in wanted]
        maxima = {assignment: self._maximum(gradebook, assignment) for assignment in marks}
        with open(self.to or self.file_name, "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(self.rows(students, marks, maxima))

    @staticmethod
    def _maximum(gradebook: Gradebook, assignment: str) -> float:
        return float(gradebook.find_assignment(assignment).max_score or 0.0)

    def rows(
        self, students: Sequence[Student], marks: dict[str, dict[str, float]], maxima: dict[str, float]
    ) -> Iterable[list[str]]:
        raise NotImplementedError


class CanvasExportPlugin(_Table):
    """The CSV that Canvas imports. With `gradebook`, the file that Canvas exported, its rows and columns are kept.

    Canvas finds students by its own ID, which only its export has, or by SIS Login ID, for which nbgrader's student
    names are taken here.
    """

    file_name = "canvas.csv"
    gradebook = Unicode("", help="a gradebook exported from Canvas, whose rows are filled in").tag(config=True)

    def rows(
        self, students: Sequence[Student], marks: dict[str, dict[str, float]], maxima: dict[str, float]
    ) -> Iterable[list[str]]:
        if self.gradebook:
            yield from self._filled(students, marks, maxima)
            return
        yield ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", *marks]
        yield ["Points Possible", "", "", "", "", *(number(maxima[name]) for name in marks)]
        for student in students:
            own = [number(scores.get(student.id)) for scores in marks.values()]
            identity = [_name(student), student.lms_user_id or "", "", student.id, ""]
            yield [*map(harmless, identity), *own]

    def _filled(
        self, students: Sequence[Student], marks: dict[str, dict[str, float]], maxima: dict[str, float]
    ) -> Iterable[list[str]]:
        """Canvas names a column "lesson (12345)"; where it has none yet, a new one makes an assignment of it."""
        with open(self.gradebook, newline="", encoding="utf-8-sig") as file:
            table = [row for row in csv.reader(file) if row]
        head = table[0]
        identities = [name for name in ("Student", "ID", "SIS User ID", "SIS Login ID", "Section") if name in head]
        kept = [head.index(name) for name in identities]
        columns = {name: next((title for title in head if _is_column(title, name)), name) for name in marks}
        yield [*identities, *columns.values()]
        known = {
            key: student.id for student in students for key in (student.id, student.lms_user_id, student.email) if key
        }
        for row in table[1:]:
            row = row + [""] * (len(head) - len(row))
            identity = [row[index] for index in kept]
            if identity and identity[0].strip() == "Points Possible":
                yield [*identity, *(number(maxima[name]) for name in marks)]
                continue
            found = next((known[cell.strip()] for cell in identity[1:] if cell.strip() in known), None)
            about = [
                harmless(text) if name == "Student" else text for name, text in zip(identities, identity, strict=True)
            ]
            yield [*about, *(number(scores.get(found or "")) for scores in marks.values())]


class HarmlessCsvExportPlugin(CsvExportPlugin):
    """nbgrader's own CSV, with names that no spreadsheet takes for formulas."""

    def export(self, gradebook: Gradebook) -> None:
        super().export(gradebook)
        path = Path(self.to or "grades.csv")
        with open(path, newline="", encoding="utf-8") as file:
            rows = [[text if _is_number(text) else harmless(text) for text in row] for row in csv.reader(file)]
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
    """Assignment -> student -> marks, one query per assignment."""
    found: dict[str, dict[str, float]] = {}
    for assignment in gradebook.assignments:
        if assignments and assignment.name not in assignments:
            continue
        submissions = gradebook.db.query(SubmittedAssignment).filter(SubmittedAssignment.assignment_id == assignment.id)
        found[assignment.name] = {
            submission.student_id: max(0.0, submission.score - (submission.late_submission_penalty or 0.0))
            for submission in submissions
        }
    return dict(sorted(found.items()))


def number(value: float | None) -> str:
    return "" if value is None else f"{value:.10g}"


def harmless(text: str) -> str:
    """A name that a spreadsheet would take for a formula is text."""
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


def _is_column(title: str, assignment: str) -> bool:
    return title == assignment or (title.startswith(f"{assignment} (") and title.endswith(")"))
