"""A connection to a Dask cluster for one run. It opens early, so that the workers import while this process does.

For the same reason, this module imports none of our slow ones.
"""

from __future__ import annotations

import contextlib
import time
from typing import Any

from autograder.grading.errors import CourseError
from autograder.grading.workers.cluster_worker import close_processes, start_processes

WITHOUT_WORKERS, ANSWER = 60.0, 10.0  # seconds for which a cluster may have no workers, and may take to answer
KEPT = "What was graded is kept; fix this, then run the same command again."
ALONE = "The Dask cluster has had no workers for {:g} seconds. " + KEPT


class Connection:
    """Where the cluster is, and how to reach it."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.client: Any = None
        self.failures_allowed = 0
        self.seen = 0.0

    def open(self, checks: bool = True) -> None:
        """Make all workers ready to grade, with or without our checks. Raises `CourseError` if there is no such
        cluster.
        """
        if self.client is not None:
            return
        try:
            from distributed import Client
        except ImportError as error:
            raise CourseError("--cluster needs Dask: pip install distributed") from error
        try:
            self.client = Client(self.address, timeout=ANSWER, set_as_default=False)
        except (OSError, ValueError) as error:
            raise CourseError(f"No Dask cluster answers at {self.address}.") from error
        if not self.workers():
            raise CourseError("The Dask cluster has no workers.")
        self.failures_allowed = self.client.run_on_scheduler(_allow_failures, 0)
        try:
            self.client.run(_get_ready, checks)
        except Exception as error:  # the worker's: it may not have this package
            reason = f"{type(error).__name__}: {error}"
            raise CourseError(f"A worker of the Dask cluster cannot get ready to grade. {reason}") from error
        self.seen = time.monotonic()

    def close(self) -> None:
        """Leave the cluster as it was."""
        if self.client is None:
            return
        with contextlib.suppress(Exception):  # its scheduler or its workers may have gone
            if self.workers() is not None:
                self.client.run_on_scheduler(_allow_failures, self.failures_allowed)
                self.client.run(close_processes)
        self.client.close(timeout=ANSWER)
        self.client = None

    def workers(self) -> int | None:
        """How many submissions the cluster grades at a time; None if its scheduler gives no answer."""
        with contextlib.suppress(Exception):
            return sum(self.client.sync(self.client.scheduler.ncores, callback_timeout=ANSWER).values())
        return None

    def look(self) -> None:
        """Raises `CourseError` when the cluster has had no worker for too long: Dask itself would wait forever."""
        if self.workers():
            self.seen = time.monotonic()
        elif time.monotonic() - self.seen > WITHOUT_WORKERS:
            raise CourseError(ALONE.format(WITHOUT_WORKERS))


def _get_ready(checks: bool, dask_worker: Any = None) -> None:
    start_processes(dask_worker.state.nthreads, checks)


def _allow_failures(count: int, dask_scheduler: Any = None) -> int:
    """Set how often a task may kill a worker; return the old setting. Dask itself would run such a task four times."""
    before: int = dask_scheduler.allowed_failures
    dask_scheduler.allowed_failures = count
    return before
