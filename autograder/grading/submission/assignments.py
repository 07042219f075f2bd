"""What a worker has to know about an assignment and a submission, as plain data that can travel to another machine.

A worker never opens the course's gradebook: it gets the assignment's rows, and sends back a result. So only one process
writes marks, and the fingerprint of everything that goes into a result says when it need not be made again.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

from autograder.files import files_and_links
from autograder.grading.errors import MACHINE_FAULTS
from autograder.nbgrader_plugins.configuration import Settings
from autograder.notebooks.verdicts import SolutionTrial

LARGEST = 200_000_000  # bytes of one submission; nbgrader's own limit for handing in is half of it


class UnusableError(ValueError):
    """A submission that cannot be graded as it is: it is too large, or one of its files cannot be read."""


@dataclass(frozen=True)
class Assignment:
    """One assignment of a course: its rows of the gradebook, its files, and how to grade.

    `usual`: the course leaves nbgrader's steps of grading as they are. `penalties`: it configures penalties for late
    submissions. `ignored`: name patterns of files that do not count. `trials`: how its own solutions were judged, by
    notebook, once that is known.
    """

    name: str
    rows: Mapping[str, list[dict[str, Any]]]
    files: Mapping[str, bytes]
    config: bytes
    described: str
    grader: str
    settings: Settings
    ignored: tuple[str, ...] = ()
    usual: bool = False
    penalties: bool = False
    trials: Mapping[str, SolutionTrial] = field(default_factory=dict)

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything here that a result depends on. No cell can be left out, because cells share names."""
        cells = {row["id"]: row["name"] for row in self.rows["notebook"]}
        known = [
            [cells[row["notebook_id"]], *(row[key] for key in ("name", "cell_type", "locked", "source", "checksum"))]
            for row in self.rows["source_cell"]
        ]
        names = {row["id"]: row["name"] for row in self.rows["base_cell"]}
        points = [[names[row["id"]], row["max_score"]] for row in self.rows["grade_cells"] + self.rows["task_cells"]]
        notebooks = [[row["name"], row["kernelspec"]] for row in self.rows["notebook"]]
        due = [str(row["duedate"]) for row in self.rows["assignment"]]
        about = [self.name, sorted(known), sorted(points), sorted(notebooks), due, self.grader, self.settings.unsafe]
        digest = hashlib.sha256(f"{json.dumps(about)}\0{self.described}\0".encode() + self.settings.secret)
        return _with_files(digest, self.files, ())

    @property
    def due(self) -> datetime | None:
        """The due date, in UTC without a zone."""
        due: datetime | None = self.rows["assignment"][0]["duedate"]
        return due

    @property
    def notebooks(self) -> list[str]:
        return sorted(row["name"] for row in self.rows["notebook"])


@dataclass(frozen=True)
class Earlier:
    """What people have entered about a submission in the gradebook. Its late penalty depends on that."""

    extension: timedelta | None = None
    manual: Mapping[tuple[str, str], tuple[float | None, float | None]] = field(default_factory=dict)


@dataclass(frozen=True)
class Submission:
    """What one student handed in. Links are recorded by name and not followed."""

    student: str
    files: Mapping[str, bytes]
    links: tuple[str, ...] = ()
    earlier: Earlier = Earlier()

    @cached_property
    def digest(self) -> str:
        """A hash of what was handed in, and of nothing else."""
        return _with_files(hashlib.sha256(), self.files, self.links)

    def fingerprint(self, assignment: Assignment) -> str:
        return hashlib.sha256(f"{assignment.fingerprint} {self.earlier.extension} {self.digest}".encode()).hexdigest()


@dataclass(frozen=True)
class WorkFolders:
    """Folders as nbgrader names them, below a root of the worker's own."""

    root: Path
    assignment: str

    def folder(self, step: str, student: str) -> Path:
        return self.root / step / student / self.assignment

    def empty(self) -> None:
        """Remove what the last submission has left."""
        for step in ("submitted", "autograded"):
            shutil.rmtree(self.root / step, ignore_errors=True)


def read_submission(folder: Path, student: str, earlier: Earlier | None = None) -> Submission:
    """Read a submission's folder. Raises `UnusableError`, or OSError if the machine is at fault."""
    try:
        files, links = _contents(folder)
    except OSError as error:
        if error.errno in MACHINE_FAULTS:
            raise
        file = Path(os.fsdecode(error.filename or "")).name[:60]
        raise UnusableError(f"A file of the submission cannot be read. {error.strerror}: {file}") from error
    return Submission(student, files, links, earlier or Earlier())


def _contents(folder: Path) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """The files below a folder by their relative names, and the names of links."""
    files, links, room = {}, [], LARGEST
    for name, link in sorted(files_and_links(folder)):
        if link:
            links.append(name)
            continue
        room -= (folder / name).stat().st_size
        if room < 0:
            raise UnusableError(f"The submission is larger than {LARGEST // 1_000_000} MB.")
        files[name] = (folder / name).read_bytes()
    return files, tuple(links)


def _with_files(digest: Any, files: Mapping[str, bytes], links: tuple[str, ...]) -> str:
    for name, content in sorted(files.items()):
        digest.update(f"\0{name}\0{len(content)}\0".encode("utf-8", "surrogateescape") + content)
    digest.update("\0".join(sorted(links)).encode("utf-8", "surrogateescape"))
    return digest.hexdigest()
