"""The warm process of this one: started once, in bubblewrap, and asked to fork a process for each submission.

What it has loaded (IPython, NumPy, Matplotlib) would cost every submission 200 milliseconds. It knows no secret and
runs no student's code; each fork goes into namespaces of its own before it does (see `inside/warm.py`).
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import select
import signal
import socket
import struct
import subprocess
import threading
import time
from multiprocessing.util import Finalize

from autograder.sandbox.inside.wire import WireClosed, WireTimeout
from autograder.sandbox.process import isolation
from autograder.sandbox.process.limits import Limits, SandboxDied, SandboxUnavailable
from autograder.sandbox.process.memory import MemoryGroup
from autograder.sandbox.process.starting import settings_of, start_in_bubblewrap

READY = b"+"
CREDENTIALS = struct.Struct("3i")  # process, user, group
TRIAL_SECONDS = 30.0
CLOSE_SECONDS = 5.0


class WarmProcess:
    """A process that forks others. It ends with the process that started it, or with `close`. `user` is the process
    that may ask it: its owner, or a fork of the owner that shares it. `libraries`: what it was told to load.
    """

    def __init__(self) -> None:
        self.owner = self.user = os.getpid()
        self.libraries = frozenset(_preload or ())
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        limits = Limits()
        settings = {**settings_of(limits), "warm": True, "preload": _preload}
        settings["filter"] = isolation.seccomp_filter().hex()
        self.popen: subprocess.Popen[bytes] | None = None
        try:
            self.popen, self.pid = start_in_bubblewrap(theirs, limits, settings, warm=True)
        finally:
            theirs.close()
            if self.popen is None:
                self.control.close()
        self.memory = MemoryGroup.make()

    def fork(self, theirs: socket.socket, limits: Limits) -> int:
        """Have a process forked that serves this end of a socket pair. Returns a descriptor: when it is closed, as it
        is when this process ends, the fork ends too. Raises OSError when the warm process has gone.
        """
        reading, writing = os.pipe()
        try:
            socket.send_fds(self.control, [json.dumps(settings_of(limits)).encode()], [theirs.fileno(), reading])
        except OSError:
            os.close(writing)
            raise
        finally:
            os.close(reading)
        return writing

    def close(self) -> None:
        """End it and every fork of it; where it is shared, it ends when all have closed it."""
        self.control.close()
        if self.popen is not None and self.owner == os.getpid():
            try:
                self.popen.wait(CLOSE_SECONDS)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(self.pid, signal.SIGKILL)
                self.popen.wait()
        self.memory.remove()


class ForkedProcess:
    """One submission's process, forked from the warm one."""

    def __init__(self, ours: socket.socket, theirs: socket.socket, limits: Limits):
        self.limits = limits
        self.descriptor: int | None = None
        self.lifeline: int | None = None
        self.pid: int | None = None
        self.ready = False
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.warm, self.lifeline = fork_from_warm(theirs, limits)
        self.connection = ours

    def wait_until_ready(self, connection: socket.socket, deadline: float) -> None:
        """Take its first byte, to which the kernel adds the number of its process as seen from here."""
        if self.ready:
            return
        if not select.select([connection], [], [], max(0.0, deadline - time.monotonic()))[0]:
            raise WireTimeout
        data, ancillary, _, _ = connection.recvmsg(1, socket.CMSG_SPACE(CREDENTIALS.size))
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 0)
        if not data:
            raise WireClosed("the warm process has ended")
        if data != READY:
            raise SandboxDied(f"it could not be isolated ({connection.recv(500).decode('utf-8', 'replace')})")
        process = next(
            CREDENTIALS.unpack(content)[0] for _, kind, content in ancillary if kind == socket.SCM_CREDENTIALS
        )
        self.pid, self.descriptor = process, os.pidfd_open(process)
        self.warm.memory.admit(process, self.limits.memory)
        self.ready = True

    def interrupt(self) -> None:
        self._signal(signal.SIGINT)

    def has_ended(self) -> bool:
        return self.descriptor is not None and bool(select.select([self.descriptor], [], [], 0)[0])

    def end(self) -> None:
        if not self.ready:  # nothing of the student's has run in it
            with contextlib.suppress(WireTimeout, WireClosed, SandboxDied, OSError):
                self.wait_until_ready(self.connection, time.monotonic() + TRIAL_SECONDS)
        self._signal(signal.SIGKILL)  # process 1 of a tree takes all the others with it, and ends after them
        if self.descriptor is not None:
            select.select([self.descriptor], [], [])
            # Forgotten first: cut short between the two, this would close the number of somebody else's file later.
            descriptor, self.descriptor = self.descriptor, None
            os.close(descriptor)
        if self.lifeline is not None:
            lifeline, self.lifeline = self.lifeline, None
            os.close(lifeline)

    def _signal(self, number: int) -> None:
        if self.descriptor is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(self.descriptor, number)


_preload: list[str] | None = None
_lock = threading.Lock()
_current: WarmProcess | None = None


def fork_from_warm(theirs: socket.socket, limits: Limits) -> tuple[WarmProcess, int]:
    """Have the warm process of this one fork; it is started first where there is none, or where it was killed."""
    for _ in range(2):
        warm = warm_process()
        try:
            return warm, warm.fork(theirs, limits)
        except OSError:
            _forget(warm)
    raise SandboxDied("the warm process ended twice")


def preload(libraries: list[str]) -> None:
    """Have the warm process load these modules before it forks; it begins now. One that runs already stays as it is,
    and one that the process has which this one was forked from is shared, if it has loaded them.
    """
    global _preload
    _preload = libraries
    if _current is not None and _current.user != os.getpid() and _current.libraries.issuperset(libraries):
        share_warm_process()
        _current.memory = MemoryGroup.make()  # a limit for each of those that share it
        Finalize(None, _forget, (_current,), exitpriority=0)
    with contextlib.suppress(OSError, SandboxDied, SandboxUnavailable):  # said when a submission needs it
        warm_process()


def warm_process() -> WarmProcess:
    """The warm process of this one."""
    global _current
    with _lock:
        if _current is None or _current.user != os.getpid():
            _current = WarmProcess()
            Finalize(None, _forget, (_current,), exitpriority=0)  # at exit, also of a worker of multiprocessing
        return _current


def share_warm_process() -> None:
    """In a fork of the process that has a warm one: go on with that one. It is still the other's to end."""
    global _lock
    _lock = threading.Lock()
    if _current is not None:
        _current.user = os.getpid()


def end_warm_process() -> None:
    """End the warm process, and with it whatever it has forked; the next submission starts another. Where it is shared,
    this process leaves it to the others.
    """
    if _current is not None:
        _forget(_current)


def _forget(warm: WarmProcess) -> None:
    global _current
    with _lock:
        if _current is warm:
            _current = None
    warm.close()


@functools.cache
def why_not_warm() -> str:
    """An empty text where forks of a warm process can be isolated on this machine, or what stands in the way."""
    ours, theirs = socket.socketpair()
    with ours:
        try:
            with theirs:
                trial = ForkedProcess(ours, theirs, Limits())
            trial.wait_until_ready(ours, time.monotonic() + TRIAL_SECONDS)
            trial.end()
        except (OSError, SandboxDied, SandboxUnavailable, WireTimeout, WireClosed) as error:
            return str(error) or type(error).__name__
    return ""


def find_out_before_forking() -> None:
    """Have forks of this process know that submissions can be isolated. What fails now is tried again by each."""
    if not isolation.isolation_available():
        isolation.isolation_available.cache_clear()
    elif why_not_warm():
        why_not_warm.cache_clear()


def memory_limited_by() -> str:
    """What limits the memory of submissions, in words."""
    return "by a control group" if not why_not_warm() and warm_process().memory else "per process"
