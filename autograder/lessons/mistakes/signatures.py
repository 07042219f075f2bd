"""Builds the signatures of a lesson's mistakes: which visible cases go wrong with each, and how (`checks/known.py`).

They are kept beside the lesson, with a fingerprint of what they were made from, and built again if it has changed.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import autograder
from autograder.checks import cases
from autograder.checks.known import Signatures
from autograder.files import write_if_changed
from autograder.lessons.builder.case_files import cases_file
from autograder.lessons.builder.cases import checks_of
from autograder.lessons.builder.lesson_files import MISTAKES, SIGNATURES
from autograder.lessons.builder.text import TextCell
from autograder.lessons.mistakes.listed import KnownMistake, mistakes_of
from autograder.lessons.mistakes.planting import cells_that_define, run_lesson

CODE = ("checks/steps.py", "checks/outcomes.py")
"""The code below the package on which outcomes depend."""


def signatures_file(text: Path) -> Path:
    """The file beside a lesson's text."""
    return text.with_name(SIGNATURES.format(text.stem[:2]))


def are_current(text: Path) -> bool:
    """Whether the signatures beside a lesson were made from what lies there now. True for a lesson without cases."""
    if not cases_file(text).is_file():
        return True
    try:
        return bool(json.loads(signatures_file(text).read_text(encoding="utf-8"))["made_from"] == fingerprint(text))
    except (OSError, ValueError, KeyError, TypeError):
        return False


def build_signatures(text: Path) -> bool:
    """Run the lesson with each of its mistakes and write the signatures. Returns False if they were current.

    Raises LessonTextError, also for a mistake that does not fit into the solutions.
    """
    if are_current(text):
        return False
    checks: dict[str, dict[str, dict[str, str]]] = {name: {} for name in checks_of(text)}
    elsewhere: dict[str, list[str]] = {name: [] for name in checks}
    exercises = _exercises(text)
    for mistake in mistakes_of(text):
        for name, wrong in outcomes_with(text, mistake).items():
            checks[name][mistake.name] = wrong
            if not any(mistake.into(source)[1] for source in exercises[name]):
                elsewhere[name].append(mistake.name)
    bugs = {mistake.name: mistake.bug for mistake in mistakes_of(text) if mistake.bug}
    says = {mistake.name: mistake.says for mistake in mistakes_of(text) if mistake.says}
    write_if_changed(signatures_file(text), Signatures(checks, bugs, elsewhere, says).text(fingerprint(text)))
    return True


def _exercises(text: Path) -> dict[str, list[str]]:
    """check -> the solutions that it is about: those after the check before."""
    found: dict[str, list[str]] = {}
    solutions: list[str] = []
    begun = False
    for cell in cells_that_define(text, tests=True):
        if cell.is_solution:
            solutions = [*solutions, cell.source] if begun else [cell.source]
            begun = True
        elif cell.is_test:
            found[str(cell.metadata.get("check"))] = solutions
            begun = False
    return found


def outcomes_with(text: Path, mistake: KnownMistake | None) -> dict[str, dict[str, str]]:
    """check -> title of a visible case -> short name of its wrong outcome, for the checks that a mistake fails."""
    found = {}
    checks = checks_of(text)

    def at_test(cell: TextCell, names: dict[str, Any]) -> None:
        if (name := cell.metadata.get("check")) and (wrong := cases.wrong_outcomes(checks[name], names)):
            found[str(name)] = wrong

    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run_lesson(text, at_test, mistake)
    return found


def fingerprint(text: Path) -> str:
    """A hash of everything that decides the signatures."""
    digest = hashlib.sha256()
    for part in _parts(text):
        digest.update(f"{len(part)} ".encode() + part)
    return digest.hexdigest()[:24]


def _parts(text: Path) -> Iterator[bytes]:
    package = Path(autograder.__file__).parent
    yield from (path.read_bytes() for path in (cases_file(text), text.with_name(MISTAKES)) if path.is_file())
    yield from (cell.source.encode() for cell in cells_that_define(text))  # not the prose, nor the demonstrations
    yield from ((package / name).read_bytes() for name in CODE)


def shows(text: Path, mistake: KnownMistake) -> bool:
    """Whether a visible case shows a mistake, as the signatures say."""
    return any(mistake.name in listed for listed in Signatures.read(signatures_file(text)).checks.values())


@dataclass(frozen=True)
class ToldApart:
    """How well the visible cases of a lesson tell its mistakes apart. `cases` counts them; `alike` are groups of
    mistakes that give the same outcomes in all checks; no case shows the `unseen` ones.
    """

    cases: int
    mistakes: int
    alike: tuple[tuple[str, ...], ...]
    unseen: tuple[str, ...]

    @property
    def own(self) -> int:
        """The number of mistakes with a signature of their own."""
        return self.mistakes - sum(map(len, self.alike)) - len(self.unseen)

    @property
    def note(self) -> str:
        """The figures in a few words; empty for a lesson without cases."""
        if not self.cases:
            return ""
        return f"{self.mistakes} mistakes: {self.own} alone, {len(self.alike)} groups, {len(self.unseen)} unseen"


def told_apart(text: Path) -> ToldApart:
    """What the signatures beside a lesson's text say."""
    signatures = Signatures.read(signatures_file(text)).checks
    groups: dict[str, list[str]] = {}
    mistakes = [mistake.name for mistake in mistakes_of(text)]
    for mistake in mistakes:
        outcomes = {name: listed[mistake] for name, listed in signatures.items() if mistake in listed}
        groups.setdefault(json.dumps(outcomes, sort_keys=True) if outcomes else "", []).append(mistake)
    unseen = tuple(groups.pop("", ()))
    cases = sum(not case.hidden for check in checks_of(text).values() for case in check.written)
    return ToldApart(cases, len(mistakes), tuple(tuple(each) for each in groups.values() if len(each) > 1), unseen)
