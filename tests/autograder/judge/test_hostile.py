"""Hostile notebooks earn what their answers are worth, change nothing outside, and leave no process behind."""

import os
from pathlib import Path

import pytest

from autograder.judge import judge_notebook
from autograder.sandbox import Limits
from tests.autograder.judge.notebooks import notebook, read_table, stock_points

pytestmark = pytest.mark.sandbox

HOSTILE = read_table(Path(__file__).with_name("hostile.txt"))
MARK = 1_000_000 + os.getpid()  # a number that appears in the command line of every sandbox started here
LIMITS = Limits(cell_seconds=2, query_seconds=1, grace_seconds=1, outputs=200, output_bytes=MARK)


def processes_left() -> list[str]:
    found = []
    for folder in Path("/proc").iterdir():
        try:
            command = (folder / "cmdline").read_text() if folder.name.isdigit() else ""
        except OSError:
            continue
        if str(MARK) in command:
            found.append(command)
    return found


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_notebook_earns_what_its_answers_are_worth(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cells, deserved = HOSTILE[name]
    judged = notebook(*cells)
    verdict = judge_notebook(judged, limits=LIMITS)
    assert [cell.points for cell in verdict.cells] == deserved, [cell.message for cell in verdict.cells]
    assert stock_points(judged) == deserved
    assert not processes_left()
    assert list(tmp_path.iterdir()) == []
    assert len(str(judged)) < 1_000_000
