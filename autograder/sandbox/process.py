"""One sandboxed process: started, spoken to with a deadline for each exchange, interrupted, and killed with everything
it started.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import py_compile
import random
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from importlib.util import cache_from_source
from typing import Any

from autograder.sandbox import isolation
from autograder.sandbox.inside.wire import Wire, WireClosed, WireError, WireTimeout
from autograder.sandbox.limits import Limits, SandboxDied

START = "import sys; sys.path.insert(0, sys.argv.pop(1)); from inside.main import main; del sys.path[0]; main()"


class StudentProcess:
    """A process with the student's code in it. Starts at once; the first exchange waits until it is ready."""

    def __init__(self, limits: Limits, unsafe: bool = False):
        self.limits = limits
        self.alive = True
        self.ready = False
        self.folder: str | None = None
        ours, theirs = socket.socketpair()
        try:
            self.popen, self.pid = self._start_plain(theirs) if unsafe else self._start_isolated(theirs)
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        self.wire = Wire(ours, limits.message_bytes, limits.header_bytes)
        self.started = time.monotonic()

    def exchange(
        self, header: dict[str, Any], buffers: Sequence[Any], seconds: float
    ) -> tuple[Any, list[memoryview], bool]:
        """Send one request and wait for its answer: (header, buffers, interrupted).

        After `seconds` the process is interrupted; if it does not answer within the grace period either, it is killed.
        Raises SandboxDied when there is no answer, or none that follows the protocol. Whatever cuts an exchange short
        ends the process, because the next answer could belong to the wrong question.
        """
        try:
            self._wait_until_ready()
            return self._exchange(header, buffers, time.monotonic() + seconds)
        except BaseException as error:
            self.kill()
            if isinstance(error, WireTimeout):
                raise SandboxDied("it did not answer, could not be interrupted, and was stopped") from None
            if isinstance(error, WireClosed):
                raise SandboxDied("its process ended") from None
            if isinstance(error, WireError):
                raise SandboxDied(f"its process sent something that is no answer ({error})") from None
            raise

    def _exchange(
        self, header: dict[str, Any], buffers: Sequence[Any], deadline: float
    ) -> tuple[Any, list[memoryview], bool]:
        self.wire.send(header, buffers, deadline)
        interrupted = False
        while True:
            try:
                reply, reply_buffers = self._receive_started(deadline)
                break
            except _NothingYet:
                if interrupted:
                    raise WireTimeout from None
                interrupted = True
                self.interrupt()
                deadline = time.monotonic() + self.limits.grace_seconds
        if not isinstance(reply, dict) or reply.get("id") != header["id"]:
            raise WireError("the answer belongs to no question")
        return reply, reply_buffers, interrupted

    def _receive_started(self, deadline: float) -> tuple[Any, list[memoryview]]:
        """The next message. Nothing at all until the deadline is _NothingYet; an answer begun in time gets the grace
        period to end.
        """
        remaining = max(0.0, deadline - time.monotonic())
        if not select.select([self.wire.connection], [], [], remaining)[0]:
            raise _NothingYet
        return self.wire.receive(max(deadline, time.monotonic() + self.limits.grace_seconds))

    def _wait_until_ready(self) -> None:
        if not self.ready:
            if not self.alive:
                raise WireClosed
            header, _ = self.wire.receive(self.started + self.limits.start_seconds)
            if not isinstance(header, dict) or header.get("ready") is not True:
                raise WireError("the process did not start")
            self.ready = True

    def has_ended(self) -> bool:
        """Whether the process is gone. One that ended by itself is cleared away."""
        if self.alive and self.popen.poll() is not None:
            self.kill()
        return not self.alive

    def interrupt(self) -> None:
        """What Ctrl-C does."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(self.pid, signal.SIGINT)

    def kill(self) -> None:
        """End the process and everything it started; nothing of it is left when this returns."""
        if not self.alive:
            return
        self.alive = False
        self.wire.close()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self.folder is None:
                os.kill(self.pid, signal.SIGKILL)  # the first process of a PID namespace takes all the others with it
            else:
                os.killpg(self.pid, signal.SIGKILL)
        self.popen.wait()
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _settings(self, uid: int | None) -> str:
        limits = self.limits
        rlimits = limits.rlimits()
        if self.folder is not None:
            del rlimits["RLIMIT_NPROC"]  # without a namespace it would count all processes of the user
        settings = {
            "uid": uid,
            "rlimits": rlimits,
            "max_bytes": limits.message_bytes,
            "max_header": limits.header_bytes,
        }
        return json.dumps({**settings, "max_output_bytes": limits.output_bytes, "max_outputs": limits.outputs})

    def _start_isolated(self, theirs: socket.socket) -> tuple[subprocess.Popen[bytes], int]:
        found = isolation.require_isolation()
        _compile_inside()
        uid = None if found.user_namespace else isolation.FIRST_UID + random.SystemRandom().randrange(isolation.UIDS)
        info_read, info_write = os.pipe()
        rules = _memory_file(isolation.seccomp_filter())
        try:
            command = isolation.bubblewrap_command(found, self.limits, info_write, rules)
            command += [
                "--",
                sys.executable,
                "-I",
                "-c",
                START,
                isolation.CODE,
                str(theirs.fileno()),
                self._settings(uid),
            ]
            descriptors = [theirs.fileno(), info_write, *([] if rules is None else [rules])]
            popen = subprocess.Popen(
                command,
                pass_fds=descriptors,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},
            )
        finally:
            os.close(info_write)
            if rules is not None:
                os.close(rules)
        return popen, _read_pid(info_read, popen)

    def _start_plain(self, theirs: socket.socket) -> tuple[subprocess.Popen[bytes], int]:
        """Without isolation: a session of its own in a temporary folder, so that at least its processes can be ended
        together.
        """
        self.folder = tempfile.mkdtemp(prefix="sandbox-")
        command = [
            sys.executable,
            "-I",
            "-c",
            START,
            str(isolation.INSIDE.parent),
            str(theirs.fileno()),
            self._settings(None),
        ]
        popen = subprocess.Popen(
            command,
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=isolation.environment(self.folder),
            cwd=self.folder,
            start_new_session=True,
        )
        return popen, popen.pid


class _NothingYet(Exception):  # noqa: N818
    """The deadline passed and not a byte of the answer has come."""


def _read_pid(descriptor: int, popen: subprocess.Popen[bytes]) -> int:
    """The number, as seen from here, of the first process inside."""
    text = b""
    with open(descriptor, "rb", closefd=True) as file:
        while chunk := file.read1(4096):
            text += chunk
            with contextlib.suppress(ValueError):
                return int(json.loads(text)["child-pid"])
    popen.kill()
    popen.wait()
    raise SandboxDied("bubblewrap did not start")


def _memory_file(data: bytes) -> int | None:
    if not data:
        return None
    descriptor = os.memfd_create("seccomp")
    os.write(descriptor, data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


@functools.cache
def _compile_inside() -> None:
    """Byte-compile the inner half once: the sandbox sees it read-only and would compile it anew at every start."""
    for path in isolation.INSIDE.glob("*.py"):
        cached = cache_from_source(str(path))
        with contextlib.suppress(OSError, py_compile.PyCompileError):
            if not os.path.exists(cached) or os.path.getmtime(cached) < path.stat().st_mtime:
                py_compile.compile(str(path), doraise=True)
