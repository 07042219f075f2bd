"""Calls a function after a given time, in the middle of whatever the main thread does. Not on Windows."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from typing import Any

AGAIN = 1.0  # seconds after which it is called again, in case a bare `except` swallowed what it raised


@contextlib.contextmanager
def alarm(seconds: float, ring: Callable[[], float]) -> Iterator[None]:
    """While inside, call `ring` after `seconds` of wall-clock time, and again after as many seconds as it returns. Its
    exceptions are raised wherever the main thread is. Alarms can be nested. Main thread only.
    """
    inside = True

    def take(number: int, frame: Any) -> None:
        if inside:
            signal.setitimer(signal.ITIMER_REAL, ring(), AGAIN)

    before = signal.signal(signal.SIGALRM, take)
    other = signal.setitimer(signal.ITIMER_REAL, seconds, AGAIN)
    try:
        yield
    finally:
        # First of all: a pending signal would set the timer again, and the previous handler may end the process.
        inside = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, *other)
