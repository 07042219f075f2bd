"""Worker processes for a class run. A process that dies costs one submission and nobody else's.

Python's own pool gives up altogether when one of its processes dies, without saying which task killed it. So no more
tasks are handed out than there are processes; when the pool breaks, those few suspects run again one by one, each in
a process of its own.
"""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import forkserver
from typing import Any, Generic, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Died:
    """A task whose process was killed, also when it ran alone."""

    task: Any


@dataclass(frozen=True)
class WorkerPool(Generic[Task, Result]):
    """Runs `function(task)` in `workers` processes, each prepared by `initializer(*initargs)`."""

    function: Callable[[Task], Result]
    workers: int
    initializer: Callable[..., None]
    initargs: tuple[Any, ...]
    preload: tuple[str, ...] = ()

    def run(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, Result | Died]]:
        """Yield each task with its result as it is done; `Died` for a task that kills its process."""
        waiting = deque(tasks)
        while waiting:
            suspects: list[Task] = []
            yield from self._run_until_broken(waiting, suspects)
            for task in suspects:
                yield task, self._run_alone(task)

    def _run_until_broken(self, waiting: deque[Task], suspects: list[Task]) -> Iterator[tuple[Task, Result]]:
        running: dict[Future[Result], Task] = {}
        with self._executor(min(self.workers, len(waiting))) as executor:
            try:
                while waiting or running:
                    while waiting and len(running) < self.workers:
                        task = waiting.popleft()
                        try:
                            running[executor.submit(self.function, task)] = task
                        except BrokenProcessPool:
                            waiting.appendleft(task)
                            raise
                    done, _ = wait(running, return_when=FIRST_COMPLETED)
                    for future in done:
                        result = future.result()
                        yield running.pop(future), result
            except BrokenProcessPool:
                suspects.extend(running.values())

    def _run_alone(self, task: Task) -> Result | Died:
        with self._executor(1) as executor:
            try:
                return executor.submit(self.function, task).result()
            except BrokenProcessPool:
                return Died(task)

    def _executor(self, workers: int) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(
            max_workers=workers,
            mp_context=_context(self.preload),
            initializer=self.initializer,
            initargs=self.initargs,
        )


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
