"""Real mistakes: rebuilt from repairs of public engines, put into engines of many styles and into lessons, and what is
said of each.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from autograder.cards.check_report import Report
from autograder.checks.limits import limited
from autograder.checks.standard import try_engine
from autograder.lessons.builder.text import TextCell
from autograder.lessons.mistakes.listed import KnownMistake, blocks_of
from autograder.lessons.mistakes.planting import credit_of, run_lesson
from autograder.notebooks.regions import without_hidden_tests
from autograder.runs.context import check_context

HERE = Path(__file__).parent
LESSONS = HERE.parents[1] / "course" / "lessons"
ENGINES = sorted(path.stem for path in (HERE / "engines").glob("*.py"))
SECONDS = 10.0
VERDICTS = ("right cause", "partly", "vague", "misleading", "silent", "hangs")


@dataclass(frozen=True)
class Said:
    """What a student sees of a check: its reports and notes, and whether nothing is wrong."""

    reports: tuple[Report, ...]
    notes: tuple[str, ...] = ()
    right: bool = False

    @property
    def causes(self) -> str:
        """What is said of the causes, without the hints."""
        parts = list(self.notes)
        for report in self.reports:
            parts += [report.title, report.diagnosis, report.place]
            parts += [f"{label}: {text}" for label, text in report.place_facts]
            parts += [line.explanation for line in report.lines]
        return "\n".join(part for part in parts if part)

    @property
    def steps(self) -> str:
        """The steps of cases that show it."""
        facts = [fact for report in self.reports for line in report.lines for fact in line.facts]
        return "\n".join(text for label, text in facts if label == "steps")


@dataclass(frozen=True)
class RealMistake:
    """A mistake in a place that is checked: `told` are patterns of the right cause, `where` the words for its place.
    Of cases, the steps that they show are evidence enough.
    """

    place: str
    name: str
    told: tuple[str, ...]
    where: tuple[str, ...]
    tried: Callable[[], Said] = field(repr=False)

    def verdict(self) -> tuple[str, str]:
        """One of VERDICTS, and what was said."""
        try:
            with limited(6 * SECONDS):
                said = self.tried()
        except KeyboardInterrupt as stopped:
            return "hangs", str(stopped)
        return self._judged(said), f"{said.causes}\n{said.steps}"

    def _judged(self, said: Said) -> str:
        """One of VERDICTS. A guess that is wrong misleads, also if the card does not call it certain."""
        if any(re.search(pattern, said.causes) for pattern in self.told):
            return "right cause"
        if said.right:
            return "silent"
        if any(word in said.causes for word in self.where):
            return "partly"
        if any(report.bugs for report in said.reports):
            return "misleading"
        if said.steps:
            return "partly"
        return "misleading" if any(report.operations for report in said.reports) else "vague"


def mistakes_in_engines() -> Iterator[RealMistake]:
    """Every mistake of `mistakes.toml`. Raises ValueError if one cannot be planted."""
    for place, mistakes in tomllib.loads((HERE / "mistakes.toml").read_text(encoding="utf-8")).items():
        right = (HERE / "engines" / f"{place}.py").read_text(encoding="utf-8")
        for name, row in mistakes.items():
            if right.count(row["old"]) != 1:
                raise ValueError(f"{place}.{name}: the text to replace is there {right.count(row['old'])} times")
            tried = partial(_tried, place, right.replace(row["old"], row["new"]))
            yield RealMistake(place, name, tuple(row["told"]), tuple(row["where"]), tried)


def _tried(place: str, source: str) -> Said:
    trial = try_engine(*engine_of(place, source))
    return Said(tuple(trial.reports), tuple(trial.notes), trial.right)


def mistakes_in_lessons() -> Iterator[RealMistake]:
    """Every mistake of `lessons.txt`."""
    for block in blocks_of(HERE / "lessons.txt", ("source", "told")):
        lesson, name = block.name.split(" ", 1)
        text = next(LESSONS.glob(f"{lesson}_*/{lesson}_*.py"))
        tried = partial(first_card, text, KnownMistake(name, block.right, block.wrong))
        yield RealMistake(lesson, name, (block.fields["told"],), (), tried)


def first_card(text: Path, mistake: KnownMistake) -> Said:
    """What the first visible check that notices a mistake in a solved lesson says, as a student sees it."""
    seen: list[Said] = []

    def at_test(cell: TextCell, names: dict[str, Any]) -> None:
        if not seen:
            with check_context() as context:
                credit = credit_of(without_hidden_tests(cell.source), names)
            if credit == 0 or not all(report.passed for report in context.reports):
                seen.append(Said(tuple(context.reports)))

    run_lesson(text, at_test, mistake)
    return seen[0] if seen else Said((), right=True)


def engine_of(place: str, source: str | None = None) -> tuple[Any, dict[str, Any]]:
    """An engine of the corpus, perhaps with another source, and the functions beside it."""
    path = HERE / "engines" / f"{place}.py"
    module = ModuleType(place)
    text = path.read_text(encoding="utf-8") if source is None else source
    exec(compile(text, str(path), "exec"), vars(module))
    engine = next(value for value in vars(module).values() if isinstance(value, type) and "backward" in vars(value))
    return engine, {}


def table(verdicts: dict[str, list[str]]) -> str:
    """Verdicts by group, as lines: how many, and the share of each verdict."""
    lines = [["", "n", "caught", *VERDICTS]]
    for group, found in verdicts.items():
        counted, n = Counter(found), len(found)
        caught = n - counted["silent"] - counted["hangs"]
        shares = [f"{counted[verdict]} ({100 * counted[verdict] / n:.0f} %)" for verdict in VERDICTS]
        lines.append([group, str(n), f"{100 * caught / n:.0f} %", *shares])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)
