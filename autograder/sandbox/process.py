"""One sandboxed process: started, spoken to with a deadline for each exchange, interrupted, and killed with everything
it started.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Sequence
from typing import Any

from autograder.sandbox.inside.wire import Wire, WireClosed, WireError, WireTimeout
from autograder.sandbox.isolation import require_isolation
from autograder.sandbox.limits import Limits, SandboxDied
from autograder.sandbox.starting import FreshProcess, Started
from autograder.sandbox.warm import ForkedProcess, memory_limited_by, why_not_warm


def isolation_in_force() -> str:
    """In words, how submissions are isolated here. Raises SandboxUnavailable, with the command that helps, when they
    cannot be.
    """
    found = require_isolation()
    reason = why_not_warm()
    way = "a fork of a warm process in namespaces of its own" if not reason else f"a fresh Python ({reason})"
    return f"{found.description}; {way} for each submission; memory limited {memory_limited_by()}"


class StudentProcess:
    """A process with the student's code in it. Starts at once; the first exchange waits until it is ready."""

    def __init__(self, limits: Limits, unsafe: bool = False):
        self.limits = limits
        self.alive = True
        self.ready = False
        self.started = time.monotonic()
        ours, theirs = socket.socketpair()
        self.process: Started
        try:
            with theirs:
                if unsafe or why_not_warm():
                    self.process = FreshProcess(theirs, limits, unsafe)
                else:
                    self.process = ForkedProcess(ours, theirs, limits)
        except BaseException:
            ours.close()
            raise
        self.wire = Wire(ours, limits.message_bytes, limits.header_bytes)

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
            deadline = self.started + self.limits.start_seconds
            self.process.wait_until_ready(self.wire.connection, deadline)
            header, _ = self.wire.receive(deadline)
            if not isinstance(header, dict) or header.get("ready") is not True:
                raise WireError("the process did not start")
            self.ready = True

    def has_ended(self) -> bool:
        """Whether the process is gone. One that ended by itself is cleared away."""
        if self.alive and self.process.has_ended():
            self.kill()
        return not self.alive

    def interrupt(self) -> None:
        """What Ctrl-C does."""
        self.process.interrupt()

    def kill(self) -> None:
        """End the process and everything it started; nothing of it is left when this returns."""
        if self.alive:
            self.alive = False
            self.process.end()
            self.wire.close()


class _NothingYet(Exception):  # noqa: N818
    """The deadline passed and not a byte of the answer has come."""
