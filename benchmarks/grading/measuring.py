"""Runs a command and counts the processor time and memory of all processes that it starts, even if they outlive it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

# Runs in a process of its own: orphans come back to it, so none escapes the count.
KEEPER = """
import ctypes, json, os, resource, subprocess, sys
ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
done = subprocess.run(json.loads(sys.argv[1]), stdout=sys.stderr, stderr=sys.stderr)
while True:
    try:
        os.wait()
    except ChildProcessError:
        break
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([done.returncode, used.ru_utime + used.ru_stime]))
"""
BETWEEN_SAMPLES = 0.5


@dataclass
class Cost:
    """What a command cost: seconds by the clock, seconds of processor time, and the memory over time in megabytes."""

    wall: float = 0.0
    cpu: float = 0.0
    memory: list[tuple[float, float]] = field(default_factory=list)

    @property
    def peak(self) -> float:
        return max((megabytes for _, megabytes in self.memory), default=0.0)

    def add(self, other: Cost) -> None:
        self.memory += [(self.wall + when, megabytes) for when, megabytes in other.memory]
        self.wall += other.wall
        self.cpu += other.cpu


def cost_of(
    command: list[str], folder: Path, sampled: Callable[[float, float], None] = lambda when, size: None
) -> Cost:
    """Run a command in a folder. Raises SystemExit with the end of its output if it fails."""
    environment = {**os.environ, "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has stored bytecode
    keeper = [sys.executable, "-c", KEEPER, json.dumps(command)]
    cost, ended = Cost(), threading.Event()
    log = folder / "log.txt"
    with open(log, "wb") as errors:
        began = time.perf_counter()
        process = subprocess.Popen(keeper, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=errors)

        def sample() -> None:
            while not ended.wait(BETWEEN_SAMPLES):
                cost.memory.append((time.perf_counter() - began, memory_of(process.pid)))
                sampled(*cost.memory[-1])

        watcher = threading.Thread(target=sample)
        watcher.start()
        answer, _ = process.communicate()
        cost.wall = time.perf_counter() - began
        ended.set()
        watcher.join()
    status, cost.cpu = json.loads(answer)
    if status:
        raise SystemExit(f"{' '.join(command)} failed:\n{log.read_text(errors='replace')[-3000:]}")
    return cost


def memory_of(root: int) -> float:
    """Megabytes that everything below a process holds; a shared page is divided among the processes that share it."""
    total = 0
    for number in below(root):
        try:
            text = Path(f"/proc/{number}/smaps_rollup").read_text()
        except OSError:
            continue
        total += next((int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:")), 0)
    return total / 1024


def processor_time_of(root: int) -> float:
    """Seconds that a process and all below it have used so far, with ended processes that were waited for."""
    ticks = [sum(map(int, fields[11:15])) for number in (root, *below(root)) if (fields := stat_of(number))]
    return sum(ticks) / os.sysconf("SC_CLK_TCK")


def below(root: int) -> list[int]:
    """The children of a process, their children, and so on."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        if fields := stat_of(int(folder.name)):
            children.setdefault(int(fields[1]), []).append(int(folder.name))
    found: list[int] = []
    todo = list(children.get(root, ()))
    while todo:
        found.append(todo.pop())
        todo += children.get(found[-1], [])
    return found


def stat_of(process: int) -> list[str]:
    """What the kernel says about a process after its name, from its state on; empty if it has ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []
