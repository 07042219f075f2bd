"""Keeps finished results until they are in the gradebook, in a folder per student that is put there in one step.

A result is complete or not there at all, so a run may be killed at any moment: the next run finds what was done.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from autograder.grading.errors import CourseError
from autograder.grading.submission.result import Result

FOLDER = ".autograder"
PATIENCE = 2.0  # seconds to wait for a lock that another process holds
BUSY = (
    "Another `autograder grade` or `autograder watch` is grading {!r}. Wait until it has ended; `watch` grades what "
    "arrives by itself, and ends with Ctrl-C."
)
RESULT, FILES = "result.json", "files"


@dataclass(frozen=True)
class Spool:
    """The waiting results of one assignment, in the course's `.autograder` folder."""

    root: Path

    @classmethod
    def of(cls, course: Path, assignment: str) -> Spool:
        return cls(course / FOLDER / assignment)

    @property
    def done(self) -> Path:
        return self.root / "done"

    @property
    def work(self) -> Path:
        return self.root / "work"

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Allow only one run of an assignment at a time, and remove what a killed run has left half done."""
        self.root.mkdir(parents=True, exist_ok=True)
        with open(self.root / "lock", "w") as file:
            if not _locked(file):
                raise CourseError(BUSY.format(self.root.name))
            shutil.rmtree(self.work, ignore_errors=True)
            self.work.mkdir(exist_ok=True)
            self.done.mkdir(exist_ok=True)
            yield
            shutil.rmtree(self.work, ignore_errors=True)

    @contextlib.contextmanager
    def one_at_a_time(self) -> Iterator[None]:
        """Let only one worker of the run in at a time; the others wait."""
        with open(self.root / "turn", "w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def put(self, result: Result, files: Path | None) -> None:
        """Keep a result, and take over its autograded folder."""
        part = Path(tempfile.mkdtemp(prefix="part-", dir=self.work))
        part.chmod(0o755)
        if files is not None:
            shutil.move(files, part / FILES)
        (part / RESULT).write_text(result.to_json())
        target = self.done / result.student
        if target.exists():
            os.rename(target, tempfile.mkdtemp(prefix="old-", dir=self.work))
        os.rename(part, target)

    def get(self, student: str) -> Result | None:
        """The student's waiting result, or None."""
        try:
            return Result.from_json((self.done / student / RESULT).read_text())
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def waiting(self) -> list[str]:
        return sorted(path.name for path in self.done.iterdir())

    def place(self, student: str, target: Path) -> None:
        """Put the autograded folder of a result in its place. Doing it again changes nothing."""
        files = self.done / student / FILES
        if not files.is_dir():
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists() or target.is_symlink():
            os.rename(target, Path(tempfile.mkdtemp(prefix="old-", dir=self.work)) / "old")
        shutil.move(files, target)

    def remove(self, student: str) -> None:
        shutil.rmtree(self.done / student, ignore_errors=True)


def _locked(file: TextIO) -> bool:
    """Whether the lock is ours, tried for a while: a process that a killed run was just starting holds the run's lock
    for a moment longer, until it executes another program. Raises CourseError if files cannot be locked.
    """
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            if time.monotonic() > deadline:
                return False
        except OSError as error:
            said = f"{file.name} cannot be locked ({error.strerror}). Put the course on a disk that has file locks."
            raise CourseError(said) from error
        time.sleep(0.05)
