"""A submission's code is stopped for the processor time that it used: an overloaded machine costs no mark."""

import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from autograder.judge.judge import judge_notebook
from autograder.sandbox.process import allowance
from autograder.sandbox.process.allowance import (
    ASLEEP,
    AT_MOST,
    Allowance,
    Usage,
    descendants,
    usage_of_process,
    usage_of_this_thread,
    usage_of_tree,
)
from autograder.sandbox.process.limits import Limits, NotAnswered
from autograder.sandbox.sandbox import Sandbox
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


@pytest.mark.parametrize(
    ("asleep", "computed", "waited", "over"),
    [
        (lambda look: True, 0.0, 0.0, 1.2 * LIMIT),
        (lambda look: True, 0.04, 0.0, 1.2 * LIMIT),  # a look takes time
        (lambda look: True, 0.2, 0.0, ASLEEP * LIMIT + 1),  # it gets a processor now and then
        (lambda look: True, 0.0, 0.2, ASLEEP * LIMIT * 1.25 + 1),  # or waits for one
        (lambda look: False, 0.0, 0.0, ASLEEP * LIMIT + 1),  # it waits for a disk
        (lambda look: look % 2 > 0, 0.0, 0.0, ASLEEP * LIMIT + 1),
        (lambda look: look > 5, 0.0, 0.0, 1.8 * LIMIT),
    ],
)
def test_sleep_counts_by_the_clock(asleep, computed, waited, over):
    """`computed` and `waited`: seconds in each second by the clock."""
    now = [0.0]

    def usage():
        return Usage(computed * now[0], {1: waited * now[0]}, asleep(round(now[0])))

    allowance = Allowance(LIMIT, usage, clock=lambda: now[0])
    while wait := allowance.wait():
        assert wait > 0
        now[0] += wait
        assert now[0] <= over
    assert over - 0.3 * LIMIT < now[0] <= over
    assert allowance.left() <= 0


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


BY_THREAD = "import threading\nthread = threading.Thread(target=endless)\nthread.start()\nthread.join()"
BY_CHILD = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'while True: pass'])"


@pytest.mark.parametrize(
    ("code", "asleep"),
    [("input()", True), ("endless()", False), (BY_THREAD, False), (BY_CHILD, False)],
)
def test_what_waits_for_its_own_work_does_not_sleep(code, asleep):
    source = f"print('begun', flush=True)\ndef endless():\n    while True: pass\n{code}"
    command = [sys.executable, "-c", source]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True) as child:
        child.stdout.readline()
        while asleep and not usage_of_tree(child.pid).asleep:
            time.sleep(0.01)
        while not asleep and usage_of_tree(child.pid).processor < 0.5:  # until the work has begun
            time.sleep(0.01)
        seen = [usage_of_tree(child.pid).asleep for _ in range(20)]
        os.killpg(child.pid, signal.SIGKILL)
    assert seen == [asleep] * 20


def stop_for(process, seconds):
    """Stop a process for a while: to its code, this looks like a machine without a free processor."""
    os.kill(process, signal.SIGSTOP)
    threading.Timer(seconds, os.kill, (process, signal.SIGCONT)).start()


@pytest.mark.sandbox
def test_a_cell_that_gets_no_processor_for_a_while_is_not_stopped():
    with Sandbox(Limits(cell_seconds=0.5, query_seconds=0.5, grace_seconds=1)) as sandbox:
        sandbox.execute("def slow():\n    import time\n    while time.process_time() - began < 0.3: pass\n    return 3")
        sandbox.execute("import time; began = time.process_time()")
        stop_for(sandbox._process.process.pid, 0.6)
        assert sandbox.lookup("slow")() == 3
        sandbox.execute("began = time.process_time()")
        stop_for(sandbox._process.process.pid, 0.6)
        result = sandbox.execute("slow()")
        assert result.error is None
        assert result.seconds > 0.55
        assert sandbox.starts == 1


@pytest.mark.sandbox
def test_what_only_sleeps_is_stopped_as_well():
    with Sandbox(Limits(cell_seconds=0.3, query_seconds=0.3, grace_seconds=1)) as sandbox:
        result = sandbox.execute("import time\ntime.sleep(1000)")
        assert result.timed_out
        assert result.seconds < 100
        assert sandbox.execute("import subprocess\nsubprocess.run(['sleep', '1000'])").timed_out


@pytest.mark.sandbox
def test_a_submission_that_nobody_asks_does_not_sleep_at_its_own_cost():
    """While a test computes on this side, or waits for a processor here, the submission's process has nothing to do."""
    with Sandbox() as sandbox:
        sandbox.execute("x = 1")
        while not sandbox._process.process.usage().asleep:
            time.sleep(0.01)
        assert not sandbox.usage().asleep


@pytest.mark.sandbox
def test_what_only_sleeps_is_stopped_without_the_generous_limits(monkeypatch):
    monkeypatch.setattr(allowance, "ASLEEP", 1e9)
    monkeypatch.setattr(allowance, "AT_MOST", 1e9)
    with Sandbox(Limits(cell_seconds=1, query_seconds=1, grace_seconds=1)) as sandbox:
        assert sandbox.execute("import time\ntime.sleep(100)").timed_out
        assert sandbox.execute("import threading\nthreading.Event().wait(100)").timed_out
        assert sandbox.execute("def f(): time.sleep(100)").error is None
        with pytest.raises(NotAnswered):
            sandbox.lookup("f")()
        assert sandbox.execute("time.sleep(0.5)").error is None
        assert sandbox.starts == 1
    cells = ["import time\ndef f():\n    for _ in range(1000): time.sleep(0.1)", "# test\nf()"]
    verdict = judge_notebook(notebook(*cells), limits=Limits(cell_seconds=2, query_seconds=60, grace_seconds=1))
    assert "too long" in verdict.cells[0].message


@pytest.mark.sandbox
def test_a_child_that_computes_counts():
    with Sandbox(Limits(cell_seconds=0.5, grace_seconds=1)) as sandbox:
        code = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'while True: pass'])"
        assert sandbox.execute(code).timed_out


@pytest.mark.sandbox
def test_an_overloaded_machine_costs_no_mark():
    """Three computing processes for each processor of this machine, but at most twelve."""
    busy = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(3 * min(os.cpu_count() or 1, 4))
    ]
    try:
        slow = (
            "from time import process_time as now\ndef f(x):\n    began = now()\n    while now() - began < 0.2: pass\n"
        )
        limits = Limits(cell_seconds=0.5, query_seconds=0.5, grace_seconds=1)
        cells = [slow + "    return x", "f(1)", "# test\nassert f(1) == 1", "# test\nassert f(2) == 2"]
        verdict = judge_notebook(notebook(*cells), limits=limits)
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert [cell.points for cell in verdict.cells] == [2, 2], verdict.cells
    assert verdict.restarts == 0
