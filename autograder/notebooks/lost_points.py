"""Reports, when an assignment is graded, test cells that lose the points of their checks.

A release refuses such cells, but students may have a release that was made by an earlier version. Marks are not
changed: whether to fix the test and grade again is the instructor's decision.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nbformat import NotebookNode

from autograder.notebooks.cells import grade_id, is_test
from autograder.notebooks.known_cells import Known
from autograder.notebooks.unclaimed import unclaimed_points

ADVICE = (
    "No marks were changed. Fix the source of {assignment}, run "
    "`nbgrader generate_assignment {assignment} --force`, and grade again."
)


def tests_known(known: Known) -> Iterator[tuple[str, str]]:
    """The name and source of each test cell that the gradebook knows."""
    for cell in known.values():
        if cell.grade and not cell.solution and cell.cell_type == "code":
            yield cell.name, cell.source


def tests_in(notebook: NotebookNode) -> Iterator[tuple[str, str]]:
    """The name and source of each test cell in a notebook whose test cells have been put back."""
    for cell in notebook.cells:
        if is_test(cell):
            yield grade_id(cell), cell.source


def lost_points(notebook: str, tests: Iterable[tuple[str, str]]) -> Iterator[str]:
    """A sentence for each test cell that loses points: where, and what to write. `tests` are names and sources."""
    for name, source in tests:
        if lost := unclaimed_points(source):
            yield f"test cell {name!r} of {notebook}.ipynb, line {lost[0]}: {lost[1]}."
