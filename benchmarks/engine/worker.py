"""One worker: a process with one library in it, which builds jobs and repeats them on request.

`python -m benchmarks.engine.worker LIBRARY`, requests and answers as lines of JSON on standard input and output. The
one idea to know: a worker without a request does nothing, so the worker with a request has the machine to itself.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.engine import peers, workloads
from benchmarks.engine.workloads import Job

NOT_THERE = (ImportError, AttributeError, NotImplementedError, TypeError, KeyError)
KEEPING = "ours, keeping memory"
OURS = {"ours": workloads.JOBS, KEEPING: workloads.JOBS, "ours, fast way": workloads.COMPILED}
"""The engine: as imported, with the allocator's setting for programs that train, and compiled."""

STATUS, CLEAR_REFERENCES = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def build(library: str, workload: str) -> Job:
    """The job of that name; KeyError if this library has none."""
    if library == "torch":
        torch = importlib.import_module("torch")
        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
        return workloads.JOBS[workload](torch)
    if library in OURS:
        engine = importlib.import_module("mini_autograd")
        if library == KEEPING:
            engine.allocator.keep_freed_memory()
        return OURS[library][workload](engine)
    if library == "by hand":
        return importlib.import_module("benchmarks.engine.by_hand").BY_HAND[workload]()
    others = {"autograd": peers.HIPS, "tinygrad": peers.TINYGRAD, "micrograd": peers.MICROGRAD}
    return others[library][workload]()


def prepare(library: str, workload: str) -> tuple[Job | None, dict[str, Any]]:
    """Build a job and take its first steps. The answer says how long a step takes, or why there is none."""
    try:
        job = build(library, workload)
        begin = time.perf_counter()
        job.step()
        first = time.perf_counter() - begin
    except NOT_THERE as error:
        return None, {"missing": f"{type(error).__name__}: {error}"[:200]}
    except (RuntimeError, RecursionError, MemoryError, ValueError, OSError) as error:  # OSError: no compiler
        return None, {"failed": f"{type(error).__name__}: {error}"[:200]}
    if first > 2.0:  # long enough that start-up does not matter
        return job, {"seconds": first, "operations": job.operations}
    begin, steps = time.perf_counter(), 0
    while steps < 2 or time.perf_counter() - begin < 0.2:
        job.step()
        steps += 1
        if time.perf_counter() - begin > 2.0:
            break
    return job, {"seconds": (time.perf_counter() - begin) / steps, "operations": job.operations}


def sample(job: Job, steps: int) -> dict[str, float]:
    """The time of a step, by the wall and on the processors."""
    wall, processors = time.perf_counter(), time.process_time()
    for _ in range(steps):
        job.step()
    return {"cpu": (time.process_time() - processors) / steps, "wall": (time.perf_counter() - wall) / steps}


def peak_memory(job: Job) -> dict[str, float | None]:
    """How many bytes a step needs at its peak, beyond what stays between steps. None if Linux does not tell."""
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
        before = resident("VmRSS")
        CLEAR_REFERENCES.write_text("5")  # resets the peak
    except (OSError, AttributeError):
        return {"bytes": None}
    job.step()
    return {"bytes": resident("VmHWM") - before}


def resident(field: str) -> int:
    """A size from the kernel's account of this process, in bytes."""
    found = re.search(rf"{field}:\s+(\d+) kB", STATUS.read_text())
    if found is None:
        raise OSError(field)
    return 1024 * int(found[1])


def serve(library: str, answer: Callable[[dict], None]) -> None:
    """Handle the requests on standard input until it ends."""
    job: Job | None = None
    for line in sys.stdin:
        request = json.loads(line)
        if request["do"] == "prepare":
            job = None
            job, reply = prepare(library, request["workload"])
            answer(reply)
        elif job is not None:
            answer(sample(job, request["steps"]) if request["do"] == "sample" else peak_memory(job))


def main() -> None:
    """Serve, and send what the library prints to standard error."""
    channel = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    serve(sys.argv[1], lambda reply: print(json.dumps(reply), file=channel))


if __name__ == "__main__":
    main()
