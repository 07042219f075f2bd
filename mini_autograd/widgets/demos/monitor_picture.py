"""The picture of a training monitor: a progress bar, the curves of the logged numbers, gradient norms by layer.

Written by hand as SVG, since it is drawn several times a second. Long curves are thinned to their lowest and highest
points, so that no spike is lost.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping
from typing import Any, Protocol

from mini_autograd.widgets.demo import COLORS
from mini_autograd.widgets.demos.series import Series
from mini_autograd.widgets.sketch import box, picture, segment, through, words

DASHES = ("", "7 3", "2 3")
WIDTH, PLOT, KEY = 440, 210, 18
"""Width and height of a plot, and the height of a line of its key."""
MOST = 8
"""The most layers to draw. If there are more, half of these are the first layers and half the last."""
BINS = 150
MIDDLES = 60
"""The number of stretches that a long curve is cut into, for its extremes and medians."""


class Progress(Protocol):
    """The state of training that the picture shows; a `Monitor` has it."""

    history: dict[str, Series]
    norms: dict[str, Series]
    total: int | None
    step: int
    in_pass: int
    state: str

    def describe(self) -> str: ...

    def elapsed(self) -> float: ...


def draw(monitor: Progress) -> str:
    """The whole picture as SVG."""
    panels = {"logged": monitor.history}
    if monitor.norms:
        panels["length of the gradient, by layer"] = some(monitor.norms)
    across = len(panels)
    full = across * WIDTH + (across - 1) * 20
    lines = max((len(series) for series in panels.values()), default=0)
    parts = [bar(monitor, full)]
    for number, (title, series) in enumerate(panels.items()):
        if title == "logged":
            title = ", ".join(series) or "nothing logged yet"
        parts.append(f'<g transform="translate({number * (WIDTH + 20)} 52)">{plot(title, series, monitor.step)}</g>')
    lost = monitor.describe()
    svg = picture(full, 52 + PLOT + 44 + KEY * math.ceil(lines / 2), parts, f"Training monitor. {lost}")
    return svg.replace('style="', 'style="max-width: 100%; height: auto; ', 1)  # a page may be narrower


def some(norms: Mapping[str, Series]) -> dict[str, Series]:
    """At most MOST of the layers."""
    names = list(norms)
    kept = names if len(names) <= MOST else names[: MOST // 2] + names[-MOST // 2 :]
    return {name: norms[name] for name in kept}


def bar(monitor: Progress, width: float) -> str:
    """The progress of the pass, and its speed."""
    done = monitor.in_pass / monitor.total if monitor.total else float(monitor.state == "finished")
    color = COLORS[1] if monitor.state.startswith("stopped") else COLORS[0]
    return (
        box(0.5, 0.5, width - 1, 14, radius=4)
        + box(0.5, 0.5, max(0.0, min(1.0, done)) * (width - 1), 14, fill=color, opacity=0.85, stroke="none", radius=4)
        + words(0, 34, f"{monitor.describe()}", size=14.3, bold=monitor.state.startswith("stopped"))
        + words(width, 34, speed(monitor), size=14.3, anchor="end", opacity=0.8)
    )


def speed(monitor: Progress) -> str:
    """Steps per second, and how long the pass will take."""
    seconds = monitor.elapsed()
    if not monitor.step or seconds <= 0:
        return ""
    rate = monitor.step / seconds
    each = f"{rate:.0f} steps/s" if rate >= 10 else f"{rate:.2g} steps/s"
    if monitor.state != "running" or monitor.total is None:
        return f"{each}, {seconds:.3g} s in total"
    return f"{each}, {(monitor.total - monitor.in_pass) / rate:.0f} s left"


def plot(title: str, series: Mapping[str, Series], last: int) -> str:
    """The curves of some series over the steps, with a key below."""
    finite = [v for s in series.values() for v in s.values if math.isfinite(v)]
    parts = [words(0, 12, title, size=14.3, bold=True)]
    if not finite:
        return "".join(parts)
    scale = Scale(finite, max(last, *(s.steps[-1] for s in series.values())))
    parts += scale.lines()
    for number, (name, one) in enumerate(series.items()):
        color, dashes = COLORS[number % len(COLORS)], DASHES[(number + number // len(COLORS)) % len(DASHES)]
        style = f'stroke="{color}" stroke-width="2" fill="none" stroke-dasharray="{dashes}"'
        path = through([scale.place(step, value) for step, value in thinned(one)])
        middle = through([scale.place(step, value) for step, value in middles(one)])
        if middle:  # a long curve: its range is faint, its medians stand out
            parts.append(f'<path d="{path}" stroke="{color}" stroke-opacity="0.25" fill="none"/>')
        parts.append(f'<path d="{middle or path}" {style}/>')
        if (lost := one.first_lost()) is not None:
            x = scale.place(lost, finite[0])[0]
            parts.append(segment(x, 22, x, 22 + PLOT, color=color, width=1.5))
            parts.append(words(x - 4, 34, f"{name}: {one.values[one.steps.index(lost)]}", size=14.3, anchor="end"))
        left, top = 46 + (number % 2) * WIDTH / 2, PLOT + 56 + KEY * (number // 2)
        parts.append(f'<path d="M{left} {top - 4}h22" {style}/>')
        parts.append(
            words(
                left + 28, top, f"{f'layer {name}' if name.isdigit() else name[-20:]}  {one.values[-1]:.4g}", size=14.3
            )
        )
    return "".join(parts)


class Scale:
    """From steps and values to places in a plot; logarithmic if the values are positive and far apart."""

    def __init__(self, values: list[float], last: int) -> None:
        low, high = min(values), max(values)
        self.logarithmic = low > 0 and high > 20 * low
        if self.logarithmic:
            low, high = math.log10(low), math.log10(high)
        room = (high - low) * 0.05 or abs(high) * 0.1 or 1.0
        self.low, self.high, self.last = low - room, high + room, max(last, 2)

    def place(self, step: float, value: float) -> tuple[float, float]:
        height = math.log10(value) if self.logarithmic else value
        return (
            46 + (step - 1) / (self.last - 1) * (WIDTH - 50),
            22 + (self.high - height) / (self.high - self.low) * PLOT,
        )

    def ticks(self) -> list[float]:
        """Round numbers between the lowest and the highest."""
        if self.logarithmic:
            factors = (1, 2, 5) if self.high - self.low < 1.5 else (1,)
            powers = range(math.floor(self.low), math.ceil(self.high) + 1)
            found = [factor * 10.0**power for power in powers for factor in factors]
            return [value for value in found if self.low <= math.log10(value) <= self.high]
        rough = (self.high - self.low) / 5
        unit = 10.0 ** math.floor(math.log10(rough))
        step = next(factor * unit for factor in (1, 2, 5, 10) if factor * unit >= rough)
        return [n * step for n in range(math.ceil(self.low / step), math.floor(self.high / step) + 1)]

    def lines(self) -> list[str]:
        """The grid with its numbers."""
        parts = []
        for value in self.ticks():
            y = self.place(1, value)[1]
            parts.append(f'<g opacity="0.15">{segment(46, y, WIDTH - 4, y)}</g>')
            parts.append(words(40, y + 4, f"{value:.3g}", size=14.3, anchor="end"))
        parts.append(f'<g opacity="0.5">{segment(46, 22 + PLOT, WIDTH - 4, 22 + PLOT)}</g>')
        for step in sorted({1, (self.last + 1) // 2, self.last}):
            x = self.place(step, 10**self.low if self.logarithmic else self.low)[0]
            parts.append(words(x, PLOT + 37, step, size=14.3, anchor="middle" if step < self.last else "end"))
        return parts


def middles(series: Series) -> list[tuple[int, float]]:
    """The medians of stretches of a curve too long to show every point; empty for a shorter curve."""
    points = finite_points(series)
    if len(points) <= 2 * BINS:
        return []
    width = len(points) / MIDDLES
    stretches = [points[int(n * width) : int((n + 1) * width)] for n in range(MIDDLES)]
    return [(stretch[len(stretch) // 2][0], statistics.median(v for _, v in stretch)) for stretch in stretches]


def finite_points(series: Series) -> list[tuple[int, float]]:
    return [(s, v) for s, v in zip(series.steps, series.values, strict=True) if math.isfinite(v)]


def thinned(series: Series) -> list[tuple[int, float]]:
    """The points of a curve, in order; for a long one, only the lowest and the highest in each stretch."""
    points = finite_points(series)
    if len(points) <= 2 * BINS:
        return points
    kept: list[tuple[int, float]] = []
    width = len(points) / BINS
    for number in range(BINS):
        stretch = points[int(number * width) : int((number + 1) * width)]
        by_value: Any = sorted(stretch, key=lambda point: point[1])
        kept += sorted({by_value[0], by_value[-1]})
    return kept
