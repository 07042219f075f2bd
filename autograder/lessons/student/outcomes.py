"""What came out of a cell that asks for a prediction, so that the prediction gets a verdict.

`outcomes_NN.toml` beside the notebook has an expression for each question. It is evaluated when the cell has run, with
the notebook's names: so the verdict comes from what the student's own cells computed, and no cell shows the answer.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from autograder.lessons.builder.lesson_files import OUTCOMES
from autograder.lessons.student.stand_in import renamed
from autograder.runs.errors import CheckFailed

NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:,\d{3})*\.?\d*(?:e[-+]?\d+)?")


class Heard:
    """A stream that remembers what it passes on."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream
        self.parts: list[str] = []

    def write(self, text: str) -> int:
        self.parts.append(text)
        return self.stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def tell_when_done(asked: Any, shell: Any, folder: Path) -> None:
    """Set `asked.outcome`, a text, when the running cell has ended without an error or with a check that failed, if the
    files in the folder say what answers `asked.question`.
    """
    expression = _expressions(folder).get(asked.question)
    if expression is None:
        return
    sys.stdout = heard = Heard(sys.stdout)  # type: ignore[assignment]

    def tell(result: Any) -> None:
        shell.events.unregister("post_run_cell", tell)
        if isinstance(sys.stdout, Heard):  # the last one of a cell that asks twice
            sys.stdout = sys.stdout.stream
        if result.success or isinstance(result.error_in_exec, CheckFailed):
            asked.outcome = outcome(expression, shell.user_ns, "".join(heard.parts))

    shell.events.register("post_run_cell", tell)


def outcome(expression: str, names: Mapping[str, Any], printed: str) -> str:
    """What an expression of a file of outcomes says, in words; empty if it cannot be told, as in a cell that a student
    has rewritten.

    Besides `names`, it can use `printed`, the text that the cell has printed, and `rows`, its lines; `line(words)`, the
    rest of the line where these words stand first; `numbers(words)`, the numbers there, or all without `words`; and
    `about(number)`, for what may come out a little different each time.
    """

    def line(words: str) -> str:
        if words not in printed:
            raise LookupError(f"the cell has not printed {words!r}")
        return printed.partition(words)[2].partition("\n")[0]

    def numbers(words: str = "") -> list[float]:
        return [float(found.replace(",", "")) for found in NUMBER.findall(line(words) if words else printed)]

    known = {"printed": printed, "rows": printed.splitlines(), "line": line, "numbers": numbers, "about": about}
    try:
        return worded(eval(f"({expression}\n)", {**names, **known}))
    except Exception:
        return ""


def worded(value: Any) -> str:
    """A value as a learner would type it: `[2.0, True]` as `2, yes`."""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        return ", ".join(map(worded, value))
    if hasattr(value, "tolist"):
        return worded(value.tolist())
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def about(value: float) -> str:
    """A number that may come out a little different each time: a guess is right within a quarter of it."""
    return f"about {float(f'{value:.2g}'):g}"


def _expressions(folder: Path) -> dict[str, str]:
    """question -> expression, of the files of outcomes in a folder."""
    found: dict[str, str] = {}
    for path in folder.glob(OUTCOMES.format("*")):
        found |= tomllib.loads(renamed(path.read_text(encoding="utf-8")))
    return found
