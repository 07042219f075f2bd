"""What a check has to say, as data, and its two renderings: an HTML card and plain text.

A card uses inline styles and JupyterLab's colour variables with fallbacks, so that it follows light and dark themes,
needs nothing from the network, and survives nbconvert and sanitising. Every string may come from a student: all are
cut to a length and escaped here, in one place each.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

MOST_LINES = 40
LONGEST = 600

RIGHT = "var(--jp-success-color1, #2e7d32)"
WRONG = "var(--jp-error-color1, #c62828)"
UNDECIDED = "var(--jp-warn-color1, #b26a00)"
TEXT = "var(--jp-ui-font-color1, #1f2328)"
FAINT = "var(--jp-ui-font-color2, #59636e)"
RULE = "var(--jp-border-color2, #d0d7de)"
TINT = "var(--jp-layout-color2, #f2f4f6)"
SANS = "var(--jp-ui-font-family, system-ui, sans-serif)"
MONO = "var(--jp-code-font-family, ui-monospace, Menlo, Consolas, monospace)"
COLOURS = {"right": RIGHT, "wrong": WRONG, "unanswered": UNDECIDED}


@dataclass(frozen=True)
class Line:
    """One expression, function or question: `status` is "right", "wrong" or "unanswered"."""

    name: str
    status: str
    explanation: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    diagnosis: str = ""

    @property
    def passed(self) -> bool:
        return self.status == "right"


@dataclass(frozen=True)
class Report:
    """The outcome of one check. `points` None: it is not worth any. `hidden`: no numbers, no sources on the card."""

    title: str
    lines: tuple[Line, ...]
    earned: float = 0.0
    points: float | None = None
    diagnosis: str = ""
    hint: str = ""
    compared: tuple[tuple[str, str], ...] = ()
    hidden: bool = False
    bugs: tuple[str, ...] = field(default=(), compare=False)

    @property
    def passed(self) -> bool:
        return all(line.passed for line in self.lines)

    @property
    def verdict(self) -> str:
        right = sum(line.passed for line in self.lines)
        if len(self.lines) == 1:
            return self.lines[0].status
        return f"{right} of {len(self.lines)} right"

    @property
    def message(self) -> str:
        """One or two sentences for a gradebook: what failed first, and the likely bug."""
        if self.passed:
            return ""
        failed = next(line for line in self.lines if not line.passed)
        subject = f"{failed.name}: " if len(self.lines) > 1 else ""
        first = f"{subject}{failed.explanation or failed.status}".strip().splitlines()[0]
        first += "" if first.endswith((".", "?")) else "."
        return cut(first) + (f" Likely: {cut(self.diagnosis)}" if self.diagnosis else "")

    def text(self) -> str:
        """The report for a terminal."""
        points = "" if self.points is None else f", {number(self.earned)} of {number(self.points)} points"
        parts = [f"{cut(self.title)}: {self.verdict}{points}"]
        for line in self.lines[:MOST_LINES]:
            parts.append(f"  {line.status:10} {cut(line.name)}")
            parts += [f"             {row}" for row in cut(line.explanation).splitlines() if row]
            parts += [f"             {cut(label)}: {cut(value)}" for label, value in line.facts]
            parts += [f"             {cut(line.diagnosis)}"] if line.diagnosis else []
        parts += [f"  not shown: {len(self.lines) - MOST_LINES} more"] if len(self.lines) > MOST_LINES else []
        parts += [f"  likely: {cut(self.diagnosis)}"] if self.diagnosis else []
        parts += [f"  hint: {cut(self.hint)}"] if self.hint else []
        parts += [f"  {cut(label)}: {cut(value)}" for label, value in self.compared]
        return "\n".join(parts)

    def html(self) -> str:
        """The report as a card."""
        colour = RIGHT if self.passed else WRONG
        if not self.passed and all(line.status != "wrong" for line in self.lines):
            colour = UNDECIDED
        inside = [_heading(self, colour)]
        if self.diagnosis:
            inside.append(_box("Likely bug", self.diagnosis, self.hint))
        inside.append(_table(self.lines))
        if self.compared:
            inside.append(_details("What was compared with what", _facts(self.compared)))
        style = (
            f"border:1px solid {RULE};border-left:4px solid {colour};border-radius:4px;padding:10px 14px;margin:6px 0;"
            f"max-width:860px;box-sizing:border-box;font-family:{SANS};font-size:13px;line-height:1.5;color:{TEXT}"
        )
        return f'<div class="autograder-card" style="{style}">{"".join(inside)}</div>'


def number(value: float) -> str:
    """A number of points, without needless digits."""
    return f"{value:.4g}"


def cut(text: str, longest: int = LONGEST) -> str:
    """Text of bounded length without control characters."""
    clean = "".join(c if c == "\n" or c.isprintable() else " " for c in text[: longest + 1])
    return clean if len(clean) <= longest else clean[: longest - 3] + "..."


def escaped(text: str, longest: int = LONGEST) -> str:
    """Text of bounded length for HTML. What stands between backquotes becomes code, between stars emphasis."""
    parts = html.escape(cut(text, longest)).split("`")
    if len(parts) % 2 == 0:
        return "`".join(parts).replace("\n", "<br>")
    code = f"font-family:{MONO};font-size:12px;background:{TINT};padding:1px 4px;border-radius:3px;color:{TEXT}"
    shown = [f'<code style="{code}">{part}</code>' if n % 2 else _emphasised(part) for n, part in enumerate(parts)]
    return "".join(shown).replace("\n", "<br>")


STRONG = re.compile(r"(?<![\w*])\*\*(\S(?:[^*]*[^*\s])?)\*\*(?![\w*])")
EMPHASIS = re.compile(r"(?<![\w*])\*(\S(?:[^*]*[^*\s])?)\*(?![\w*])")


def _emphasised(part: str) -> str:
    """Escaped text with Markdown's emphasis; stars that mean a product stay."""
    return EMPHASIS.sub(r"<em>\1</em>", STRONG.sub(r"<strong>\1</strong>", part))


def _heading(report: Report, colour: str) -> str:
    points = ""
    if report.points is not None:
        points = f'<span style="color:{FAINT}">{number(report.earned)} of {number(report.points)} points</span>'
    verdict = f'<span style="color:{colour};font-weight:600">{escaped(report.verdict)}</span>'
    title = f'<span style="font-weight:600">{escaped(report.title)}</span>'
    row = "display:flex;flex-wrap:wrap;gap:4px 14px;align-items:baseline"
    return f'<div style="{row}">{title}{verdict}{points}</div>'


def _table(lines: Sequence[Line]) -> str:
    rows = "".join(_row(line) for line in lines[:MOST_LINES])
    if len(lines) > MOST_LINES:
        rows += f'<div style="padding:4px 0;color:{FAINT}">and {len(lines) - MOST_LINES} more</div>'
    return f'<div style="margin-top:6px">{rows}</div>'


def _row(line: Line) -> str:
    colour = COLOURS.get(line.status, UNDECIDED)
    status = f'<div style="color:{colour};font-weight:600;width:92px;min-width:92px">{escaped(line.status)}</div>'
    name_style = f"font-family:{MONO};font-size:12px;white-space:pre-wrap;word-break:break-word"
    body = [f'<div style="{name_style}">{html.escape(cut(line.name))}</div>']
    if line.explanation:
        body.append(f'<div style="margin-top:2px;word-break:break-word">{escaped(line.explanation)}</div>')
    if line.facts:
        body.append(_facts(line.facts))
    if line.diagnosis:
        body.append(f'<div style="margin-top:2px">{escaped(line.diagnosis)}</div>')
    row = f"display:flex;gap:8px;padding:4px 0;border-top:1px solid {RULE}"
    return f'<div style="{row}">{status}<div style="min-width:0">{"".join(body)}</div></div>'


def _facts(facts: Sequence[tuple[str, str]]) -> str:
    """Label and value in two columns. No table: notebooks give tables stripes and right-aligned cells."""
    value_style = f"font-family:{MONO};font-size:12px;word-break:break-word;min-width:0"
    cells = (
        f'<div style="color:{FAINT}">{escaped(label)}</div><div style="{value_style}">{html.escape(cut(value))}</div>'
        for label, value in facts
    )
    grid = "display:grid;grid-template-columns:max-content 1fr;gap:0 16px;align-items:baseline;margin-top:4px"
    return f'<div style="{grid}">{"".join(cells)}</div>'


def _box(label: str, sentence: str, hint: str) -> str:
    style = f"margin-top:8px;padding:8px 10px;background:{TINT};border-radius:4px;color:{TEXT}"
    more = _details("Hint", escaped(hint)) if hint else ""
    return f'<div style="{style}"><span style="font-weight:600">{label}:</span> {escaped(sentence)}{more}</div>'


def _details(summary: str, inside: str) -> str:
    head = f'<summary style="cursor:pointer;color:{FAINT}">{html.escape(summary)}</summary>'
    return f'<details style="margin-top:6px">{head}<div style="padding:4px 0 0 14px">{inside}</div></details>'
