"""Hand-written SVG for demos of boxes, arrows and short texts: quicker to draw than Matplotlib figures, and sharper.

Every function returns a piece of SVG as text, in the colors of the page: ink is the page's text color.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from mini_autograd.drawing.layout import Route

FONT = "var(--jp-ui-font-family, system-ui, sans-serif)"
MONO = "var(--jp-code-font-family, ui-monospace, Menlo, Consolas, monospace)"
PAPER = "var(--jp-layout-color1, white)"
SMALL, BUTTON = 13.7, 34.0
"""The smallest type size (14 pixels on the screen if a picture 860 wide fills a window of 1000 pixels), and the height
of a button."""


TEXT_SHARE = 65
"""Percentage of the color in a colored text. The rest is ink, without which the text is too faint to read on a box."""


def picture(width: float, height: float, parts: Iterable[str], label: str, role: str = "img") -> str:
    """A whole picture. `label` describes it for screen readers; if parts can be pressed, its role is "group"."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="{role}" aria-label="{escape(label, quote=True)}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" '
        f'style="font-family: {FONT}" fill="currentColor">{"".join(parts)}</svg>'
    )


def from_step(step: int, *parts: str) -> str:
    """Parts that are visible from a step on."""
    return f'<g id="from-{step}">{"".join(parts)}</g>' if step > 0 else "".join(parts)


def only_step(step: int, *parts: str) -> str:
    """Parts that are visible only in one step."""
    return f'<g id="only-{step}">{"".join(parts)}</g>'


def box(
    x: float,
    y: float,
    width: float,
    height: float,
    *,
    fill: str = "none",
    opacity: float = 1.0,
    stroke: str = "currentColor",
    line: float = 1.0,
    dashes: str = "",
    radius: float = 3.0,
) -> str:
    """A rectangle; `opacity` applies to its fill."""
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="{radius}" fill="{fill}" '
        f'fill-opacity="{opacity}" stroke="{stroke}" stroke-width="{line}"{dashed}/>'
    )


def words(
    x: float,
    y: float,
    text: object,
    *,
    size: float = 14,
    anchor: str = "start",
    bold: bool = False,
    mono: bool = False,
    fill: str = "currentColor",
    opacity: float = 1.0,
) -> str:
    """A line of text; `anchor` is start, middle or end. A color is mixed with ink, so that it can be read."""
    if fill.startswith("#"):
        fill = f"color-mix(in srgb, {fill} {TEXT_SHARE}%, currentColor)"
    weight = ' font-weight="600"' if bold else ""
    family = f' style="font-family: {MONO} !important; white-space: pre"' if mono else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" fill="{fill}" '
        f'fill-opacity="{opacity}"{weight}{family}>{escape(str(text))}</text>'
    )


def arrow(x: float, y: float, to_x: float, text: str = "", *, color: str = "currentColor") -> str:
    """A horizontal arrow with a word above it."""
    tip = 7 if to_x > x else -7
    label = words((x + to_x) / 2, y - 7, text, size=SMALL, anchor="middle", fill=color) if text else ""
    return (
        f'<path d="M{x:.1f} {y:.1f}H{to_x - tip:.1f}" fill="none" stroke="{color}" stroke-width="1.6"/>'
        f'<path d="M{to_x:.1f} {y:.1f}l{-tip} -4.5v9z" fill="{color}"/>{label}'
    )


def segment(x: float, y: float, to_x: float, to_y: float, *, color: str = "currentColor", width: float = 1.0) -> str:
    """A straight line."""
    return f'<path d="M{x:.1f} {y:.1f}L{to_x:.1f} {to_y:.1f}" fill="none" stroke="{color}" stroke-width="{width}"/>'


def way(name: str, points: Sequence[tuple[float, float]], color: str) -> str:
    """A path with one point per step, drawn as far as the current step. `along` refers to it by `name`."""
    return f'<path data-way="{escape(name)}" d="{through(points)}" fill="none" stroke="{color}" stroke-width="2.4"/>'


def along(name: str, last: tuple[float, float], *parts: str) -> str:
    """A mark, drawn around 0, at the point of the current step on the path `name`; `last` is the path's last point."""
    return f'<g data-along="{escape(name)}" transform="translate({last[0]:.1f} {last[1]:.1f})">{"".join(parts)}</g>'


def by_step(part: str, **lists: Sequence[object]) -> str:
    """A part with attributes, or a `text`, that are others in each step: lists with an entry per step. The part itself
    is drawn as in the last one."""
    data = escape(json.dumps({name: [str(entry) for entry in entries] for name, entries in lists.items()}), quote=True)
    return part.replace(" ", f' data-each="{data}" ', 1)


def dragged(name: str, x: float, y: float, width: float, height: float) -> str:
    """An area in which a pointer goes to the step whose point on the path `name` is below or above it."""
    return (
        f'<rect data-drag="{escape(name)}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
        'fill="transparent"/>'
    )


def through(points: Sequence[tuple[float, float]], digits: int = 1) -> str:
    """The `d` attribute of a line through points; empty without points."""
    return "M" * bool(points) + "L".join(f"{x:.{digits}f} {y:.{digits}f}" for x, y in points)


def line(points: Sequence[tuple[float, float]], color: str, dashes: str = "") -> str:
    """A line through points."""
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'<path d="{through(points)}" fill="none" stroke="{color}" stroke-width="2.2"{dashed}/>'


def curved(route: Route) -> str:
    """The `d` attribute of a curve that follows the route of an edge."""
    x, y = route.start
    pieces = (f"C{a[0]:.1f} {a[1]:.1f} {b[0]:.1f} {b[1]:.1f} {c[0]:.1f} {c[1]:.1f}" for a, b, c in route.pieces)
    return f"M{x:.1f} {y:.1f}{''.join(pieces)}"


def button(text: str, x: float, y: float, width: float = 0.0, *, color: str = "currentColor") -> tuple[str, float]:
    """The drawing of a button, and its width, which by default depends on its text."""
    wide = width or 26 + 9 * len(text)
    drawing = box(x, y, wide, BUTTON, fill=color, opacity=0.07 if color == "currentColor" else 0.25, radius=5)
    return drawing + words(x + wide / 2, y + 22, text, size=15, anchor="middle"), wide


def press(drawing: str, label: str, state: Mapping[str, Any], *, tool: bool = False) -> str:
    """A part of the picture that sets controls when it is clicked, or chosen with Enter. A tool shows nothing else."""
    data, kind = escape(json.dumps(state), quote=True), "ma-press ma-tool" if tool else "ma-press"
    return (
        f'<g class="{kind}" role="button" tabindex="0" aria-label="{escape(label)}" data-press="{data}">{drawing}</g>'
    )
