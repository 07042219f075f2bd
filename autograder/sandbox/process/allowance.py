"""How much longer code of a submission may run, in seconds of processor time, not of the clock.

On an overloaded machine a process waits for a processor most of the time, and no mark may depend on that. So the limit
of a cell or a question is on the processor time that it and everything it started have used. Code that only sleeps uses
none, so the clock counts too: in full while every thread is seen to sleep, which looks different from waiting for a
processor or a disk; otherwise generously, and without the time during which, according to the kernel, the process was
ready to run and had to wait.
"""

from __future__ import annotations

import copy
import functools
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

ASLEEP = 3.0  # how many times the limit may pass by the clock, not counting the time spent waiting for a processor
AT_MOST = 6.0  # the same with everything counted, whatever the kernel says
SHORTEST, LONGEST = 0.01, 1.0  # seconds until the next look
STILL = 0.05  # share of the time between two looks that a sleeping process may be awake: the look takes some
TICK = os.sysconf("SC_CLK_TCK")
NANO = 1e-9


@dataclass(frozen=True)
class Usage:
    """What processes have used so far: seconds of processor time, and for how long each waited for a processor; and
    whether all of them are known to sleep now.
    """

    processor: float = 0.0
    waited: dict[int, float] = field(default_factory=dict)
    asleep: bool = False

    def __add__(self, other: Usage) -> Usage:
        both = self.asleep and other.asleep
        return Usage(self.processor + other.processor, {**self.waited, **other.waited}, both)

    def since(self, earlier: Usage) -> tuple[float, float]:
        """Processor time, and time spent waiting for a processor, since then."""
        waits = [seconds - earlier.waited.get(process, 0.0) for process, seconds in self.waited.items()]
        return self.processor - earlier.processor, sum(waits)


@dataclass
class Allowance:
    """`seconds` of processor time for what `usage` measures, from now on. If it measures nothing, the clock counts.

    `quickly`, if given, measures nearly the same with less work.
    """

    seconds: float
    usage: Callable[[], Usage | None]
    quickly: Callable[[], Usage | None] | None = None
    clock: Callable[[], float] = time.monotonic

    def __post_init__(self) -> None:
        self.quickly = self.quickly or self.usage
        self.began = self.clock()
        self.first = self.quickly()
        self.slept = 0.0
        self.last_look: tuple[float, Usage] | None = None

    def longer(self, seconds: float) -> Allowance:
        """A copy that began at the same moment and lasts this many seconds longer."""
        other = copy.copy(self)
        other.seconds += seconds
        return other

    def wait(self) -> float:
        """Seconds by the clock until the next look; 0 when the allowance is used up, which is never before as many
        seconds have passed by the clock.
        """
        passed, often = self.clock() - self.began, min(LONGEST, self.seconds / 10)
        if self.first is None:
            return max(0.0, self.seconds - passed)
        if passed < often:
            return often - passed
        now = self.usage()
        self._note_sleep(now, passed)
        left = self._left(now, passed) if passed >= self.seconds else self.seconds - passed
        return max(SHORTEST, min(left, often)) if left > 0 else 0.0

    def _note_sleep(self, now: Usage | None, passed: float) -> None:
        """Count the time between two looks as sleep if everything slept at both and has hardly computed or waited for a
        processor in between.
        """
        if now and self.last_look:
            earlier, before = self.last_look
            still = sum(now.since(before)) <= STILL * (passed - earlier)
            self.slept += passed - earlier if still and now.asleep and before.asleep else 0.0
        self.last_look = (passed, now) if now else None

    def left(self) -> float:
        """About how many seconds of processor time are left. Quick, because it is called often."""
        passed = self.clock() - self.began
        if passed < self.seconds / 2 or self.quickly is None:
            return self.seconds - passed
        return self._left(self.quickly(), passed)

    def _left(self, now: Usage | None, passed: float) -> float:
        if self.first is None:
            return self.seconds - passed
        used, waited = now.since(self.first) if now else (0.0, 0.0)  # the process has just ended
        asleep = min(self.seconds - self.slept, ASLEEP * self.seconds - (passed - waited))
        return min(self.seconds - used, asleep, AT_MOST * self.seconds - passed)


def usage_of_tree(root: int) -> Usage | None:
    """What a process and its descendants have used; None if that cannot be known."""
    try:
        stats = {root: _stat(root)}
        for process in (int(name) for name in os.listdir("/proc") if name.isdigit()):
            try:
                stats[process] = _stat(process)
            except OSError:
                continue  # it has just ended
    except OSError:
        return None
    tree = descendants({number: parent for number, (parent, _) in stats.items()}, root)
    found = _sum({number: stats[number][1] for number in tree})
    return replace(found, asleep=all(map(_sleeps, tree)))


def usage_of_process(process: int) -> Usage | None:
    """What one process has used, including children that have ended and been waited for. Quick to find out."""
    try:
        return _sum({process: _stat(process)[1]})
    except OSError:
        return None


def usage_of_this_thread(asleep: bool = False) -> Usage:
    """What this thread of ours has used. The caller knows whether it has been `asleep` until now."""
    return Usage(time.thread_time(), {0: _waited("/proc/thread-self/schedstat")}, asleep)


def descendants(parents: dict[int, int], root: int) -> set[int]:
    """A process and all below it, given the parent of each."""
    children: dict[int, list[int]] = {}
    for process, parent in parents.items():
        children.setdefault(parent, []).append(process)
    found, todo = {root}, [root]
    while todo:
        new = [child for child in children.get(todo.pop(), ()) if child not in found]
        found.update(new)
        todo += new
    return found


def _sum(processor: dict[int, float]) -> Usage:
    return Usage(sum(processor.values()), {process: _waited(f"/proc/{process}/schedstat") for process in processor})


def _stat(process: int) -> tuple[int, float]:
    """The parent of a process, and its processor time with that of the children it has waited for."""
    fields = _read(f"/proc/{process}/stat").rpartition(b")")[2].split()
    return int(fields[1]), sum(map(int, fields[11:15])) / TICK


def _sleeps(process: int) -> bool:
    """Whether every thread of a process sleeps: none runs, is ready to run, waits for a disk, or was stopped."""
    threads = f"/proc/{process}/task"
    try:
        return all(_state(f"{threads}/{thread}/stat") in (b"S", b"Z") for thread in os.listdir(threads)) and _tells()
    except OSError:
        return False


@functools.cache
def _tells() -> bool:
    """Whether the kernel reports truthfully what a thread does: this one runs."""
    return _state("/proc/thread-self/stat") == b"R"


def _state(path: str) -> bytes:
    return _read(path).rpartition(b")")[2].split()[0]


def _waited(path: str) -> float:
    """For how long a task was ready to run and had no processor; 0 if the kernel does not say."""
    try:
        return int(_read(path).split()[1]) * NANO
    except (OSError, IndexError, ValueError):
        return 0.0


def _read(path: str) -> bytes:
    """The content of a small file in /proc, in half the time that a file object takes: a look reads hundreds."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, 4096)
    finally:
        os.close(descriptor)
