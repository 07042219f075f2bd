"""Which bugs of the bank a verdict names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from autograder.bugs.bank import BUGS

LIKELY = "Likely: "
SEVERAL = "one of these: "


def bugs_of(note: Mapping[str, Any]) -> tuple[str, ...]:
    """The bugs that a judge's note on a test cell names: as data where it has them, else in its message."""
    names = note.get("bugs")
    if isinstance(names, list | tuple):
        return tuple(name for name in names if isinstance(name, str))
    return tuple(named_bugs(str(note.get("message") or "")))


def named_bugs(message: str) -> list[str]:
    """The bugs of the bank that a message names with certainty, in its order, each once."""
    names: dict[str, None] = {}
    for diagnosis in message.split(LIKELY)[1:]:
        if not diagnosis.startswith(SEVERAL):
            names |= dict.fromkeys(bug.name for bug in BUGS if bug.explanation in diagnosis)
    return list(names)
