"""What nbgrader notes on a cell: the only reader of it, for notebooks of instructors and of students.

It follows nbgrader's own rule (`nbgrader.utils.is_grade` and the functions beside it): a mark is set if its value is
true to Python, so 1 and "yes" count, and a missing one does not. The metadata of a submission can be anything; where
nbgrader raises, a cell here simply has no marks. Standard library only: students wait for this too.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MAPPINGS = (dict, Mapping)  # asking an abstract class takes ten times as long, and nearly everything is a dict
DEMO = "demo"
"""The tag of a cell that shows something and is not run when a notebook is graded."""
TESTED = "exercises"
"""The metadata of a test cell that names its exercises, and the functions and classes that each has to define."""
DEFINITION = re.compile(r"^(?:def|class)\s+(\w+)", re.MULTILINE)


def marks(cell: Any) -> Mapping[str, Any]:
    """nbgrader's metadata of a cell; empty if it has none that can be read."""
    return _mapping(_metadata(cell).get("nbgrader"))


def grade_id(cell: Any) -> str:
    """The name that nbgrader knows a cell by, or the empty string, which is never a name."""
    name = marks(cell).get("grade_id")
    return name if isinstance(name, str) else ""


def is_grade(cell: Any) -> bool:
    """Whether the cell gives points, by its outputs or by hand."""
    return bool(marks(cell).get("grade"))


def is_solution(cell: Any) -> bool:
    """Whether the text is the student's."""
    return bool(marks(cell).get("solution"))


def is_task(cell: Any) -> bool:
    """Whether a person grades what the student does below the cell."""
    return bool(marks(cell).get("task"))


def is_locked(cell: Any) -> bool:
    """Whether the text is the instructor's: tests are, answers are not, other cells say so."""
    return not is_solution(cell) and (is_grade(cell) or bool(marks(cell).get("locked")))


def is_code_solution(cell: Any) -> bool:
    """Whether the cell holds code that the student writes."""
    return is_code(cell) and is_solution(cell)


def is_test(cell: Any) -> bool:
    """Whether the cell tests answers: its points come from running it."""
    return is_code(cell) and is_grade(cell) and not is_solution(cell)


def points_of(cell: Any) -> float:
    """The most points that a cell can give; 0 if that is not a sensible number."""
    value = marks(cell).get("points")
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0.0
    return float(value) if 0 <= value < 1e9 else 0.0


def is_code(cell: Any) -> bool:
    return isinstance(cell, MAPPINGS) and cell.get("cell_type") == "code"


def has_tag(cell: Any, tag: str) -> bool:
    tags = _metadata(cell).get("tags")
    return isinstance(tags, Sequence) and not isinstance(tags, str) and tag in tags


def tested_by(cell: Any) -> Mapping[str, Sequence[str]]:
    """The exercises that a test cell is about, each with the names that it has to define; empty if it does not say."""
    said = _mapping(_metadata(cell).get(TESTED))
    return {name: tuple(map(str, names)) for name, names in said.items() if isinstance(names, list | tuple)}


def defined_names(source: str) -> list[str]:
    """The functions and classes that a cell defines, also if it is not valid Python."""
    return DEFINITION.findall(source)


def source_of(cell: Any) -> str:
    """A cell's text: a string, or a list of lines as files hold it. Empty if it is neither."""
    source = cell.get("source") if isinstance(cell, Mapping) else None
    if isinstance(source, str):
        return source
    if isinstance(source, Sequence) and all(isinstance(line, str) for line in source):
        return "".join(source)
    return ""


def checksum(cell: Any) -> str:
    """What nbgrader compares to see whether a cell is still as it was handed out."""
    kinds = (str(kind(cell)) for kind in (is_grade, is_solution, is_locked))
    points = [str(points_of(cell))] if is_grade(cell) else []
    text = "".join([source_of(cell), str(cell.get("cell_type")), *kinds, grade_id(cell), *points])
    return hashlib.md5(text.encode("utf-8", "surrogatepass")).hexdigest()


def is_untouched(cell: Any) -> bool:
    """Whether an answer is still what was handed out."""
    return marks(cell).get("checksum") == checksum(cell)


@dataclass(frozen=True)
class CodeCell:
    """A code cell as the judge needs it. A cell without a name is named by its position."""

    source: str
    grade_id: str
    points: float
    solution: bool
    is_test: bool
    locked: bool
    is_demo: bool


def code_cells(notebook: Any) -> Iterator[tuple[Any, CodeCell]]:
    """The code cells of a notebook in order, each as the raw node and as we read it."""
    cells = notebook.get("cells") if isinstance(notebook, Mapping) else None
    for index, node in enumerate(cells if isinstance(cells, Sequence) else ()):
        if is_code(node):
            yield node, _code_cell(index, node)


def _code_cell(index: int, node: Mapping[str, Any]) -> CodeCell:
    return CodeCell(
        source=source_of(node),
        grade_id=grade_id(node) or f"cell {index}",
        points=points_of(node),
        solution=is_solution(node),
        is_test=is_test(node),
        locked=is_locked(node),
        is_demo=has_tag(node, DEMO),
    )


def _metadata(cell: Any) -> Mapping[str, Any]:
    """The metadata of a notebook's cell, or of a cell of a lesson's text."""
    return _mapping(cell.get("metadata") if isinstance(cell, MAPPINGS) else getattr(cell, "metadata", None))


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, MAPPINGS) else {}
