"""Which bugs a message names: read from its words, because those are what students and instructors read."""

from __future__ import annotations

from autograder.bugs.bank import BUGS

LIKELY = "Likely: "
SEVERAL = "one of these: "


def named_bugs(message: str) -> list[str]:
    """The bugs of the bank that a message names with certainty, in its order, each once."""
    names: dict[str, None] = {}
    for diagnosis in message.split(LIKELY)[1:]:
        if not diagnosis.startswith(SEVERAL):
            names |= dict.fromkeys(bug.name for bug in BUGS if bug.explanation in diagnosis)
    return list(names)
