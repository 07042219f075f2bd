"""Finds the student of the course to whom an upload belongs, without guessing."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from nbgrader.api import Gradebook

from autograder.grading.errors import CourseError
from autograder.grading.gradebook.tables import read_table
from autograder.grading.lms.names import CANVAS, MOODLE, Upload

NUMBER = re.compile(r"\d+")
KEYS = {CANVAS: "ID", MOODLE: "Identifier"}
SOURCES = {CANVAS: "the gradebook that Canvas exports", MOODLE: "the assignment's grading worksheet from Moodle"}
IN_ENGLISH = "In another language, its columns have other names: set Moodle to English, and download it again."
IDENTITIES = ("SIS Login ID", "SIS User ID", "Username", "ID number", "Email address", "Email")


class Roster:
    """The students of a course by their number in the LMS, and by name if only one student has it."""

    def __init__(self, by_key: Mapping[str, str], by_name: Mapping[str, set[str]]) -> None:
        self.by_key, self.by_name = by_key, by_name

    def student_of(self, upload: Upload) -> str | None:
        """The student's id in nbgrader, or None if it is not certain."""
        if upload.key in self.by_key:
            return self.by_key[upload.key]
        found = self.by_name.get(folded(upload.name), set())
        return next(iter(found)) if len(found) == 1 else None

    def reading_of(self, readings: Sequence[Upload]) -> Upload | None:
        """The first way to read a name. None if another way leads to another student: either may be right."""
        first, *others = readings
        found = {self.student_of(other) for other in others} - {None, self.student_of(first)}
        return None if found else first


def roster_advice(platform: str, option: str, given: bool) -> str:
    """What to do about uploads of unknown students. `given`: whether a roster was given with `option`."""
    source = SOURCES[platform]
    if given:
        return f"The file given with {option} does not say who they are: take {source} as it is now, with all students."
    return f"Add {option} FILE.csv, {source}: it says which number is whose."


def folded(name: str) -> str:
    """A name as Canvas writes it: only lowercase letters and digits, without accents."""
    letters = unicodedata.normalize("NFKD", name).casefold()
    return "".join(letter for letter in letters if letter.isalnum())


def roster_of(gradebook: Gradebook, platform: str, table: Path | None) -> Roster:
    """The roster of nbgrader's gradebook, extended by a table that the LMS has exported. Raises CourseError.

    Moodle numbers participants, not users, so only its own table knows these numbers. Students whose numbers are known
    are not found by name, because another student may have the same name.
    """
    students = gradebook.students
    numbered = [] if platform == MOODLE else [student for student in students if student.lms_user_id]
    by_key = {str(student.lms_user_id): student.id for student in numbered}
    if table is not None:
        known = {text: student.id for student in students for text in (student.id, student.email) if text}
        by_key |= dict(_keys_in(table, platform, known))
    by_name: dict[str, set[str]] = defaultdict(set)
    for student in students:
        first, last = student.first_name or "", student.last_name or ""
        name = folded(f"{first} {last}" if platform == MOODLE else f"{last}{first}")
        if name and student.id not in by_key.values():
            by_name[name].add(student.id)
    return Roster(by_key, by_name)


def _keys_in(table: Path, platform: str, known: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    """The LMS's number and nbgrader's student for each row of a CSV that Canvas or Moodle has exported."""
    head, rows = read_table(table)
    key = KEYS[platform]
    if key not in head:
        language = f" {IN_ENGLISH}" if platform == MOODLE else ""
        raise CourseError(f"{table} has no column {key}: take {SOURCES[platform]}.{language}")
    for row in rows:
        number = NUMBER.search(row[key] or "")
        texts = [(row.get(name) or "").strip() for name in IDENTITIES]
        student = next((known[text] for text in texts if text in known), next(filter(None, texts), ""))
        if number and student:
            yield number[0], student
