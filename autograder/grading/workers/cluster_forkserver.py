"""A process that forks others, each of which grades the submissions that come over its own connection.

Workers of a cluster start it and connect to it. Both ends are ours, so they exchange pickles, in which students' work
is only data.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import pickle
import select
import shutil
import socket
import sys
from dataclasses import dataclass, field
from pathlib import Path

from autograder.grading.errors import MACHINE_FAULTS
from autograder.grading.grader_version import grader_version
from autograder.grading.submission.assignments import Assignment, Submission
from autograder.grading.submission.result import Result, ungraded
from autograder.grading.submission.worker import Workshop
from autograder.grading.workers.cluster_worker import read_message, write_message
from autograder.judge import FOR_CHECKS, JUDGE
from autograder.sandbox.process.forkserver import preload


@dataclass(frozen=True)
class Unread:
    """Stands for a submission that cannot be graded, with the reason."""

    student: str
    reason: str


@dataclass(frozen=True)
class GradedSubmission:
    """The result and the files of the autograded folder, and which version of the grader made them."""

    grader: str
    result: Result | None
    files: dict[str, bytes] = field(default_factory=dict)
    fault: str = ""


def serve(connection: socket.socket, listener: socket.socket) -> None:
    """Answer requests until the connection ends."""
    listener.close()  # or clients could still connect after the process that forked this one has ended
    with connection.makefile("rwb") as stream, contextlib.suppress(EOFError, ConnectionError):
        assignment: Assignment = pickle.loads(read_message(stream))
        workshop = Workshop(assignment)
        try:
            while True:
                submission = pickle.loads(read_message(stream))
                write_message(stream, pickle.dumps(answered(workshop, assignment, submission)))
        finally:
            workshop.close()


def answered(workshop: Workshop, assignment: Assignment, submission: Submission | Unread) -> GradedSubmission:
    if isinstance(submission, Unread):
        return GradedSubmission(grader_version(), ungraded(assignment, submission.student, "failed", submission.reason))
    try:
        result, folder = workshop.grade(submission)
        return GradedSubmission(grader_version(), result, files_of(folder) if folder else {})
    except OSError as error:
        reason = f"{type(error).__name__}: {error}"[:300]
        if error.errno in MACHINE_FAULTS:
            return GradedSubmission(grader_version(), None, fault=reason)
        return GradedSubmission(grader_version(), ungraded(assignment, submission.student, "failed", reason))


def files_of(folder: Path) -> dict[str, bytes]:
    """Read the files of a folder, and remove it."""
    paths = [path for path in folder.rglob("*") if path.is_file()]
    files = {str(path.relative_to(folder)): path.read_bytes() for path in paths}
    shutil.rmtree(folder)
    return files


def main() -> None:
    """Import everything slow, then fork a process for each connection, until standard input ends."""
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # standard output may be anything of the worker's
    importlib.import_module("autograder.grading.workers.preloaded")
    if "checks" in sys.argv[3:]:
        preload([FOR_CHECKS], JUDGE)
    grader_version()
    forking = multiprocessing.get_context("fork")  # safe, as nothing here has started a thread
    with socket.socket(fileno=int(sys.argv[1])) as listener:
        while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
            connection, _ = listener.accept()
            with connection:
                forking.Process(target=serve, args=(connection, listener)).start()
        Path(sys.argv[2]).unlink(missing_ok=True)  # the listener's path
