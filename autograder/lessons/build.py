"""Makes the instructor's notebook of a lesson from its text: `assemble` in memory, `build_lesson` as a file.

The result depends on the text alone: cell ids come from the grade_id or from the source, so building twice gives the
same bytes, and students' notebooks can be compared cell by cell after an update.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from autograder.lessons.places import data_files, write_if_changed
from autograder.lessons.quizzes import expand_quiz
from autograder.lessons.rules import check_lesson
from autograder.lessons.sealing import seal_hints
from autograder.lessons.text import TextCell, read_lesson

KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
TAGS_OF_NOTEBOOKS = {"demo", "visible", "raises-exception"}
HINT_COMMENT = "# Run this cell when you are stuck. Each hint opens with a click and goes one step further."


def assemble(path: Path) -> NotebookNode:
    """The instructor's notebook of a text: hints sealed, quizzes expanded, styles left out. Raises LessonError."""
    cells = read_lesson(path)
    check_lesson(cells)
    notebook = new_notebook(metadata={"kernelspec": dict(KERNEL), "language_info": {"name": "python"}})
    notebook.nbformat_minor = 5
    used = Counter[str]()
    for cell in _expanded(cells):
        make = new_markdown_cell if cell.kind == "markdown" else new_code_cell
        notebook.cells.append(make(cell.source, metadata=_metadata(cell), id=_cell_id(cell, used)))
    nbformat.validate(notebook)
    return notebook


def styles(path: Path) -> dict[str, dict[str, str]]:
    """The alternative solutions in a lesson's text: name of the style -> grade_id of the solution cell -> source."""
    found: dict[str, dict[str, str]] = {}
    for cell in read_lesson(path):
        if cell.style:
            sources = found.setdefault(cell.style, {})
            if cell.exercise in sources:
                raise cell.error(f"style {cell.style!r} of {cell.exercise!r} is given twice")
            sources[cell.exercise] = cell.source
    return found


def build_lesson(path: Path, course_dir: Path) -> Path:
    """Write course_dir/source/NN_name/NN_name.ipynb (and the data it reads). Returns the notebook's path."""
    path = Path(path)
    notebook = assemble(path)
    folder = Path(course_dir) / "source" / path.stem
    for file in data_files(path, Path(course_dir)):
        (folder / "data").mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, folder / "data" / file.name)
    target = folder / f"{path.stem}.ipynb"
    write_if_changed(target, notebook_text(notebook))
    return target


def notebook_text(notebook: NotebookNode) -> str:
    """A notebook as the text of its file."""
    return nbformat.writes(notebook) + "\n"


def _expanded(cells: Sequence[TextCell]) -> list[TextCell]:
    """The cells of the notebook: hints gathered where the first one stood, quizzes expanded, styles left out."""
    hints: dict[str, list[str]] = {}
    for cell in cells:
        if "hint" in cell.tags:
            hints.setdefault(cell.exercise, []).append(cell.source)
    result: list[TextCell] = []
    for cell in cells:
        if "hint" in cell.tags:
            if texts := hints.pop(cell.exercise, None):
                source = f"{HINT_COMMENT}\nhints({json.dumps(seal_hints(texts))})"
                result.append(replace(cell, kind="code", source=source, metadata={}))
        elif "quiz" in cell.tags:
            result += expand_quiz(cell)
        elif not cell.style:
            result.append(cell)
    return result


def _metadata(cell: TextCell) -> dict[str, object]:
    metadata = {name: value for name, value in cell.metadata.items() if name in ("nbgrader", "jupyter")}
    tags = [tag for tag in cell.tags if tag in TAGS_OF_NOTEBOOKS]
    return {**metadata, "tags": tags} if tags else metadata


def _cell_id(cell: TextCell, used: Counter[str]) -> str:
    name = cell.grade_id or hashlib.sha256(f"{cell.kind}\n{cell.source}".encode()).hexdigest()[:12]
    used[name] += 1
    return (name if used[name] == 1 else f"{name}-{used[name]}")[-64:]
