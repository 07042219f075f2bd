"""A small picture of where an array gradient is wrong: one cell per element, or per block of a large array.

Blue with a minus is too small, orange with a plus too large; a stronger color is a larger error, and right elements are
empty. The signs are for readers who cannot tell the colors apart, and for the text version.
"""

from __future__ import annotations

import html
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from autograder.cards.style import MONO, QUIET, TEXT, cut
from autograder.runs.inputs import Array

MOST_ROWS, MOST_COLUMNS = 12, 24
CELL = 18
TOO_SMALL, TOO_LARGE, NOT_FINITE = "#2f80c2", "#d9690f", "#8c6bb1"
STRENGTHS = (0.25, 0.45, 0.7)
LEGEND = "- too small, + too large, ? not a finite number, . right"


@dataclass(frozen=True)
class HeatMap:
    """`errors`: rows of signed errors relative to the largest (0: right, NaN: not finite). `note` says what a cell is,
    `pattern` what stands out."""

    name: str
    errors: tuple[tuple[float, ...], ...]
    note: str = ""
    pattern: str = ""

    def text(self) -> list[str]:
        """One line per row, and what the signs mean."""
        rows = ["".join(_sign(error).ljust(2) for error in row).rstrip() for row in self.errors]
        title = f"{self.name}: {self.pattern}" if self.pattern else self.name
        return [title, *(f"  {row}" for row in rows), f"  ({'; '.join(part for part in (LEGEND, self.note) if part)})"]

    def html(self) -> str:
        width, height = CELL * len(self.errors[0]) + 2, CELL * len(self.errors) + 2
        described = html.escape(cut(f"{self.name}: {self.pattern or 'where it is wrong'}"), quote=True)
        picture = (
            f'<svg role="img" aria-label="{described}" width="{width}" height="{height}" '
            f'viewBox="-1 -1 {width} {height}" style="color:{TEXT};display:block">{"".join(self._cells())}</svg>'
        )
        caption = f'<div style="font-family:{MONO};font-size:12px">{html.escape(cut(self.name))}</div>'
        notes = "".join(
            f'<div style="{style}">{html.escape(cut(part))}</div>'
            for part, style in ((self.pattern, ""), (self.note, QUIET))
            if part
        )
        row = "display:flex;flex-wrap:wrap;gap:6px 14px;align-items:center;margin-top:6px"
        return f'<div style="{row}">{caption}{picture}<div style="min-width:0">{notes}{self._legend()}</div></div>'

    def _cells(self) -> Iterator[str]:
        for row, errors in enumerate(self.errors):
            for column, error in enumerate(errors):
                yield _cell(column * CELL, row * CELL, error)

    def _legend(self) -> str:
        """What the signs mean. A number that is not finite is rare, and is explained only where there is one."""
        keys = [(-1.0, "too small"), (1.0, "too large"), (0.0, "right")]
        if np.any(np.isnan(self.errors)):
            keys.append((np.nan, "not a finite number"))
        size = f'width="{CELL + 2}" height="{CELL + 2}" viewBox="-1 -1 {CELL + 2} {CELL + 2}"'
        style = f"color:{TEXT};vertical-align:middle"
        parts = [
            f'<svg aria-hidden="true" {size} style="{style}">{_cell(0, 0, key)}</svg> {word}' for key, word in keys
        ]
        spans = "".join(f'<span style="white-space:nowrap">{part}</span>' for part in parts)
        return f'<div style="display:flex;flex-wrap:wrap;gap:2px 12px">{spans}</div>'


def _sign(error: float) -> str:
    if np.isnan(error):
        return "?"
    return "." if error == 0 else "-" if error < 0 else "+"


def _cell(x: int, y: int, error: float) -> str:
    """A square with its sign."""
    sign = _sign(error)
    place = f'x="{x}" y="{y}" width="{CELL}" height="{CELL}"'
    frame = 'stroke="currentColor" stroke-opacity="0.25"'
    if sign == ".":
        return f'<rect {place} fill="none" {frame}/>'
    color = {"-": TOO_SMALL, "+": TOO_LARGE, "?": NOT_FINITE}[sign]
    strength = STRENGTHS[-1] if sign == "?" else _strength(abs(error))
    shown = "\N{MINUS SIGN}" if sign == "-" else sign
    middle = f'x="{x + CELL // 2}" y="{y + CELL // 2 + 4}" text-anchor="middle" font-size="12" fill="currentColor"'
    return f'<rect {place} fill="{color}" fill-opacity="{strength}" {frame}/><text {middle}>{shown}</text>'


def _strength(error: float) -> float:
    return STRENGTHS[0] if error < 0.1 else STRENGTHS[1] if error < 0.5 else STRENGTHS[2]


def heat_map(name: str, got: Array, expected: Array, allowed: Array) -> HeatMap | None:
    """The picture of a wrong gradient; None for a number, for a wrong shape, and if nothing is wrong."""
    if got.shape != expected.shape or got.size < 2:
        return None
    allowed = np.broadcast_to(allowed, got.shape)
    with np.errstate(invalid="ignore"):
        error = np.where(np.isfinite(got), got - expected, np.nan)
        error = np.where(np.abs(error) <= allowed, 0.0, error)
    if not np.any(error != 0):
        return None
    shown, where = _slice(error)
    cells, note = _blocks(shown)
    largest = float(np.nanmax(np.abs(cells), initial=0.0)) or 1.0
    rows = tuple(tuple(float(value) for value in row) for row in cells / largest)
    return HeatMap(name + where, rows, note, pattern(got, expected, error))


def _slice(error: Array) -> tuple[Array, str]:
    """At most two axes of an error, those around the worst element, and the name of that slice."""
    if error.ndim <= 2:
        return np.atleast_2d(error), ""
    worst = np.unravel_index(int(np.argmax(np.where(np.isnan(error), np.inf, np.abs(error)))), error.shape)
    leading = tuple(int(number) for number in worst[:-2])
    return error[leading], f"[{', '.join(map(str, leading))}, :, :]"


def _blocks(error: Array) -> tuple[Array, str]:
    """A large array made small: each cell is the worst element of a block."""
    sizes = [-(-length // most) for length, most in zip(error.shape, (MOST_ROWS, MOST_COLUMNS), strict=True)]
    if max(sizes) == 1:
        return error, ""
    starts = [range(0, length, size) for length, size in zip(error.shape, sizes, strict=True)]
    cells = [[_worst_of(error[r : r + sizes[0], c : c + sizes[1]]) for c in starts[1]] for r in starts[0]]
    return np.array(cells), f"shape {error.shape}; each cell is the worst of {sizes[0]} by {sizes[1]} elements"


def _worst_of(block: Array) -> float:
    return float("nan") if np.any(np.isnan(block)) else float(block.flat[int(np.argmax(np.abs(block)))])


def pattern(got: Array, expected: Array, error: Array) -> str:
    """What stands out about a wrong array, in words; empty if nothing does."""
    wrong = np.isnan(error) | (error != 0)
    if np.any(np.isnan(got)) or np.any(np.isinf(got)):
        kinds = [word for word, test in (("NaN", np.isnan), ("infinite", np.isinf)) if np.any(test(got))]
        return f"{int(np.sum(~np.isfinite(got)))} of {got.size} elements are {' or '.join(kinds)}"
    largest = float(np.max(np.abs(expected)))
    if np.all(np.abs(got) <= 1e-12 * largest):
        return "every element is 0"
    factor = float(np.sum(got * expected) / max(np.sum(expected * expected), 1e-300))
    close = partial(np.allclose, rtol=1e-9, atol=1e-9 * largest)
    if close(got, factor * expected) and f"{factor:.4g}" != "1":
        return f"every element is {factor:.4g} times what it should be"
    if close(np.sort(got, axis=None), np.sort(expected, axis=None)) and not close(got, expected):
        return "the right numbers, in the wrong places"
    if np.all(wrong):
        return "every element is wrong"
    return _wrong_lines(wrong) or f"{int(np.sum(wrong))} of {wrong.size} elements are wrong"


def _wrong_lines(wrong: NDArray[np.bool_]) -> str:
    """Whole rows or columns that are wrong, while all others are right."""
    if wrong.ndim != 2:
        return ""
    for axis, word in ((1, "row"), (0, "column")):
        whole, some = np.all(wrong, axis=axis), np.any(wrong, axis=axis)
        if np.array_equal(whole, some) and 1 <= np.sum(whole) <= 3 and wrong.shape[1 - axis] > 1:
            numbers = [str(int(n)) for n in np.flatnonzero(whole)]
            return f"wrong in {word}{'s' * (len(numbers) > 1)} {', '.join(numbers)}, right elsewhere"
    return ""
