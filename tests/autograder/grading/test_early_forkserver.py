"""Before an assignment is read, the process that workers share loads the libraries that its source names."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

from autograder.grading.workers.early_forkserver import Needs, needs_of

SHARES = """
from autograder.grading.workers import early_forkserver
from autograder.grading.workers.pool import WorkerPool
from autograder.sandbox.process import forkserver
from tests.autograder.grading.test_early_forkserver import found, nothing
if __name__ == "__main__":
    early_forkserver.warm_up(early_forkserver.Needs(False, ("csv", "wave")))
    pool = WorkerPool(found, 2, nothing, (), early_forkserver.PRELOAD)
    print([outcome for _, outcome in pool.run(range(6))][:1])
"""


def nothing() -> None:
    """Initialize a worker: nothing to do."""


def found(task: int) -> tuple[bool, list[float], str]:
    """Whether this worker's warm processes are the inherited ones, and whether a library is where judges and
    submissions run.
    """
    from autograder.judge import JUDGE, judge_apart
    from autograder.sandbox.process import forkserver
    from autograder.sandbox.process.kind import STUDENT
    from tests.autograder.judge.notebooks import notebook

    inherited = dict(forkserver._current)
    forkserver.preload(["wave"])
    forkserver.preload([], JUDGE)
    judged = notebook("import sys\n'wave' in sys.modules", "# test\nimport sys\nassert 'wave' in sys.modules")
    points = [cell.points for cell in judge_apart(judged).cells]
    same = [forkserver.warm_process(kind).pid == inherited[kind.name].pid for kind in (STUDENT, JUDGE)]
    return all(same), points, judged.cells[0].outputs[0]["data"]["text/plain"]


@pytest.mark.sandbox
def test_workers_share_the_warm_processes_and_their_libraries() -> None:
    done = subprocess.run([sys.executable, "-c", SHARES], capture_output=True, text=True, check=True)
    assert done.stdout == "[(True, [2.0], 'True')]\n"
    assert done.stderr == ""


BEGINS = """
import threading, wave
from autograder.grading.workers.early_forkserver import start_server
from autograder.grading.workers.pool import WorkerPool
from tests.autograder.grading.test_early_forkserver import has_wave, nothing
if __name__ == "__main__":
    waiting = threading.Event()
    if THREADED:
        threading.Thread(target=waiting.wait).start()
    start_server(())
    print(list(WorkerPool(has_wave, 1, nothing, ()).run([0])))
    waiting.set()
"""


def has_wave(task: int) -> bool:
    return "wave" in sys.modules


@pytest.mark.parametrize("threaded", [False, True])
def test_workers_begin_with_what_is_imported_unless_threads_run(threaded: bool) -> None:
    """A fork would lose threads, and with them what they hold. Only Linux says whether there are any."""
    program = f"THREADED = {threaded}\n{BEGINS}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == f"[(0, {not threaded and sys.platform == 'linux'})]\n"
    assert done.stderr == ""


OWN_HELPERS = """
from autograder.grading.workers.early_forkserver import start_server
from autograder.grading.workers.pool import WorkerPool
from tests.autograder.grading.test_early_forkserver import nothing, started_by_a_worker
if __name__ == "__main__":
    start_server(())
    print(list(WorkerPool(started_by_a_worker, 1, nothing, ()).run([4])))
"""


def started_by_a_worker(task: int) -> int:
    """A worker that uses multiprocessing itself, with a lock and a fork server of its own."""
    context = multiprocessing.get_context("forkserver")
    with context.Pool(1) as pool:
        return pool.apply(abs, (-task,))


def test_workers_can_use_multiprocessing_themselves() -> None:
    """What workers are forked from is as good as new: it knows no helpers of the run's, and holds none of its locks."""
    done = subprocess.run([sys.executable, "-c", OWN_HELPERS], capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout == "[(4, 4)]\n"


HOLDS = """
from autograder.grading.workers.early_forkserver import start_server
from autograder.grading.workers.pool import WorkerPool
from tests.autograder.grading import test_early_forkserver as here
if __name__ == "__main__":
    here.held = [open(here.__file__) for _ in range(20)]
    start_server(())
    print(list(WorkerPool(here.behind_what_it_holds, 1, here.nothing, ()).run([0])))
"""
held: list[IO[str]] = []


def behind_what_it_holds(task: int) -> set[str]:
    """What a worker would close with the files of the process that started the run."""
    return {os.readlink(f"/proc/self/fd/{file.fileno()}") for file in held}


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere, workers begin as new processes")
def test_a_worker_that_forgets_what_the_run_held_closes_nothing_of_its_own() -> None:
    done = subprocess.run([sys.executable, "-c", HOLDS], capture_output=True, text=True, check=True)
    assert done.stdout == "[(0, {'/dev/null'})]\n"


def test_the_process_that_starts_a_run_imports_neither_the_judge_nor_numpy() -> None:
    """Its own imports are what a run waits for first, and only workers need these."""
    program = "import sys, autograder.grading.run; print(sys.modules.keys() & {'autograder.judge', 'numpy'})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def course(folder: Path, *texts: str) -> Path:
    """A course with one assignment, a notebook for each text."""
    source = folder / "source" / "words"
    source.mkdir(parents=True)
    for number, text in enumerate(texts):
        (source / f"{number}.ipynb").write_text(text)
    return folder


def notebook(*cells: str) -> str:
    return json.dumps({"cells": [{"cell_type": "code", "metadata": {}, "source": cell} for cell in cells]})


@pytest.mark.parametrize(
    ("texts", "needs"),
    [
        ((), Needs(True, None)),
        ((notebook("x = 1"),), Needs(False, (), lesson=False)),
        (
            (notebook("%matplotlib inline\nimport numpy as np"), notebook("from pandas import Series")),
            ("numpy", "pandas"),
        ),
        ((notebook("import torch"),), Needs(True, ("torch",), lesson=False)),
        ((notebook("x = 1"), notebook("from autograder.student import check_gradients")), Needs(True, ())),
        ((notebook("import helper_of_the_course, os.path"),), Needs(False, ("os.path",), lesson=False)),
        (("half sav",), Needs(False, None)),
        (("[]",), Needs(False, ())),
    ],
    ids=["no source", "plain", "libraries", "PyTorch", "our checks", "helper", "damaged", "no notebook"],
)
def test_what_the_source_names_is_needed(
    tmp_path: Path, texts: tuple[str, ...], needs: Needs | tuple[str, ...]
) -> None:
    expected = needs if isinstance(needs, Needs) else Needs(False, needs, lesson=False)
    assert needs_of(course(tmp_path, *texts), "words") == expected
