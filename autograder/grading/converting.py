"""Runs nbgrader's converters, and says in nbgrader's own words why one failed.

nbgrader logs the reason as text in a traceback, and raises an exception that refers to "the above traceback". So the
reason is taken from the exceptions that are being handled while it logs.
"""

from __future__ import annotations

import logging
import re
import sys
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nbgrader.converters.base import BaseConverter

LONGEST = 1000  # characters of a reason in one line
CONVERTING = "Converting notebook %s"  # nbgrader logs this with the path, before it converts
CONVERTED = "Setting destination file permissions to %s"  # nbgrader logs this when all notebooks are converted
SAYS_NOTHING = re.compile(r"There was an error processing assignment|Please see the ")
MEANT_FOR_PEOPLE = (OSError, RuntimeError, ValueError)  # of Python's own exceptions; the others need their names
COLORS = re.compile(r"\x1b\[[\d;]*m")


def in_one_line(reason: str) -> str:
    """A reason for a table, or for a list of many."""
    return " ".join(reason.split())[:LONGEST]


def converted(converter: BaseConverter) -> str:
    """Run a converter. Returns why it failed, whole, or nothing if it did not fail."""
    reasons = _Reasons()
    converter.log.addHandler(reasons)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module=r"nbgrader|nbformat|sqlalchemy|nbconvert")
            converter.start()
    except (Exception, SystemExit) as error:
        reasons.add(*_words(error))
        return reasons.text() or f"{type(error).__name__}: {error}"
    finally:
        converter.log.removeHandler(reasons)
    return ""


class _Reasons(logging.Handler):
    """Collects what is logged as an error, and the words of the exceptions that are being handled at that moment."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self.notebook = ""

    def emit(self, record: logging.LogRecord) -> None:
        if record.msg == CONVERTING and isinstance(record.args, tuple):
            self.notebook = Path(str(record.args[0])).name
        elif record.msg == CONVERTED:
            self.notebook = ""
        if record.levelno >= logging.ERROR:
            error, message = sys.exc_info()[1], record.getMessage()
            told = _words(error) if error is not None else ()
            self.add(*told, *([] if error is not None and message == traceback.format_exc() else [message]))

    def add(self, *reasons: str) -> None:
        """Keep reasons that say something new."""
        for reason in filter(None, map(str.strip, reasons)):
            if not SAYS_NOTHING.match(reason) and not any(
                reason.casefold() in known.casefold() for known in self.found
            ):
                self.found.append(reason)

    def text(self) -> str:
        found = COLORS.sub("", "\n".join(self.found))
        return f"{self.notebook}: {found}" if self.notebook and found else found


def _words(error: BaseException) -> Iterator[str]:
    """What an exception says, after the exceptions that led to it."""
    before = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if before is not None:
        yield from _words(before)
    said = str(getattr(error, "message", "") or error)  # `message`: jsonschema's, without the whole schema
    own = type(error).__module__ == "builtins" and not isinstance(error, MEANT_FOR_PEOPLE)
    yield f"{type(error).__name__}: {said}" if own and said else said
