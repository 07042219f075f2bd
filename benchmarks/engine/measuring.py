"""Measuring: workers take turns on a workload, and the results are ratios to PyTorch, round by round.

Imports the standard library only. The one idea to know: two consecutive samples find the machine in the same state, so
their ratio is worth more than either of them; a figure is the median of such ratios.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
BASELINE = "torch"
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUM_CPU_THREADS")


@dataclass(frozen=True)
class Competitor:
    """A column of the table: a library, the environment it runs in, and the workloads it is asked for (all: None)."""

    name: str
    library: str
    environment: Mapping[str, str] = field(default_factory=dict)
    workloads: tuple[str, ...] | None = None


LARGE = ("W3", "W3b", "W4 SGD", "W5", "W5 tanh", "W6", "op gelu", "op silu", "op softmax", "op conv")
BY_HAND = ("W1", "W2", "W3", "W3b", "W4 SGD", "W5", "W6", "W8", "W9", "op silu", "op softmax")

COMPETITORS = (
    Competitor(BASELINE, "torch"),
    Competitor("mini_autograd", "ours"),
    Competitor("fast way", "ours, fast way", workloads=("W3", "W3b", "W8 one")),
    Competitor("by hand", "by hand", workloads=BY_HAND),
    Competitor("keeping memory", "ours, keeping memory", workloads=LARGE),
    Competitor("autograd", "autograd"),
    Competitor("tinygrad", "tinygrad", {"DEV": "CPU"}),
    Competitor("micrograd", "micrograd", workloads=("W1", "W9")),
)

OWN_BUFFERS = ("tinygrad",)
"""Libraries that keep freed buffers, so that the peak memory of a step cannot be seen from outside."""


@dataclass(frozen=True)
class Effort:
    """How long to measure: rounds, seconds of a sample, and seconds that a slow competitor gets for one workload."""

    rounds: int = 15
    sample: float = 0.06
    patience: float = 10.0


@dataclass
class Figure:
    """What was measured of one competitor on one workload: ratios to PyTorch, and absolute values for the record."""

    time: float | None = None  # median of the ratios of the rounds
    spread: tuple[float, float] | None = None  # their quartiles
    memory: float | None = None
    seconds: float | None = None  # per operation if the workload counts operations, else per step
    bytes: float | None = None
    note: str = ""  # why there is no figure


Measured = dict[str, dict[str, Figure]]
"""workload -> competitor -> figure"""


class Worker:
    """The other end of a worker process."""

    def __init__(self, competitor: Competitor, threads: int) -> None:
        self.name = competitor.name
        environment = os.environ | dict.fromkeys(THREADS, str(threads)) | dict(competitor.environment)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.engine.worker", competitor.library],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=ROOT,
            env=environment,
            text=True,
        )

    def ask(self, **request: Any) -> dict[str, Any]:
        """Send a request and wait for the answer. A worker that died answers `failed`."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps(request), file=self.process.stdin, flush=True)
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"failed": f"the process ended with status {self.process.wait()}"}

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.communicate()


@contextlib.contextmanager
def working(competitors: Sequence[Competitor], threads: int) -> Iterator[dict[str, Worker]]:
    """A worker for each competitor, ended afterwards whatever happens."""
    workers = {competitor.name: Worker(competitor, threads) for competitor in competitors}
    try:
        yield workers
    finally:
        for worker in workers.values():
            worker.close()


def measure(workloads: Sequence[str], threads: int, effort: Effort, tell: Callable[[str], None]) -> Measured:
    """Measure all workloads with that number of threads, each with all competitors that have it."""
    measured = {}
    for workload in workloads:
        tell(f"{workload}, {threads} thread{'s' if threads > 1 else ''}")
        asked = [one for one in COMPETITORS if one.workloads is None or workload in one.workloads]
        with working(asked, threads) as workers:
            measured[workload] = compare(workers, workload, "cpu" if threads == 1 else "wall", effort)
    return measured


def compare(workers: dict[str, Worker], workload: str, clock: str, effort: Effort) -> dict[str, Figure]:
    """Measure one workload: all workers prepare, take samples in turn, and then measure the memory of a step."""
    figures, plans = {}, {}
    for name, worker in workers.items():
        reply = worker.ask(do="prepare", workload=workload)
        figures[name] = Figure(note=reply.get("missing") or reply.get("failed") or "")
        if "seconds" in reply:
            steps = max(1, round(effort.sample / reply["seconds"]))
            rounds = max(1, min(effort.rounds, round(effort.patience / (steps * reply["seconds"]))))
            plans[name] = (steps, rounds, reply["operations"])
    samples: dict[str, list[float]] = {name: [] for name in plans}
    for number in range(effort.rounds):
        for name, (steps, rounds, operations) in plans.items():
            if number < rounds:
                samples[name].append(workers[name].ask(do="sample", steps=steps)[clock] / operations)
    for name, (_, _, operations) in plans.items():
        used = workers[name].ask(do="memory")["bytes"] if name not in OWN_BUFFERS else None
        figures[name].bytes = None if used is None else used / operations
        figures[name].seconds = statistics.median(samples[name])
    relate(figures, samples)
    return figures


def relate(figures: dict[str, Figure], samples: dict[str, list[float]]) -> None:
    """Fill in the ratios to the baseline, each between two samples of one round."""
    if BASELINE not in samples:
        return
    for name, own in samples.items():
        ratios = [ours / theirs for ours, theirs in zip(own, samples[BASELINE], strict=False)]
        figures[name].time = statistics.median(ratios)
        quartiles = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else [ratios[0]] * 3
        figures[name].spread = quartiles[0], quartiles[2]
        used, reference = figures[name].bytes, figures[BASELINE].bytes
        figures[name].memory = used / reference if used is not None and reference else None


IMPORTS = {"torch": "torch", "mini_autograd": "mini_autograd"}
IMPORTS |= {"autograd": "autograd.numpy", "tinygrad": "tinygrad", "micrograd": "micrograd.engine"}


def measure_imports(effort: Effort) -> dict[str, Figure]:
    """Processor time and memory that importing a library adds to a fresh process with NumPy; medians of the rounds."""
    found: dict[str, list[tuple[float, float]]] = {}
    notes = {}
    for number in range(max(3, effort.rounds) + 1):
        for name, module in IMPORTS.items():
            used = cost_of_import(module)
            if used is None:
                notes[name] = "not installed"
            elif number:  # the first round only warms the file cache
                found.setdefault(name, []).append(used)
    figures = {name: Figure(note=note) for name, note in notes.items()}
    for name, costs in found.items():
        seconds, size = (statistics.median(values) for values in zip(*costs, strict=True))
        ratios = [own[0] / torch[0] for own, torch in zip(costs, found.get(BASELINE, costs), strict=True)]
        figures[name] = Figure(time=statistics.median(ratios), seconds=seconds, bytes=size)
    return figures


TELL = """
import re, time, numpy
def used():
    with open("/proc/self/status") as status:
        return time.process_time(), 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", status.read())[1])
before = used()
import {module}
print(*[after - start for after, start in zip(used(), before)])
"""


def cost_of_import(module: str) -> tuple[float, float] | None:
    """Seconds of processor time and bytes, as measured by the process that imports it; None if that fails."""
    environment = os.environ | dict.fromkeys(THREADS, "1")
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # the round before the first leaves compiled modules behind
    code = TELL.format(module=module)
    process = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    if process.returncode:
        return None
    seconds, size = process.stdout.split()[-2:]
    return float(seconds), float(size)
