"""Reads a lesson's text (jupytext's percent format) into cells that remember their line.

Every mistake in a lesson is reported as a `LessonTextError` that names file, line and cell, because an author has to
find the place in a file of a thousand lines.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import jupytext
from nbformat import NotebookNode

from autograder.lessons.builder.case_files import cases_file
from autograder.lessons.builder.cases import checks_of, points_in_words, test_source
from autograder.lessons.builder.lesson_files import STYLES, LessonTextError
from autograder.notebooks.cells import grade_id, is_grade, is_solution, marks
from autograder.notebooks.statements import tree_of

PLAIN_TAGS = {"demo", "engine", "visible", "quiz", "hint", "raises-exception"}
STYLE_TAG = re.compile(r"style:([A-Za-z0-9_]+)")
CELL_LINE = re.compile(r"^# %%(?P<rest>.*)$")
SHORT = {"solution": {"solution": True}, "test": {"grade": True}, "question": {"grade": True, "solution": True}}
"""Short words on a cell line, with an id, for nbgrader's marks."""
NBGRADER_DEFAULTS = {"schema_version": 3, "grade": False, "solution": False, "task": False}


@dataclass(frozen=True)
class TextCell:
    """One cell of a lesson's text. `line` is the line of its `# %%` marker."""

    file: str
    line: int
    kind: str
    source: str
    metadata: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def nbgrader(self) -> dict[str, Any]:
        return dict(marks(self))

    @cached_property
    def grade_id(self) -> str:
        return grade_id(self)

    @cached_property
    def is_test(self) -> bool:
        return is_grade(self) and not is_solution(self)

    @cached_property
    def is_solution(self) -> bool:
        return is_solution(self)

    @cached_property
    def is_question(self) -> bool:
        """Whether the cell asks for a text, which a person grades, in courses that ask such questions."""
        return "question" in self.metadata

    @cached_property
    def tags(self) -> list[str]:
        return list(self.metadata.get("tags", []))

    @property
    def exercise(self) -> str:
        """The grade_id of the exercise to which a hint or an alternative style belongs."""
        return str(self.metadata.get("exercise", ""))

    @property
    def style(self) -> str:
        """The name of the alternative solution that this cell is, or the empty string."""
        names = [match[1] for tag in self.tags if (match := STYLE_TAG.fullmatch(tag))]
        return names[0] if names else ""

    @property
    def name(self) -> str:
        first = next((line.strip() for line in self.source.splitlines() if line.strip()), "empty")
        return f"cell {self.grade_id!r}" if self.grade_id else f"{self.kind} cell {first[:40]!r}"

    def error(self, message: str, line: int = 0) -> LessonTextError:
        """An error at this cell, or at the given line of its source (counted from 1)."""
        return LessonTextError(f"{self.file}:{self.line + line}: {self.name}: {message}")


def syntax_tree(cell: TextCell) -> ast.Module:
    """The syntax tree of a cell, IPython's commands left out."""
    lines = ["pass" if re.match(r"\s*[%!]", line) else line for line in cell.source.splitlines()]
    try:
        return tree_of("\n".join(lines))
    except SyntaxError as error:
        if "raises-exception" in cell.tags or cell.source.lstrip().startswith("%%"):
            return tree_of("")
        raise cell.error(f"not valid Python: {error.msg}", error.lineno or 0) from error


def read_lesson(path: Path, questions: bool = False) -> list[TextCell]:
    """The cells of a lesson's text, in order, and then those of its styles. The `questions` that a person grades are
    left out unless asked for. Raises LessonTextError when it has no cells, or is not in percent format.
    """
    styles = path.with_name(STYLES)
    own = [cell for cell in _read(path) if questions or not cell.is_question]
    cells = [_with_check(cell, path) if "check" in cell.metadata else cell for cell in own]
    return [*cells, *(_read(styles) if styles.is_file() else ())]


def _with_check(cell: TextCell, path: Path) -> TextCell:
    """A cell with `check="held"` on its line as the test cell `test_held`."""
    name, checks = str(cell.metadata["check"]), checks_of(path)
    if name not in checks:
        raise cell.error(f"{cases_file(path).name} has no check {name!r}; it has {', '.join(checks) or 'none'}")
    if cell.source or "nbgrader" in cell.metadata:
        raise cell.error("a cell with check= has nothing else: id, points and source come from the check")
    marks = {"grade": True, "grade_id": f"test_{name}", "locked": True, "points": checks[name].most}
    metadata = cell.metadata | {
        "worth": points_in_words(checks[name]),
        "nbgrader": dict(sorted((NBGRADER_DEFAULTS | marks).items())),
    }
    return replace(cell, source=test_source(path, checks[name]), metadata=metadata)


def _read(path: Path) -> list[TextCell]:
    """The cells of one file of a lesson."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        raise LessonTextError(f"{path.name}:{line}: this lesson is not in UTF-8; save it in that encoding") from error
    cells = _cells_of_text(path.name, text)
    if not cells:
        raise LessonTextError(
            f"{path.name}:1: this lesson is empty; a cell begins with the line `# %%` or `# %% [markdown]`"
        )
    return [replace(cell, metadata=copy.deepcopy(cell.metadata)) for cell in cells]


@lru_cache(maxsize=64)  # every lesson is read again for the engine of later lessons, and jupytext is slow
def _cells_of_text(name: str, text: str) -> tuple[TextCell, ...]:
    """The cells of a text; `name` is the name of its file."""
    try:
        notebook = jupytext.reads(text, fmt={"extension": ".py", "format_name": "percent"})
    except Exception as error:  # jupytext raises whatever its parsers raise
        raise LessonTextError(f"{name}:1: jupytext cannot read this lesson: {error}") from error
    lines = _cell_lines(text, notebook)
    cells = [
        TextCell(name, line, cell.cell_type, cell.source.rstrip(), _metadata(cell))
        for line, cell in zip(lines, notebook.cells, strict=True)
    ]
    return tuple(cell for cell in cells if cell.source.strip() or cell.metadata)


def _metadata(cell: NotebookNode) -> dict[str, Any]:
    """What the author wrote on the cell line, without jupytext's bookkeeping and with nbgrader's defaults filled in."""
    metadata = {
        name: value for name, value in cell.metadata.items() if name not in ("lines_to_next_cell", "cell_marker")
    }
    for word, meaning in SHORT.items():
        if word in metadata:
            points = {"points": metadata.pop("points")} if "points" in metadata else {}
            metadata["nbgrader"] = {"grade_id": metadata[word], **meaning, **points}
            if word != "question":
                del metadata[word]
    if isinstance(metadata.get("nbgrader"), dict):
        complete = NBGRADER_DEFAULTS | metadata["nbgrader"]
        complete.setdefault("locked", not complete["solution"])
        metadata["nbgrader"] = dict(sorted(complete.items()))
    return metadata


def _cell_lines(text: str, notebook: NotebookNode) -> list[int]:
    """The line of each cell's marker. A marker inside a string starts no cell, so the next line is compared too."""
    lines = text.splitlines()
    markers = _markers(lines)
    found = []
    position = 1
    for cell in notebook.cells:
        start = next((line for line in cell.source.splitlines() if line.strip()), "")
        for number, following in markers:
            if number >= position and start.strip().lstrip("#").strip() in following:
                position = number
                break
        found.append(position)
        position += 1
    return found


def _markers(lines: list[str]) -> list[tuple[int, str]]:
    """Each `# %%` line with the first non-blank line after it."""

    def following(number: int) -> Iterator[str]:
        return (line for line in lines[number:] if line.strip(" #\"'rf"))

    return [(n, next(following(n), "")) for n, line in enumerate(lines, 1) if CELL_LINE.match(line)]
