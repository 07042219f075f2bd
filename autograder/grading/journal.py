"""The journal of `autograder watch`, one JSON object per line, from which the next run continues a stopped one."""

from __future__ import annotations

import contextlib
import json
import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

NAME = "watch.jsonl"
SKIPPED = (
    "{}: these lines cannot be read and are skipped: {}. What they recorded is lost, so an answer may be released "
    "twice, and an attempt may not count for --attempts-per-day."
)


@dataclass(frozen=True)
class Answered:
    """What a student was told about one attempt, and when. `failing` is the first test that lost points, if any did;
    `open_points` were waiting for a person.
    """

    at: datetime
    points: float
    of_points: float
    failing: str
    open_points: float = 0.0


@dataclass
class Journal:
    """The journal of one assignment. `released`: what was last answered, for each student. `collected`: how many
    attempts were collected and count for the day's limit, for each student and day. `attempts`: the names of all that
    were collected, for each student. `answers`: all answers to each student, in order. `skipped`: the numbers of the
    lines that cannot be read.
    """

    path: Path
    released: dict[str, str] = field(default_factory=dict)
    answers: dict[str, list[Answered]] = field(default_factory=dict)
    collected: dict[tuple[str, str], int] = field(default_factory=dict)
    attempts: dict[str, list[str]] = field(default_factory=dict)
    skipped: list[int] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> Journal:
        """Read the journal so far. An incomplete last line is cut off, and other lines that cannot be read are skipped:
        a disk that was full or a crash may have left them.
        """
        journal = cls(path)
        content = path.read_bytes() if path.is_file() else b""
        whole = content[: content.rfind(b"\n") + 1]
        if whole != content:
            os.truncate(path, len(whole))
        for number, line in enumerate(whole.splitlines(), start=1):
            try:
                journal._take(json.loads(line))
            except (ValueError, TypeError, KeyError):
                journal.skipped.append(number)
        return journal

    def complaints(self) -> list[str]:
        """A sentence about the lines that cannot be read, if there are any."""
        return [SKIPPED.format(self.path, ", ".join(map(str, self.skipped)))] if self.skipped else []

    def add(self, event: str, student: str, **about: Any) -> None:
        """Write one event. It is on the disk when this returns; if this raises OSError, nothing of it is."""
        entry = {"at": now().isoformat(timespec="milliseconds"), "event": event, "student": student, **about}
        length = self.path.stat().st_size if self.path.exists() else 0
        try:
            with open(self.path, "a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError:
            with contextlib.suppress(FileNotFoundError):  # it could not even be made
                os.truncate(self.path, length)  # otherwise the next event would continue a line that broke off
            raise
        self._take(entry)

    def _take(self, entry: dict[str, Any]) -> None:
        student, at = entry["student"], datetime.fromisoformat(entry["at"])
        if entry["event"] == "released":
            points = entry["points"], entry["of_points"]
            answer = Answered(at, *points, entry["failing"], entry.get("open_points", 0.0))  # older ones say nothing
            self.released[student] = entry["of"]
            if not entry.get("back"):  # an earlier attempt came back, which is no new answer
                self.answers.setdefault(student, []).append(answer)
        elif entry["event"] == "collected":
            self.attempts.setdefault(student, []).append(entry["attempt"])
            if entry.get("counts", True):
                self.collected[student, day(at)] = self.collected.get((student, day(at)), 0) + 1


def now() -> datetime:
    return datetime.now(UTC)


def day(moment: datetime) -> str:
    """The date of a moment in this computer's time zone."""
    return moment.astimezone().date().isoformat()
