"""Hostile notebooks earn what their answers are worth, change nothing outside, and leave no process behind."""

import os
from pathlib import Path

import pytest

from autograder.judge import judge_notebook
from autograder.sandbox import Limits
from autograder.sandbox.warm import warm_process
from tests.autograder.judge.notebooks import notebook, read_table, stock_points

pytestmark = pytest.mark.sandbox

HOSTILE = read_table(Path(__file__).with_name("hostile.txt"))
LIMITS = Limits(cell_seconds=2, query_seconds=1, grace_seconds=1, outputs=200)


def processes_left() -> list[str]:
    """Everything that was started from here and still runs, but for the warm process and the bubblewrap around it."""
    parents = {}
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit():
                status = (folder / "stat").read_text().rpartition(")")[2].split()
                parents[int(folder.name)] = (int(status[1]), status[0])
        except OSError:
            continue
    kept = {warm_process().pid, warm_process().popen.pid}
    ours = {os.getpid()}
    while more := {number for number, (parent, _) in parents.items() if parent in ours} - ours:
        ours |= more
    living = {number for number in ours if number in parents and parents[number][1] != "Z"} - kept - {os.getpid()}
    return [Path(f"/proc/{number}/cmdline").read_text() for number in living if Path(f"/proc/{number}").exists()]


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
