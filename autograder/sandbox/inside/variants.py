"""Which of several variants of a question a student has.

`autograder.student.variant` and its stand-in inside the sandbox both use this file, so that both choose the same
variant. Standard library only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TypeVar

Choice = TypeVar("Choice")


def plain_name(student: str) -> str:
    """A student's name without differences in case and outer spaces. Raises TypeError if it is not text."""
    if type(student) is not str:
        raise TypeError("variant() needs your name as text, in quotes")
    return student.strip().casefold()


def chosen(question: str, choices: Sequence[Choice], student: str) -> Choice:
    """One of the choices: always the same one for a question and a student. Raises ValueError if there are none."""
    if not choices:
        raise ValueError(f"variant({question!r}, ...) needs at least one choice.")
    digest = hashlib.sha256(f"{question}\0{plain_name(student)}".encode("utf-8", "replace")).digest()
    return choices[int.from_bytes(digest[:8], "big") % len(choices)]
