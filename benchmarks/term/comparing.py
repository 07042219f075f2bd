"""What came of the term, beside the table: every mark wherever one stands, and what students and instructor read."""

from __future__ import annotations

import csv
import html
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

from nbgrader.utils import notebook_hash

from benchmarks.term.handing_in import Term
from benchmarks.term.running import Weeks
from benchmarks.term.table import PS1, PS2, PS3, Student

ONLY_IF_SAID = ("late by", ", less ", "open", "not judged", "not graded", "does not count", "still counts")
TAG = re.compile(r"<style.*?</style>|<[^>]+>", re.DOTALL)
NAMED = re.compile(
    r"(?:^|\n)(?P<what>handed in nothing|late|waiting for a person): (?P<count>\d+) \((?P<names>[^)]*)\)"
)


def differences(weeks: Weeks) -> list[str]:
    """A line for everything that is not as the table has it."""
    term = weeks.term
    return [*_marks(weeks), *_pages(term), *_moves(term), *_standing(weeks), *_feedback_archives(weeks)]


def _marks(weeks: Weeks) -> Iterator[str]:
    """Marks in nbgrader's CSV, in Canvas's gradebook, and in Moodle's worksheet, with its comments."""
    rows = {name: _read(weeks.files / f"{name}.csv") for name in ("grades", "canvas", "moodle")}
    ours = {(row["assignment"], row["student_id"]): row["score"] for row in rows["grades"]}
    canvas = {row["SIS Login ID"]: row["ps1 (77)"] for row in rows["canvas"]}
    moodle = {row["Email address"]: row for row in rows["moodle"]}
    for student in weeks.term.students:
        for name, row in student.rows.items():
            found = {"grades.csv": ours.get((name, student.id), "")}
            if row.absent and not row.extension:  # where there is no mark, nbgrader writes a 0
                found["grades.csv"] = "" if float(found["grades.csv"] or 0) == 0 else found["grades.csv"]
            found |= {"canvas.csv": canvas[student.id]} if name == PS1 else {}
            found |= {"moodle.csv": moodle[student.id]["Grade"]} if name == PS2 else {}
            for where, mark in found.items():
                if (float(mark) if mark else None) != row.mark:
                    yield f"{student.id} {name} ({row.what}): {mark or 'no mark'} in {where}, not {row.mark}"
        row, comment = student.rows[PS2], moodle[student.id]["Feedback comments"]
        if row.comment not in html.unescape(comment) or bool(row.comment) != bool(comment):
            yield f"{student.id} {PS2} ({row.what}): Moodle's comment is {comment!r}, without {row.comment!r}"


def _pages(term: Term) -> Iterator[str]:
    """What students read."""
    for student in term.students:
        for name in (PS1, PS2):
            path = term.root / "feedback" / student.id / name / f"{name}.html"
            yield from _said(student, name, path, student.rows[name].says)
        for number, attempt in enumerate(student.rows[PS3].files):
            page = f"{notebook_hash(secret=term.secrets[student.id, number], notebook_id=PS3)}.html"
            yield from _said(student, PS3, term.exchange / "term" / "feedback" / page, attempt.says)


def _said(student: Student, name: str, path: Path, says: tuple[str, ...]) -> Iterator[str]:
    whose = f"{student.id} {name} ({student.rows[name].what})"
    if path.is_file() != bool(says):
        yield f"{whose}: there is {'no' * bool(says) or 'a'} page"
    if not path.is_file():
        return
    first_screen = path.read_text("utf-8").partition("</table>")[0]
    text = " ".join(html.unescape(TAG.sub(" ", first_screen)).split()).replace(" , ", ", ")
    yield from (f"{whose}: the page does not say {part!r}: {text}" for part in says if part not in text)
    for part in ONLY_IF_SAID:
        if part in text and not any(part in said for said in says):
            yield f"{whose}: the page says {part!r}: {text}"


def _moves(term: Term) -> Iterator[str]:
    """Whose marks the corrected test has moved, as the file for an announcement says."""
    lines = (term.root / "reports" / f"{PS2}-moved.txt").read_text("utf-8").splitlines()
    found = {line.partition(":")[0]: line for line in lines if " -> " in line}
    for student in term.students:
        row, line = student.rows[PS2], found.pop(student.id, "")
        wanted = f"{student.id}: {row.moved[0]:g} -> {row.moved[1]:g} of 5" if row.moved else ""
        if not line.startswith(wanted) or bool(line) != bool(wanted):
            yield f"{student.id} {PS2} ({row.what}): what moved is {line!r}, not {wanted!r}"
    yield from (f"{PS2}: moved, of nobody: {line}" for line in found.values())


def _standing(weeks: Weeks) -> Iterator[str]:
    """What the instructor reads: who has handed in nothing, who is late and by how much, who waits for a person."""
    for name in (PS1, PS2, PS3):
        said = weeks.said[f"grade {name} again"]
        wanted: dict[str, list[str]] = {"handed in nothing": [], "late": [], "waiting for a person": []}
        for student in weeks.term.students:
            row = student.rows[name]
            wanted["handed in nothing"] += [student.id] * row.absent
            wanted["late"] += [f"{student.id} by {row.late}"] * bool(row.late)
            wanted["waiting for a person"] += [student.id] * bool(row.open)
        found = {match["what"]: match for match in NAMED.finditer(said)}
        for what, students in wanted.items():
            match = found.get(what)
            count, names = (int(match["count"]), match["names"].removesuffix(", ...")) if match else (0, "")
            if count != len(students) or not set(filter(None, names.split(", "))) <= set(students):
                yield f"{name}: {what}: {count} ({names}), not {', '.join(students)}"
        there = sum(not student.rows[name].absent for student in weeks.term.students)
        if f"{there} of them unchanged since they were graded" not in said:
            yield f"{name}: graded again, something was not unchanged: {said[-300:]}"


def _feedback_archives(weeks: Weeks) -> Iterator[str]:
    """Whose pages go back to Canvas and Moodle."""
    for name, first in ((PS1, 1000), (PS2, 2000)):
        with zipfile.ZipFile(weeks.files / f"{name}-feedback.zip") as file:
            numbers = {int(found[0]) - first for page in file.namelist() if (found := re.findall(r"_(\d+)_", page))}
        wanted = {student.number for student in weeks.term.students if not student.rows[name].absent}
        if numbers != wanted:
            yield f"{name}-feedback.zip: pages of {sorted(numbers)}, not of {sorted(wanted)}"


def _read(path: Path) -> list[dict[str, str]]:
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))
