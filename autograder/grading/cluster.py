"""Grading on a Dask cluster: submissions travel to the workers, results and graded notebooks travel back.

Nothing is shared with the workers, no folder and no database; they need this package in the same version. A worker
grades in a process of its own, because grading needs a main thread and limits that are the process's. The cluster may
lose a worker at any time: a submission is tried once more then, alone, and recorded as `died` if that kills one too.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError, Executor, Future
from pathlib import Path
from typing import Any

from autograder.grading.assignments import Assignment, TooLargeError, read_submission
from autograder.grading.courses import CourseError
from autograder.grading.local import Finished, Task
from autograder.grading.places import failure
from autograder.grading.pool import Died, Pool
from autograder.grading.serving import Answer, Question, read_message, write_message
from autograder.grading.spool import FILES, Spool

SERVE = "from autograder.grading.serving import main; main()"
HINT = "It needs the extra `cluster`: pip install 'mini-autograd-course[cluster]'."

WITHOUT_WORKERS, ANSWER = 60.0, 10.0  # seconds: for how long a cluster may have no worker, and take to answer
KEPT = "What was graded is kept; run the same command again when this has been seen to."
ALONE = "The Dask cluster has had no workers for {:g} seconds. " + KEPT
LOST = "The connection to the Dask cluster was lost. " + KEPT


class ServerDiedError(Exception):
    """The process in which a worker of the cluster grades was killed."""


def grade_on_cluster(
    address: str, assignment: Assignment, spool: Spool, tasks: list[Task]
) -> Iterator[tuple[Task, Finished | Died]]:
    """Grade the tasks and put the results into the spool. Raises `CourseError` where there is no such cluster."""
    try:
        from distributed import Client
    except ImportError as error:
        raise CourseError(f"No Dask here. {HINT}") from error
    try:
        client = Client(address, timeout=10, set_as_default=False)
    except (OSError, ValueError) as error:
        raise CourseError(f"No Dask cluster answers at {address}.") from error
    try:
        with _few_retries(client):
            yield from _graded(client, assignment, spool, tasks)
    finally:
        client.close(timeout=ANSWER)


def _graded(
    client: Any, assignment: Assignment, spool: Spool, tasks: list[Task]
) -> Iterator[tuple[Task, Finished | Died]]:
    from distributed import KilledWorker

    threads = sum(client.nthreads().values())
    if not threads:
        raise CourseError("The Dask cluster has no workers.")

    def executor(workers: int) -> _Tasks:
        return _Tasks(client, assignment)

    broken = (KilledWorker, ServerDiedError)
    pool: Pool[Task, Answer] = Pool(grade_remotely, threads, executor, broken, _Lookout(client))
    try:
        for task, outcome in pool.run(tasks):
            yield task, outcome if isinstance(outcome, Died) else _received(outcome, assignment, spool)
    except CancelledError as error:  # what Dask makes of everything that it has lost with its scheduler
        raise CourseError(LOST) from error
    finally:
        with contextlib.suppress(Exception):  # workers may have gone
            if _workers(client) is not None:
                client.run(close_servers)


class _Lookout:
    """Ends a run whose cluster has had no worker for too long: Dask itself would wait for ever."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.seen = time.monotonic()

    def __call__(self) -> None:
        if _workers(self.client):
            self.seen = time.monotonic()
        elif time.monotonic() - self.seen > WITHOUT_WORKERS:
            raise CourseError(ALONE.format(WITHOUT_WORKERS))


def _workers(client: Any) -> int | None:
    """How many workers a cluster has; None where its scheduler gives no answer."""
    with contextlib.suppress(Exception):
        return len(client.sync(client.scheduler.ncores, callback_timeout=ANSWER))
    return None


def _received(answer: Answer, assignment: Assignment, spool: Spool) -> Finished:
    """Keep an answer in the spool."""
    if answer.grader != assignment.grader:
        raise CourseError("A worker of the cluster has another version of this package or of its libraries.")
    if answer.result is None:
        return Finished(answer.fault)
    try:
        spool.put(answer.result, _unpacked(answer.files, spool.work) if answer.files else None)
    except OSError as error:
        return Finished(error.strerror or str(error))
    return Finished()


def _unpacked(files: dict[str, bytes], work: Path) -> Path:
    folder = Path(tempfile.mkdtemp(dir=work)) / FILES
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    folder.chmod(0o755)
    return folder


class _Tasks(contextlib.AbstractContextManager["_Tasks"], Executor):
    """The part of an executor that a `Pool` needs, over a Dask client that outlives it.

    The assignment goes with every task: data that was scattered before is lost with the workers that held it.
    """

    def __init__(self, client: Any, assignment: Assignment) -> None:
        self.executor = client.get_executor(pure=False, retries=0)
        self.client, self.assignment = client, assignment

    def submit(self, function: Any, /, *arguments: Any, **named: Any) -> Future[Any]:
        (task,) = arguments
        try:
            submission: Any = read_submission(task.folder, task.student, task.earlier)
        except TooLargeError as error:
            submission = (task.student, str(error))
        return self.executor.submit(function, self.assignment, submission)

    def __exit__(self, *error: object) -> None:
        return None


def grade_remotely(assignment: Assignment, submission: Any) -> Answer:
    """Runs on a worker of the cluster."""
    if isinstance(submission, tuple):
        student, reason = submission
        return Answer(assignment.grader, failure(assignment, student, "failed", reason))
    return _server(assignment).ask(submission)


class _Server:
    """The process in which this worker grades, kept for the next submission of the same assignment."""

    def __init__(self, assignment: Assignment) -> None:
        self.fingerprint = assignment.fingerprint
        command = [sys.executable, "-c", SERVE]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.lock = threading.Lock()
        self.tell(assignment)

    def tell(self, message: Any) -> None:
        assert self.process.stdin is not None
        write_message(self.process.stdin, message)

    def ask(self, submission: Any) -> Answer:
        assert self.process.stdout is not None
        with self.lock:
            try:
                self.tell(Question(submission))
                return read_message(self.process.stdout)
            except (EOFError, OSError) as error:
                self.close()
                raise ServerDiedError(f"the process that graded {submission.student} was killed") from error

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def close(self) -> None:
        self.process.kill()
        self.process.wait()


_servers: dict[int, _Server] = {}
_lock = threading.Lock()


def close_servers() -> None:
    """End the processes in which this worker has graded."""
    with _lock:
        for server in _servers.values():
            server.close()
        _servers.clear()


def _server(assignment: Assignment) -> _Server:
    """The server of this thread of the worker."""
    name = threading.get_ident()
    with _lock:
        server = _servers.get(name)
        if server is None or not server.alive or server.fingerprint != assignment.fingerprint:
            if server is not None:
                server.close()
            server = _servers[name] = _Server(assignment)
        return server


@contextlib.contextmanager
def _few_retries(client: Any) -> Iterator[None]:
    """Dask runs a task four times before it believes that the task kills workers. Here once more has to do."""

    def set_allowed(count: int, dask_scheduler: Any = None) -> int:
        before, dask_scheduler.allowed_failures = dask_scheduler.allowed_failures, count
        return before

    before = client.run_on_scheduler(set_allowed, 0)
    try:
        yield
    finally:
        with contextlib.suppress(Exception):  # the scheduler may have gone
            if _workers(client) is not None:
                client.run_on_scheduler(set_allowed, before)
