"""Writes results into nbgrader's gradebook: one process, many results in one transaction, nothing written twice.

Each result is compared with the gradebook, and only the differences are written. A table of our own in the same
database records which results were taken over, so it always agrees with the marks. Manual scores, extra credit and
comments that people have entered are never touched.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypeVar

from nbgrader.api import Base, new_uuid
from sqlalchemy import (
    Column,
    Connection,
    Engine,
    MetaData,
    String,
    Table,
    Text,
    bindparam,
    create_engine,
    delete,
    insert,
    select,
    update,
)
from sqlalchemy.exc import DBAPIError

from autograder.grading.course import CourseError
from autograder.grading.submission.assignments import Assignment, Earlier
from autograder.grading.submission.result import Result

TABLES = Base.metadata.tables
RESULTS = Table(
    "autograder_result",
    MetaData(),
    Column("assignment", String(128), primary_key=True),
    Column("student", String(128), primary_key=True),
    Column("fingerprint", String(64), nullable=False),
    Column("result", Text, nullable=False),
)
WAITS = (0.2, 0.5, 1, 2, 4, 8)  # seconds before the gradebook is tried again
CHUNK = 400  # SQLite limits the number of parameters
Answer = TypeVar("Answer")


@dataclass
class Entry:
    """The gradebook's rows of one submission, by notebook and cell name."""

    id: str
    extension: timedelta | None
    timestamp: datetime | None
    notebooks: dict[str, dict[str, Any]] = field(default_factory=dict)
    grades: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    comments: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)

    def earlier(self) -> Earlier:
        manual = {
            place: (row["manual_score"], row["extra_credit"])
            for place, row in self.grades.items()
            if row["manual_score"] is not None or row["extra_credit"] is not None
        }
        return Earlier(self.extension, manual)

    def has(self, result: Result) -> bool:
        """Whether the automatic scores are those of the result."""
        found = {place: row["auto_score"] for place, row in self.grades.items()}
        return found == {cell.place: cell.points for cell in result.cells}


class Marks:
    """The gradebook's rows of one assignment."""

    def __init__(self, db_url: str, assignment: Assignment) -> None:
        self.engine: Engine = create_engine(db_url, pool_pre_ping=True)
        self.assignment = assignment
        rows = assignment.rows
        self.id = rows["assignment"][0]["id"]
        self.notebooks = {row["id"]: row["name"] for row in rows["notebook"]}
        self.cells = {row["id"]: (self.notebooks[row["notebook_id"]], row["name"]) for row in rows["base_cell"]}
        self.graded = [row["id"] for row in [*rows["grade_cells"], *rows["task_cells"]]]
        self.commented = [row["id"] for row in [*rows["solution_cells"], *rows["task_cells"]]]
        self._patiently(lambda connection: RESULTS.create(connection, checkfirst=True))

    def close(self) -> None:
        self.engine.dispose()

    def kept(self, students: Sequence[str] | None = None) -> dict[str, tuple[str, str]]:
        """Student -> fingerprint and JSON of the result that was taken over last; of all students if none are given."""
        return self._patiently(lambda connection: self._kept(connection, students))

    def _kept(self, connection: Connection, students: Sequence[str] | None) -> dict[str, tuple[str, str]]:
        found: dict[str, tuple[str, str]] = {}
        own = RESULTS.c.assignment == self.assignment.name
        for which in [own] if students is None else [own & RESULTS.c.student.in_(part) for part in chunks(students)]:
            rows = connection.execute(select(RESULTS).where(which))
            found |= {row.student: (row.fingerprint, row.result) for row in rows}
        return found

    def entries(self, students: Sequence[str]) -> dict[str, Entry]:
        """The gradebook's rows of these students' submissions, by student."""
        return self._patiently(lambda connection: self._entries(connection, students))

    def write(self, results: Sequence[Result]) -> dict[str, Entry]:
        """Write results to the gradebook, in one transaction. Returns its rows afterwards, by student."""

        def transaction(connection: Connection) -> dict[str, Entry]:
            students = [result.student for result in results]
            self._add_missing(connection, results)
            entries = self._entries(connection, students)
            before = self._kept(connection, students)
            for result in results:
                earlier = Result.from_json(kept[1]) if (kept := before.get(result.student)) else None
                self._update(connection, entries[result.student], result, earlier)
            for part in chunks(students):
                about = (RESULTS.c.assignment == self.assignment.name) & RESULTS.c.student.in_(part)
                connection.execute(delete(RESULTS).where(about))
            connection.execute(insert(RESULTS), [self._row(result) for result in results])
            return entries

        return self._patiently(transaction) if results else {}

    def _row(self, result: Result) -> dict[str, str]:
        return {
            "assignment": self.assignment.name,
            "student": result.student,
            "fingerprint": result.fingerprint,
            "result": result.to_json(),
        }

    def _add_missing(self, connection: Connection, results: Sequence[Result]) -> None:
        """Add rows for new students and submissions, and for cells that have since been added to the assignment."""
        students = [result.student for result in results]
        known = set(_column(connection, "student", "id", "id", students))
        _insert(connection, "student", [{"id": student} for student in students if student not in known])
        entries = self._entries(connection, students)
        submissions = {student: entries[student].id if student in entries else new_uuid() for student in students}
        new = [student for student in students if student not in entries]
        rows: list[dict[str, Any]] = [
            {"id": submissions[student], "assignment_id": self.id, "student_id": student} for student in new
        ]
        _insert(connection, "submitted_assignment", rows)
        notebooks, grades, comments = [], [], []
        for student in students:
            entry = entries.get(student) or Entry(submissions[student], None, None)
            own = {name: row["id"] for name, row in entry.notebooks.items()}
            for notebook, name in self.notebooks.items():
                if name not in own:
                    own[name] = new_uuid()
                    row = {"id": own[name], "assignment_id": entry.id, "notebook_id": notebook, "flagged": False}
                    notebooks.append(row)
            grades += [
                {"id": new_uuid(), "notebook_id": own[self.cells[cell][0]], "cell_id": cell}
                | {"needs_manual_grade": False}
                for cell in self.graded
                if self.cells[cell] not in entry.grades
            ]
            comments += [
                {"id": new_uuid(), "notebook_id": own[self.cells[cell][0]], "cell_id": cell}
                for cell in self.commented
                if self.cells[cell] not in entry.comments
            ]
        for table, missing in (("submitted_notebook", notebooks), ("grade", grades), ("comment", comments)):
            _insert(connection, table, missing)

    def _update(self, connection: Connection, entry: Entry, result: Result, earlier: Result | None) -> None:
        """Write the scores, comments and penalties of one submission that differ from the result. `earlier` is the
        previous result.
        """
        unchanged = _unchanged_maxima(result, earlier)
        changes: dict[str, list[dict[str, Any]]] = {"grade": [], "comment": [], "submitted_notebook": []}
        for cell in result.cells:
            row = entry.grades.get(cell.place)
            if row is not None:
                same = cell.place in unchanged
                by_hand = result.status in ("failed", "died") or _is_for_a_person(row, cell.points, same)
                _note(changes["grade"], row, auto_score=cell.points, needs_manual_grade=by_hand)
        for notebook, name, text in result.comments:
            if (row := entry.comments.get((notebook, name))) is not None:
                _note(changes["comment"], row, auto_comment=text)
        for notebook, penalty in result.penalties:
            if (row := entry.notebooks.get(notebook)) is not None:
                _note(changes["submitted_notebook"], row, late_submission_penalty=penalty)
        for table, rows in changes.items():
            if rows:
                columns = [name for name in rows[0] if name != "key"]
                values: dict[str, Any] = {name: bindparam(name) for name in columns}
                connection.execute(
                    update(TABLES[table]).where(TABLES[table].c.id == bindparam("key")).values(values), rows
                )
        timestamp = datetime.fromisoformat(result.timestamp) if result.timestamp else None
        if (timestamp or result.handed_in) and timestamp != entry.timestamp:  # not that of an earlier submission
            table = TABLES["submitted_assignment"]
            connection.execute(update(table).where(table.c.id == entry.id).values(timestamp=timestamp))

    def _entries(self, connection: Connection, students: Sequence[str]) -> dict[str, Entry]:
        found: dict[str, Entry] = {}
        for part in chunks(students):
            found |= self._some_entries(connection, part)
        return found

    def _some_entries(self, connection: Connection, students: Sequence[str]) -> dict[str, Entry]:
        submitted, notebook = TABLES["submitted_assignment"], TABLES["submitted_notebook"]
        query = select(submitted).where(submitted.c.assignment_id == self.id, submitted.c.student_id.in_(students))
        by_student = {row.student_id: Entry(row.id, row.extension, row.timestamp) for row in connection.execute(query)}
        by_id = {entry.id: entry for entry in by_student.values()}
        place: dict[str, tuple[Entry, str]] = {}
        for row in connection.execute(select(notebook).where(notebook.c.assignment_id.in_(by_id))):
            name = self.notebooks[row.notebook_id]
            by_id[row.assignment_id].notebooks[name] = dict(row._mapping)
            place[row.id] = by_id[row.assignment_id], name
        for part in chunks(list(place)):
            for table in ("grade", "comment"):
                for row in connection.execute(select(TABLES[table]).where(TABLES[table].c.notebook_id.in_(part))):
                    if row.cell_id in self.cells:
                        entry = place[row.notebook_id][0]
                        rows = entry.grades if table == "grade" else entry.comments
                        rows[self.cells[row.cell_id]] = dict(row._mapping)
        return by_student

    def _patiently(self, action: Callable[[Connection], Answer]) -> Answer:
        """Run a transaction; retry it if the database is briefly busy or gone. It happens as a whole or not at all."""
        for wait in (*WAITS, None):
            try:
                with self.engine.begin() as connection:
                    return action(connection)
            except DBAPIError as error:
                reason = str(error.orig).strip().splitlines()[0]
                if wait is None or "full" in reason or not _may_pass(error):
                    raise CourseError(
                        f"The gradebook cannot be written: {reason}. What was graded is kept; fix this, then run the "
                        "same command again."
                    ) from error
                self.engine.dispose()
                time.sleep(wait)
        raise AssertionError("unreachable")


def chunks(items: Sequence[str]) -> Iterable[Sequence[str]]:
    return (items[start : start + CHUNK] for start in range(0, len(items), CHUNK))


def _may_pass(error: DBAPIError) -> bool:
    return error.connection_invalidated or type(error).__name__ in (
        "OperationalError",
        "InterfaceError",
        "IntegrityError",
    )


def _is_for_a_person(row: dict[str, Any], auto: float | None, same: bool) -> bool:
    """Whether a person has to grade a cell, or to look again at one that was marked by hand. nbgrader asks for that
    each time it grades; here it happens only if the submission, the maximum points or the automatic score has changed.
    `same`: neither the submission nor the maximum points have changed.
    """
    if row["manual_score"] is None:
        return auto is None
    return bool(row["needs_manual_grade"]) if same and row["auto_score"] == auto else True


def _unchanged_maxima(result: Result, earlier: Result | None) -> set[tuple[str, str]]:
    """The cells that had the same maximum points when this same submission was graded before. The result of an older
    release does not say which submission it belongs to.
    """
    if earlier is None or earlier.handed_in != result.handed_in or not result.handed_in:
        return set()
    before = {cell.place: cell.max_points for cell in earlier.cells}
    return {cell.place for cell in result.cells if before.get(cell.place) == cell.max_points}


def _note(changes: list[dict[str, Any]], row: dict[str, Any], **values: Any) -> None:
    if any(row[name] != value for name, value in values.items()):
        row.update(values)
        changes.append({"key": row["id"], **values})


def _insert(connection: Connection, table: str, rows: list[dict[str, Any]]) -> None:
    if rows:
        connection.execute(insert(TABLES[table]), rows)


def _column(connection: Connection, table: str, column: str, where: str, values: Sequence[str]) -> list[Any]:
    found: list[Any] = []
    for part in chunks(values):
        query = select(TABLES[table].c[column]).where(TABLES[table].c[where].in_(part))
        found += connection.execute(query).scalars()
    return found
