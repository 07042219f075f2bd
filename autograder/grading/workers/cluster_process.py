"""A process that grades the submissions that come through its standard input, for a worker of a cluster.

Both ends are ours, so they exchange pickles, in which students' work is only data.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import pickle
import select
import shutil
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from autograder.grading.grader_version import grader_version
from autograder.grading.submission.assignments import Submission
from autograder.grading.submission.result import Result, ungraded
from autograder.grading.submission.worker import Workshop
from autograder.grading.workers.cluster_worker import read_message, write_message
from autograder.judge import FOR_CHECKS, JUDGE
from autograder.sandbox.process.forkserver import preload

FORGOTTEN = 60.0  # seconds without a submission until it ends
CLEARING = 5.0  # seconds to clear away what it made, once its worker has gone


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


def answered(workshop: Workshop, submission: Submission | Unread) -> GradedSubmission:
    if isinstance(submission, Unread):
        result = ungraded(workshop.assignment, submission.student, "failed", submission.reason)
        return GradedSubmission(grader_version(), result)
    try:
        result, folder = workshop.grade(submission)
        return GradedSubmission(grader_version(), result, files_of(folder) if folder else {})
    except OSError as error:
        return GradedSubmission(grader_version(), None, fault=f"{type(error).__name__}: {error}"[:300])


def files_of(folder: Path) -> dict[str, bytes]:
    """Read the files of a folder, and remove it."""
    paths = [path for path in folder.rglob("*") if path.is_file()]
    files = {str(path.relative_to(folder)): path.read_bytes() for path in paths}
    shutil.rmtree(folder)
    return files


def end_with_worker() -> None:
    """End this process soon after its worker has gone, even in the middle of a submission: nobody takes the result."""
    hanging_up = select.poll()
    hanging_up.register(sys.stdin, 0)  # no event but the end of the worker
    hanging_up.poll()
    time.sleep(CLEARING)
    os._exit(1)


def main() -> None:
    """Import everything slow, then grade until standard input ends or nothing has come for a while."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what else is printed is no answer
    threading.Thread(target=end_with_worker, name="end-with-worker", daemon=True).start()
    importlib.import_module("autograder.grading.workers.preloaded")
    if "checks" in sys.argv:
        preload([FOR_CHECKS], JUDGE)
    grader_version()
    with contextlib.ExitStack() as stack, contextlib.suppress(EOFError, ConnectionError):
        workshop: Workshop | None = None
        while select.select([sys.stdin], [], [], FORGOTTEN)[0]:
            assignment, submission = pickle.loads(read_message(sys.stdin.buffer))
            if workshop is None:
                workshop = stack.enter_context(contextlib.closing(Workshop(pickle.loads(assignment))))
            write_message(answers, pickle.dumps(answered(workshop, pickle.loads(submission))))
