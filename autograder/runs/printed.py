"""Cuts what a student's code prints while a check runs it.

A check runs the code many times, so one `print` in a loop can give thousands of lines. They would bury the card, and
fill the memory of the browser.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any

from autograder.runs.context import current

MOST_LINES, MOST_CHARACTERS = 50, 10_000
LEFT_OUT = "[Your code printed {} more. They are left out here, so that you see the card below.]"


class Printed:
    """How much a check has printed so far, on both streams together, and how much of it was left out."""

    def __init__(self) -> None:
        self.lines, self.characters = MOST_LINES, MOST_CHARACTERS  # that there is still room for
        self.lines_left_out = self.characters_left_out = 0

    def cut(self, text: str) -> str:
        """The part of a text that there is room for. After the first cut there is no room any more."""
        kept = "".join(text.splitlines(keepends=True)[: self.lines])[: self.characters]
        self.lines -= kept.count("\n")
        self.characters -= len(kept)
        if left_out := text[len(kept) :]:
            self.lines = 0
            self.lines_left_out += left_out.count("\n")
            self.characters_left_out += len(left_out)
        return kept

    def note(self) -> str:
        """One line that says how much was left out, if anything was."""
        if not self.characters_left_out:
            return ""
        lines, characters = self.lines_left_out, self.characters_left_out
        return LEFT_OUT.format(f"{lines:,} lines" if lines > 1 else f"{characters:,} characters")


class CutStream:
    """A stream that writes only what there is room for, and is otherwise the stream behind it."""

    def __init__(self, stream: Any, printed: Printed) -> None:
        self.stream, self.printed = stream, printed

    def write(self, text: str) -> int:
        if kept := self.printed.cut(text):
            self.stream.write(kept)
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def printed_in_short() -> Iterator[None]:
    """A context for one check. What is printed in it is cut, and a last line says how much was left out. While grading,
    the judge has limits of its own, and nothing is cut here."""
    if current().graded:
        yield
        return
    printed = Printed()
    out: Any = CutStream(sys.stdout, printed)
    error: Any = CutStream(sys.stderr, printed)
    try:
        with redirect_stdout(out), redirect_stderr(error):
            yield
    finally:
        if note := printed.note():
            print(f"\n{note}")
