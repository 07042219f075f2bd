"""Every check ends: code without end is stopped where it is, on every system, and our own code never is."""

from __future__ import annotations

import itertools
import sys
import threading
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NoReturn
from unittest.mock import Mock

import psutil
import pytest

from autograder.checks import limits
from autograder.checks.limits import limited
from autograder.runs.alarm import HAS_TIMER
from autograder.runs.errors import TookTooMuch
from autograder.student import check_function, check_gradients
from tests.autograder import student_engines


def runs() -> NoReturn:
    while True:
        sum(range(10))  # runs on


def calls() -> None:
    Fraction(1) / sum(map(Fraction, itertools.repeat(1)))  # runs on


def swallows() -> NoReturn:
    while True:
        try:
            time.sleep(0.001)  # runs on
        except Exception:
            continue


def swallows_all() -> NoReturn:
    for _ in range(3):
        try:
            while True:
                sum(range(10))  # runs on
        except BaseException:
            continue
    runs()


def fills_memory() -> NoReturn:
    kept = []
    while True:
        kept.append(bytearray(b"1" * 1_000_000))  # runs on


def waits() -> NoReturn:
    while True:
        time.sleep(0.2)  # runs on


ENDLESS = {
    "a loop": (runs, "after 0.3 seconds of processor time"),
    "a loop in a library": (calls, "after 0.3 seconds of processor time"),
    "a loop that swallows errors": (swallows, "after 1.5 seconds"),
    "a loop that swallows everything": (swallows_all, "after 0.3 seconds of processor time"),
    "memory": (fills_memory, "when it had taken 0.2 GB of memory"),
    "sleep": (waits, "after 1.5 seconds"),
}


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SECONDS", 0.3)
    monkeypatch.setattr(limits, "ASLEEP", 100)  # the machine may be busy
    monkeypatch.setattr(limits, "AGAIN", 0.1)
    assert psutil.__name__ in sys.modules


@pytest.mark.parametrize("name", ENDLESS)
def test_code_without_end_is_stopped_where_it_is(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, used = ENDLESS[name]
    if function in (waits, swallows):
        monkeypatch.setattr(limits, "ASLEEP", 5)
    seconds = 60.0 if name == "memory" else None
    with pytest.raises(TookTooMuch) as raised, limited(seconds, most_bytes=int(0.2 * 2**30)):
        function()
    assert f"stopped {used}" in str(raised.value)
    assert f"of `{'runs' if function is swallows_all else function.__name__}" in str(raised.value)


def test_it_works_in_any_thread_and_in_none(monkeypatch: pytest.MonkeyPatch) -> None:
    said = []

    def work() -> None:
        with pytest.raises(TookTooMuch) as raised, limited():
            runs()
        said.append(str(raised.value))

    other = threading.Thread(target=work)
    other.start()
    other.join()

    if HAS_TIMER:  # as in a browser
        monkeypatch.setattr(threading.Thread, "start", Mock(side_effect=RuntimeError("can't start new thread")))
        work()
    assert len(said) == 1 + HAS_TIMER
    assert all("of `runs`" in each for each in said)


def test_our_own_code_is_never_interrupted() -> None:
    """It patches and restores things. The learner's code that it calls is."""
    code = "import time\nend = time.process_time() + 0.6\nwhile time.process_time() < end:\n    pass"
    ours = compile(code, f"{limits.OURS[0]}check.py", "exec")
    done = []

    def both() -> None:
        exec(ours, {})
        done.append(True)
        runs()

    before = threading.active_count()
    with pytest.raises(TookTooMuch), limited():
        both()
    assert done
    assert threading.active_count() == before


def endless_engine() -> Any:
    engine = student_engines.closures()

    class Endless(engine):  # type: ignore[misc,valid-type]
        def backward(self) -> NoReturn:
            runs()

    return Endless


CHECKS: dict[str, Callable[[], Any]] = {
    "gradients": lambda: check_gradients(lambda a, b: a * b, [(), ()], engine=endless_engine(), points=2),
    "a function": lambda: check_function(lambda x: runs(), lambda x: x, [()], points=2),
}


@pytest.mark.parametrize("name", CHECKS)
def test_a_card_says_where_a_check_was_stopped(name: str) -> None:
    began = time.monotonic()
    credit = CHECKS[name]()
    assert time.monotonic() - began < 30
    assert float(credit) == 0.0
    card = credit.reports[0].text()
    assert "stopped after 0.3 seconds of processor time" in card
    assert "of `runs`" in card


def test_looks_go_unseen_where_right_gradients_are_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    """The detector of finite differences counts what a learner's engine waits for; a look is nobody's business."""
    monkeypatch.setattr(limits, "SECONDS", 60.0)
    monkeypatch.setattr(limits, "OFTEN", 0.0001)
    for engine in (student_engines.closures(), student_engines.pending_dict()):
        credit = check_gradients(lambda a, b: (a * b).tanh() + a, [(), ()], engine=engine, points=2)
        assert float(credit) == 2.0
