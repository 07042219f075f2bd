"""If a sandbox does not start, there are no marks: the submission is not graded and keeps its earlier marks."""

from __future__ import annotations

import json
import multiprocessing
from pathlib import Path
from typing import Any

import pytest

from autograder.cli import main
from autograder.grading.submission.grader import Grader
from autograder.judge.judge import judge_notebook
from autograder.sandbox.process import isolation
from autograder.sandbox.process.limits import SandboxDied, SandboxUnavailable
from autograder.sandbox.process.starting import FreshProcess
from tests.autograder.grading.here import grade, in_this_process
from tests.autograder.judge.notebooks import notebook

pytestmark = pytest.mark.sandbox

BWRAP = """#!/bin/sh
for word in "$@"; do
    if [ "$word" = --proc ]; then
        echo "bwrap: Can't mount proc on /newroot/proc: Operation not permitted" >&2
        exit 1
    fi
done
exec {bwrap} "$@"
"""


def only_the_first(monkeypatch: pytest.MonkeyPatch, starts: int) -> None:
    """Let this many sandboxes start, in this process and its forks together, and none after them."""
    started = multiprocessing.Value("i", 0)

    def wait(process: Any, connection: Any, deadline: float) -> None:
        started.value += 1
        if started.value > starts:
            raise SandboxDied("no more processes")

    monkeypatch.setattr("autograder.sandbox.process.process.why_not_warm", lambda: "forks are not tried here")
    monkeypatch.setattr(FreshProcess, "wait_until_ready", wait)


def test_the_trial_mounts_what_a_submission_gets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refusing = tmp_path / "bwrap"
    refusing.write_text(BWRAP.format(bwrap=isolation.shutil.which("bwrap")))
    refusing.chmod(0o755)
    monkeypatch.setattr(isolation.shutil, "which", lambda name: str(refusing))
    isolation.isolation_available.cache_clear()
    try:
        found = isolation.isolation_available()
    finally:
        isolation.isolation_available.cache_clear()
    assert not found
    assert "may not mount /proc" in found.description
    assert "systempaths=unconfined" in found.description


@pytest.mark.parametrize("starts", [0, 1])
def test_a_notebook_gets_no_verdict(monkeypatch: pytest.MonkeyPatch, starts: int) -> None:
    """Neither if nothing starts, nor if it does not start again, even if the test catches everything."""
    only_the_first(monkeypatch, starts)
    leaves = "# test\nfor _ in range(3):\n    try:\n        leave()\n    except Exception:\n        pass"
    cells = ["import os\ndef leave(): os._exit(1)", leaves]
    with pytest.raises(SandboxUnavailable, match="no more processes"):
        judge_notebook(notebook(*cells))


@pytest.mark.parametrize("own_steps", [False, True])
def test_earlier_marks_stay(
    small_course: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, own_steps: bool
) -> None:
    """This also holds where nbgrader's preprocessors grade."""
    if own_steps:
        monkeypatch.setattr(Grader, "_needs_own_steps", lambda *_: True)
    for student in ("ann", "bob"):
        small_course.submit(student, small_course.answered())
    earlier = grade(small_course, "bob").points
    assert earlier
    graded = small_course.root / "autograded/bob/words"
    before = {path.name: path.read_bytes() for path in graded.iterdir()}
    only_the_first(monkeypatch, 3)  # a judge's and those of a submission that runs twice
    found = tmp_path / "marks.json"
    with in_this_process():
        assert main(["grade", "words", "--course", str(small_course.root), "--force", "--json", str(found)]) == 1
    records = {record["student"]: record for record in json.loads(found.read_text())}
    assert records["ann"]["status"] == "graded"
    assert records["ann"]["points"] == earlier
    assert records["bob"]["status"] == "not graded"
    assert records["bob"]["points"] is None
    assert "no more processes" in records["bob"]["reason"]
    assert {path.name: path.read_bytes() for path in graded.iterdir()} == before
    monkeypatch.undo()
    assert grade(small_course, "bob").points == earlier
