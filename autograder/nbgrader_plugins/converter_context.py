"""The context of a preprocessor: its converter's course directory, and the instructor's version of the notebook."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbgrader.coursedir import CourseDirectory


def course_directory(preprocessor: Any) -> CourseDirectory:
    """The course directory of the converter that runs this preprocessor (preprocessor -> exporter -> converter)."""
    node = preprocessor
    while node is not None:
        coursedir = getattr(node, "coursedir", None)
        if coursedir is not None:
            return coursedir
        node = getattr(node, "parent", None)
    raise LookupError(f"{type(preprocessor).__name__} works only inside one of nbgrader's converters.")


def source_notebook(coursedir: CourseDirectory, assignment: str, notebook: str) -> NotebookNode | None:
    """The instructor's notebook with solutions and hidden tests, or None if only the gradebook still has it."""
    path = Path(coursedir.format_path(coursedir.source_directory, ".", assignment), f"{notebook}.ipynb")
    return nbformat.read(path, as_version=4) if path.is_file() else None
