"""The looks of a card: JupyterLab's color variables with fallbacks, and text made safe for HTML.

Inline styles only: they follow light and dark themes, need nothing from the network, and survive nbconvert and
sanitizing. Any string may come from a student, so all are shortened and escaped here, in one place each.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

LONGEST = 600
RIGHT = "var(--jp-success-color1, #388e3c)"  # signal colors are for marks: as text they are too pale
WRONG = "var(--jp-error-color1, #d32f2f)"
UNDECIDED = "var(--jp-warn-color1, #f57c00)"
TEXT = "var(--jp-ui-font-color1, currentColor)"  # without Jupyter the page is dark or light, and its text fits
FAINT = "var(--jp-ui-font-color2, currentColor)"  # enough contrast on the page itself only, not on a tint
QUIET = "opacity:0.78"
RULE = "var(--jp-border-color2, rgba(128, 128, 128, 0.4))"
TINT = "rgba(128, 128, 128, 0.12)"
CHIP = "rgba(128, 128, 128, 0.18)"
SANS = "var(--jp-ui-font-family, system-ui, sans-serif)"
MONO = "var(--jp-code-font-family, ui-monospace, Menlo, Consolas, monospace)"


def cut(text: str, longest: int = LONGEST) -> str:
    """Text of bounded length without control characters."""
    clean = "".join(c if c == "\n" or c.isprintable() else " " for c in text[: longest + 1])
    return clean if len(clean) <= longest else clean[: longest - 3] + "..."


def escaped(text: str, longest: int = LONGEST) -> str:
    """Text of bounded length for HTML. Text between backquotes becomes code, text between stars emphasis."""
    parts = html.escape(cut(text, longest)).replace(CODE, "").split("`")
    if len(parts) % 2 == 0:
        return "`".join(parts).replace("\n", "<br>")
    code = f"font-family:{MONO};font-size:12px;background:{CHIP};padding:1px 4px;border-radius:3px;color:{TEXT}"
    shown = _emphasized(CODE.join(parts[::2]))  # emphasis may reach across code
    for part in parts[1::2]:
        shown = shown.replace(CODE, f'<code style="{code}">{part}</code>', 1)
    return shown.replace("\n", "<br>")


CODE = "\0"  # stands for a piece of code
STRONG = re.compile(r"(?<![\w*])\*\*(\S(?:[^*]*[^*\s])?)\*\*(?![\w*])")
EMPHASIS = re.compile(r"(?<![\w*])\*(\S(?:[^*]*[^*\s])?)\*(?![\w*])")


def _emphasized(part: str) -> str:
    """Escaped text with Markdown's emphasis; stars that mean a product stay."""
    return EMPHASIS.sub(r"<em>\1</em>", STRONG.sub(r"<strong>\1</strong>", part))


def folded(summary: str, inside: str) -> str:
    """HTML behind a line to click on."""
    head = f'<summary style="cursor:pointer;{QUIET}">{html.escape(summary)}</summary>'
    return f'<details style="margin-top:4px">{head}<div style="padding:4px 0 0 14px">{inside}</div></details>'


def steps(labels: Sequence[str], texts: Sequence[str], longest: int = LONGEST) -> str:
    """Texts on demand, each folded inside the one before it."""
    inside = ""
    for label, text in reversed(list(zip(labels, texts, strict=False))):
        inside = folded(label, escaped(text, longest) + inside)
    return inside


def marked(text: str, color: str) -> str:
    """A verdict: plain text beside a mark in a signal color."""
    return f'<span style="border-left:4px solid {color};padding-left:6px;font-weight:600">{escaped(text)}</span>'
