"""The work of a cluster's worker: it hands submissions to processes that grade, and hands back their answers.

A worker grades in processes of its own, because grading needs a main thread and limits per process. They are forked
from a process that has imported everything slow. All workers of a machine share that process, and it is started before
there is anything to grade, so that its imports overlap with all others. This module runs in the worker itself and
imports only the standard library; the data that passes through it stays pickled.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SERVE = "from autograder.grading.workers.cluster_forkserver import main; main()"
LENGTH = struct.Struct(">Q")
NOT_OURS = ("MALLOC_TRIM_THRESHOLD_",)  # Dask sets it for its workers: freed memory goes back, and is requested again
QUEUE = 1000  # connections that wait for a process
CLOSE_SECONDS = 60.0  # in a thread that nothing waits for
FORGOTTEN, LOOKS = 60.0, 15.0  # seconds until unused processes end (their run may have been killed); between checks


class ServerDiedError(Exception):
    """The process in which a worker of the cluster grades was killed."""


def write_message(stream: Any, content: bytes) -> None:
    stream.write(LENGTH.pack(len(content)) + content)
    stream.flush()


def read_message(stream: Any) -> bytes:
    """Raises EOFError if the other side has gone."""
    head = stream.read(LENGTH.size)
    if len(head) < LENGTH.size:
        raise EOFError
    content: bytes = stream.read(LENGTH.unpack(head)[0])
    return content


class GradingServer:
    """A process that grades submissions of one assignment, which it gets before the first submission.

    It ends when this connection ends.
    """

    def __init__(self, connection: socket.socket) -> None:
        self.connection, self.stream = connection, connection.makefile("rwb")
        self.told = False

    def ask(self, assignment: bytes, submission: bytes) -> bytes:
        """The answer to a submission. Raises ServerDiedError if there is none."""
        try:
            if not self.told:
                write_message(self.stream, assignment)
                self.told = True
            write_message(self.stream, submission)
            return read_message(self.stream)
        except (EOFError, OSError) as error:
            raise ServerDiedError("the process that graded was killed") from error

    @property
    def alive(self) -> bool:
        """Whether the process has not closed its end. It sends nothing unasked, so there is nothing else to read."""
        return not select.select([self.connection], [], [], 0)[0]

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.stream.close()
        self.connection.close()


@dataclass
class ServerPool:
    """The processes of this worker for one run. `idle`: those that are free. `busy`: how many are grading. `checks`:
    whether they have imported our checks. `parent`: the process that they are forked from, if this worker started it.
    """

    idle: list[GradingServer] = field(default_factory=list)
    busy: int = 0
    checks: bool = True
    parent: subprocess.Popen[bytes] | None = None
    used: float = field(default_factory=time.monotonic)

    def close(self, path: Path) -> None:
        for server in self.idle:
            server.close()
        if self.parent is not None:
            threading.Thread(target=_end, args=(self.parent, path), daemon=True).start()


_lock = threading.Lock()
_runs: dict[str, ServerPool] = {}
_looking = False


def _known(run: str) -> ServerPool:
    """The processes for a run, which are checked regularly from now on. The caller holds the lock."""
    global _looking
    if not _looking:
        _looking = True
        threading.Thread(target=_look_after_runs, daemon=True).start()
    return _runs.setdefault(run, ServerPool())


def _look_after_runs() -> None:
    """End unused processes: a killed run does not say that it has ended. A run that continues gets new processes."""
    global _looking
    while True:
        time.sleep(LOOKS)
        with _lock:
            _close_forgotten()
            if not _runs:
                _looking = False
                return


def _close_forgotten() -> None:
    now = time.monotonic()
    for name in [name for name, known in _runs.items() if not known.busy and now - known.used > FORGOTTEN]:
        _runs.pop(name).close(_path(name))


def start_servers(run: str, count: int, checks: bool = True) -> None:
    """Start `count` processes that will grade in this run. `checks`: the assignment uses our checks."""
    with _lock:
        _close_forgotten()
        known = _known(run)
        known.checks = checks
        known.idle += [GradingServer(_connected(run, known)) for _ in range(count)]


def close_servers(run: str) -> None:
    """End the processes that have graded in this run."""
    with _lock:
        if run in _runs:
            _runs.pop(run).close(_path(run))


def grade_remotely(task: bytes) -> list[bytes]:
    """Grade submissions on a worker of the cluster, and return the answer to each. The task is the run, the assignment
    and some submissions, in one piece because Dask would look into anything else. Raises ServerDiedError.
    """
    run, assignment, submissions = pickle.loads(task)
    with _server(run) as server:
        return [server.ask(assignment, submission) for submission in submissions]


@contextlib.contextmanager
def _server(run: str) -> Iterator[GradingServer]:
    """A process that grades for this caller only, within the context."""
    with _lock:
        known = _known(run)
        server = known.idle.pop() if known.idle else None
        if server is None or not server.alive:
            server = GradingServer(_connected(run, known))
        known.busy += 1
    try:
        yield server
    except BaseException:
        server.close()
        raise
    finally:
        with _lock:
            known.busy, known.used = known.busy - 1, time.monotonic()
    with _lock:
        if _runs.get(run) is known:
            known.idle.append(server)
        else:
            server.close()


def _connected(run: str, known: ServerPool) -> socket.socket:
    """A new connection, and with it a process that serves it."""
    while True:
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(str(_path(run)))
            return connection
        except (FileNotFoundError, ConnectionRefusedError) as error:
            connection.close()
            if isinstance(error, ConnectionRefusedError):  # the process that listened there was killed
                _path(run).unlink(missing_ok=True)
            _start_parent(run, known)


def _start_parent(run: str, known: ServerPool) -> None:
    """Start the process that others are forked from, unless another worker of this machine is faster."""
    path = _path(run)
    own = path.with_suffix(f".{os.getpid()}")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(own))
        try:
            own.chmod(0o600)
            listener.listen(QUEUE)
            os.link(own, path)  # only one worker can; and the path accepts connections from the start
        except FileExistsError:
            return
        finally:
            own.unlink()
        environment = {name: value for name, value in os.environ.items() if name not in NOT_OURS}
        number = listener.fileno()
        command = [sys.executable, "-c", SERVE, str(number), str(path), *(["checks"] if known.checks else [])]
        known.parent = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment, pass_fds=[number])


def _path(run: str) -> Path:
    return Path(tempfile.gettempdir(), f"autograder-{os.getuid()}-{run}")


def _end(parent: subprocess.Popen[bytes], path: Path) -> None:
    """End the parent process. It ends when its input does, and after the processes that it has forked."""
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        parent.communicate(timeout=CLOSE_SECONDS)
    parent.kill()
    parent.wait()
    path.unlink(missing_ok=True)
