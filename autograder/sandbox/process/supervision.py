"""How a confined judge has submissions' processes started, watched and ended: its supervisor does it.

The judge's process has no rights and sees no other process, so it asks, over a line of its own: a request names a
method of `Started` and a process by number. The supervisor believes nothing that the judge says about limits, faults or
the end of a process; it looks for itself. Each message is one packet, so that an alarm that interrupts the judge cannot
cut one in two.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any

from autograder.sandbox.inside.wire import WireClosed, WireError, WireTimeout
from autograder.sandbox.process.allowance import Usage
from autograder.sandbox.process.limits import Limits, SandboxDied, SandboxLost, SandboxUnavailable
from autograder.sandbox.process.process import Start
from autograder.sandbox.process.starting import Started

MOST_BYTES = 1 << 16
MOST_STARTS = 100
ERRORS: dict[str, Callable[[str], Exception]] = {
    kind.__name__: kind for kind in (SandboxDied, SandboxLost, SandboxUnavailable, WireClosed, WireTimeout, OSError)
}


class SupervisorLine:
    """The judge's end: one question at a time. Threads of a test may ask, and an alarm may ring while one waits."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.last = 0
        self.busy = False

    def ask(self, method: str, process: int, ends: Sequence[socket.socket] = ()) -> Any:
        """The answer. Raises what the method has raised on the other side, and WireClosed if there is nobody."""
        self.last += 1
        number, self.busy = self.last, True
        try:
            request = json.dumps([number, method, process]).encode()
            socket.send_fds(self.connection, [request], [end.fileno() for end in ends])
            while True:
                text = self.connection.recv(MOST_BYTES)
                if not text:
                    raise WireClosed("the supervisor has ended")
                answered, value, raised = json.loads(text)
                if answered == number:  # otherwise an alarm has interrupted the caller that asked that
                    break
        finally:
            self.busy = False
        if raised:
            raise ERRORS[raised[0]](raised[1])
        return value


class Supervised:
    """A submission's process, as the judge has it. The methods are those of `Started`."""

    pid = None

    def __init__(
        self, line: SupervisorLine, ours: socket.socket, served: Sequence[socket.socket], limits: Limits
    ) -> None:
        self.line, self.ours = line, ours
        self.last_usage: dict[str, Usage | None] = {}
        self.number = line.ask("start", 0, [ours, *served])

    def wait_until_ready(self, connection: socket.socket, deadline: float) -> None:
        self.line.ask("wait_until_ready", self.number)

    def interrupt(self) -> None:
        self.line.ask("interrupt", self.number)

    def has_ended(self) -> bool:
        """Between two questions nothing comes from a process that runs, so only otherwise it has to be looked at."""
        return bool(select.select([self.ours], [], [], 0)[0]) and bool(self.line.ask("has_ended", self.number))

    def usage(self) -> Usage | None:
        return self._usage("usage")

    def quick_usage(self) -> Usage | None:
        return self._usage("quick_usage")

    def fault(self) -> str:
        return str(self.line.ask("fault", self.number))

    def end(self) -> None:
        self.line.ask("end", self.number)

    def _usage(self, method: str) -> Usage | None:
        """An alarm asks this; if it has interrupted another question, it gets the last answer."""
        if not self.line.busy:
            found = self.line.ask(method, self.number)
            self.last_usage[method] = found and Usage(found[0], dict(found[1]), found[2])
        return self.last_usage.get(method)


class Supervisor:
    """The other end, which holds the processes. Close it when the judge has ended."""

    def __init__(self, connection: socket.socket, limits: Limits, start: Start) -> None:
        self.connection, self.limits, self.start = connection, limits, start
        self.processes: list[tuple[Started, socket.socket]] = []
        self.running: set[int] = set()
        self.failure: SandboxUnavailable | OSError | None = None

    def answer(self) -> bool:
        """Answer one question. Returns False if the judge has hung up. Raises WireError for what is no question."""
        request, ends, _, _ = socket.recv_fds(self.connection, MOST_BYTES, 2)
        with contextlib.ExitStack() as received:
            for number in ends:
                received.callback(os.close, number)
            if not request:
                return False
            try:
                number, method, process = json.loads(request)
                asked = self._starting(*ends) if method == "start" else self._asking(method, process)
            except (ValueError, TypeError, LookupError, RecursionError, OSError) as error:
                raise WireError(f"asked what nobody can answer ({type(error).__name__})") from None
            value, raised = None, None
            try:
                value = asked()
            except (SandboxUnavailable, OSError) as error:
                self.failure = self.failure or error
                raised = [type(error).__name__ if type(error).__name__ in ERRORS else "OSError", str(error)]
            except (SandboxDied, WireClosed, WireTimeout) as error:
                raised = [type(error).__name__, str(error)]
            with contextlib.suppress(OSError):  # it has hung up
                self.connection.send(json.dumps([number, value, raised]).encode())
        return True

    def usage(self, method: str) -> Usage:
        """What the processes that run now have used, by `usage` or `quick_usage`."""
        found = (getattr(self.processes[number][0], method)() for number in self.running)
        return sum((usage for usage in found if usage), Usage(asleep=True))

    def require_undisturbed(self) -> None:
        """Raise the reason if the submission cannot be judged, for a reason that does not lie with it."""
        if self.failure is not None:
            raise self.failure
        for number in self.running:
            if fault := self.processes[number][0].fault():
                raise SandboxLost(fault)

    def close(self) -> None:
        """End the processes that still run, and hang up."""
        for number in list(self.running):
            self._end(number)
        self.connection.close()

    def _starting(self, ours: int, theirs: int) -> Callable[[], Any]:
        """What starts a process with this connection."""
        if len(self.processes) >= MOST_STARTS:
            raise ValueError
        kept = socket.socket(fileno=os.dup(ours))
        served = socket.socket(fileno=os.dup(theirs))

        def start() -> int:
            try:
                with served:
                    self.processes.append((self.start(kept, [served], self.limits), kept))
            except BaseException:
                kept.close()
                raise
            self.running.add(len(self.processes) - 1)
            return len(self.processes) - 1

        return start

    def _asking(self, method: str, number: int) -> Callable[[], Any]:
        """What answers a question about a process."""
        process, connection = self.processes[number]
        answers: dict[str, Callable[[], Any]] = {
            "wait_until_ready": lambda: self._wait_until_ready(process, connection),
            "usage": lambda: _as_json(process.usage()),
            "quick_usage": lambda: _as_json(process.quick_usage()),
            "interrupt": process.interrupt,
            "has_ended": process.has_ended,
            "fault": lambda: self._fault(process),
            "end": lambda: self._end(number),
        }
        return answers[method]

    def _wait_until_ready(self, process: Started, connection: socket.socket) -> None:
        try:
            process.wait_until_ready(connection, time.monotonic() + self.limits.start_seconds)
        finally:
            connection.close()  # from now on, only the judge holds it: the process ends when the judge hangs up

    def _fault(self, process: Started) -> str:
        fault = process.fault()
        if fault:
            self.failure = SandboxLost(fault)
        return fault

    def _end(self, number: int) -> None:
        process, connection = self.processes[number]
        if number in self.running:
            process.end()
            self.running.discard(number)
        connection.close()


def _as_json(usage: Usage | None) -> list[Any] | None:
    return None if usage is None else [usage.processor, list(usage.waited.items()), usage.asleep]
