"""Ordinary notebooks earn under the judge exactly what they earn in one plain IPython namespace. Notebooks that cannot
be judged from outside are marked in the table as judged inside.
"""

import copy
from pathlib import Path

import pytest

from autograder.judge.judge import judge_notebook
from autograder.notebooks.cells import code_cells
from tests.autograder.judge.notebooks import notebook, plain_points, read_table, stock_points

pytestmark = pytest.mark.sandbox

ORDINARY = read_table(Path(__file__).with_name("ordinary.txt"))


@pytest.mark.parametrize("name", ORDINARY)
def test_an_ordinary_notebook_earns_what_it_earns_in_one_namespace(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    judged = notebook(*ORDINARY[name][0])
    expected = plain_points(copy.deepcopy(judged))
    inside = [cell.grade_id for _, cell in code_cells(judged) if cell.is_test] if name.endswith("(inside)") else ()
    verdict = judge_notebook(judged, inside=inside)
    assert [cell.points for cell in verdict.cells] == expected, [cell.message for cell in verdict.cells]
    assert stock_points(judged) == expected
