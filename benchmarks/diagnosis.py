"""How well the bug bank explains mistakes, family by family, and which of them other ways of checking notice.

`python -m benchmarks.diagnosis` plants every bug of the bank in two engines of students (closures, Function classes),
checks them as a lesson would, and checks the same engines in the ways of other courses. `--markdown` prints the table
of docs/benchmarks.md. `--unseen` plants mistakes that the bank does not hold in a third engine, a tape. `--real` tries
mistakes rebuilt from public repairs (`tests/real`), in engines of twelve styles and in lessons. Times are milliseconds
of processor time: of the search for a bug, and of one whole check from expressions to verdict and name, without what is
kept between checks (half of it is PyTorch's).
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from unittest.mock import patch

from autograder.bugs.bank import BUGS, bug
from autograder.bugs.bug import Bug
from autograder.checks import diagnosis
from autograder.runs import expected
from autograder.student import check_gradients
from benchmarks.diagnosis_styles import STYLES, notices
from tests.autograder.bugs import planted
from tests.autograder.bugs.unseen import UNSEEN
from tests.real import corpus

SLOW = 300  # milliseconds


@dataclass(frozen=True)
class Trial:
    """One engine with one mistake: what our check said, and which other styles noticed."""

    bug: Bug
    where: str
    style: str
    named: tuple[str, ...]
    detected: bool
    milliseconds: float
    diagnosis: float
    others: dict[str, bool]


@dataclass
class Row:
    """What the table says about a family."""

    family: str
    trials: list[Trial] = field(default_factory=list)

    def cells(self) -> list[str]:
        names = {trial.bug.name for trial in self.trials}
        first = sum(trial.named[:1] == (trial.bug.name,) for trial in self.trials)
        certain = sum(trial.named == (trial.bug.name,) for trial in self.trials)
        wrong = sum(len(trial.named) == 1 and trial.named != (trial.bug.name,) for trial in self.trials)
        searches, checks = ([getattr(t, what) for t in self.trials] for what in ("diagnosis", "milliseconds"))
        return [
            self.family,
            str(len(names)),
            str(len(self.trials)),
            _share(sum(trial.detected for trial in self.trials), len(self.trials)),
            _share(first, len(self.trials)),
            _share(certain, len(self.trials)),
            str(wrong),
            *(f"{statistics.median(times):.0f} / {max(times):.0f}" for times in (searches, checks)),
            *(_share(sum(trial.others[style] for trial in self.trials), len(self.trials)) for style in STYLES),
        ]


HEADINGS = (  # the times are median / worst
    *("family", "bugs", "engines", "detected", "named first", "certain", "wrong certain", "ms diagnosis", "ms check"),
    *STYLES,
)


def _share(part: int, whole: int) -> str:
    """A percentage that is 100 only if nothing is missing."""
    percent = 100 * part / whole
    return "100 %" if part == whole else f"{min(percent, 99.9):.1f} %" if percent > 99 else f"{percent:.0f} %"


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """A result, and the milliseconds of processor time that it took."""
    began = time.process_time()
    result = call()
    return result, 1000 * (time.process_time() - began)


@contextmanager
def timed_diagnosis(times: list[float]) -> Iterator[None]:
    """Record how long the first diagnosis in the block takes: the one of the whole check, not of its parts."""
    search = diagnosis.diagnose_all

    def diagnose(evidence: Any) -> Any:
        found, took = timed(lambda: search(evidence))
        times.append(took)
        return found

    with patch.object(diagnosis, "diagnose_all", diagnose):
        yield


def trials(only: Sequence[str]) -> list[Trial]:
    """Every mistake in every style of engine, one check each."""
    check_gradients(lambda a: a.cross_entropy([0]), [(1, 2)], points=1, engine=planted.STYLES["closures"]())  # imports
    found = []
    for mistake in planted.MISTAKES:
        if only and mistake.family not in only:
            continue
        for style in mistake.styles:
            check, engine = mistake.check, planted.engine_of(mistake, style)
            expected._KNOWN.clear()  # what is kept for the next check of the same expressions
            searches: list[float] = []
            with timed_diagnosis(searches):
                credit, took = timed(partial(check_gradients, check.expressions, check.inputs, points=1, engine=engine))
            others = {name: notices(name, engine, list(check.expressions.values()), check.inputs) for name in STYLES}
            entry = bug(mistake.bug)
            found.append(Trial(entry, mistake.where, style, _named(credit), credit != 1, took, searches[0], others))
    return found


def _named(credit: Any) -> tuple[str, ...]:
    return credit.reports[0].bugs


def rows_of(found: Sequence[Trial]) -> list[Row]:
    rows = {entry.family: Row(entry.family) for entry in BUGS}
    for trial in found:
        rows[trial.bug.family].trials.append(trial)
    return [*(row for row in rows.values() if row.trials), Row("all", list(found))]


def text(rows: Sequence[Row]) -> str:
    cells = [list(HEADINGS), *(row.cells() for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(HEADINGS))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in cells)


def markdown(rows: Sequence[Row]) -> str:
    lines = [list(HEADINGS), ["---", *("---:" for _ in HEADINGS[1:])], *(row.cells() for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def unseen_text() -> str:
    """A line on how well mistakes that the bank does not hold are explained."""
    reports = [(mistake, report) for mistake in UNSEEN if not (report := _unseen_report(mistake)).passed]
    told = sum(any(words in report.text() for words in mistake.told) for mistake, report in reports)
    wrong = sum(len(report.bugs) == 1 and report.bugs[0] not in mistake.bugs for mistake, report in reports)
    return (
        f"{len(UNSEEN)} mistakes that the bank does not hold, in a tape engine: {len(reports)} caught, {told} with a "
        f"true cause, {len(reports) - told} with only their place, {wrong} certain and wrong"
    )


REAL = {"engines": corpus.mistakes_in_engines, "lessons": corpus.mistakes_in_lessons}
"""The groups of real mistakes; each has a place, a name, and a `verdict()`."""


def real_text(missed: bool) -> str:
    """A table of what the cards say of real mistakes, and perhaps the mistakes whose cause they do not name."""
    verdicts: dict[str, list[str]] = {}
    lines = []
    for group, mistakes in REAL.items():
        for mistake in mistakes():
            verdict, said = mistake.verdict()
            verdicts.setdefault(group, []).append(verdict)
            if missed and verdict != corpus.VERDICTS[0]:
                lines.append(f"\n{mistake.place}.{mistake.name}: {verdict}\n{said}")
    return "\n".join([corpus.table(verdicts), *lines])


def _unseen_report(mistake: Any) -> Any:
    credit: Any = check_gradients(mistake.expressions, mistake.inputs, points=1, engine=mistake.engine())
    return credit.reports[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    parser.add_argument("--missed", action="store_true", help="list the bugs that were not named first or took long")
    parser.add_argument("family", nargs="*", help="only these families")
    parser.add_argument("--unseen", action="store_true", help="only mistakes that the bank does not hold")
    parser.add_argument("--real", action="store_true", help="only mistakes from public repairs")
    options = parser.parse_args()
    if options.unseen:
        print(unseen_text())
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if options.real:
            print(real_text(options.missed))
            return
        found = trials(options.family)
    print((markdown if options.markdown else text)(rows_of(found)))
    for trial in found if options.missed else ():
        if trial.named[:1] != (trial.bug.name,) or trial.diagnosis > SLOW:
            place = f"{trial.where or 'the engine'}, {trial.style}, {trial.diagnosis:.0f} ms"
            print(f"{trial.bug.name} in {place}: {', '.join(trial.named) or 'nothing'}")


if __name__ == "__main__":
    main()
