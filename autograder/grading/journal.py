"""The journal of `autograder watch`, one JSON object per line, from which the next run continues a stopped one."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

NAME = "watch.jsonl"


@dataclass(frozen=True)
class Answered:
    """What a student was told about one attempt, and when. `failing` is the first test that lost points, if any did."""

    at: datetime
    points: float
    of_points: float
    failing: str


@dataclass
class Journal:
    """The journal of one assignment. `released`: what was last answered, for each student. `collected`: how many
    attempts were collected, for each student and day. `answers`: all answers to each student, in order.
    """

    path: Path
    released: dict[str, str] = field(default_factory=dict)
    answers: dict[str, list[Answered]] = field(default_factory=dict)
    collected: dict[tuple[str, str], int] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Journal:
        """Read the journal so far. An incomplete last line is cut off."""
        journal = cls(path)
        text = path.read_text("utf-8") if path.is_file() else ""
        whole = text[: text.rfind("\n") + 1]
        if whole != text:
            with open(path, "r+", encoding="utf-8") as file:
                file.truncate(len(whole.encode()))
        for line in whole.splitlines():
            journal._take(json.loads(line))
        return journal

    def add(self, event: str, student: str, **about: Any) -> None:
        """Write one event. It is on the disk when this returns."""
        entry = {"at": now().isoformat(timespec="milliseconds"), "event": event, "student": student, **about}
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self._take(entry)

    def _take(self, entry: dict[str, Any]) -> None:
        if entry["event"] == "released":
            student, at = entry["student"], datetime.fromisoformat(entry["at"])
            self.released[student] = entry["of"]
            answer = Answered(at, entry["points"], entry["of_points"], entry["failing"])
            self.answers.setdefault(student, []).append(answer)
        elif entry["event"] == "collected":
            key = entry["student"], day(datetime.fromisoformat(entry["at"]))
            self.collected[key] = self.collected.get(key, 0) + 1


def now() -> datetime:
    return datetime.now(UTC)


def day(moment: datetime) -> str:
    """The date of a moment in this computer's time zone."""
    return moment.astimezone().date().isoformat()
