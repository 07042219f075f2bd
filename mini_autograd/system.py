"""What the system lacks that Python runs on: the one place that knows. In a browser tab there are no threads, timers or
processes, no clock of processor time, and a small stack: where it ends, the kernel dies for good.
"""

from __future__ import annotations

import importlib
import sys
import time

IN_BROWSER = sys.platform == "emscripten"
SLOWER = 3 if IN_BROWSER else 1
"""How many times as long a limit is. Python takes longer in a browser, and its clock counts what other programs use."""
NESTED_CALLS = 250
"""How many calls of C may be nested in a browser. Several hundred fill its stack; CPython would allow 10,000."""

LACKING = {
    "can't start new thread": "a browser tab has no threads",
    "emscripten does not support processes": "a browser tab has no processes",
    "No module named 'matplotlib'": "this browser tab has no Matplotlib",
}
"""What an error says -> what the system lacks."""

if IN_BROWSER:
    # Its own counts microseconds in 32 bits: 36 minutes after Python has started, it raises.
    time.process_time, time.process_time_ns = time.perf_counter, time.perf_counter_ns

processor_time = getattr(time, "thread_time", time.perf_counter)
"""The seconds that this thread has computed, or, where no clock knows them, the seconds that have passed."""


def lacking(error: str) -> str:
    """What this system lacks, if an error is about that; empty if it is not."""
    return next((lack for said, lack in LACKING.items() if IN_BROWSER and said in error), "")


def guard_stack() -> None:
    """In a browser: let Python stop before the stack ends. Then a function that calls itself without end raises
    RecursionError, however it does so, and a chain of objects is freed in pieces, as on any other system.

    CPython counts the nested calls of C that are left, but begins with too many. The count stands in the state of the
    thread behind the limit of Python's own calls, which is set to a number here to find it by. CPython 3.13 counts
    nothing when it frees generators that wait, each for the one before: a chain of 3,000 of them still ends a kernel,
    as one of 40,000 ends Python on Linux.
    """
    memory = importlib.import_module("pyodide_js")._module
    state = memory._PyThreadState_Get() // 4
    limit, mark = sys.getrecursionlimit(), 87_654_321
    sys.setrecursionlimit(mark)
    found = [place for place in range(state, state + 32) if memory.HEAP32[place] == mark]
    sys.setrecursionlimit(limit)
    if len(found) == 1 and NESTED_CALLS < memory.HEAP32[found[0] + 1] <= 10_000:
        memory.HEAP32[found[0] + 1] = NESTED_CALLS
