"""Calls a function after a given time, in the middle of whatever the main thread does. Not on Windows.

A browser tab has neither timers nor threads. But Python asks there, every few steps, an object of the page whether a
signal has come; the object made here looks at the clock.
"""

from __future__ import annotations

import contextlib
import importlib
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Any

AGAIN = 1.0  # seconds after which it is called again, in case a bare `except` swallowed what it raised
HAS_TIMER = hasattr(signal, "setitimer") or sys.platform == "emscripten"
SIGNALS = """(before) => ({
    due: Infinity, again: 0,
    get 0() {
        if (this.due === Infinity || performance.now() < this.due) return before ? before[0] : 0;
        this.due = this.again ? performance.now() + this.again : Infinity;
        return 14; // SIGALRM
    },
    set 0(taken) { if (before) before[0] = taken; },
    left() { return this.due === Infinity ? 0 : Math.max(this.due - performance.now(), 1) / 1000; },
    start(seconds, again) {
        this.due = seconds ? performance.now() + 1000 * seconds : Infinity;
        this.again = 1000 * again;
    },
})"""


@contextlib.contextmanager
def alarm(seconds: float, ring: Callable[[], float]) -> Iterator[None]:
    """While inside, call `ring` after `seconds` of wall-clock time, and again after as many seconds as it returns. Its
    exceptions are raised wherever the main thread is. Alarms can be nested. Main thread only.
    """
    inside = True

    def take(number: int, frame: Any) -> None:
        if inside:
            _set_timer(ring(), AGAIN)

    before = signal.signal(signal.SIGALRM, take)
    other = _set_timer(seconds, AGAIN)
    try:
        yield
    finally:
        # First of all: a pending signal would set the timer again, and the previous handler may end the process.
        inside = False
        _set_timer(0)
        signal.signal(signal.SIGALRM, before)
        _set_timer(*other)


def _set_timer(seconds: float, again: float = 0.0) -> tuple[float, float]:
    """Send SIGALRM after so many seconds, and then again and again. Returns what was set before."""
    if hasattr(signal, "setitimer"):
        return signal.setitimer(signal.ITIMER_REAL, seconds, again)
    clock = _clock_of_page()
    other = clock.left(), clock.again / 1000
    clock.start(seconds, again)
    return other


def _clock_of_page() -> Any:
    if not _CLOCK:
        page = importlib.import_module("pyodide_js")
        make = importlib.import_module("pyodide.code").run_js(SIGNALS)
        _CLOCK.append(make(getattr(page._module, "Py_EmscriptenSignalBuffer", None)))
        page.setInterruptBuffer(_CLOCK[0])
    return _CLOCK[0]


_CLOCK: list[Any] = []
"""The object that Python asks in a browser, once it is made."""
