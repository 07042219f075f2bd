"""The warm process that belongs to this one: started once, in bubblewrap, and asked to fork a process per submission.

It has loaded IPython, NumPy and Matplotlib, which saves every submission 200 milliseconds. It knows no secret and runs
no student code; each fork enters namespaces of its own before it runs any (see `inside/warm.py`).

Several processes can share it. Each has a branch of it, a fork in that process's control group, which forks in its
place: so what it forks is in the group from the beginning.
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
from collections.abc import Callable
from multiprocessing.util import Finalize
from typing import TypeVar

from autograder.sandbox.inside import fonts
from autograder.sandbox.inside.absent import WITHHELD
from autograder.sandbox.inside.protocol import BRANCH
from autograder.sandbox.inside.wire import WireClosed, WireTimeout
from autograder.sandbox.process import isolation
from autograder.sandbox.process.limits import Limits, SandboxDied, SandboxUnavailable
from autograder.sandbox.process.memory import MemoryGroup
from autograder.sandbox.process.starting import list_fonts, settings_of, start_in_bubblewrap

READY = b"+"
NO_MEMORY = "The memory of this machine ran out. Grade again with fewer workers, or where there is more of it."
WARM_KILLED = "The process that starts submissions was killed. Grade again."
CREDENTIALS = struct.Struct("3i")  # process, user, group
TRIAL_SECONDS = 30.0
CLOSE_SECONDS = 5.0
ENDING = 0x4  # a flag in /proc/PID/stat; the kernel calls it PF_EXITING

Done = TypeVar("Done")


class Branch:
    """A fork of the warm process that belongs to one process and forks its submissions: they begin in its memory group.
    Moving each of them into a group would take ten milliseconds.
    """

    def __init__(self, warm: socket.socket) -> None:
        self.owner = os.getpid()
        self.process: int | None = None  # a file descriptor, once it runs
        self.memory = MemoryGroup.make(Limits().memory)
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.control.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        with theirs, contextlib.suppress(OSError):  # `wait_until_ready` reports that the warm process has gone
            socket.send_fds(warm, [BRANCH], [theirs.fileno()])

    def wait_until_ready(self, seconds: float) -> None:
        """Wait until it runs, and put it into the group. Raises OSError if the warm process has gone."""
        if self.process is not None:
            return
        if not select.select([self.control], [], [], seconds)[0]:
            raise SandboxDied(f"the warm process was not ready after {seconds:g} seconds")
        data, process = _receive_with_process(self.control)
        if data != READY:
            raise OSError("the warm process has ended")
        self.memory.admit(process)
        self.process = os.pidfd_open(process)

    def has_ended(self) -> bool:
        """Whether it ran and has been killed, as by the kernel when the group's memory ran out."""
        return self.process is not None and bool(select.select([self.process], [], [], 0)[0])

    def close(self) -> None:
        """End it and whatever is left in its group, and remove the group. A process that shares it only closes its own
        connection.
        """
        self.control.close()
        if self.process is not None:
            if self.owner == os.getpid():
                select.select([self.process], [], [], CLOSE_SECONDS)
            # Forgotten first: if interrupted in between, a later call could close another file of this number.
            process, self.process = self.process, None
            os.close(process)
        self.memory.remove()


def _receive_with_process(connection: socket.socket) -> tuple[bytes, int]:
    """One byte, and the id as seen from here of the process that has sent it, which the kernel adds."""
    data, ancillary, _, _ = connection.recvmsg(1, socket.CMSG_SPACE(CREDENTIALS.size))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 0)
    process = (CREDENTIALS.unpack(content)[0] for _, kind, content in ancillary if kind == socket.SCM_CREDENTIALS)
    return data, next(process, 0)


class WarmProcess:
    """A process that forks others. It ends with the process that started it, or with `close`. `user` is the process
    that may ask it: its owner, or a fork of the owner that shares it. `libraries`: what it was told to load.
    `withheld`: the packages that neither it nor its forks can see.
    """

    def __init__(self, withheld: tuple[str, ...]) -> None:
        self.owner = self.user = os.getpid()
        self.libraries = frozenset(_preload or ())
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.withheld = withheld
        limits = Limits(withheld=withheld)
        settings = {**settings_of(limits), "warm": True, "preload": _preload}
        settings["filter"] = isolation.seccomp_filter().hex()
        self.popen: subprocess.Popen[bytes] | None = None
        try:
            if fonts.are_needed(_preload):
                list_fonts()
            self.popen, self.pid = start_in_bubblewrap(theirs, limits, settings, warm=True)
        finally:
            theirs.close()
            if self.popen is None:
                self.control.close()
        self.lock = threading.Lock()
        self._branch: Branch | None = None

    def branch(self, seconds: float = TRIAL_SECONDS) -> Branch:
        """The branch of the process that uses it, once it is ready; made if there is none or if it was killed. Raises
        OSError if the warm process has gone.
        """
        with self.lock:
            if select.select([self.control], [], [], 0)[0]:  # it says nothing here, so the connection has ended
                raise OSError("the warm process has ended")
            if self._branch is not None and self._branch.has_ended():
                self.close_branch()
            self._branch = self._branch or Branch(self.control)
            self._branch.wait_until_ready(seconds)
            return self._branch

    def is_ending(self) -> bool:
        """Whether it ends or has ended, and with it all its forks. The kernel says so before they are gone."""
        try:
            with open(f"/proc/{self.pid}/stat") as file:
                flags = int(file.read().rpartition(")")[2].split()[6])
        except (OSError, ValueError, IndexError):
            return True
        return bool(flags & ENDING)

    def share(self) -> None:
        """Let this process, a fork of the one that used it, have a branch of its own."""
        self.user = os.getpid()
        self.close_branch()

    def close_branch(self) -> None:
        """End the branch, if there is one; another one is made when it is needed."""
        if self._branch is not None:
            self._branch.close()
            self._branch = None

    def fork(self, theirs: socket.socket, limits: Limits) -> tuple[int, MemoryGroup]:
        """Have a process forked that serves `theirs`, one end of a socket pair. Returns a file descriptor: the fork
        ends when it is closed, which also happens when this process ends; and the memory group of the fork. Raises
        OSError if the warm process has gone.
        """
        branch = self.branch(limits.start_seconds)
        branch.memory.set_limit(limits.memory)
        reading, writing = os.pipe()
        try:
            socket.send_fds(branch.control, [json.dumps(settings_of(limits)).encode()], [theirs.fileno(), reading])
        except OSError:
            os.close(writing)
            raise
        finally:
            os.close(reading)
        return writing, branch.memory

    def close(self) -> None:
        """End it and all its forks. A process that shares it, and does not own it, only closes its own connection."""
        self.control.close()
        if self.popen is not None and self.owner == os.getpid():
            try:
                self.popen.wait(CLOSE_SECONDS)
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(self.pid, signal.SIGKILL)
                self.popen.wait()
        self.close_branch()


class ForkedProcess:
    """One submission's process, forked from the warm one."""

    def __init__(self, ours: socket.socket, theirs: socket.socket, limits: Limits):
        self.descriptor: int | None = None
        self.lifeline: int | None = None
        self.pid: int | None = None
        self.ready = False
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.lifeline, self.memory, self.warm = fork_from_warm(theirs, limits)
        self.counts = self.memory.counts()
        self.connection = ours

    def wait_until_ready(self, connection: socket.socket, deadline: float) -> None:
        """Receive its first byte, to which the kernel adds its process id as seen from here."""
        if self.ready:
            return
        if not select.select([connection], [], [], max(0.0, deadline - time.monotonic()))[0]:
            raise WireTimeout
        data, process = _receive_with_process(connection)
        if not data:
            raise WireClosed("the warm process has ended")
        if data != READY:
            raise SandboxDied(f"it could not be isolated ({connection.recv(500).decode('utf-8', 'replace')})")
        self.pid, self.descriptor = process, os.pidfd_open(process)
        self.ready = True

    def interrupt(self) -> None:
        self._signal(signal.SIGINT)

    def fault(self) -> str:
        """What this machine, and not its own code, has done to it; empty if nothing."""
        killed, reached = (now - before for now, before in zip(self.memory.counts(), self.counts, strict=True))
        if killed > 0 and reached == 0:
            return NO_MEMORY
        return WARM_KILLED if self.warm.is_ending() else ""

    def has_ended(self) -> bool:
        return self.descriptor is not None and bool(select.select([self.descriptor], [], [], 0)[0])

    def end(self) -> None:
        if not self.ready:  # no student code has run in it
            with contextlib.suppress(WireTimeout, WireClosed, SandboxDied, OSError):
                self.wait_until_ready(self.connection, time.monotonic() + TRIAL_SECONDS)
        self._signal(signal.SIGKILL)  # process 1 of a tree takes all the others with it, and ends after them
        if self.descriptor is not None:
            select.select([self.descriptor], [], [])
            # Forgotten first: if interrupted in between, a later call could close another file of this number.
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
_withheld: tuple[str, ...] = WITHHELD  # by the current warm process, or the next one
_lock = threading.Lock()
_current: WarmProcess | None = None


def fork_from_warm(theirs: socket.socket, limits: Limits) -> tuple[int, MemoryGroup, WarmProcess]:
    """Have this process's warm process fork (see `WarmProcess.fork`). Also returns the warm process."""
    return _with_warm_process(lambda warm: (*warm.fork(theirs, limits), warm), limits.withheld)


def prepare_to_share(withheld: tuple[str, ...] | None = None) -> None:
    """Before this process is forked: have a warm process that is ready, so that forks can use it as it is. `withheld`:
    as in `warm_process`.
    """
    if not why_not_warm():
        _with_warm_process(lambda warm: warm.branch(Limits().start_seconds), withheld)


def _with_warm_process(do: Callable[[WarmProcess], Done], withheld: tuple[str, ...] | None) -> Done:
    """Do something with this process's warm process. It is started first if there is none or if it was killed."""
    for _ in range(2):
        warm = warm_process(withheld)
        try:
            return do(warm)
        except OSError:
            _forget(warm)
    raise SandboxDied("the warm process ended twice")


def preload(libraries: list[str], withheld: tuple[str, ...] = WITHHELD) -> None:
    """Start the warm process now, and have it load these modules before it forks, but not what it withholds. One that
    already runs and withholds the same stays as it is. If this process is a fork, it shares its parent's warm process,
    if that has loaded them.
    """
    global _preload, _withheld
    _preload, _withheld = libraries, withheld
    is_shared = _current is not None and _current.user != os.getpid() and _current.withheld == withheld
    if _current is not None and is_shared and _current.libraries.issuperset(libraries):
        share_warm_process()
        _current.share()
        Finalize(None, _forget, (_current,), exitpriority=0)
    with contextlib.suppress(OSError, SandboxDied, SandboxUnavailable):  # reported when a submission needs it
        warm_process()


def warm_process(withheld: tuple[str, ...] | None = None) -> WarmProcess:
    """This process's warm process, started if there is none. `withheld`: the packages that it has to withhold; one that
    withholds others is ended. None if that does not matter.
    """
    global _current, _withheld
    with _lock:
        _withheld = _withheld if withheld is None else withheld
        if _current is not None and _current.user == os.getpid() and _current.withheld != _withheld:
            _current.close()
            _current = None
        if _current is None or _current.user != os.getpid():
            _current = WarmProcess(_withheld)
            Finalize(None, _forget, (_current,), exitpriority=0)  # at exit, also in a worker of multiprocessing
        return _current


def share_warm_process() -> None:
    """In a fork of a process that has a warm process, keep using that one and its branch. Only its owner can end it."""
    global _lock
    _lock = threading.Lock()
    if _current is not None:
        _current.user, _current.lock = os.getpid(), threading.Lock()


def end_warm_process() -> None:
    """End the warm process and all its forks; the next submission starts another. A process that only shares it leaves
    it to the others.
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
    """Why forks of a warm process cannot be isolated on this machine; an empty text if they can."""
    ours, theirs = socket.socketpair()
    with ours:
        try:
            with theirs:
                trial = ForkedProcess(ours, theirs, Limits(withheld=_withheld))
            trial.wait_until_ready(ours, time.monotonic() + TRIAL_SECONDS)
            trial.end()
        except (OSError, SandboxDied, SandboxUnavailable, WireTimeout, WireClosed) as error:
            return str(error) or type(error).__name__
    return ""


def find_out_before_forking() -> None:
    """Find out if submissions can be isolated, so that forks of this process know. Each fork retries what fails now."""
    if not isolation.isolation_available():
        isolation.isolation_available.cache_clear()
    elif why_not_warm():
        why_not_warm.cache_clear()
    else:
        warm_process().close_branch()  # each fork has one of its own


def memory_limited_by() -> str:
    """What limits the memory of submissions, in words."""
    return "by a control group" if not why_not_warm() and warm_process().branch().memory else "per process"
