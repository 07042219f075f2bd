"""Fills in the gradebook that Canvas has exported, so that uploading it changes marks and nothing else.

Canvas takes a file by its word: an empty entry removes a mark, a number takes the place of `EX`, other points possible
change those of the assignment, and a column with an unknown name becomes a new assignment.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from nbgrader.api import Student

from autograder.grading.errors import CourseError
from autograder.grading.gradebook.tables import (
    Entries,
    harmless,
    number,
    points_in,
    read_table,
    require_columns,
    scaled,
)

IDENTITIES = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")  # Canvas's columns before the marks
WITH_ID = re.compile(r"(?P<name>.*) \(\d+\)")  # how Canvas writes the name of an assignment
SEVERAL = (
    "{} has several columns for {}: {}. Delete all but one from the file, or give the assignments in Canvas different "
    "names, and export again."
)
TWO_LESSONS = "Canvas's column {} would get the marks of {}. Name one of these lessons, and export again."
TAKEN = "{}: taken to be Canvas's column {}."
NEW = "{}: Canvas has no column of this name, so it will make a new assignment."
SCALED = "{}: marks are scaled from the lesson's {} points to the {} points possible in Canvas."
NO_POINTS = "{}: Canvas has no points possible for {}, so marks are not scaled: they are out of {}."


class CanvasTable:
    """A gradebook from Canvas. `remarks`: sentences about its columns. Raises CourseError if it cannot be filled in."""

    def __init__(self, path: Path, maxima: Mapping[str, float]) -> None:
        self.head, self.table = read_table(path)
        require_columns(path, self.head, ("Student", "ID"), "Canvas gradebook")
        self.maxima = maxima
        self.remarks: list[str] = []
        self.columns = {name: self._column(path, name) for name in maxima}
        for title, count in Counter(self.columns.values()).items():
            if count > 1:
                lessons = " and ".join(name for name, column in self.columns.items() if column == title)
                raise CourseError(TWO_LESSONS.format(repr(title), lessons))
        self.possible = next(filter(_has_points_possible, self.table), {})
        self.scales = {name: self._scale(name, title) for name, title in self.columns.items()}

    def _column(self, path: Path, lesson: str) -> str:
        """The title of a lesson's column: the lesson's name, or else the same in other letters or with other spaces."""
        titles = [title for title in self.head if title not in IDENTITIES]
        exact = [title for title in titles if lesson in (title, _name(title))]
        found = exact or [title for title in titles if _folded(lesson) in (_folded(title), _folded(_name(title)))]
        if len(found) > 1:
            raise CourseError(SEVERAL.format(path, lesson, ", ".join(map(repr, found))))
        if not exact:
            self.remarks.append(TAKEN.format(lesson, repr(found[0])) if found else NEW.format(lesson))
        return found[0] if found else lesson

    def _scale(self, lesson: str, title: str) -> float:
        """The points that a lesson's marks are out of in Canvas."""
        maximum, points = self.maxima[lesson], points_in(self.possible.get(title))
        if title in self.head and points is None:
            self.remarks.append(NO_POINTS.format(lesson, repr(title), number(maximum)))
        elif points is not None and maximum and points != maximum:
            self.remarks.append(SCALED.format(lesson, number(maximum), number(points)))
        return points or maximum

    def filled(
        self, students: Sequence[Student], marks: Mapping[str, Mapping[str, float]], entries: Entries
    ) -> Iterable[list[str]]:
        """The rows with these marks, by lesson and student."""
        identities = [name for name in IDENTITIES if name in self.head]
        owners = self._owners(students)
        marked = {student.id for student in students if any(student.id in own for own in marks.values())}
        entries.without_row = marked - set(owners.values())
        yield [*identities, *self.columns.values()]
        for at, row in enumerate(self.table):
            yield [
                *(harmless(row[name] or "") if name == "Student" else row[name] or "" for name in identities),
                *(self._entry(row, lesson, owners.get(at, ""), marks, entries) for lesson in self.columns),
            ]

    def _entry(
        self,
        row: Mapping[str, str],
        lesson: str,
        student: str,
        marks: Mapping[str, Mapping[str, float]],
        entries: Entries,
    ) -> str:
        title = self.columns[lesson]
        before = row.get(title) or ""
        if student:
            mark = scaled(marks[lesson].get(student), self.maxima[lesson], self.scales[lesson])
            return entries.entry(student, title, before, mark)
        new = _has_points_possible(row) and title not in self.head
        return number(self.maxima[lesson]) if new else before

    def _owners(self, students: Sequence[Student]) -> dict[int, str]:
        """The student of each row that is certainly one student's, and the only one of this student."""
        numbers: dict[str, set[str]] = defaultdict(set)
        names: dict[str, set[str]] = defaultdict(set)
        for student in students:
            numbers[student.lms_user_id or ""].add(student.id)
            names[student.id].add(student.id)
            names[student.email or ""].add(student.id)
        # A student's name in nbgrader may look like another one's number in Canvas, so the ways to know them are tried
        # one after the other.
        number, identities = ("ID",), ("SIS Login ID", "SIS User ID")
        ways = ((number, numbers), (identities, names), (identities, numbers), (number, names))
        found: dict[int, str] = {}
        for at, row in enumerate(self.table):
            for columns, known in ways:
                keys = {(row.get(column) or "").strip() for column in columns} - {""}
                owners = set().union(*(known.get(key, set()) for key in keys))
                if len(owners) == 1:
                    found[at] = next(iter(owners))
                if owners:
                    break
        rows = Counter(found.values())
        return {at: student for at, student in found.items() if rows[student] == 1}


def _name(title: str) -> str:
    """The name of an assignment in the title of its column."""
    found = WITH_ID.fullmatch(title)
    return found["name"] if found else title


def _folded(name: str) -> str:
    return re.sub(r"[\s_-]+", " ", name).strip().casefold()


def _has_points_possible(row: Mapping[str, str]) -> bool:
    return (row["Student"] or "").strip() == "Points Possible"
