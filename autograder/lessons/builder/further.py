"""Which cells of a lesson need not be read: cells below a heading that says *further*, which are optional, or *just run
it*, which later cells need."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from autograder.lessons.builder.text import TextCell

HEADING = re.compile(r"^(#+) +(.*)$")
BEGINS = re.compile(r"^# Further$", re.MULTILINE)
"""Where the part begins that becomes an assignment of its own, if it gives points."""
OPTIONAL = re.compile(r"^further$|\(further\)", re.IGNORECASE)
JUST_RUN = re.compile(r"\(just run it\)", re.IGNORECASE)
NOT_READ = re.compile(f"{OPTIONAL.pattern}|{JUST_RUN.pattern}", re.IGNORECASE)
"""Titles of the parts that need not be read, of either kind."""


def with_parts(cells: Sequence[TextCell], begins: re.Pattern[str] = NOT_READ) -> Iterator[tuple[TextCell, bool]]:
    """Each cell, and whether it need not be read: whether it stands below a heading that `begins` such a part, and
    before the next heading of the same level or a higher one.
    """
    level = 0  # of the heading that began such a part, or 0 outside
    for cell in cells:
        for mark, title in headings(cell):
            if not level or len(mark) <= level:
                level = len(mark) if begins.search(title) else 0
        yield cell, bool(level)


def start_of_further(cells: Sequence[tuple[str, str]]) -> int:
    """The place of the first cell of the part *Further*, among the kinds and sources of cells; their number if there is
    no such part.
    """
    begins = (n for n, (kind, source) in enumerate(cells) if kind == "markdown" and BEGINS.search(source))
    return next(begins, len(cells))


def headings(cell: TextCell) -> list[tuple[str, str]]:
    """The headings in a cell of prose: their `#` marks and their titles."""
    lines = cell.source.splitlines() if cell.kind == "markdown" else []
    return [(match[1], match[2].strip()) for line in lines if (match := HEADING.match(line))]
