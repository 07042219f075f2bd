"""What a notebook's cells are for, read defensively: a submission's metadata can be anything.

A test cell has `grade` without `solution`; its hidden part stands between nbgrader's two markers. Every other code cell
is run in the sandbox, as a student's cell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

BEGIN_HIDDEN = "BEGIN HIDDEN TESTS"
END_HIDDEN = "END HIDDEN TESTS"
SKIP_TAG = "demo"


@dataclass(frozen=True)
class Cell:
    """A code cell: its text and what nbgrader's metadata says of it."""

    index: int
    source: str
    grade_id: str
    points: float
    grade: bool
    solution: bool
    locked: bool
    skipped: bool

    @property
    def is_test(self) -> bool:
        return self.grade and not self.solution


def code_cells(notebook: Any) -> Iterator[tuple[Any, Cell]]:
    """The code cells of a notebook in order, each as the raw node and as we read it."""
    cells = notebook.get("cells") if isinstance(notebook, Mapping) else None
    for index, node in enumerate(cells if isinstance(cells, Sequence) else ()):
        if isinstance(node, Mapping) and node.get("cell_type") == "code":
            yield node, read_cell(index, node)


def read_cell(index: int, node: Any) -> Cell:
    """One cell, with harmless values in place of whatever is missing or of the wrong type."""
    metadata = node.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    nbgrader = metadata.get("nbgrader")
    nbgrader = nbgrader if isinstance(nbgrader, Mapping) else {}
    tags = metadata.get("tags")
    return Cell(
        index=index,
        source=text_of(node.get("source")),
        grade_id=str(nbgrader.get("grade_id") or f"cell {index}"),
        points=_points(nbgrader.get("points")),
        grade=nbgrader.get("grade") is True,
        solution=nbgrader.get("solution") is True,
        locked=nbgrader.get("locked") is True,
        skipped=isinstance(tags, Sequence) and SKIP_TAG in tags,
    )


def text_of(source: Any) -> str:
    """A cell's source: a string, or a list of lines as files hold it."""
    if isinstance(source, str):
        return source
    if isinstance(source, Sequence) and all(isinstance(line, str) for line in source):
        return "".join(source)
    return ""


def hidden_lines(source: str) -> frozenset[int]:
    """Numbers of the lines between the markers of hidden tests and of the markers. An unclosed region goes on."""
    found: set[int] = set()
    hidden = False
    for number, line in enumerate(source.splitlines(), 1):
        if BEGIN_HIDDEN in line:
            hidden = True
        if hidden:
            found.add(number)
        if END_HIDDEN in line:
            hidden = False
    return frozenset(found)


def _points(value: Any) -> float:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if number and 0 <= value < 1e9 else 0.0
