"""An alarm may go off at any moment, even the worst one, and leaves the process as it was."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from typing import NoReturn

import pytest

from autograder.runs.alarm import alarm

if sys.platform == "win32":
    pytest.skip("no alarms on Windows", allow_module_level=True)


class Rung(Exception):  # noqa: N818
    pass


def end() -> NoReturn:
    raise Rung


def again() -> float:
    return 0.01


def test_it_goes_off_once_for_each_time_that_it_is_told() -> None:
    waits = iter([0.01, 0.02])

    def ring() -> float:
        wait = next(waits, None)
        if wait is None:
            raise Rung
        return wait

    with pytest.raises(Rung), alarm(0.01, ring):
        time.sleep(30)
    assert next(waits, None) is None


def test_code_that_swallows_it_hears_it_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autograder.runs.alarm.AGAIN", 0.05)
    heard = 0

    def swallow_the_first() -> None:
        nonlocal heard
        try:
            time.sleep(30)
        except Rung:
            heard += 1
        time.sleep(30)

    with pytest.raises(Rung), alarm(0.01, end):
        swallow_the_first()
    assert heard == 1


@pytest.mark.parametrize("ring", [end, again], ids=["raises", "asks for another"])
def test_a_signal_on_its_way_at_the_end_changes_nothing(
    ring: Callable[[], float], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before the alarm, the system's own response to the signal is in force: it ends the process."""
    set_timer = signal.setitimer

    def set_late(which: int, seconds: float, interval: float = 0.0) -> tuple[float, float]:
        before = set_timer(which, seconds, interval)
        if not seconds and signal.getsignal(signal.SIGALRM) not in (signal.SIG_DFL, signal.SIG_IGN):
            os.kill(os.getpid(), signal.SIGALRM)
        return before

    monkeypatch.setattr(signal, "setitimer", set_late)
    handler = signal.getsignal(signal.SIGALRM)
    with alarm(60, ring):
        pass
    assert signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0)
    assert signal.getsignal(signal.SIGALRM) is handler


def test_one_inside_another_takes_nothing_from_it() -> None:
    def set_another() -> None:
        with alarm(60, again):
            pass
        time.sleep(30)

    with pytest.raises(Rung), alarm(0.2, end):
        set_another()
