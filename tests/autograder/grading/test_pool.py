"""A process that dies costs its own task, but no other task and never the run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import pytest

from autograder.grading.workers.pool import Died, Pool, WorkerPool


def prepare(greeting: str) -> None:
    os.environ["POOL_GREETING"] = greeting


def work(task: str) -> str:
    if task.startswith("exit"):
        os._exit(3)
    if task.startswith("kill"):
        time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGKILL)
    if task == "error":
        raise ValueError("ours")
    return f"{os.environ['POOL_GREETING']} {task}"


def run(tasks: list[str], workers: int, together: int = 1) -> dict[str, object]:
    pool: Pool[str, str] = WorkerPool(work, workers, prepare, ("hello",))
    if together > 1:
        pool = Pool(pool.function, workers, pool.executor, pool.broken, together=lambda waiting: together)
    results = list(pool.run(tasks))
    assert sorted(task for task, _ in results) == sorted(tasks), "each task has exactly one result"
    return dict(results)


@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize("tasks", [[], ["a"], ["a", "b", "c", "d"]], ids=len)
def test_every_task_has_its_result(tasks: list[str], workers: int) -> None:
    assert run(tasks, workers) == {task: f"hello {task}" for task in tasks}


@pytest.mark.slow
@pytest.mark.parametrize(
    "tasks",
    [["exit"], ["a", "exit", "b", "c"], ["kill 1", "a", "exit 2", "b", "c", "exit 3"], ["exit 1", "exit 2", "a"]],
    ids=["alone", "among others", "three of six", "both workers at once"],
)
@pytest.mark.parametrize("together", [1, 2, 7])
def test_a_task_that_kills_its_process_costs_nobody_else(tasks: list[str], together: int) -> None:
    results = run(tasks, 2, together)
    for task, result in results.items():
        assert result == (f"hello {task}" if len(task) == 1 else Died(task))


def test_a_process_that_starts_while_the_pool_breaks_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    start = ProcessPoolExecutor._spawn_process

    def start_late(executor: Any) -> None:
        deadline = time.monotonic() + 0.5
        while executor._processes and not executor._broken and time.monotonic() < deadline:
            time.sleep(0.01)  # the first one dies meanwhile, if it has a task
        start(executor)

    monkeypatch.setattr(ProcessPoolExecutor, "_spawn_process", start_late)
    results: dict[str, object] = {}
    running = threading.Thread(target=lambda: results.update(run(["exit", "a"], 2)), daemon=True)
    running.start()
    running.join(60)
    assert results == {"exit": Died("exit"), "a": "hello a"}


def handler(task: str) -> bool:
    return signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_ctrl_c_does_not_reach_what_workers_are_forked_from() -> None:
    program = (
        "import signal\nfrom multiprocessing import forkserver\n"
        "from autograder.grading.workers.early_forkserver import start_server\n"
        "before = signal.getsignal(signal.SIGINT)\nstart_server(())\nassert signal.getsignal(signal.SIGINT) is before\n"
        "print(open(f'/proc/{forkserver._forkserver._forkserver_pid}/status').read())"
    )
    said = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    ignored = int(next(line.split()[1] for line in said.splitlines() if line.startswith("SigIgn:")), 16)
    assert ignored & 1 << (signal.SIGINT - 1)


@pytest.mark.parametrize("own", [signal.default_int_handler, signal.SIG_IGN], ids=["taken", "ignored"])
def test_workers_take_ctrl_c_as_the_run_does(own: Any) -> None:
    before = signal.signal(signal.SIGINT, own)
    try:
        taken = own is signal.default_int_handler
        assert list(WorkerPool(handler, 1, prepare, ("hello",)).run(["a"])) == [("a", taken)]
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_exception_is_ours_and_is_raised() -> None:
    with pytest.raises(ValueError, match="ours"):
        run(["error"], 1)
