"""The course of the term, and what its class hands in: as Canvas and Moodle pack it, and in nbgrader's exchange."""

from __future__ import annotations

import csv
import secrets
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from zoneinfo import ZoneInfo

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell, new_notebook
from nbgrader.api import Gradebook

from autograder.grading.course import generate_assignment, open_course
from autograder.grading.pretend_class.students import Edit, Pretender, notebook_of
from benchmarks.term.table import ASSIGNMENTS, PS1, PS2, PS3, TABLE, HandedIn, Student
from tests.autograder.conftest import SOLUTION_LENGTH, SOLUTION_SHOUT, TEST_LENGTH, TEST_SHOUT, nbgrader_cell
from tests.autograder.grading.test_waiting import SOLUTION, for_a_person

CONFIGURATION = """
import math
from autograder.nbgrader_plugins import configure
from nbgrader.plugins import BasePlugin

class PointEachDay(BasePlugin):
    def late_submission_penalty(self, student_id, score, total_seconds_late):
        return math.ceil(total_seconds_late / 86400)

c = get_config()
c.CourseDirectory.course_id = "term"
c.Exchange.root = {exchange!r}
c.Exchange.timezone = "America/Los_Angeles"
c.ExchangeCollect.check_owner = False
c.AssignLatePenalties.plugin_class = PointEachDay
c.Attempts.best = True
configure(c)
"""
HEAPS = {"first": ("[3, 7], [5, 9], [1, 8]", "repr({})"), "corrected": ("[7, 3], [5, 9], [8, 1]", "{}")}
TEST = """points = 0
for heap in ({heaps}):
    if {found} == {smallest}:
        points += 1
    else:
        print(f"{{smallest(heap)}} is not the smallest of {{heap}}")
points"""
DUE = {PS1: datetime(2026, 10, 31, 6, 59), PS2: datetime(2026, 11, 16, 12, 0)}  # in UTC, as nbgrader keeps them
LITTER = b"\0\5\x16\7"  # how a file begins in which macOS keeps what belongs to another file


def instructors_notebook(assignment: str, tests: str = "corrected") -> NotebookNode:
    """An instructor's notebook. `tests`: whether the tests of ps2 are the first ones or the corrected ones."""
    words = [
        new_markdown_cell("# Words\n\n### Exercise 1: length"),
        nbgrader_cell("length", SOLUTION_LENGTH),
        nbgrader_cell("test_length", TEST_LENGTH, points=2),
        new_markdown_cell("### Exercise 2: shout"),
        nbgrader_cell("shout", SOLUTION_SHOUT),
        nbgrader_cell("test_shout", TEST_SHOUT, points=3),
    ]
    heaps, form = HEAPS[tests]
    test = TEST.format(heaps=heaps, found=form.format("smallest(heap)"), smallest=form.format("min(heap)"))
    essay = [
        new_markdown_cell("# Heaps\n\n### Exercise 1: the smallest"),
        nbgrader_cell("smallest", SOLUTION),
        nbgrader_cell("test_smallest", test, points=3),
        new_markdown_cell("### Exercise 2: why"),
        for_a_person("essay", "Say why.", 2),
    ]
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    return new_notebook(cells=essay if assignment == PS2 else words, metadata=metadata)


class Term:
    """The course's folder and its class."""

    def __init__(self, root: Path, students: Sequence[Student]) -> None:
        self.root, self.students = root, students
        self.exchange = root.parent / "exchange"
        self.notebooks: dict[tuple[str, str], bytes] = {}  # by assignment and answer
        self.secrets: dict[tuple[str, int], str] = {}  # of each attempt in the exchange, by student and number

    def make(self) -> None:
        """Write and release the assignments, and enter class and due dates. ps2 has the first tests."""
        self.root.mkdir(parents=True)
        (self.exchange / "term" / "inbound").mkdir(parents=True)
        (self.exchange / "term" / "feedback").mkdir()
        (self.root / "nbgrader_config.py").write_text(CONFIGURATION.format(exchange=str(self.exchange)))
        for name in ASSIGNMENTS:
            self.release(name, "first")
        with self.gradebook() as book:
            for student in self.students:
                book.update_or_create_student(student.id, first_name=student.first, last_name=student.last)
            for name, due in DUE.items():
                book.update_or_create_assignment(name, duedate=due)

    def release(self, assignment: str, tests: str = "corrected") -> None:
        path = self.root / "source" / assignment / f"{assignment}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(instructors_notebook(assignment, tests), path)
        with open_course(self.root) as course:
            generate_assignment(course, assignment)

    def gradebook(self) -> Gradebook:
        return Gradebook(f"sqlite:///{self.root}/gradebook.db")

    def notebook(self, assignment: str, handed_in: HandedIn) -> bytes:
        """The bytes of the notebook that a student hands in."""
        key = assignment, handed_in.answer
        if key not in self.notebooks:
            edits = tuple(Edit(*edit) for edit in TABLE["answers"][handed_in.answer])
            release, source = (
                nbformat.read(self.root / step / assignment / f"{assignment}.ipynb", 4)
                for step in ("release", "source")
            )
            answered = notebook_of(Pretender("", "", edits), release, source, {}, self.root)
            self.notebooks[key] = nbformat.writes(answered).encode()
        content = self.notebooks[key]
        return content[: len(content) // 2] if handed_in.unreadable else content

    def from_canvas(self, path: Path) -> None:
        """All submissions of ps1, downloaded from Canvas, unpacked and packed again with Finder."""
        members = []
        for student in self.students:
            row = student.rows[PS1]
            late = "LATE_" * bool(row.late or row.extension)
            person = "".join(filter(str.isalnum, f"{student.last}{student.first}".lower()))
            for number, it in enumerate(row.files):
                copy = f"-{number}" * bool(number)
                name = f"{person}_{late}{1000 + student.number}_{9000 + number}_{it.name or PS1}{copy}.ipynb"
                members.append((f"submissions/{name}", self.notebook(PS1, it)))
        litter = [(f"__MACOSX/submissions/._{name.partition('/')[2]}", LITTER) for name, _ in members]
        _pack(path, [*members, ("submissions/.DS_Store", LITTER), *litter])

    def from_moodle(self, path: Path, again: bool = False) -> None:
        """All submissions of ps2, downloaded from Moodle, unpacked and packed again with PowerShell. `again`: a second
        download, after some have handed in another time.
        """
        members = []
        for student in self.students:
            row = student.rows[PS2]
            for it in (row.again if again else ()) or row.files:
                place = f"submissions/{student.first} {student.last}_{2000 + student.number}_assignsubmission_"
                if it.typed:
                    members.append((f"{place}onlinetext/onlinetext.html", b"<p>I could not upload it.</p>"))
                elif it.packed:
                    members.append((f"{place}file/lessons.zip", _packed(PS2, self.notebook(PS2, it))))
                else:
                    members.append((f"{place}file/{it.name or PS2}.ipynb", self.notebook(PS2, it)))
        _pack(path, [(name.replace("/", "\\"), content) for name, content in members])

    def hand_in_by_exchange(self) -> None:
        """Set the due date of ps3, and let the class hand in: all attempts at once, with times of the last minutes."""
        now = datetime.now(UTC).replace(microsecond=0)
        with self.gradebook() as book:
            book.update_or_create_assignment(PS3, duedate=(now - timedelta(minutes=2)).replace(tzinfo=None))
        for student in self.students:
            for number, it in enumerate(student.rows[PS3].files):
                when = (
                    (now + timedelta(minutes=it.at)).astimezone(ZoneInfo(it.zone)).strftime("%Y-%m-%d %H:%M:%S.%f %Z")
                )
                self.secrets[student.id, number] = secret = secrets.token_hex(64)
                folder = self.exchange / "term" / "inbound" / f"{student.id}+{PS3}+{when}+{secrets.token_urlsafe(9)}"
                folder.mkdir()
                (folder / f"{PS3}.ipynb").write_bytes(self.notebook(PS3, it))
                (folder / "timestamp.txt").write_text(when)
                (folder / "submission_secret.txt").write_text(secret)

    def write_times(self, assignment: str) -> None:
        """Write the times that the platform shows beside the submissions, as an instructor does."""
        for student in self.students:
            folder = self.root / "submitted" / student.id / assignment
            if folder.is_dir():
                (folder / "timestamp.txt").write_text(student.rows[assignment].at)

    def mark_essays(self) -> None:
        """Give points for essays as Formgrader does."""
        with self.gradebook() as book:
            for student in self.students:
                if (points := student.rows[PS2].essay) is not None:
                    grade = book.find_grade("essay", PS2, PS2, student.id)
                    grade.manual_score, grade.needs_manual_grade = points, False
            book.db.commit()

    def canvas_gradebook(self, path: Path) -> Path:
        """The gradebook that Canvas exports."""
        head = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "ps1 (77)"]
        people = ([f"{it.last}, {it.first}", f"{1000 + it.number}", "", it.id, "A", ""] for it in self.students)
        return _table(path, [head, ["    Points Possible", "", "", "", "", "5"], *people])

    def moodle_worksheet(self, path: Path) -> Path:
        """The grading worksheet that Moodle exports."""
        head = ["Identifier", "Full name", "Email address", "Status", "Grade", "Maximum Grade", "Feedback comments"]
        numbers = ((it, f"Participant {2000 + it.number}") for it in self.students)
        return _table(path, [head, *([n, f"{it.first} {it.last}", it.id, "", "", "5.00", ""] for it, n in numbers)])


def _packed(assignment: str, notebook: bytes) -> bytes:
    """A student's own archive, as `pack()` makes it."""
    content = BytesIO()
    _pack(content, [(f"{assignment}/{assignment}.ipynb", notebook)])
    return content.getvalue()


def _pack(path: Path | BytesIO, members: Iterable[tuple[str, bytes]]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members:
            file.writestr(name, content)


def _table(path: Path, rows: Iterable[Sequence[str]]) -> Path:
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)
    return path


def injected(students: Sequence[Student]) -> Iterator[str]:
    """What the class does, with how many of it."""
    for assignment in ASSIGNMENTS:
        kinds = [student.rows[assignment].what for student in students]
        for what in dict.fromkeys(kinds):
            yield f"{assignment}  {kinds.count(what):4}  {what}"
