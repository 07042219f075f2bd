"""The ways in which a check stops a cell: the student is wrong, or interrupts, or the lesson is wrong."""

from __future__ import annotations

import re
from dataclasses import dataclass
from traceback import clear_frames

SHAPE = re.compile(r"\(\d*(?:,\s*\d*)*\)")


class CheckFailed(AssertionError):  # noqa: N818  (it is what a failed check is called in a lesson)
    """The student's result is wrong. An AssertionError, so that nbgrader and pytest read it as a failed test."""

    def _render_traceback_(self) -> list[str]:
        """IPython shows this instead of a traceback: the card above the error has said everything."""
        return [f"CheckFailed: {self}"]


class Interrupted(KeyboardInterrupt):
    """A check was stopped by the student (the square button) while it waited for the student's code."""

    def _render_traceback_(self) -> list[str]:
        """IPython shows this instead of a traceback, which would lead through the check and not to the loop."""
        return [f"KeyboardInterrupt: {self}"]


class TookTooMuch(Interrupted):
    """A student's code was stopped because it took too long, or too much memory. No check takes it for an answer."""

    said = "it took too much"

    def __str__(self) -> str:
        return self.said

    def _render_traceback_(self) -> list[str]:
        clear_frames(self.__traceback__)  # they hold what has filled the memory
        return [f"{type(self).__name__}: {self}"]


class LessonError(Exception):
    """The check itself is faulty: its trusted engines disagree, or it would pass anything. Not the student's fault."""


@dataclass(frozen=True)
class Raised:
    """An exception as far as two of them can be compared: the name of its class, and its message."""

    kind: str
    message: str

    def is_like(self, other: Raised) -> bool:
        """Whether both come from the same operation on the same shapes, whatever the order of its inputs."""
        return self._parts() == other._parts()

    def _parts(self) -> tuple[str, str, list[str]]:
        return self.kind, SHAPE.sub("", self.message).strip(), sorted(SHAPE.findall(self.message))
