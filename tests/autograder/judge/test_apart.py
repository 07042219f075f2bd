"""A notebook is judged in a process of its own: nothing that happens there reaches the next one."""

from __future__ import annotations

import os
import random
import sys
import time
import warnings
from typing import Any, NoReturn

import numpy as np
import pytest

from autograder.judge import JUDGE, JudgeDied, Verdict, judge_apart
from autograder.judge.rehearsal import rehearse
from autograder.runs.alarm import alarm
from autograder.sandbox.process import forkserver
from autograder.sandbox.process.kind import STUDENT, Kind
from autograder.sandbox.process.limits import Limits
from benchmarks.grading.measuring import below, stat_of
from tests.autograder.judge.notebooks import notebook

pytestmark = pytest.mark.sandbox

LEAVES_STATE = "# test\nold = np.seterr(all='raise')\nassert g(3) == 4\nnp.seterr(**old)"
PATCHES = "# test\nimport numpy\nnumpy.allclose, kept = (lambda *a: True), numpy.allclose\ng(3)\nnumpy.allclose = kept"
GOOD, RAISING, WRONG = "import numpy as np\ndef g(x): return x + 1", "def g(x): raise ValueError", "def g(x): return x"
DEADLY = "# test\nimport os\nos._exit(3)"


def points(*cells: str, **options: Any) -> list[float]:
    return [cell.points for cell in judge_apart(notebook(*cells), **options).cells]


@pytest.mark.parametrize("test", [LEAVES_STATE, PATCHES])
def test_what_a_test_changes_and_does_not_restore_ends_with_it(test: str) -> None:
    before = np.geterr(), np.allclose
    underflow = "# test\nimport numpy as np\nassert np.exp(np.float64(-1000)) == 0"
    wrong = "# test\nimport numpy as np\nassert np.allclose(g(3), 4)"
    assert points(RAISING, test, underflow)[0] == 0
    assert (np.geterr(), np.allclose) == before
    assert points(GOOD, test, underflow, wrong) == [2, 2, 2]
    assert points(WRONG, wrong) == [0]


def test_the_notebook_gets_its_outputs() -> None:
    judged = notebook("print('seen')", GOOD, "# test\nassert g(1) == 3")
    verdict = judge_apart(judged)
    assert isinstance(verdict, Verdict)
    assert judged.cells[0].outputs[0].text == "seen\n"
    assert judged.cells[2].outputs[-1].output_type == "error"


def test_what_is_wrong_with_the_call_is_raised_here() -> None:
    with pytest.raises(TypeError, match="no_such_option"):
        judge_apart(notebook(GOOD), no_such_option=1)


def test_a_test_that_ends_its_process_costs_nobody_else_anything() -> None:
    with pytest.raises(JudgeDied, match="ended without an answer"):
        judge_apart(notebook(GOOD, DEADLY))
    assert points(GOOD, "# test\nassert g(1) == 2") == [2]


def test_a_test_that_no_alarm_reaches_is_ended() -> None:
    """A sum in C does not notice signals, and the submission decides how long it takes."""
    endless = notebook("def n(): return 10**10", "# test\nassert sum(range(n())) > 0")
    with pytest.raises(JudgeDied, match="processor time"):
        judge_apart(endless, limits=Limits(cell_seconds=0.2, grace_seconds=0.1))


@pytest.mark.parametrize("kind", [STUDENT, JUDGE], ids=lambda kind: kind.name)
def test_notebooks_share_the_warm_processes(kind: Kind) -> None:
    points(GOOD)
    warm = forkserver.warm_process(kind)
    points(GOOD)
    assert forkserver.warm_process(kind) is warm


def interrupt() -> NoReturn:
    raise KeyboardInterrupt


def running() -> set[int]:
    """All processes started from here that have not ended."""
    return {number for number in below(os.getpid()) if stat_of(number)[:1] not in ([], ["Z"])}


@pytest.mark.parametrize("cells", [("while True: pass",), (GOOD, "# test\nwhile True: pass")])
def test_ctrl_c_leaves_nothing_running(cells: tuple[str, ...]) -> None:
    points(GOOD)
    before = running()
    with pytest.raises(KeyboardInterrupt), alarm(1.0, interrupt):
        judge_apart(notebook(*cells), limits=Limits(cell_seconds=600))
    deadline = time.monotonic() + 60
    while running() - before:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert points(GOOD, "# test\nassert g(1) == 2") == [2]


def test_a_rehearsal_leaves_the_process_as_it_was() -> None:
    """It runs in the process that all judges of a class are forked from."""
    solution = "# from autograder.student\ndef g(x): return x + 1"
    forgets = """# test
import os, sys, random, numpy as np
np.seterr(all='raise')
random.seed(3)
os.chdir('/')
sys.path.append('x')
os.environ['LEFT'] = 'here'
assert g(1) == 2"""
    before = np.geterr(), random.getstate(), os.getcwd(), list(sys.path), dict(os.environ)
    rehearse(notebook(solution, forgets), files={})
    assert (np.geterr(), random.getstate(), os.getcwd(), list(sys.path), dict(os.environ)) == before
    rehearse(notebook("def g(x: return", "# test\nassert ("))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        rehearse(notebook("x = 2", "# test\nassert x is 2 or x == 2"))  # Python warns of `is` when it compiles this
    assert said == []
    rehearse({"cells": 3})
