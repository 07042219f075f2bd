"""Worker processes for a class run. A process that dies costs one submission and nobody else's.

Python's own pool gives up altogether when one of its processes dies, without saying which task killed it. So few more
tasks are handed out than there are processes; when the pool breaks, those suspects run again one by one, each in a
process of its own.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager
from dataclasses import dataclass
from multiprocessing import forkserver
from typing import Any, Generic, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")
LOOK = 1.0  # seconds until somebody looks why nothing gets done
AHEAD = 1  # tasks that wait for a process: it need not wait for us then


@dataclass(frozen=True)
class Died:
    """A task whose process was killed, also when it ran alone."""

    task: Any


@dataclass(frozen=True)
class Pool(Generic[Task, Result]):
    """Runs `function(task)` on what `executor(workers)` makes. `broken` are the errors that tell of a dead worker.

    `look` is called now and then while nothing gets done; it may raise, which ends the run.
    """

    function: Callable[..., Result]
    workers: int
    executor: Callable[[int], AbstractContextManager[Executor]]
    broken: tuple[type[Exception], ...]
    look: Callable[[], None] | None = None

    def run(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, Result | Died]]:
        """Yield each task with its result as it is done; `Died` for a task that kills its process twice."""
        waiting = deque(tasks)
        while waiting:
            suspects: list[Task] = []
            yield from self._run_until_broken(waiting, suspects)
            for task in suspects:
                yield task, self._run_alone(task)

    def _run_until_broken(self, waiting: deque[Task], suspects: list[Task]) -> Iterator[tuple[Task, Result]]:
        running: dict[Future[Result], Task] = {}
        with self.executor(min(self.workers, len(waiting))) as executor:
            while (waiting and not suspects) or running:
                while waiting and not suspects and len(running) < self.workers + AHEAD:
                    task = waiting.popleft()
                    try:
                        running[executor.submit(self.function, task)] = task
                    except self.broken:
                        waiting.appendleft(task)
                        break
                for future in self._done(running):
                    task = running.pop(future)
                    try:
                        result = future.result()
                    except self.broken:
                        suspects.append(task)
                    else:
                        yield task, result

    def _run_alone(self, task: Task) -> Result | Died:
        with self.executor(1) as executor:
            try:
                (future,) = self._done([executor.submit(self.function, task)])
                return future.result()
            except self.broken:
                return Died(task)

    def _done(self, running: Iterable[Future[Result]]) -> set[Future[Result]]:
        """Those that are done, as soon as there are any."""
        while True:
            done, _ = wait(running, None if self.look is None else LOOK, FIRST_COMPLETED)
            if done or self.look is None:
                return done
            self.look()


@dataclass(frozen=True)
class LocalExecutors:
    """Makes executors of processes on this machine, each prepared by `initializer(*initargs)`."""

    initializer: Callable[..., None]
    initargs: tuple[Any, ...]
    preload: tuple[str, ...] = ()

    def __call__(self, workers: int) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            max_workers=workers,
            mp_context=_context(self.preload),
            initializer=_prepare,
            initargs=(self.initializer, self.initargs),
        )


class WorkerPool(Pool[Task, Result]):
    """Processes on this machine."""

    def __init__(
        self,
        function: Callable[[Task], Result],
        workers: int,
        initializer: Callable[..., None],
        initargs: tuple[Any, ...],
        preload: tuple[str, ...] = (),
    ) -> None:
        super().__init__(function, workers, LocalExecutors(initializer, initargs, preload), (BrokenProcessPool,))


def _prepare(initializer: Callable[..., None], initargs: tuple[Any, ...]) -> None:
    end_with_parent()
    initializer(*initargs)


def end_with_parent() -> None:
    """End this process when the one that started it has gone, however that ended; nobody would take its results."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, name="end-with-parent", daemon=True).start()


def start_server(preload: tuple[str, ...]) -> None:
    """Start the process that workers are forked from; it imports these modules meanwhile."""
    if "forkserver" in multiprocessing.get_all_start_methods():
        multiprocessing.get_context("forkserver").set_forkserver_preload(list(preload))
        forkserver.ensure_running()


def _context(preload: tuple[str, ...]) -> Any:
    """A fork server imports the slow libraries once and forks each worker; a plain fork is unsafe with threads."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(preload))
    return context
