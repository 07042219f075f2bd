"""The regions of a cell that not everybody may see: solutions, hidden tests, mark schemes. The only parser of them.

A line is an edge of a region if nbgrader's preprocessors treat it as one: if it contains `BEGIN HIDDEN TESTS` or the
like, with anything around it. A region that is never closed extends to the end, so that nothing in it is shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

SOLUTION, HIDDEN_TESTS, MARK_SCHEME = "SOLUTION", "HIDDEN TESTS", "MARK SCHEME"
KINDS = (SOLUTION, HIDDEN_TESTS, MARK_SCHEME)
LINE_END = re.compile(r"\r\n?|\n")  # as Python counts lines; `splitlines` knows more kinds


@dataclass(frozen=True)
class Edge:
    """A line that begins or ends a region. Lines are counted from 1."""

    line: int
    begins: bool
    kind: str

    def __str__(self) -> str:
        return f"{'BEGIN' if self.begins else 'END'} {self.kind}"


@dataclass(frozen=True)
class Region:
    """The lines from one edge to the other, both included, and the text between them."""

    kind: str
    lines: range
    text: str


def edges(source: str) -> Iterator[Edge]:
    """The edges in the order of the text. On a line with both edges of a kind, the beginning counts, as in nbgrader."""
    for number, line in enumerate(LINE_END.split(source), 1):
        for kind in KINDS:
            if f"BEGIN {kind}" in line:
                yield Edge(number, True, kind)
            elif f"END {kind}" in line:
                yield Edge(number, False, kind)


def regions(source: str) -> list[Region]:
    """The regions of a cell's source. An end without a beginning, or a second beginning, changes nothing."""
    lines = LINE_END.split(source)
    found: list[Region] = []
    opened: dict[str, int] = {}
    for edge in edges(source):
        if edge.begins:
            opened.setdefault(edge.kind, edge.line)
        elif edge.kind in opened:
            first = opened.pop(edge.kind)
            found.append(Region(edge.kind, range(first, edge.line + 1), "\n".join(lines[first : edge.line - 1])))
    return found + [
        Region(kind, range(first, len(lines) + 1), "\n".join(lines[first:])) for kind, first in opened.items()
    ]


def hidden_lines(source: str) -> frozenset[int]:
    """Numbers of the lines of hidden tests, their edges included."""
    return frozenset(line for region in regions(source) if region.kind == HIDDEN_TESTS for line in region.lines)


def without_marks(source: str) -> str:
    """A test cell with nothing hidden: every line in its place, without the edges of regions."""
    marked = {edge.line for edge in edges(source)}
    return "\n".join("" if n in marked else line for n, line in enumerate(LINE_END.split(source), 1))


def given_lines(source: str) -> str:
    """What students see of an exercise, every line in its place, without the line that waits for them."""
    solved = {line for region in regions(source) if region.kind == SOLUTION for line in region.lines}
    return "\n".join("" if n in solved else line for n, line in enumerate(LINE_END.split(source), 1))


def without_hidden_tests(source: str) -> str:
    """What students see of a test cell, every line in its place."""
    hidden = hidden_lines(source)
    return "\n".join("" if n in hidden else line for n, line in enumerate(LINE_END.split(source), 1))


def without(kind: str, source: str) -> str:
    """A cell without its regions of a kind."""
    hidden = {line for region in regions(source) if region.kind == kind for line in region.lines}
    return "\n".join(line for n, line in enumerate(LINE_END.split(source), 1) if n not in hidden)
