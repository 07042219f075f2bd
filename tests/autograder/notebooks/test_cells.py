"""Cells are read by nbgrader's own rule, and a submission's metadata never cause an exception."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell
from nbgrader import utils

from autograder.notebooks import cells

VALUES = (True, False, 1, 0, "yes", "", None)
READERS = (
    *(cells.is_grade, cells.is_solution, cells.is_task, cells.is_locked, cells.is_test, cells.is_code_solution),
    *(cells.grade_id, cells.points_of, cells.checksum, cells.is_untouched, cells.source_of),
)
ODD_CELLS: dict[str, Any] = {
    "no metadata": {"cell_type": "code", "source": "x"},
    "metadata a text": {"cell_type": "code", "source": "x", "metadata": "none"},
    "marks a list": {"cell_type": "code", "source": "x", "metadata": {"nbgrader": [1]}},
    "marks of other types": {
        "cell_type": ["code"],
        "source": {"x": 1},
        "metadata": {"nbgrader": {"grade": {}, "solution": [], "grade_id": {}, "points": "many"}, "tags": 4},
    },
    "half a character": {"cell_type": "code", "source": "\ud800", "metadata": {"nbgrader": {"grade_id": "\ud800"}}},
    "infinite points": {"cell_type": "code", "metadata": {"nbgrader": {"grade": True, "points": float("inf")}}},
    "no cell": None,
}


@pytest.mark.parametrize("kinds", list(product(VALUES, repeat=2)), ids=repr)
def test_marks_are_true_where_they_are_to_nbgrader(kinds: tuple[Any, Any]) -> None:
    grade, solution = kinds
    for make, locked in product((new_code_cell, new_markdown_cell), VALUES):
        about = {"grade": grade, "solution": solution, "locked": locked, "task": locked, "grade_id": "a", "points": 2}
        cell = make("x = 1", metadata={"nbgrader": about})
        for name in ("is_grade", "is_solution", "is_locked", "is_task"):
            assert getattr(cells, name)(cell) == bool(getattr(utils, name)(cell)), name


@pytest.mark.parametrize("about", [{}, {"grade": True, "points": 2}, {"solution": True}, {"locked": True}], ids=repr)
def test_a_checksum_is_nbgrader_s(about: dict[str, Any]) -> None:
    marks = {"grade": False, "solution": False, "locked": False, "task": False, **about}
    cell = new_code_cell("x = 'ü'", metadata={"nbgrader": NotebookNode({**marks, "grade_id": "a"})})
    assert cells.checksum(cell) == utils.compute_checksum(cell)


@pytest.mark.parametrize("name", [name for name in ODD_CELLS if name != "no cell"])
def test_odd_cells_are_read_without_an_exception(name: str) -> None:
    for read in READERS:
        read(ODD_CELLS[name])
    assert not cells.has_tag(ODD_CELLS[name], "demo")
    assert cells.points_of(ODD_CELLS[name]) == 0.0


def test_odd_notebooks_have_the_code_cells_that_can_be_read() -> None:
    found = list(cells.code_cells({"cells": list(ODD_CELLS.values())}))
    assert [cell.source for _, cell in found] == ["x", "x", "x", "\ud800", ""]
    for odd in (None, [], {"cells": None}, {"cells": "code"}):
        assert list(cells.code_cells(odd)) == []
