"""Marks as CSV for Canvas and Moodle, as nbgrader export plugins: `nbgrader export --exporter=...` takes them too.

Scores are nbgrader's: automatic or given by hand, with extra credit, less the late penalty, never below zero. A student
who handed nothing in, whose submission could not be graded, or some of whose points wait for a person, has no mark: a
sum with open points would look like lost points. Where there is no mark, what the LMS has stays as it is.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from nbgrader.api import Gradebook, Student, SubmittedAssignment
from nbgrader.plugins import CsvExportPlugin, ExportPlugin
from traitlets import Unicode

from autograder.grading.gradebook.canvas_table import IDENTITIES, CanvasTable
from autograder.grading.gradebook.tables import Entries, harmless, number
from autograder.grading.gradebook.zeros import states

EMPTY = (
    "{} empty entries, of students who have other marks: {} would remove what it has there. Export one lesson at a "
    "time, or with {}."
)
UNSEEN = (
    "this file is for new assignments: what Canvas has is not known, so in an assignment of the same name it would "
    "replace excused entries and the points possible. With --canvas-gradebook it does not."
)
# Places in a row of nbgrader's CSV. It quotes nothing, so a name with a comma takes up two places.
ASSIGNMENT, STUDENT, SCORES = 0, 3, slice(-4, -1)


class _Table(ExportPlugin):
    """The base of both exporters: a row per student with a mark, a column per assignment with marks. `remarks`: what an
    instructor should know before uploading the file.
    """

    file_name = "grades.csv"
    platform = ""
    fill_in = ""  # the option that names a table of the platform

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.remarks: list[str] = []

    def export(self, gradebook: Gradebook) -> None:
        marks = {name: own for name, own in marks_by_student(gradebook, self.assignment).items() if own}
        wanted = set(map(str, self.student))
        students = [student for student in gradebook.students if not wanted or student.id in wanted]
        maxima = {assignment: self._maximum(gradebook, assignment) for assignment in marks}
        rows = list(self.rows(students, marks, maxima))  # an error here leaves the file as it was
        with open(self.to or self.file_name, "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows(rows)
        for remark in self.remarks:
            self.log.warning(remark)

    @staticmethod
    def _maximum(gradebook: Gradebook, assignment: str) -> float:
        return float(gradebook.find_assignment(assignment).max_score or 0.0)

    def rows(
        self, students: Sequence[Student], marks: dict[str, dict[str, float]], maxima: dict[str, float]
    ) -> Iterable[list[str]]:
        raise NotImplementedError

    def rows_with_marks(
        self, students: Sequence[Student], marks: dict[str, dict[str, float]]
    ) -> Iterator[tuple[Student, list[str]]]:
        """The students with a mark, each with the entries. An empty entry would remove a mark that the LMS has."""
        empty = 0
        for student in students:
            own = [number(scores.get(student.id)) for scores in marks.values()]
            if any(own):
                empty += own.count("")
                yield student, own
        if empty:
            self.remarks.append(EMPTY.format(empty, self.platform, self.fill_in))


class CanvasExportPlugin(_Table):
    """The CSV that Canvas imports. If `gradebook` names a file that Canvas exported, its rows and columns are kept.

    Canvas finds students by its own ID, which only its export has, or by SIS Login ID, which is taken to be nbgrader's
    student id. After an export, `entries` says what the file changes in Canvas.
    """

    file_name = "canvas.csv"
    platform = "Canvas"
    fill_in = "--canvas-gradebook"
    gradebook = Unicode("", help="a gradebook exported from Canvas, whose rows are filled in").tag(config=True)

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.entries = Entries()

    def export(self, gradebook: Gradebook) -> None:
        super().export(gradebook)
        for change in self.entries.changes:
            self.log.info("%s: %s: %s -> %s", change.column, change.student, change.before or "empty", change.after)
        for kept in self.entries.kept:
            self.log.warning("%s: %s: %s stays, not %s", kept.column, kept.student, kept.before, kept.after)
        if self.entries.without_row:
            self.log.warning("Canvas's gradebook has no row for: %s", ", ".join(sorted(self.entries.without_row)))

    def rows(
        self, students: Sequence[Student], marks: dict[str, dict[str, float]], maxima: dict[str, float]
    ) -> Iterable[list[str]]:
        if self.gradebook:
            table = CanvasTable(Path(self.gradebook), maxima)
            self.remarks += table.remarks
            yield from table.filled(students, marks, self.entries)
            return
        if marks:
            self.remarks.append(UNSEEN)
        yield [*IDENTITIES, *marks]
        yield ["Points Possible", "", "", "", "", *(number(maxima[name]) for name in marks)]
        for student, own in self.rows_with_marks(students, marks):
            identity = [_name(student), student.lms_user_id or "", "", student.id, ""]
            yield [*map(harmless, identity), *own]


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
    platform = "Moodle"
    fill_in = "--moodle-worksheet"

    def rows(
        self, students: Sequence[Student], marks: dict[str, dict[str, float]], maxima: dict[str, float]
    ) -> Iterable[list[str]]:
        yield ["Username", "First name", "Last name", "ID number", "Email address", *marks]
        for student, own in self.rows_with_marks(students, marks):
            about = (student.id, student.first_name, student.last_name, student.lms_user_id, student.email)
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


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _name(student: Student) -> str:
    names = [name for name in (student.last_name, student.first_name) if name]
    return ", ".join(names) or str(student.id)
