"""What ends a submission's code is the processor time that it used: a machine that has none to give costs no mark."""

import os
import signal
import subprocess
import sys
import threading

import pytest

from autograder.judge import judge_notebook
from autograder.sandbox import Limits, Sandbox
from autograder.sandbox.allowance import (
    ASLEEP,
    AT_MOST,
    Allowance,
    Usage,
    descendants,
    usage_of_process,
    usage_of_this_thread,
    usage_of_tree,
)
from tests.autograder.judge.notebooks import notebook

LIMIT = 10.0


@pytest.mark.parametrize(
    ("passed", "used", "waited", "over"),
    [
        (9.0, 9.0, 0.0, False),
        (11.0, 11.0, 0.0, True),
        (11.0, 2.0, 9.0, False),
        (50.0, 9.0, 41.0, False),  # a machine five times overloaded
        (50.0, 10.5, 39.5, True),
        (25.0, 0.0, 0.0, False),  # asleep
        (31.0, 0.0, 0.0, True),
        (AT_MOST * LIMIT + 1, 0.0, AT_MOST * LIMIT, True),
        (9.0, 18.0, 0.0, False),  # two processors at once are allowed until the time by the clock is over
        (11.0, 18.0, 0.0, True),
    ],
)
def test_an_allowance_is_processor_time(passed, used, waited, over):
    now = [0.0]
    usages = [Usage(5.0, {1: 7.0})]
    allowance = Allowance(LIMIT, lambda: usages[-1], clock=lambda: now[0])
    now[0] = passed
    usages.append(Usage(5.0 + used, {1: 7.0 + waited}))
    assert (allowance.wait() == 0) is over
    if passed > LIMIT / 2:
        assert (allowance.left() <= 0) is (over or used > LIMIT)


def test_where_nothing_can_be_measured_the_clock_counts():
    now = [0.0]
    allowance = Allowance(LIMIT, lambda: None, clock=lambda: now[0])
    assert allowance.wait() == LIMIT
    now[0] = LIMIT + 1
    assert allowance.wait() == 0
    assert allowance.left() < 0


def test_a_process_that_has_just_ended_has_used_nothing_more():
    now = [0.0]
    usages = [Usage(5.0, {1: 7.0}), None]
    allowance = Allowance(LIMIT, lambda: usages.pop(0) if usages else None, clock=lambda: now[0])
    now[0] = LIMIT + 1
    assert allowance.wait() > 0
    now[0] = ASLEEP * LIMIT + 1
    assert allowance.wait() == 0


def test_the_time_of_descendants_counts():
    assert descendants({2: 1, 3: 2, 4: 3, 5: 1, 1: 0, 9: 9}, 2) == {2, 3, 4}
    burn = "import time\nwhile time.process_time() < 0.3: pass\nprint('done', flush=True)\ninput()"
    nested = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {burn!r}])"
    command = [sys.executable, "-c", nested]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "done\n"
        assert usage_of_tree(child.pid).processor >= 0.25
        assert usage_of_process(child.pid).processor < usage_of_tree(child.pid).processor
        child.communicate("\n")
    assert usage_of_tree(child.pid) is None
    assert usage_of_this_thread().processor > 0


def stop_for(process, seconds):
    """A machine without a processor to give, for a while: the same for the code that runs."""
    os.kill(process, signal.SIGSTOP)
    threading.Timer(seconds, os.kill, (process, signal.SIGCONT)).start()


@pytest.mark.sandbox
def test_a_cell_that_gets_no_processor_for_a_while_is_not_stopped():
    with Sandbox(Limits(cell_seconds=1, query_seconds=1, grace_seconds=1)) as sandbox:
        sandbox.execute("def slow():\n    import time\n    while time.process_time() - began < 0.6: pass\n    return 3")
        sandbox.execute("import time; began = time.process_time()")
        stop_for(sandbox._process.process.pid, 1.2)
        assert sandbox.lookup("slow")() == 3
        sandbox.execute("began = time.process_time()")
        stop_for(sandbox._process.process.pid, 1.2)
        result = sandbox.execute("slow()")
        assert result.error is None
        assert result.seconds > 1.1
        assert sandbox.starts == 1


@pytest.mark.sandbox
def test_what_only_sleeps_is_stopped_as_well():
    with Sandbox(Limits(cell_seconds=0.3, query_seconds=0.3, grace_seconds=1)) as sandbox:
        result = sandbox.execute("import time\ntime.sleep(1000)")
        assert result.timed_out
        assert result.seconds < 100
        assert sandbox.execute("import subprocess\nsubprocess.run(['sleep', '1000'])").timed_out


@pytest.mark.sandbox
def test_a_child_that_computes_counts():
    with Sandbox(Limits(cell_seconds=0.5, grace_seconds=1)) as sandbox:
        code = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'while True: pass'])"
        assert sandbox.execute(code).timed_out


@pytest.mark.sandbox
def test_an_overloaded_machine_costs_no_mark():
    """More processes that compute than this machine has processors, as many times as fit a quick test."""
    busy = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(3 * min(os.cpu_count() or 1, 4))
    ]
    try:
        slow = (
            "from time import process_time as now\ndef f(x):\n    began = now()\n    while now() - began < 0.4: pass\n"
        )
        limits = Limits(cell_seconds=1, query_seconds=1, grace_seconds=1)
        cells = [slow + "    return x", "f(1)", "# test\nassert f(1) == 1", "# test\nassert f(2) == 2"]
        verdict = judge_notebook(notebook(*cells), limits=limits)
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert [cell.points for cell in verdict.cells] == [2, 2], verdict.cells
    assert verdict.restarts == 0
