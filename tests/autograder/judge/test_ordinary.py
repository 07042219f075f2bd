"""Ordinary notebooks earn under the judge exactly what they earn in one plain IPython namespace."""

import copy
from pathlib import Path

import pytest

from autograder.judge import judge_notebook
from tests.autograder.judge.notebooks import notebook, plain_points, read_table, stock_points

pytestmark = pytest.mark.sandbox

ORDINARY = read_table(Path(__file__).with_name("ordinary.txt"))


@pytest.mark.parametrize("name", ORDINARY)
def test_an_ordinary_notebook_earns_what_it_earns_in_one_namespace(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    judged = notebook(*ORDINARY[name][0])
    expected = plain_points(copy.deepcopy(judged))
    verdict = judge_notebook(judged)
    assert [cell.points for cell in verdict.cells] == expected, [cell.message for cell in verdict.cells]
    assert stock_points(judged) == expected
