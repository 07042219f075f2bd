"""One sandboxed process: start it, exchange messages with an allowance of time for each, interrupt it, and kill it with
everything that it started.
"""

from __future__ import annotations

import contextlib
import select
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from autograder.sandbox.inside.wire import Wire, WireClosed, WireError, WireTimeout
from autograder.sandbox.process.allowance import ASLEEP, Allowance
from autograder.sandbox.process.forkserver import ForkedProcess, memory_limited_by, why_not_warm
from autograder.sandbox.process.isolation import require_isolation
from autograder.sandbox.process.kind import STUDENT, Kind
from autograder.sandbox.process.limits import Limits, SandboxDied, SandboxLost, SandboxUnavailable
from autograder.sandbox.process.starting import FreshProcess, Started

QUICK = 0.25  # seconds in which most questions are answered; the time a process has used is looked up after that
NOT_STARTED = "A sandbox could not be started: {}."


def isolation_in_force() -> str:
    """How submissions are isolated here, in words. Raises SandboxUnavailable, with the command that helps, if they
    cannot be.
    """
    found = require_isolation()
    reason = why_not_warm()
    way = "a fork of a warm process in its own namespaces" if not reason else f"a fresh Python ({reason})"
    return f"{found.description}; {way} for each submission; memory limited {memory_limited_by()}"


Start = Callable[[socket.socket, Sequence[socket.socket], Limits], Started]
"""Starts a process. It gets our end of its connection, and the ends that the process serves, that of this connection
first.
"""


def start_confined(
    ours: socket.socket, served: Sequence[socket.socket], limits: Limits, kind: Kind = STUDENT
) -> Started:
    """Start a process in the quickest way in which it can be isolated here."""
    return FreshProcess(served, limits, kind=kind) if why_not_warm() else ForkedProcess(ours, served, limits, kind)


def start_unsafe(ours: socket.socket, served: Sequence[socket.socket], limits: Limits, kind: Kind = STUDENT) -> Started:
    """Start a process without isolation."""
    return FreshProcess(served, limits, unsafe=True, kind=kind)


class StudentProcess:
    """A process with the student's code in it. Starts at once; the first exchange waits until it is ready."""

    def __init__(self, limits: Limits, start: Start = start_confined):
        self.limits = limits
        self.alive = True  # whether it can be asked
        self.ended = False  # whether nothing of it is left
        self.ready = False
        self.asked = False  # whether we wait for an answer, and do nothing else
        self.disturbed_by = ""  # what this machine, and not the student's code, has done to it
        self.started = time.monotonic()
        ours, theirs = socket.socketpair()
        self.process: Started
        try:
            with theirs:
                self.process = start(ours, [theirs], limits)
        except BaseException as error:
            ours.close()
            if isinstance(error, SandboxDied):
                raise SandboxUnavailable(NOT_STARTED.format(error)) from error
            raise
        self.wire = Wire(ours, limits.message_bytes, limits.header_bytes)

    def exchange(
        self, header: dict[str, Any], buffers: Sequence[Any], seconds: float
    ) -> tuple[Any, list[memoryview], bool]:
        """Send one request and wait for its answer: (header, buffers, interrupted).

        After `seconds` of processor time the process is interrupted; if it does not answer within the grace period
        either, it is killed. Raises SandboxUnavailable if it does not start, and SandboxDied if there is no answer, or
        none that follows the protocol. Anything that interrupts an exchange ends the process, because the next answer
        could belong to the wrong question.
        """
        with self._ended_by_any_error():
            self._wait_until_ready()
            return self._exchange(header, buffers, seconds)

    def wait_until_ready(self) -> None:
        """Wait until it can be asked. Raises SandboxUnavailable when it does not start."""
        with self._ended_by_any_error():
            self._wait_until_ready()

    @contextlib.contextmanager
    def _ended_by_any_error(self) -> Iterator[None]:
        try:
            yield
        except BaseException as error:
            if isinstance(error, WireError):
                self.look_for_fault()
            self.kill()
            if self.disturbed_by:
                raise SandboxLost(self.disturbed_by) from None
            if isinstance(error, WireTimeout):
                raise SandboxDied("it did not answer, could not be interrupted, and was stopped") from None
            if isinstance(error, WireClosed):
                raise SandboxDied("its process ended") from None
            if isinstance(error, WireError):
                raise SandboxDied(f"its process sent an invalid answer ({error})") from None
            raise

    def _exchange(
        self, header: dict[str, Any], buffers: Sequence[Any], seconds: float
    ) -> tuple[Any, list[memoryview], bool]:
        grace = self.limits.grace_seconds
        self.wire.send(header, buffers, time.monotonic() + ASLEEP * max(seconds, grace))
        interrupted = not self._answers(seconds)
        if interrupted:
            self.interrupt()
            if not self._answers(grace):
                raise WireTimeout
        reply, reply_buffers = self.wire.receive(time.monotonic() + ASLEEP * max(seconds, grace))
        if not isinstance(reply, dict) or reply.get("id") != header["id"]:
            raise WireError("the answer belongs to no question")
        return reply, reply_buffers, interrupted

    def _answers(self, seconds: float) -> bool:
        """Wait for the first byte of an answer. False when it has not come in this time."""
        if self._has_come(min(seconds, QUICK)):
            return True
        self.asked = True
        try:
            allowance = Allowance(seconds, self.process.usage)
            while wait := allowance.wait():
                if self._has_come(wait):
                    return True
            return self._has_come(0)
        finally:
            self.asked = False

    def _has_come(self, seconds: float) -> bool:
        return bool(select.select([self.wire.connection], [], [], seconds)[0])

    def _wait_until_ready(self) -> None:
        if not self.ready:
            if not self.alive:
                raise WireClosed
            deadline = self.started + self.limits.start_seconds
            try:
                self.process.wait_until_ready(self.wire.connection, deadline)
                header, _ = self.wire.receive(deadline)
            except (SandboxDied, WireError, OSError) as error:  # no student code has run in it
                kind = SandboxLost if self.process.fault() else SandboxUnavailable
                raise kind(NOT_STARTED.format(_reason(error, self.limits))) from error
            if not isinstance(header, dict) or header.get("ready") is not True:
                raise SandboxUnavailable(NOT_STARTED.format("it was not ready"))
            self.ready = True

    def look_for_fault(self) -> str:
        """What this machine, and not the student's code, has done to it; empty if nothing is known."""
        if self.alive:
            self.disturbed_by = self.process.fault()
        return self.disturbed_by

    def has_ended(self) -> bool:
        """Whether the process is gone. One that ended by itself is cleaned up."""
        if self.alive and self.process.has_ended():
            self.disturbed_by = self.process.fault()
            self.kill()
        return not self.alive

    def interrupt(self) -> None:
        """What Ctrl-C does."""
        self.process.interrupt()

    def kill(self) -> None:
        """End the process and everything it started; nothing of it is left when this returns.

        It can be interrupted like anything else, by Ctrl-C or because a question was asked at the recursion limit.
        Called again, it does what is left to do.
        """
        self.alive = False
        if not self.ended:
            self.process.end()
            self.wire.close()
            self.ended = True


def _reason(error: Exception, limits: Limits) -> str:
    if isinstance(error, WireTimeout):
        return f"its process was not ready after {limits.start_seconds:g} seconds"
    return str(error) or "its process ended before it was ready"
