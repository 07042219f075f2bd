"""The work of a cluster's worker: it hands submissions to processes that grade, and hands back their answers.

A worker grades in processes of its own, because grading needs a main thread and limits per process. A process is used
again and again for one assignment. It ends with the worker, at the end of a run, or by itself when it has had nothing
to do for a while, since a run that was killed does not say that it has ended. This module runs in the worker itself and
imports only the standard library; the data that passes through it stays pickled.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import struct
import subprocess
import sys
import threading
from typing import Any

SERVE = "from autograder.grading.workers.cluster_process import main; main()"
LENGTH = struct.Struct(">Q")
NOT_OURS = ("MALLOC_TRIM_THRESHOLD_",)  # Dask sets it for its workers: freed memory goes back, and is requested again


class ProcessDiedError(Exception):
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


class GradingProcess:
    """A process that grades submissions of one assignment, which it gets with the first of them. `checks`: it loads our
    checks at once.
    """

    def __init__(self, checks: bool = False) -> None:
        environment = {name: value for name, value in os.environ.items() if name not in NOT_OURS}
        command = [sys.executable, "-c", SERVE, *(["checks"] if checks else [])]
        self.popen = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        self.assignment: bytes | None = None

    def ask(self, assignment: bytes, submission: bytes) -> bytes:
        """The answer to a submission. Raises ProcessDiedError if there is none."""
        news = assignment if self.assignment is None else None
        self.assignment = assignment
        try:
            write_message(self.popen.stdin, pickle.dumps((news, submission)))
            return read_message(self.popen.stdout)
        except (EOFError, OSError) as error:
            raise ProcessDiedError("the process that graded was killed") from error

    def can_grade(self, assignment: bytes) -> bool:
        return self.popen.poll() is None and self.assignment in (None, assignment)

    def close(self) -> None:
        """End it. It ends when its input does, after it has cleared away what it made."""
        for stream in (self.popen.stdin, self.popen.stdout):
            with contextlib.suppress(OSError):
                stream.close()  # type: ignore[union-attr]
        threading.Thread(target=self.popen.wait, daemon=True).start()


_lock = threading.Lock()
_idle: list[GradingProcess] = []


def start_processes(count: int, checks: bool = True) -> None:
    """Start processes before there is anything to grade, so that their imports overlap with all others."""
    with _lock:
        _idle.extend(GradingProcess(checks) for _ in range(count))


def close_processes() -> None:
    """End the processes that are not grading."""
    with _lock:
        while _idle:
            _idle.pop().close()


def grade_remotely(task: bytes) -> list[bytes]:
    """Grade submissions on a worker of the cluster, and return the answer to each. The task is the assignment and some
    submissions, in one piece because Dask would look into anything else. Raises ProcessDiedError.
    """
    assignment, submissions = pickle.loads(task)
    process = _process_for(assignment)
    try:
        answers = [process.ask(assignment, submission) for submission in submissions]
    except BaseException:
        process.popen.kill()
        process.close()
        raise
    with _lock:
        _idle.append(process)
    return answers


def _process_for(assignment: bytes) -> GradingProcess:
    """A process for this caller only. Those that have ended, or that know another assignment, are done with."""
    with _lock:
        while _idle:
            process = _idle.pop()
            if process.can_grade(assignment):
                return process
            process.close()
    return GradingProcess()
