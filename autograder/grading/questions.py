"""The questions of an assignment as people know them: in the order of its notebooks, under the headings above them."""

from __future__ import annotations

from collections.abc import Mapping

import nbformat

from autograder.grading.course import Course, notebooks_of
from autograder.notebooks.cells import grade_id
from autograder.notebooks.headings import titles

Place = tuple[str, str]  # a notebook and the name of a cell in it


def titles_in_order(course: Course, assignment: str) -> Mapping[Place, str]:
    """The heading above each of nbgrader's cells, or its name if there is none, in the order of the released notebooks,
    or of the source if nothing is released. The gradebook knows neither.
    """
    found: dict[Place, str] = {}
    for notebook in notebooks_of(course, assignment):
        folders = (course.folder(step, ".", assignment) for step in ("release", "source"))
        path = next(path for folder in folders if (path := folder / f"{notebook}.ipynb").is_file())
        cells = nbformat.read(path, as_version=4).cells
        named = titles(cells)
        names = filter(None, map(grade_id, cells))
        found |= {(notebook, name): named.get(name, name) for name in names}
    return found
