"""A function that is called after a time, in the middle of whatever the main thread does. Not on Windows."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from typing import Any

AGAIN = 1.0  # seconds after which it is called again, should a bare `except` have swallowed what it raised


@contextlib.contextmanager
def alarm(seconds: float, ring: Callable[[], float]) -> Iterator[None]:
    """While inside, call `ring` after so many seconds by the clock, and again after as many as it returns. What it
    raises is raised where the main thread is. One alarm may go off inside another. In the main thread only.
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
        # Before all else: a signal on its way would set the timer again, and what was there before may end the process.
        inside = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, *other)
