"""Grading on a Dask cluster: submissions travel to the workers, results and graded notebooks travel back.

Nothing is shared with the workers, neither a folder nor a database; they need the same version of this package. The
cluster may lose a worker at any time: a submission that was there is then tried once more, alone, and recorded as
`died` if it kills another worker. A Dask task costs as much as a tenth of a submission, so several travel together.
"""

from __future__ import annotations

import contextlib
import pickle
import tempfile
from collections.abc import Iterator
from concurrent.futures import CancelledError, Executor, Future
from pathlib import Path
from typing import Any

from autograder.grading.errors import CourseError
from autograder.grading.submission.assignments import Assignment, Submission, UnusableError, read_submission
from autograder.grading.workers.cluster_connection import KEPT, Connection
from autograder.grading.workers.cluster_process import GradedSubmission, Unread
from autograder.grading.workers.cluster_worker import ProcessDiedError, grade_remotely
from autograder.grading.workers.local import Finished, Task
from autograder.grading.workers.pool import Died, Pool
from autograder.grading.workers.spool import FILES, Spool

LOST = "The connection to the Dask cluster was lost. " + KEPT
TOGETHER, LARGEST = 0.5, 16  # seconds of grading that travel together, and how many submissions at most


def grade_on_cluster(
    connection: Connection, assignment: Assignment, spool: Spool, tasks: list[Task]
) -> Iterator[tuple[Task, Finished | Died]]:
    """Grade the tasks and put the results into the spool. Raises `CourseError` if there is no such cluster."""
    from distributed import KilledWorker

    connection.open()
    workers = connection.workers() or 1
    pace = Pace(workers)
    broken = (KilledWorker, ProcessDiedError)

    def executor(workers: int) -> _Tasks:
        return _Tasks(connection, assignment)

    pool: Pool[Task, bytes] = Pool(
        grade_remotely, workers, executor, broken, connection.look, pace.together, ahead=workers
    )
    try:
        for task, outcome in pool.run(tasks):
            if isinstance(outcome, Died):
                yield task, outcome
            else:
                answer: GradedSubmission = pickle.loads(outcome)
                pace.learn(answer)
                yield task, _received(answer, assignment, spool)
    except CancelledError as error:  # which Dask raises for everything that it has lost with its scheduler
        raise CourseError(LOST) from error


class Pace:
    """Decides how many submissions travel together: few enough that their records come soon, and that no worker is idle
    at the end while another still has several.
    """

    def __init__(self, workers: int) -> None:
        self.workers, self.graded, self.seconds = workers, 0, 0.0

    def learn(self, answer: GradedSubmission) -> None:
        if answer.result is not None:
            self.graded += 1
            self.seconds += answer.result.seconds

    def together(self, waiting: int) -> int:
        if not self.graded:
            return 1
        usual = max(self.seconds / self.graded, TOGETHER / LARGEST)
        return max(1, min(int(TOGETHER / usual), waiting // (4 * self.workers)))


def _received(answer: GradedSubmission, assignment: Assignment, spool: Spool) -> Finished:
    """Keep an answer in the spool."""
    if answer.grader != assignment.grader:
        raise CourseError("A worker of the cluster has a different version of this package or of its libraries.")
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
    """The part of an executor that a `Pool` needs, over a connection that outlives it.

    The assignment goes with every task: scattered data would be lost with the workers that held it.
    """

    def __init__(self, connection: Connection, assignment: Assignment) -> None:
        self.executor = connection.client.get_executor(pure=False, retries=0)
        self.assignment = pickle.dumps(assignment)

    def submit(self, function: Any, /, *arguments: Any, **named: Any) -> Future[Any]:
        (tasks,) = arguments
        submissions = [pickle.dumps(_read(task)) for task in tasks]
        return self.executor.submit(function, pickle.dumps((self.assignment, submissions)))

    def __exit__(self, *error: object) -> None:
        return None


def _read(task: Task) -> Submission | Unread:
    try:
        return read_submission(task.folder, task.student, task.earlier)
    except UnusableError as error:
        return Unread(task.student, str(error))
