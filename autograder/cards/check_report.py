"""The findings of a check, as data, and their two renderings: an HTML card and plain text.

A card leads with what helps most: the verdict, the likely bug or the place where it goes wrong, hints on demand; then
what failed, with the numbers and a picture; last, folded, what was compared with what. On a first try it leads with a
question, and the diagnosis is folded.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from autograder.cards.heat_map import HeatMap
from autograder.cards.style import (
    LONGEST,
    MONO,
    QUIET,
    RIGHT,
    RULE,
    SANS,
    TEXT,
    TINT,
    UNDECIDED,
    WRONG,
    cut,
    escaped,
    folded,
    marked,
    steps,
)

__all__ = ["LONGEST", "Line", "Report", "escaped"]

MOST_LINES = 40
NOT_HERE = "not here"
COLORS = {"right": RIGHT, NOT_HERE: UNDECIDED, "wrong": WRONG, "unanswered": UNDECIDED, "answered": TEXT}
LIKELY = "Likely:"
SEVERAL, NEAR = "one of these", "something like"  # each begins a diagnosis that is not certain
UNSURE = "not certain."  # ends one
HINT_LABELS = ("Hint: a question", "The idea behind it", "Where to look")
ASKED_FIRST = "A question first"


@dataclass(frozen=True)
class Line:
    """One expression, function or question: `status` is "right", "wrong", "not yet", "unanswered", "answered" if the
    verdict comes later, or NOT_HERE if it cannot be checked on this system, which costs nothing. `details` are facts
    that a card shows on demand.
    """

    name: str
    status: str
    explanation: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    diagnosis: str = ""
    maps: tuple[HeatMap, ...] = ()
    details: tuple[tuple[str, str], ...] = ()

    @property
    def passed(self) -> bool:
        return self.status in ("right", NOT_HERE)


@dataclass(frozen=True)
class Report:
    """The outcome of one check. `points` None: it is worth none. `hidden`: no numbers and no sources on the card.

    `diagnosis` names the likely bug, `place` where it goes wrong if no bug is certain; `place_facts` and `place_maps`
    are the evidence for either. `bugs` and `operations` are the names in these two.
    `hints` are up to three, each a step further: a question, the idea behind it, where to look. `asks_first`: they come
    before the diagnosis. `on_the_graph` makes a display of the first failure on its graph, or None.
    `names_all`: the message is about all that failed, not only the first, because one does not follow from another.
    """

    title: str
    lines: tuple[Line, ...]
    earned: float = 0.0
    points: float | None = None
    diagnosis: str = ""
    hints: tuple[str, ...] = ()
    compared: tuple[tuple[str, str], ...] = ()
    hidden: bool = False
    bugs: tuple[str, ...] = field(default=(), compare=False)
    place: str = ""
    place_facts: tuple[tuple[str, str], ...] = ()
    place_maps: tuple[HeatMap, ...] = ()
    operations: tuple[str, ...] = field(default=(), compare=False)
    asks_first: bool = field(default=False, compare=False)
    on_the_graph: Callable[[], Any] | None = field(default=None, compare=False)
    names_all: bool = field(default=False, compare=False)

    @property
    def passed(self) -> bool:
        return all(line.passed for line in self.lines)

    @property
    def verdict(self) -> str:
        if len(self.lines) == 1:
            return self.lines[0].status
        statuses = [line.status for line in self.lines]
        counted = "answered" if {*statuses} <= {"answered", "unanswered"} else "right"
        return f"{statuses.count(counted)} of {len(self.lines)} {counted}"

    @property
    def message(self) -> str:
        """One or two sentences for a gradebook: what failed first, and the likely bug or place."""
        return f"{self.finding} {self.reason}".strip()

    @property
    def error(self) -> str:
        """The text of the error below a card: without bug and place if the card asks first."""
        return self.finding if self.asks_first and self.hints else self.message

    @property
    def finding(self) -> str:
        """What failed first, or all that failed if the report names all; empty if nothing did."""
        if self.passed:
            return ""
        failed = [line for line in self.lines if not line.passed]
        return " ".join(map(self._finding, failed if self.names_all else failed[:1]))

    def _finding(self, line: Line) -> str:
        subject = f"{line.name}{'' if line.name.endswith('?') else ':'} " if len(self.lines) > 1 or self.hidden else ""
        return cut(ended(f"{subject}{line.explanation or line.status}".strip().splitlines()[0]))

    @property
    def reason(self) -> str:
        """The likely bug, or else the place where it goes wrong; empty if nothing is known."""
        if self.passed:
            return ""
        return f"{LIKELY} {cut(self.diagnosis)}" if self.diagnosis else cut(self.place)

    @property
    def certain(self) -> bool:
        """Whether the diagnosis is one mistake that fits: not several, nor one that nearly fits or may be another."""
        told = self.diagnosis
        return bool(told) and not told.startswith((SEVERAL, NEAR)) and not told.endswith(UNSURE)

    def without_cause(self) -> Report:
        """The same verdicts without any guess at their cause."""
        return Report(self.title, self.lines, self.earned, self.points, compared=self.compared, hidden=self.hidden)

    def reworded(self, words: Mapping[str, str]) -> Report:
        """The same report with some of its words replaced by others."""
        return _reworded(self, words)

    def text(self) -> str:
        """The report for a terminal."""
        points = "" if self.points is None else f", {number(self.earned)} of {number(self.points)} points"
        parts = [f"{cut(self.title)}: {self.verdict}{points}"]
        found = [f"  likely bug: {cut(self.diagnosis)}"] if self.diagnosis else []
        found += [f"  where: {cut(self.place)}"] if self.place else []
        found += _indented(self.place_facts, self.place_maps, 4)
        labels = ("hint", "idea", "look")
        hints = [f"  {label}: {cut(hint)}" for label, hint in zip(labels, self.hints, strict=False)]
        parts += [*hints, *found] if self.asks_first else [*found, *hints]
        for line in self.lines[:MOST_LINES]:
            parts += _text_of(line)
        parts += [f"  not shown: {len(self.lines) - MOST_LINES} more"] if len(self.lines) > MOST_LINES else []
        parts += [f"  {cut(label)}: {cut(value)}" for label, value in self.compared]
        return "\n".join(parts)

    def html(self) -> str:
        """The report as a card."""
        color = RIGHT if self.passed else WRONG
        if not self.passed and all(line.status != "wrong" for line in self.lines):
            color = UNDECIDED
        inside = [_heading(self, color)]
        seen = _facts(self.place_facts) + "".join(picture.html() for picture in self.place_maps)
        found = [("Likely bug", self.diagnosis, seen * (not self.place)), ("Where it goes wrong", self.place, seen)]
        found = [(label, sentence, facts) for label, sentence, facts in found if sentence]
        asks = self.asks_first and bool(self.hints)
        if asks:
            inside.append(_conversation(self.hints, found))
        else:
            last = len(found) - 1
            inside += [_box(*each, self.hints if at == last else ()) for at, each in enumerate(found)]
        inside.append(_table(self.lines, asks))
        if self.compared:
            inside.append(folded("What was compared with what", _facts(self.compared)))
        style = (
            f"border:1px solid {RULE};border-left:4px solid {color};border-radius:4px;padding:10px 14px;margin:6px 0;"
            f"max-width:860px;box-sizing:border-box;font-family:{SANS};font-size:13px;line-height:1.5;color:{TEXT}"
        )
        return f'<div class="autograder-card" style="{style}">{"".join(inside)}</div>'


def _reworded(part: Any, words: Mapping[str, str]) -> Any:
    """A part of a report with other words in all its texts. Pictures stay as they are."""
    if isinstance(part, str):
        for old, new in words.items():
            part = part.replace(old, new)
        return part
    if isinstance(part, tuple):
        return tuple(_reworded(entry, words) for entry in part)
    if isinstance(part, Report | Line):
        return replace(part, **{each.name: _reworded(getattr(part, each.name), words) for each in fields(part)})
    return part


def ended(sentence: str) -> str:
    """The sentence with a period, unless it ends already."""
    return sentence if sentence.endswith((".", "?", "!")) else f"{sentence}."


def number(value: float) -> str:
    """A number of points, without needless digits."""
    return f"{value:.4g}"


def _text_of(line: Line) -> list[str]:
    margin = " " * 13
    rows = [f"  {line.status:10} {cut(line.name)}"]
    rows += [margin + row for row in cut(line.explanation).splitlines() if row]
    rows += _indented((*line.facts, *line.details), line.maps, len(margin))
    return rows + ([margin + cut(line.diagnosis)] if line.diagnosis else [])


def _indented(facts: Sequence[tuple[str, str]], maps: Sequence[HeatMap], margin: int) -> list[str]:
    """Facts and pictures for a terminal; further rows of an array are aligned with its first row."""
    rows = []
    for label, value in facts:
        first, *more = cut(value).splitlines() or [""]
        rows += [f"{cut(label)}: {first}", *(" " * (len(cut(label)) + 2) + row for row in more)]
    rows += [row for picture in maps for row in picture.text()]
    return [" " * margin + row for row in rows]


def _heading(report: Report, color: str) -> str:
    points = ""
    if report.points is not None:
        points = f'<span style="{QUIET}">{number(report.earned)} of {number(report.points)} points</span>'
    title = f'<span style="font-weight:600">{escaped(report.title)}</span>'
    row = "display:flex;flex-wrap:wrap;gap:4px 14px;align-items:baseline"
    return f'<div style="{row}">{title}{marked(report.verdict, color)}{points}</div>'


def _table(lines: Sequence[Line], asks: bool) -> str:
    rows = "".join(_row(line, asks) for line in lines[:MOST_LINES])
    if len(lines) > MOST_LINES:
        rows += f'<div style="padding:4px 0;{QUIET}">and {len(lines) - MOST_LINES} more</div>'
    return f'<div style="margin-top:6px">{rows}</div>'


def _row(line: Line, asks: bool) -> str:
    color = COLORS.get(line.status, UNDECIDED)
    status = f'<div style="width:104px;min-width:104px">{marked(line.status, color)}</div>'
    name_style = f"font-family:{MONO};font-size:12px;white-space:pre-wrap;word-break:break-word"
    body = [f'<div style="{name_style}">{html.escape(cut(line.name))}</div>']
    if line.explanation:
        body.append(f'<div style="margin-top:2px;word-break:break-word">{escaped(line.explanation)}</div>')
    body += [picture.html() for picture in line.maps]
    if line.facts:
        body.append(_facts(line.facts))
    if line.details:
        body.append(folded("Inputs and numbers", _facts(line.details)))
    if line.diagnosis:
        sentence = f'<div style="margin-top:2px">{escaped(line.diagnosis)}</div>'
        body.append(folded("Likely bug", sentence) if asks else sentence)
    row = f"display:flex;gap:8px;padding:6px 0;border-top:1px solid {RULE}"
    return f'<div style="{row}">{status}<div style="min-width:0">{"".join(body)}</div></div>'


def _facts(facts: Sequence[tuple[str, str]]) -> str:
    """Label and value in two columns. No table: notebooks give tables stripes and right-aligned cells."""
    value_style = f"font-family:{MONO};font-size:12px;word-break:break-word;white-space:pre-wrap;min-width:0"
    cells = (
        f'<div style="{QUIET}">{escaped(label)}</div><div style="{value_style}">{_value(value)}</div>'
        for label, value in facts
    )
    grid = "display:grid;grid-template-columns:max-content 1fr;gap:0 16px;align-items:baseline;margin-top:4px"
    return f'<div style="{grid}">{"".join(cells)}</div>'


def _value(value: str) -> str:
    """A number, an array or a piece of code, whose stars are products; or a sentence with code in backquotes."""
    return escaped(value) if "`" in value else html.escape(cut(value))


def _box(label: str, sentence: str, seen: str, hints: Sequence[str]) -> str:
    """The most helpful part of a card. `seen` is HTML."""
    return _tinted(label, escaped(sentence) + seen + steps(HINT_LABELS, hints))


def _conversation(hints: Sequence[str], found: Sequence[tuple[str, str, str]]) -> str:
    """A question; the idea behind it and the diagnosis are a click away."""
    more = steps(HINT_LABELS[1:], hints[1:])
    more += "".join(folded(label, escaped(sentence) + seen) for label, sentence, seen in found)
    more += f'<div style="margin-top:4px;{QUIET}">From the next try on, the diagnosis is shown at once.</div>'
    return _tinted(ASKED_FIRST, escaped(hints[0]) + more)


def _tinted(label: str, inside: str) -> str:
    style = f"margin-top:8px;padding:8px 10px;background:{TINT};border-radius:4px;color:{TEXT}"
    return f'<div style="{style}"><span style="font-weight:600">{label}:</span> {inside}</div>'
