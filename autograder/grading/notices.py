"""What an instructor should know of an assignment as a whole before believing its marks. Changes none of them."""

from __future__ import annotations

from collections.abc import Iterator

from autograder.grading.assignments import Assignment
from autograder.nbgrader_plugins.known_cells import cells_in_rows
from autograder.nbgrader_plugins.lost_points import ADVICE, lost_points, tests_known


def notices(assignment: Assignment) -> list[str]:
    """Sentences, each about one cell, and at last what to do; none where all is well."""
    found = list(_lost_points(assignment))
    return [*found, ADVICE.format(assignment=assignment.name)] if found else []


def _lost_points(assignment: Assignment) -> Iterator[str]:
    for row in sorted(assignment.rows["notebook"], key=lambda row: row["name"]):
        yield from lost_points(row["name"], tests_known(cells_in_rows(assignment.rows, row["id"])))
