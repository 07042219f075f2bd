"""Regions are where nbgrader's preprocessors find them; a region that is not closed is hidden to the end."""

from __future__ import annotations

import pytest
from nbformat.v4 import new_code_cell
from nbgrader.preprocessors import ClearHiddenTests

from autograder.notebooks.regions import edges, hidden_lines, regions, without_hidden_tests

BEGIN, END = "### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS"
HIDDEN = {
    "one": (["a", BEGIN, "b", END, "c"], {2, 3, 4}),
    "two": ([BEGIN, "a", END, "b", BEGIN, END], {1, 2, 3, 5, 6}),
    "in other words": (["x = 1  # BEGIN HIDDEN TESTS, END HIDDEN TESTS", "a", "'END HIDDEN TESTS'", "b"], {1, 2, 3}),
    "none": (["a", END, "### BEGIN SOLUTION", "b", "### END SOLUTION"], set()),
    "a form feed in a line": (["a\x0cb", BEGIN, "c", END], {2, 3, 4}),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_the_lines_of_hidden_tests(name: str) -> None:
    lines, hidden = HIDDEN[name]
    source = "\n".join(lines)
    assert hidden_lines(source) == hidden
    assert without_hidden_tests(source).split("\n") == ["" if n in hidden else line for n, line in enumerate(lines, 1)]
    cell = new_code_cell(source)
    ClearHiddenTests()._remove_hidden_test_region(cell)  # what a release leaves of them
    left = [line for n, line in enumerate(lines, 1) if n not in hidden and "END HIDDEN" not in line]
    assert cell.source.split("\n") == left


def test_a_region_that_is_not_closed_goes_on_to_the_end() -> None:
    assert hidden_lines(f"a\n{BEGIN}\nb\nc") == {2, 3, 4}


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_are_counted_as_python_counts_them(end: str) -> None:
    assert hidden_lines(end.join(["a", BEGIN, "b", END, "c"])) == {2, 3, 4}


def test_regions_have_their_kind_and_text() -> None:
    source = "a\n### BEGIN SOLUTION\nb\nc\n### END SOLUTION\n### BEGIN MARK SCHEME\nd\n### END MARK SCHEME"
    assert [(region.kind, region.text) for region in regions(source)] == [("SOLUTION", "b\nc"), ("MARK SCHEME", "d")]
    assert [str(edge) for edge in edges(source)][:2] == ["BEGIN SOLUTION", "END SOLUTION"]
