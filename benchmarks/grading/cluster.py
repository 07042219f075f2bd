"""The same class graded in two local processes and on a Dask cluster of two local workers, in turn.

Each run gets a fresh course and, on Dask, fresh workers that have imported nothing of ours. Seconds count the command
only: a cluster runs before a class is graded. Processor time counts the command and the cluster.
"""

from __future__ import annotations

import contextlib
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks.grading.course import OURS, count_right, grade_with_us, make_released_course
from benchmarks.grading.measuring import Cost, cost_of, processor_time_of

WORKERS = 2
CLUSTER = """
import ctypes, sys
from distributed import LocalCluster
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER: nothing that it starts escapes the count
with LocalCluster(n_workers=int(sys.argv[1]), threads_per_worker=1, dashboard_address=None) as cluster:
    print(cluster.scheduler_address, flush=True)
    sys.stdin.read()
"""


@contextlib.contextmanager
def fresh_cluster(workers: int = WORKERS) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """The address of a cluster that has done nothing yet, and the process that started all its processes."""
    command = [sys.executable, "-c", CLUSTER, str(workers)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        address = process.stdout.readline().strip()
        if not address:
            raise SystemExit("No Dask cluster could be started. Install Dask: pip install -e '.[cluster]'")
        yield address, process
    finally:
        process.communicate()  # the end of its input is the end of the cluster


@dataclass
class Comparison:
    """One round: what the two ways cost, and how many submissions got the mark that they deserve."""

    submissions: int
    processes: Cost
    dask: Cost
    right: tuple[int, int]

    @property
    def ratios(self) -> tuple[float, float]:
        """The ratios of seconds and of processor time, Dask to processes."""
        return self.dask.wall / self.processes.wall, self.dask.cpu / self.processes.cpu


def compare(submissions: int, rounds: int) -> list[Comparison]:
    """Run this many rounds of both ways, in alternating order."""
    print(f"{submissions} submissions, {WORKERS} workers{'s':>12}{'cpu s':>10}{'right':>8}")
    found = []
    with tempfile.TemporaryDirectory() as folder:
        template = Path(folder) / "template"
        make_released_course(template, submissions, OURS)
        for number in range(rounds):
            costs, right = {}, {}
            for way in ("processes", "Dask") if number % 2 == 0 else ("Dask", "processes"):
                root = shutil.copytree(template, Path(folder) / "course")
                costs[way] = on_processes(root) if way == "processes" else on_dask(root)
                right[way] = count_right(root)
                print(f"  {way:24}{costs[way].wall:15.2f}{costs[way].cpu:10.2f}{right[way]:8}", flush=True)
                shutil.rmtree(root)
            found.append(
                Comparison(submissions, costs["processes"], costs["Dask"], (right["processes"], right["Dask"]))
            )
    wall, cpu = (statistics.median(each.ratios[kind] for each in found) for kind in (0, 1))
    print(f"Dask / processes, median of {rounds} rounds: {wall:.3f} in seconds, {cpu:.3f} in processor time")
    return found


def on_processes(root: Path) -> Cost:
    return cost_of(grade_with_us(root, "--workers", str(WORKERS)), root)


def on_dask(root: Path) -> Cost:
    with fresh_cluster() as (address, process):
        before = processor_time_of(process.pid)
        cost = cost_of(grade_with_us(root, "--cluster", address), root)
        cost.cpu += processor_time_of(process.pid) - before
    return cost
