"""What a worker has to know of an assignment and of a submission, as plain data that can travel to another machine.

A worker never opens the gradebook of the course: it gets the assignment's rows of it, and sends back a result. So one
process alone writes marks, and the fingerprint of all that goes into a result says when it need not be made again.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import platform
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import cloudpickle
from nbgrader.api import Base
from sqlalchemy import Connection, select

import autograder
import mini_autograd
from autograder.grading.courses import Course, CourseError
from autograder.nbgrader_plugins.course_secret import course_secret

LARGEST = 200_000_000  # bytes of one submission; nbgrader's own limit for handing in is half of it
LIBRARIES = ("torch", "numpy", "nbgrader", "nbconvert", "nbformat")
TABLES = Base.metadata.tables


class TooLargeError(ValueError):
    """A submission that nobody needs to read to know that it is none."""


@dataclass(frozen=True)
class Assignment:
    """One assignment of a course: its rows of the gradebook, its files, and how to grade."""

    name: str
    rows: Mapping[str, list[dict[str, Any]]]
    files: Mapping[str, bytes]
    config: bytes
    described: str
    secret: bytes
    grader: str
    unsafe: bool = False

    @cached_property
    def fingerprint(self) -> str:
        """Of everything here that a result depends on. Whole lessons: cells share names, so none can be left out."""
        cells = {row["id"]: row["name"] for row in self.rows["notebook"]}
        known = [
            [cells[row["notebook_id"]], *(row[key] for key in ("name", "cell_type", "locked", "source", "checksum"))]
            for row in self.rows["source_cell"]
        ]
        names = {row["id"]: row["name"] for row in self.rows["base_cell"]}
        points = [[names[row["id"]], row["max_score"]] for row in self.rows["grade_cells"] + self.rows["task_cells"]]
        notebooks = [[row["name"], row["kernelspec"]] for row in self.rows["notebook"]]
        due = [str(row["duedate"]) for row in self.rows["assignment"]]
        about = [self.name, sorted(known), sorted(points), sorted(notebooks), due, self.grader, self.unsafe]
        digest = hashlib.sha256(f"{json.dumps(about)}\0{self.described}\0".encode() + self.secret)
        return _with_files(digest, self.files, ())

    @property
    def notebooks(self) -> list[str]:
        return sorted(row["name"] for row in self.rows["notebook"])


@dataclass(frozen=True)
class Earlier:
    """What people have said about a submission in the gradebook, on which its late penalty depends."""

    extension: datetime | None = None
    manual: Mapping[tuple[str, str], tuple[float | None, float | None]] = field(default_factory=dict)


@dataclass(frozen=True)
class Submission:
    """What one student handed in. Links are known by name; what they point to is not followed."""

    student: str
    files: Mapping[str, bytes]
    links: tuple[str, ...] = ()
    earlier: Earlier = Earlier()

    def fingerprint(self, assignment: Assignment) -> str:
        digest = hashlib.sha256(f"{assignment.fingerprint} {self.earlier.extension}".encode())
        return _with_files(digest, self.files, self.links)


def read_assignment(course: Course, name: str, *, unsafe: bool = False) -> Assignment:
    """Everything that grading needs, read once per run."""
    folder = course.folder("source", ".", name)
    files = {path: (folder / path).read_bytes() for path, link in sorted(_walk(folder)) if not link}
    with course.gradebook() as gradebook, gradebook.engine.connect() as connection:
        rows = rows_of(connection, name)
    try:
        config = cloudpickle.dumps(course.app.config)
    except Exception as error:
        raise CourseError(f"The course's configuration cannot be handed to the workers: {error}") from error
    secret = course_secret(course.coursedir)
    return Assignment(name, rows, files, config, described(course), secret, grader_version(), unsafe)


def described(course: Course) -> str:
    """The configuration as text: its values, and the file with the code of functions that it may hold."""
    values = {name: value for name, value in course.app.config.items() if name != "CourseDirectory"}
    text = json.dumps(values, sort_keys=True, default=lambda value: getattr(value, "__qualname__", str(type(value))))
    path = course.root / "nbgrader_config.py"
    return text + (path.read_text(errors="replace") if path.is_file() else "")


def rows_of(connection: Connection, name: str) -> dict[str, list[dict[str, Any]]]:
    """The rows of the gradebook that define an assignment."""

    def rows(table: str, column: str, values: list[Any]) -> list[dict[str, Any]]:
        query = select(TABLES[table]).where(TABLES[table].c[column].in_(values))
        return [dict(row._mapping) for row in connection.execute(query)]

    found = {"assignment": rows("assignment", "name", [name])}
    found["course"] = rows("course", "id", [row["course_id"] for row in found["assignment"]])
    found["notebook"] = rows("notebook", "assignment_id", [row["id"] for row in found["assignment"]])
    notebooks = [row["id"] for row in found["notebook"]]
    for table in ("source_cell", "base_cell"):
        found[table] = rows(table, "notebook_id", notebooks)
    cells = [row["id"] for row in found["base_cell"]]
    for table in ("grade_cells", "solution_cells", "task_cells"):
        found[table] = rows(table, "id", cells)
    return found


def read_submission(folder: Path, student: str, earlier: Earlier | None = None) -> Submission:
    """What lies in a submission's folder. Raises `TooLargeError`."""
    files, links, room = {}, [], LARGEST
    for name, link in sorted(_walk(folder)):
        if link:
            links.append(name)
            continue
        room -= (folder / name).stat().st_size
        if room < 0:
            raise TooLargeError(f"The submission is larger than {LARGEST // 1_000_000} MB.")
        files[name] = (folder / name).read_bytes()
    return Submission(student, files, tuple(links), earlier or Earlier())


@cache
def grader_version() -> str:
    """A hash of the code that decides on marks, and of the libraries that it compares with."""
    digest = hashlib.sha256()
    for package in (autograder, mini_autograd):
        root = Path(next(iter(package.__path__)))
        for path in sorted(root.rglob("*.py")):
            if path.relative_to(root).parts[0] not in ("grading", "lessons", "widgets", "cli.py"):
                digest.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes() + b"\0")
    digest.update(platform.python_version().encode())
    for library in LIBRARIES:
        digest.update(f"{library} {importlib.metadata.version(library)}".encode())
    return digest.hexdigest()


def _with_files(digest: Any, files: Mapping[str, bytes], links: tuple[str, ...]) -> str:
    for name, content in sorted(files.items()):
        digest.update(f"\0{name}\0{len(content)}\0".encode("utf-8", "surrogateescape") + content)
    digest.update("\0".join(sorted(links)).encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _walk(folder: Path) -> Iterator[tuple[str, bool]]:
    """The files below a folder and whether each is a link. Devices and pipes are left out."""
    for directory, folders, files in os.walk(folder):
        for entry in [*folders, *files]:
            path = Path(directory, entry)
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode) or stat.S_ISREG(mode):
                yield str(path.relative_to(folder)), stat.S_ISLNK(mode)
