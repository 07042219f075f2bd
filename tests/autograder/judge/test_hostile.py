"""Hostile notebooks earn what their answers are worth, change nothing outside, and leave no process behind."""

import contextlib
import os
import sqlite3
import time
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from autograder.judge import JUDGE, judge_apart
from autograder.sandbox.process.forkserver import warm_process
from autograder.sandbox.process.kind import STUDENT
from autograder.sandbox.process.limits import MEGABYTE, Limits
from tests.autograder.judge.notebooks import notebook, read_table, stock_points

pytestmark = pytest.mark.sandbox

HOSTILE = read_table(Path(__file__).with_name("hostile.txt"))
LIMITS = Limits(cell_seconds=2, query_seconds=1, grace_seconds=1, outputs=200)
SOONER = replace(LIMITS, cell_seconds=0.5, query_seconds=0.5, grace_seconds=0.25)
LESS_MEMORY = replace(LIMITS, memory=512 * MEGABYTE)  # full before the time is up
ENDLESS = {
    "an import that never ends",
    "children whose time nobody counts",
    "fork bomb",
    "endless equality",
    "endless function that swallows interrupts",
    "endless in C",
    "endless iterator",
    "endless loop in a cell",
    "endless loop in a function",
    "endless loop that swallows interrupts",
    "files without end",
    "output flood",
    "recursion",
    "signals ignored",
    "waits for itself",
}
"""Notebooks that do one thing forever, so they are cut off sooner. All others have the time to finish."""
LIMITS_OF = {**dict.fromkeys(ENDLESS, SOONER), "memory": LESS_MEMORY}
assert HOSTILE.keys() >= LIMITS_OF.keys()


def started() -> set[int]:
    """All processes started from here that still run, except the warm processes and the bubblewrap around them."""
    parents = {}
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit():
                status = (folder / "stat").read_text().rpartition(")")[2].split()
                parents[int(folder.name)] = (int(status[1]), status[0])
        except OSError:
            continue
    kept = {number for warm in map(warm_process, (STUDENT, JUDGE)) for number in (warm.pid, warm.popen.pid)}
    ours = {os.getpid()}
    while more := {number for number, (parent, _) in parents.items() if parent in ours} - ours:
        ours |= more
    return {number for number in ours if number in parents and parents[number][1] != "Z"} - kept - {os.getpid()}


def lasting(before: set[int]) -> list[str]:
    """The new processes that still run after a while: a process that is just ending takes a moment."""
    deadline = time.monotonic() + 300
    while (found := started() - before) and time.monotonic() < deadline:
        time.sleep(0.05)
    return [Path(f"/proc/{number}/cmdline").read_text() for number in found if Path(f"/proc/{number}").exists()]


SECRET = b"90210 is what nobody may see"


def decoy(folder: Path) -> Path:
    """A course with what a submission may not reach: others' marks, the secret, the source, the configuration."""
    source = folder / "source" / "ps1"
    source.mkdir(parents=True)
    (source / "ps1.ipynb").write_text('{"cells": "90210, the hidden tests"}')
    (folder / "nbgrader_config.py").write_text("c = get_config()  # 90210")
    (folder / ".autograder_secret").write_bytes(SECRET)
    with contextlib.closing(sqlite3.connect(folder / "gradebook.db")) as marks, marks:
        marks.execute("create table grade (student, auto_score)")
        marks.execute("insert into grade values ('90210', 3)")
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


HONEST = ["def add(a, b):\n    return a + b", "# test\nassert add(1, 2) == 3"]
MARKUP = ("text/html", "text/markdown", "text/latex", "image/svg+xml", "application/javascript")


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_notebook_earns_what_its_answers_are_worth(name, tmp_path, monkeypatch):
    course = decoy(tmp_path / "course")
    monkeypatch.chdir(course)
    everything = contents(tmp_path)
    cells, deserved = HOSTILE[name]
    judged = notebook(*(cell.replace("COURSE_ROOT", str(course)) for cell in cells))
    warm = [warm_process(kind) for kind in (STUDENT, JUDGE)]
    for one in warm:
        one.branch()
    before = started()  # tests of other parts may have left processes
    verdict = judge_apart(judged, limits=LIMITS_OF.get(name, LIMITS), secret=SECRET)
    assert [cell.points for cell in verdict.cells] == deserved, [cell.message for cell in verdict.cells]
    assert stock_points(judged) == deserved
    assert not lasting(before)
    assert contents(tmp_path) == everything
    assert len(str(judged)) < 1_000_000
    assert not may_act_or_tell(judged)
    assert not [cell for cell in verdict.cells if "90210" in cell.message]
    assert [warm_process(kind) for kind in (STUDENT, JUDGE)] == warm


def test_an_honest_notebook_is_judged_after_all_of_them():
    assert judge_apart(notebook(*HONEST), limits=LIMITS).points == 2


class Acting(HTMLParser):
    """Finds what would act or load something in a browser that shows this HTML."""

    def __init__(self):
        super().__init__()
        self.found = []

    def handle_starttag(self, tag, attrs):
        self.found += [tag] if tag in ("script", "iframe", "object", "embed", "form", "base", "meta", "link") else []
        for name, value in attrs:
            scheme = "".join((value or "").split()).lower().partition(":")[0]
            acts = name.startswith("on") or name == "srcdoc" or scheme in ("javascript", "vbscript")
            self.found += [f"{name}={value}"] if acts else []


def may_act_or_tell(judged):
    """What is forbidden in the outputs. Text that a browser shows as text may say anything except a secret."""
    found = []
    for output in (output for cell in judged.cells for output in cell.outputs):
        acting = Acting()
        acting.feed(output.get("data", {}).get("text/html", ""))
        found += acting.found
        found += [kind for kind, value in output.get("data", {}).items() if kind in MARKUP and "<script" in value]
        found += ["a secret"] if "90210" in str(output) else []
    return found
