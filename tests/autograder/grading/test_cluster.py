"""A run on a real Dask cluster of this machine's processes, even one that loses workers."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import cloudpickle
import distributed
import psutil
import pytest

from autograder.grading.errors import CourseError
from autograder.grading.submission.class_records import SubmissionRecord
from autograder.grading.workers.cluster_connection import Connection
from autograder.grading.workers.cluster_worker import SERVE
from tests.autograder.grading.here import grade_all
from tests.autograder.grading.test_faults import done, wait_for

pytestmark = [pytest.mark.sandbox, pytest.mark.filterwarnings("ignore")]

# The configuration travels with the assignment, so this code runs where a submission is graded.
POISON = """
import os, signal
from nbgrader.preprocessors import NbGraderPreprocessor


class Poison(NbGraderPreprocessor):
    def preprocess(self, nb, resources):
        if resources["nbgrader"]["student"] == "poison":
            os.kill(os.getppid(), signal.SIGKILL)  # the worker of the cluster
        if resources["nbgrader"]["student"] == "venom":
            os.kill(os.getpid(), signal.SIGKILL)  # the process in which it grades
        return nb, resources


c.Autograde.sanitize_preprocessors = [
    Poison, "nbgrader.preprocessors.ClearOutput", "nbgrader.preprocessors.DeduplicateIds",
    "nbgrader.preprocessors.OverwriteKernelspec", "nbgrader.preprocessors.OverwriteCells",
    "nbgrader.preprocessors.CheckCellMetadata",
]
"""


@pytest.fixture(autouse=True)
def _pickled_by_name() -> None:
    """For a judge in this process, another test may have had our functions pickled with their modules."""
    for module in cloudpickle.list_registry_pickle_by_value():
        cloudpickle.unregister_pickle_by_value(sys.modules[module])


@pytest.fixture
def cluster() -> Iterator[str]:
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, processes=True) as started:
        yield started.scheduler_address


def grade_on(address: str, course: Any, student: str = "*") -> dict[str, SubmissionRecord]:
    connection = Connection(address)
    try:
        return grade_all(course, student, cluster=connection)
    finally:
        connection.close()


def test_workers_that_die_cost_one_retry_and_nobody_else(
    small_course: Any, cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("autograder.grading.workers.cluster.Pace.together", lambda pace, waiting: 2)
    path = small_course.root / "nbgrader_config.py"
    path.write_text(path.read_text() + POISON)
    marks = {"ann": 5, "bob": 2, "poison": 0, "venom": 0, "cem": 5, "dan": 0}
    for student, mark in marks.items():
        honest = small_course.answered(shout="return word.upper()" if mark == 5 else "return word")
        small_course.submit(student, b"no notebook" if student == "dan" else honest)
    records = grade_on(cluster, small_course)
    assert {name: record.points for name, record in records.items()} == marks
    assert {name: record.status for name, record in records.items()} == {
        "ann": "graded",
        "bob": "graded",
        "poison": "died",
        "venom": "died",
        "cem": "graded",
        "dan": "unreadable",
    }
    assert "HIDDEN" not in "".join(cell.get("outputs", [{}]).__repr__() for cell in small_course.graded("ann").cells)
    again = grade_on(cluster, small_course, "[a-d]*")
    assert all(record.unchanged for record in again.values())
    here = grade_all(small_course, student="[a-d]*", force=True)
    assert {name: record.cells for name, record in here.items()} == {name: records[name].cells for name in here}


def test_no_cluster_is_said_in_one_sentence(small_course: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "autograder.grading.workers.cluster_connection.ANSWER", 1.0
    )  # nothing will answer, however long it waits
    small_course.submit("ann", small_course.answered())
    with pytest.raises(CourseError, match="No Dask cluster answers at tcp"):
        grade_on("tcp://127.0.0.1:9", small_course)


@pytest.mark.parametrize("lost", ["workers", "scheduler"])
def test_a_cluster_that_loses_all_its_workers_ends_the_run_and_loses_nothing(
    small_course: Any, lost: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("autograder.grading.workers.cluster_connection.WITHOUT_WORKERS", 3.0)
    small_course.submit("ann", small_course.answered())
    small_course.submit("bob", small_course.answered(length="import time; time.sleep(600); return len(word)"))
    path = small_course.root / "nbgrader_config.py"
    path.write_text(path.read_text() + "c.JudgeNotebook.cell_seconds = c.JudgeNotebook.query_seconds = 600\n")
    grading: list[psutil.Process] = []
    with started_by_hand() as (address, processes):
        ending = processes["worker" if lost == "workers" else lost]
        ended = threading.Timer(0, end_when_graded, (small_course, "ann", ending, grading))
        ended.start()
        with pytest.raises(CourseError, match=r"(no workers for 3 seconds|was lost)\. What was graded is kept"):
            grade_on(address, small_course)
        ended.join()
        assert ending.poll() is not None
    assert (len(grading) > 0) == (lost == "workers")
    assert psutil.wait_procs(grading, timeout=60)[1] == []  # not even in the middle of a submission do they go on
    small_course.submit("bob", small_course.answered(shout="return word"))
    path.write_text(path.read_text().replace("600", "30"))
    records = grade_all(small_course)
    assert {name: record.points for name, record in records.items()} == {"ann": 5, "bob": 2}


def end_when_graded(course: Any, student: str, process: subprocess.Popen, grading: list[psutil.Process]) -> None:
    """Kill a process as soon as a student has a result, and list the processes in which it grades."""
    try:
        wait_for(lambda: student in done(course))
    finally:
        grading += [child for child in psutil.Process(process.pid).children() if SERVE in child.cmdline()]
        process.kill()


@contextlib.contextmanager
def started_by_hand() -> Iterator[tuple[str, dict[str, subprocess.Popen]]]:
    """A scheduler and a worker, neither of which is restarted when it ends."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    dask = [sys.executable, "-m", "distributed.cli.dask_scheduler"]
    options = ["--host", address, "--no-dashboard", "--no-show"]
    processes = {"scheduler": subprocess.Popen([*dask, *options], **quiet)}
    worker = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--no-nanny", "--nthreads", "1"]
    processes["worker"] = subprocess.Popen([*worker, "--no-dashboard", "--death-timeout", "300"], **quiet)
    try:
        with distributed.Client(address, timeout=300, set_as_default=False) as client:
            client.wait_for_workers(1, timeout=300)
        yield address, processes
    finally:
        for process in processes.values():
            process.kill()
            process.wait()
