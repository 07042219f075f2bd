"""Which bugs of the bank a verdict names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def bugs_of(note: Mapping[str, Any]) -> tuple[str, ...]:
    """The bugs that a judge's note on a test cell is certain of, by name."""
    names = note.get("bugs")
    return tuple(name for name in names if isinstance(name, str)) if isinstance(names, list | tuple) else ()
