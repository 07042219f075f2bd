"""The names that people know exercises by: the headings above them. Standard library only: students wait for this."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from autograder.notebooks.cells import grade_id, is_grade, is_solution, is_task

HEADING = re.compile(r"^#{1,6}\s+(?!(?:BEGIN|END) MARK SCHEME)(.+?)\s*#*$", re.MULTILINE)


def headings(markdown: str) -> list[str]:
    """The headings of a cell, in order, without their marks."""
    return HEADING.findall(markdown)


def titles(cells: Iterable[Any]) -> dict[str, str]:
    """The heading above each test, answer and task, by the cell's name; cells without one are left out. What students
    write names nothing.
    """
    found: dict[str, str] = {}
    heading = ""
    for cell in cells:
        if cell["cell_type"] == "markdown" and not is_solution(cell):
            heading = (headings("".join(cell["source"])) or [heading])[-1]
        if heading and (is_grade(cell) or is_solution(cell) or is_task(cell)):
            found[grade_id(cell)] = heading
    return found
