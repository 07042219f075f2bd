"""What a failed test says to the student: short, in plain language, and without anything hidden."""

from __future__ import annotations

import re
from typing import Any

from autograder.cards.check_report import LIKELY, Report
from autograder.judge.outside.running import CellOutcome, FailedInside, TestTimeout
from autograder.notebooks.verdicts import ENDED
from autograder.sandbox.errors import RemoteError
from autograder.sandbox.process.limits import NotAnswered, Refused, SandboxDied, StaleHandle

LONGEST = 400
ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


# What a message to a student calls the student's work, and what the instructor, who reads the trial, calls it.
OF_SOLUTION = {"Your code": "The solution", "your code": "the solution", "your notebook": "the notebook"}


def explain(outcome: CellOutcome) -> str:
    """Why a test cell earned nothing, as one short text."""
    text = _hidden(outcome) if outcome.failed_hidden else _visible(outcome)
    return cut(text)


def error_name(outcome: CellOutcome) -> str:
    """A class name for the error output."""
    if isinstance(outcome.error, FailedInside):
        return cut(outcome.error.kind, 60)
    if outcome.failed_hidden or outcome.error is None:
        return "HiddenTestFailed" if outcome.failed_hidden else "TestFailed"
    return cut(type(outcome.error).__name__, 60)


"""In every message that says that a submission ended its own process."""


def _hidden(outcome: CellOutcome) -> str:
    error = outcome.error
    if outcome.timed_out or isinstance(error, (TestTimeout, NotAnswered)):
        return "A hidden test failed: your code took too long."
    if isinstance(error, SandboxDied):
        return f"A hidden test failed: your code {ENDED}."
    if isinstance(error, RemoteError):
        return "A hidden test failed: your code raised an error."  # the kind of error could reveal what was asked
    return "A hidden test failed."


def _visible(outcome: CellOutcome) -> str:
    error = outcome.error
    if isinstance(error, (TestTimeout, NotAnswered)) or outcome.timed_out:
        return "The test took too long and was stopped: look for a loop that never ends."
    if isinstance(error, SandboxDied):
        return f"Your code {ENDED}: {outcome.text}."
    if isinstance(error, StaleHandle):
        return f"An object from an earlier test was lost when your code {ENDED}."
    text = outcome.text
    if isinstance(error, RemoteError):
        return _student_error(error, text)
    source = f"`{outcome.failed_source}`" if outcome.failed_source else "a test"
    hint = f"Note: {outcome.notes[-1]}." if outcome.notes else ""
    if isinstance(error, AssertionError):
        return sentences(text or f"This is not true: {source}", hint)
    if isinstance(error, NameError):
        return f"{text}: is it defined in your notebook, and did its cell run without an error?"
    if isinstance(error, FailedInside):
        return text
    if isinstance(error, Refused):
        return f"{text[:1].upper()}{text[1:]}."
    return sentences(f"{source} failed with {type(error).__name__}{': ' if text else ''}{text}", hint)


def _student_error(error: BaseException, text: str) -> str:
    name = type(error).__name__
    if isinstance(error, NotImplementedError):
        return f"Not written yet: your code raised {name}."
    where = getattr(error, "student_where", ())
    place = f", in `{where[-1][1].strip()}`" if where and where[-1][1].strip() else ""
    return f"Your code raised {name}{f': {text}' if text else ''}{place}"


def about_solution(message: str) -> str:
    """A message about a student's code, for the instructor whose solution was judged."""
    for student, solution in OF_SOLUTION.items():
        message = message.replace(student, solution)
    return message


def sentences(*parts: str) -> str:
    """The parts that say something, one after another, each but the last with a full stop."""
    said = [part.rstrip() for part in parts if part.strip()]
    return " ".join([*(part if part[-1] in ".!?" else f"{part}." for part in said[:-1]), *said[-1:]])


def said_by(reports: list[Any]) -> str:
    """What the checks of a cell have to say, without saying anything twice."""
    reasons = _with_reason(reports)
    texts: list[str] = []
    for number, report in enumerate(reports):
        silent = isinstance(report, Report) and number not in reasons
        text = report.finding if silent else getattr(report, "message", "")
        if isinstance(text, str) and text:
            again = any(LIKELY in earlier for earlier in texts)
            texts.append(text.replace(f" {LIKELY}", f" Also {LIKELY.lower()}", 1) if again else text)
    unique = list(dict.fromkeys(texts))
    return cut(" ".join(text for text in unique if not any(text != other and text in other for other in unique)))


def _with_reason(reports: list[Any]) -> set[int]:
    """Which reports give their reason: of those that name the same mistake, the first certain one, else the first."""
    numbers = [number for number, report in enumerate(reports) if isinstance(report, Report)]
    told: set[int] = set()
    known: set[str] = set()
    for number in sorted(numbers, key=lambda number: not reports[number].certain):
        names = set(reports[number].bugs) or {reports[number].reason}
        if not names & known:
            told.add(number)
        known |= names
    return told


def cut(text: str, longest: int = LONGEST) -> str:
    """The text in printable form, without colors, and not too long; only long words are cut in two."""
    text = CONTROL.sub("", ANSI.sub("", text)).encode("utf-8", "replace").decode()
    text = re.sub(r"\n\s*\n+", "\n", text).strip()
    return text if len(text) <= longest else re.sub(r"\s+\S{0,20}$", "", text[: longest - 4]) + " ..."
