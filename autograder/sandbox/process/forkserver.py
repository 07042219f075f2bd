"""The warm processes that belong to this one: one for submissions, one for judges, each started once, in bubblewrap,
and asked to fork a process per submission.

They have loaded what their forks need, which saves every submission 200 milliseconds, or seconds with PyTorch. They
know no secret and run no student code; each fork enters namespaces of its own before it does anything (see
`inside/warm.py`).

Several processes can share a warm process. Each has a branch of it, a fork in that process's control group, which forks
in its place: so what it forks is in the group from the beginning.
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
from collections.abc import Callable, Sequence
from multiprocessing.util import Finalize
from typing import Any, TypeVar

from autograder.sandbox.inside import fonts
from autograder.sandbox.inside.protocol import BRANCH
from autograder.sandbox.inside.wire import WireClosed, WireTimeout
from autograder.sandbox.process import isolation
from autograder.sandbox.process.allowance import Usage, usage_of_process, usage_of_tree
from autograder.sandbox.process.kind import OF_OTHER_COURSES, STUDENT, Kind
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
    """A fork of a warm process that belongs to one process and forks its submissions: they begin in its memory group.
    Moving each of them into a group would take ten milliseconds. `told`: what it has been told for all its forks.
    """

    def __init__(self, warm: socket.socket, limits: Limits) -> None:
        self.owner = os.getpid()
        self.told: set[str] = set()
        self.process: int | None = None  # a file descriptor, once it runs
        self.memory = MemoryGroup.make(limits.memory)
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
    """A process that forks others of one kind. It ends with the process that started it, or with `close`. `user` is the
    process that may ask it: its owner, or a fork of the owner that shares it. `libraries`: what it was told to load.
    """

    def __init__(self, kind: Kind, libraries: list[str] | None) -> None:
        self.kind = kind
        self.owner = self.user = os.getpid()
        self.libraries = frozenset(libraries or ())
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        settings = {"warm": True, "preload": libraries, "filter": isolation.seccomp_filter().hex()}
        self.popen: subprocess.Popen[bytes] | None = None
        try:
            if fonts.are_needed(libraries):
                list_fonts()
            self.popen, self.pid = start_in_bubblewrap(kind, [theirs], kind.limits, settings)
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
            self._branch = self._branch or Branch(self.control, self.kind.limits)
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

    def fork(
        self, served: Sequence[socket.socket], limits: Limits, **settings: Any
    ) -> tuple[socket.socket, MemoryGroup]:
        """Have a process forked that serves these sockets, or, with `here=True`, have the branch serve them itself.
        Returns one end of a socket pair, and the memory group of the fork. The fork ends when that is closed, which
        also happens when this process ends, and sends its exit status when it ends by itself. Raises OSError if the
        warm process has gone.
        """
        branch = self.branch(limits.start_seconds)
        branch.memory.set_limit(limits.memory)
        ours, lifeline = socket.socketpair()
        request = json.dumps(settings_of(self.kind, limits) | settings).encode()
        try:
            with lifeline:
                socket.send_fds(branch.control, [request], [end.fileno() for end in (lifeline, *served)])
        except OSError:
            ours.close()
            raise
        return ours, branch.memory

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
    """A process forked from the warm one of its kind."""

    def __init__(self, ours: socket.socket, served: Sequence[socket.socket], limits: Limits, kind: Kind = STUDENT):
        self.descriptor: int | None = None
        self.lifeline: socket.socket | None = None
        self.pid: int | None = None
        self.ready = False
        self.status = ""
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.lifeline, self.memory, self.warm = fork_from_warm(served, limits, kind)
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

    def usage(self) -> Usage | None:
        return None if self.pid is None else usage_of_tree(self.pid)

    def quick_usage(self) -> Usage | None:
        return None if self.pid is None else usage_of_process(self.pid)

    def fault(self) -> str:
        """What this machine, and not its own code, has done to it; empty if nothing."""
        killed, reached = (now - before for now, before in zip(self.memory.counts(), self.counts, strict=True))
        if killed > 0 and reached == 0:
            return NO_MEMORY
        return WARM_KILLED if self.warm.is_ending() else ""

    def has_ended(self) -> bool:
        return self.descriptor is not None and bool(select.select([self.descriptor], [], [], 0)[0])

    def end(self) -> int | None:
        """End it with everything that it started. Returns its exit status, negative for a signal, if that is known."""
        if not self.ready:  # none of its own code has run in it
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
            with lifeline:
                return _status_from(lifeline)
        return None

    def _signal(self, number: int) -> None:
        if self.descriptor is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                signal.pidfd_send_signal(self.descriptor, number)


_preload: dict[str, list[str]] = {}  # by kind: what its warm process loads; everything if there is no entry
_current: dict[str, WarmProcess] = {}  # by kind
_lock = threading.Lock()


def fork_from_warm(
    served: Sequence[socket.socket], limits: Limits, kind: Kind = STUDENT, **settings: Any
) -> tuple[socket.socket, MemoryGroup, WarmProcess]:
    """Have this process's warm process fork (see `WarmProcess.fork`). Also returns the warm process."""
    return _with_warm_process(lambda warm: (*warm.fork(served, limits, **settings), warm), kind)


def branch_of(kind: Kind) -> Branch:
    """The branch of this process's warm process of a kind, once it is ready."""
    return _with_warm_process(lambda warm: warm.branch(kind.limits.start_seconds), kind)


def _with_warm_process(do: Callable[[WarmProcess], Done], kind: Kind) -> Done:
    """Do something with this process's warm process. It is started first if there is none or if it was killed."""
    for _ in range(2):
        warm = warm_process(kind)
        try:
            return do(warm)
        except OSError:
            _forget(warm)
    raise SandboxDied("the warm process ended twice")


def preload(libraries: list[str], kind: Kind = STUDENT) -> None:
    """Start the warm process now, and have it load these modules before it forks. One that already runs stays as it is.
    If this process is a fork, it shares its parent's warm process, if that has loaded them.
    """
    global _lock
    _preload[kind.name] = libraries
    warm = _current.get(kind.name)
    if warm is not None and warm.user != os.getpid() and warm.libraries.issuperset(libraries):
        _lock, warm.lock = threading.Lock(), threading.Lock()  # a thread of the parent may have held them
        warm.share()
        Finalize(None, _forget, (warm,), exitpriority=0)
    with contextlib.suppress(OSError, SandboxDied, SandboxUnavailable):  # reported when a submission needs it
        warm_process(kind)


def warm_process(kind: Kind = STUDENT) -> WarmProcess:
    """This process's warm process of a kind, started if there is none."""
    with _lock:
        warm = _current.get(kind.name)
        if warm is None or warm.user != os.getpid():
            warm = _current[kind.name] = WarmProcess(kind, _preload.get(kind.name))
            Finalize(None, _forget, (warm,), exitpriority=0)  # at exit, also in a worker of multiprocessing
        return warm


def end_warm_process(kind: Kind = STUDENT) -> None:
    """End the warm process and all its forks; the next submission starts another. A process that only shares it leaves
    it to the others.
    """
    if kind.name in _current:
        _forget(_current[kind.name])


def _forget(warm: WarmProcess) -> None:
    with _lock:
        if _current.get(warm.kind.name) is warm:
            del _current[warm.kind.name]
    warm.close()


def _status_from(lifeline: socket.socket) -> int | None:
    """The exit status that a keeper has sent, if it could."""
    lifeline.settimeout(CLOSE_SECONDS)
    try:
        return int(lifeline.recv(16))
    except (OSError, ValueError):
        return None


def _kind_of_submissions() -> Kind:
    """The kind of submissions' processes whose warm process runs; the usual one if none does."""
    return OF_OTHER_COURSES if OF_OTHER_COURSES.name in _current and STUDENT.name not in _current else STUDENT


@functools.cache
def why_not_warm() -> str:
    """Why forks of a warm process cannot be isolated on this machine; an empty text if they can."""
    ours, theirs = socket.socketpair()
    with ours:
        try:
            with theirs:
                trial = ForkedProcess(ours, [theirs], Limits(), _kind_of_submissions())
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
        for warm in _current.values():
            warm.close_branch()  # each fork has one of its own


def memory_limited_by() -> str:
    """What limits the memory of submissions, in words."""
    return "by a control group" if not why_not_warm() and branch_of(_kind_of_submissions()).memory else "per process"
