"""Real mistakes: rebuilt from repairs of public engines, put into engines of many styles, and what is said of each."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from autograder.cards.check_report import Report
from autograder.checks.limits import limited
from autograder.checks.standard import EngineTrial, try_engine

HERE = Path(__file__).parent
ENGINES = sorted(path.stem for path in (HERE / "engines").glob("*.py"))
SECONDS = 10.0
VERDICTS = ("right cause", "partly", "vague", "misleading", "silent", "hangs")


@dataclass(frozen=True)
class RealMistake:
    """A mistake in a place that is checked: `told` are patterns of the right cause, `where` the words for its place."""

    place: str
    name: str
    source: str
    told: tuple[str, ...]
    where: tuple[str, ...]

    def verdict(self) -> tuple[str, str]:
        """One of VERDICTS, and what was said."""
        try:
            with limited(6 * SECONDS):
                trial = try_engine(*engine_of(self.place, self.source))
        except KeyboardInterrupt as stopped:
            return "hangs", str(stopped)
        said = said_in(trial)
        if trial.right:
            return "silent", said
        if any(re.search(pattern, said) for pattern in self.told):
            return "right cause", said
        if any(word in said for word in self.where):
            return "partly", said
        return ("misleading" if any(map(_is_certain, trial.reports)) else "vague"), said


def _is_certain(report: Report) -> bool:
    """Whether a card blames one mistake or one operation."""
    return report.certain or bool(report.operations)


def mistakes_in_engines() -> Iterator[RealMistake]:
    """Every mistake of `mistakes.toml`. Raises ValueError if one cannot be planted."""
    for place, mistakes in tomllib.loads((HERE / "mistakes.toml").read_text(encoding="utf-8")).items():
        right = (HERE / "engines" / f"{place}.py").read_text(encoding="utf-8")
        for name, row in mistakes.items():
            if right.count(row["old"]) != 1:
                raise ValueError(f"{place}.{name}: the text to replace is there {right.count(row['old'])} times")
            source = right.replace(row["old"], row["new"])
            yield RealMistake(place, name, source, tuple(row["told"]), tuple(row["where"]))


def engine_of(place: str, source: str | None = None) -> tuple[Any, dict[str, Any]]:
    """An engine of the corpus, perhaps with another source, and the functions beside it."""
    path = HERE / "engines" / f"{place}.py"
    module = ModuleType(place)
    text = path.read_text(encoding="utf-8") if source is None else source
    exec(compile(text, str(path), "exec"), vars(module))
    engine = next(value for value in vars(module).values() if isinstance(value, type) and "backward" in vars(value))
    return engine, {}


def said_in(trial: EngineTrial) -> str:
    """What the cards and notes say of the causes, without the hints."""
    parts = list(trial.notes)
    for report in trial.reports:
        parts += [report.title, report.diagnosis, report.place]
        parts += [f"{label}: {text}" for label, text in report.place_facts]
        parts += [line.explanation for line in report.lines]
    return "\n".join(part for part in parts if part)


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
