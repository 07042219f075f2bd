"""Limits on what a learner's code may use, and print, while a check runs on their own machine: every check ends, and
says where.

Another thread looks from time to time. When the processor time (or, asleep, the time of the clock) or the memory is
used up, it raises TookTooMuch in the thread that runs the check, but only while that thread executes a learner's line:
our own code, which patches and restores things, is never interrupted. Unlike a signal this works on every system and in
every thread, and a profiler that watches the learner's code does not see it. Where no thread can be started, as in a
browser, an alarm looks instead. Grading has limits of its own, around the process in which a submission runs.

A check runs the code many times, so one `print` in a loop can give thousands of lines. They would bury the card, and
fill the memory of the browser: they are cut.
"""

from __future__ import annotations

import contextlib
import ctypes
import linecache
import os
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import autograder
import mini_autograd as ma
from autograder.runs.alarm import alarm
from autograder.runs.context import current
from autograder.runs.errors import TookTooMuch
from mini_autograd.system import IN_BROWSER, SLOWER

SECONDS = 20.0 * SLOWER  # of processor time; checks of right answers take one or two
ASLEEP = 10  # times as long by the clock, for code that waits or a machine that is busy
MOST_BYTES = 1 << 30  # by which the process may grow
OFTEN, AGAIN = 0.05, 1.0  # seconds until the next look; and if code has swallowed the exception
OURS = tuple(os.path.join(os.path.dirname(os.path.abspath(file)), "") for file in (autograder.__file__, ma.__file__))
MOST_LINES, MOST_CHARACTERS = 50, 10_000
LEFT_OUT = "[Your code printed {} more. They are left out here, so that you see the card below.]"
LIBRARIES = (sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), "<frozen", "<__array_function__")


class Limit:
    """What may still be used; `look` is called from time to time."""

    def __init__(self, seconds: float, most_bytes: int) -> None:
        self.thread = threading.get_ident()
        self.seconds, self.most_bytes = seconds, most_bytes
        self.clock = _processor_clock(self.thread)
        self.began, self.began_by_clock, self.bytes = self.clock(), time.monotonic(), _bytes_used()

    def used_up(self) -> str:
        """What is used up, in words; empty if nothing is."""
        if self.clock() - self.began > self.seconds:
            return f"after {self.seconds:g} seconds of processor time"
        if time.monotonic() - self.began_by_clock > ASLEEP * self.seconds:
            return f"after {ASLEEP * self.seconds:g} seconds"
        if self.bytes and _bytes_used() - self.bytes > self.most_bytes:
            return f"when it had taken {self.most_bytes / 2**30:.2g} GB of memory"
        return ""

    def exceeded(self, frame: FrameType | None) -> type[TookTooMuch] | None:
        """The exception to raise in code that now executes `frame`; None if all is well, or our own code runs."""
        used = self.used_up()
        line = _line_of(frame) if used else ""
        if not line:
            return None
        said = f"your code was stopped {used}, in {line}. Does a loop or a call there ever end?"
        return type(TookTooMuch.__name__, (TookTooMuch,), {"said": said})


@contextlib.contextmanager
def limited(seconds: float | None = None, most_bytes: int = MOST_BYTES) -> Iterator[None]:
    """While inside, a learner's code that has used up `seconds` (by default SECONDS) of this thread's processor time,
    or by which the process has grown by `most_bytes`, is stopped with TookTooMuch. Limits can be nested.
    """
    limit = Limit(SECONDS if seconds is None else seconds, most_bytes)
    done = threading.Event()
    watch = threading.Thread(target=_watch, args=(limit, done), name="limit of a check", daemon=True)
    try:
        watch.start()
    except RuntimeError:  # no threads here, as in a browser
        with _alarmed(limit):
            yield
        return
    try:
        yield
    finally:
        done.set()
        watch.join()


def _watch(limit: Limit, done: threading.Event) -> None:
    wait = OFTEN
    while not done.wait(wait):
        wait = OFTEN
        if error := limit.exceeded(sys._current_frames().get(limit.thread)):
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(limit.thread), ctypes.py_object(error))
            wait = AGAIN


@contextlib.contextmanager
def _alarmed(limit: Limit) -> Iterator[None]:
    def look() -> float:
        if error := limit.exceeded(sys._getframe(2)):  # the frame that the alarm interrupted
            raise error
        return OFTEN

    with alarm(OFTEN, look):
        yield


def _line_of(frame: FrameType | None) -> str:
    """The learner's line that runs, or that has called a library; empty if our own code runs or nothing is known."""
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(OURS):
            return ""
        text = linecache.getline(code.co_filename, frame.f_lineno or 0).strip()
        if text and not _is_library(code.co_filename):
            name = code.co_qualname.rpartition("<locals>.")[2]
            return f"the line `{text}`" + ("" if name == "<module>" else f" of `{name}`")
        frame = frame.f_back
    return ""


def _is_library(filename: str) -> bool:
    installed = "site-packages" in filename or "dist-packages" in filename
    return (installed or filename.startswith(LIBRARIES)) and not filename.startswith(OURS)


def _processor_clock(thread: int) -> Callable[[], float]:
    """The processor time of a thread, to be read from another one; that of the process where this is not to be had."""
    if IN_BROWSER or not hasattr(time, "pthread_getcpuclockid"):
        return time.process_time
    clock = time.pthread_getcpuclockid(thread)
    return lambda: time.clock_gettime(clock)


def _bytes_used() -> int:
    """The memory of this process; 0 if it is not known. Every kernel has loaded psutil."""
    psutil = sys.modules.get("psutil")
    return int(psutil.Process().memory_info().rss) if psutil is not None else 0


class Printed:
    """How much a check has printed so far, on both streams together, and how much of it was left out."""

    def __init__(self) -> None:
        self.lines, self.characters = MOST_LINES, MOST_CHARACTERS  # that there is still room for
        self.lines_left_out = self.characters_left_out = 0

    def cut(self, text: str) -> str:
        """The part of a text that there is room for. After the first cut there is no room any more."""
        kept = "".join(text.splitlines(keepends=True)[: self.lines])[: self.characters]
        self.lines -= kept.count("\n")
        self.characters -= len(kept)
        if left_out := text[len(kept) :]:
            self.lines = 0
            self.lines_left_out += left_out.count("\n")
            self.characters_left_out += len(left_out)
        return kept

    def note(self) -> str:
        """One line that says how much was left out, if anything was."""
        if not self.characters_left_out:
            return ""
        lines, characters = self.lines_left_out, self.characters_left_out
        return LEFT_OUT.format(f"{lines:,} lines" if lines > 1 else f"{characters:,} characters")


class CutStream:
    """A stream that writes only what there is room for, and is otherwise the stream behind it."""

    def __init__(self, stream: Any, printed: Printed) -> None:
        self.stream, self.printed = stream, printed

    def write(self, text: str) -> int:
        if kept := self.printed.cut(text):
            self.stream.write(kept)
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextlib.contextmanager
def printed_in_short() -> Iterator[None]:
    """A context for one check. What is printed in it is cut, and a last line says how much was left out. While grading,
    the judge has limits of its own, and nothing is cut here."""
    if current().graded:
        yield
        return
    printed = Printed()
    out: Any = CutStream(sys.stdout, printed)
    error: Any = CutStream(sys.stderr, printed)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
            yield
    finally:
        if note := printed.note():
            print(f"\n{note}")
