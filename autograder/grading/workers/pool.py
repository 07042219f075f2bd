"""Worker processes for a class run. A process that dies costs only the submission that it was grading.

Python's own pool gives up completely when one of its processes dies, without saying which task killed it. So only a few
more tasks are handed out than there are processes; when the pool breaks, these suspects run again one by one, each in a
process of its own.
"""

from __future__ import annotations

import functools
import multiprocessing
import multiprocessing.connection
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Task = TypeVar("Task")
Result = TypeVar("Result")
LOOK = 1.0  # seconds without a finished task until `look` is called


@dataclass(frozen=True)
class Died:
    """A task whose process was killed, even when it ran alone."""

    task: Any


def one(waiting: int) -> int:
    """Send each task alone."""
    return 1


@dataclass(frozen=True)
class Pool(Generic[Task, Result]):
    """Runs `function(tasks)`, which returns a result for each task, on the executor that `executor(workers)` makes.

    `broken` are the errors that mean that a worker died. `look` is called now and then while nothing gets done; it may
    raise, which ends the run. `together(waiting)` says how many of the waiting tasks travel together. `ahead` is the
    number of groups that wait for a worker, so that no worker has to wait for us.
    """

    function: Callable[..., Sequence[Result]]
    workers: int
    executor: Callable[[int], AbstractContextManager[Executor]]
    broken: tuple[type[Exception], ...]
    look: Callable[[], None] | None = None
    together: Callable[[int], int] = one
    ahead: int = 1

    def run(self, tasks: Iterable[Task]) -> Iterator[tuple[Task, Result | Died]]:
        """Yield each task with its result as it is done; `Died` for a task that kills its process twice."""
        waiting = deque(tasks)
        while waiting:
            suspects: list[Task] = []
            yield from self._run_until_broken(waiting, suspects)
            for task in suspects:
                yield task, self._run_alone(task)

    def _run_until_broken(self, waiting: deque[Task], suspects: list[Task]) -> Iterator[tuple[Task, Result]]:
        running: dict[Future[Sequence[Result]], list[Task]] = {}
        with self.executor(min(self.workers, len(waiting))) as executor:
            while (waiting and not suspects) or running:
                while waiting and not suspects and len(running) < self.workers + self.ahead:
                    group = [waiting.popleft() for _ in range(min(self.together(len(waiting)), len(waiting)))]
                    try:
                        running[executor.submit(self.function, group)] = group
                    except self.broken:
                        waiting.extendleft(reversed(group))
                        break
                if not running:
                    return  # it broke while there was nothing to do
                for future in self._done(running):
                    group = running.pop(future)
                    try:
                        results = future.result()
                    except self.broken:
                        suspects += group
                    else:
                        yield from zip(group, results, strict=True)

    def _run_alone(self, task: Task) -> Result | Died:
        with self.executor(1) as executor:
            try:
                (future,) = self._done([executor.submit(self.function, [task])])
                (result,) = future.result()
                return result
            except self.broken:
                return Died(task)

    def _done(self, running: Iterable[Future[Sequence[Result]]]) -> set[Future[Sequence[Result]]]:
        """The futures that are done, as soon as there are any."""
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
        executor = ProcessPoolExecutor(
            max_workers=workers,
            mp_context=_context(self.preload),
            initializer=_prepare,
            initargs=(self.initializer, self.initargs, signal.getsignal(signal.SIGINT) is not signal.SIG_IGN),
        )
        # All processes start before the first task. Python 3.11 starts them as tasks come, and waits forever for one
        # that it starts at the moment when another one dies.
        executor._safe_to_dynamically_spawn_children = False  # type: ignore[attr-defined]
        return executor


class WorkerPool(Pool[Task, Result]):
    """Processes on this machine, each of which runs `function(task)` for one task at a time."""

    def __init__(
        self,
        function: Callable[[Task], Result],
        workers: int,
        initializer: Callable[..., None],
        initargs: tuple[Any, ...],
        preload: tuple[str, ...] = (),
    ) -> None:
        executors = LocalExecutors(initializer, initargs, preload)
        super().__init__(functools.partial(_each, function), workers, executors, (BrokenProcessPool,))


class KeptPools:
    """Makes pools whose processes stay, so that the next run with the same preparation need not wait for new ones."""

    def __init__(self) -> None:
        self._kept: dict[Callable[..., Any], tuple[tuple[Any, ...], _KeptExecutors]] = {}

    def __call__(
        self,
        function: Callable[[Task], Result],
        workers: int,
        initializer: Callable[..., None],
        initargs: tuple[Any, ...],
        preload: tuple[str, ...] = (),
    ) -> Pool[Task, Result]:
        before, executors = self._kept.get(function, (None, None))
        if executors is None or before != initargs:
            if executors is not None:
                executors.close()
            executors = _KeptExecutors(LocalExecutors(initializer, initargs, preload), workers)
            self._kept[function] = initargs, executors
        return Pool(functools.partial(_each, function), workers, executors, (BrokenProcessPool,))

    def close(self) -> None:
        """End the processes."""
        for _, executors in self._kept.values():
            executors.close()
        self._kept.clear()

    def kill(self) -> None:
        """End the processes at once, whatever they are doing."""
        for _, executors in self._kept.values():
            executors.kill()
        self.close()


class _KeptExecutors:
    """Gives all callers the same executor until one of its processes dies, and then a new one."""

    def __init__(self, make: LocalExecutors, workers: int) -> None:
        self._make, self._workers = make, workers
        self._executor: ProcessPoolExecutor | None = None

    @contextmanager
    def __call__(self, workers: int) -> Iterator[ProcessPoolExecutor]:
        self._executor = self._executor or self._make(self._workers)
        yield self._executor
        try:
            self._executor.submit(int)
        except BrokenProcessPool:
            self.close()

    def close(self) -> None:
        if self._executor is not None:
            self._executor.shutdown()
            self._executor = None

    def kill(self) -> None:
        processes = None if self._executor is None else self._executor._processes
        for process in list((processes or {}).values()):
            process.kill()


def _each(function: Callable[[Task], Result], tasks: list[Task]) -> list[Result]:
    return [function(task) for task in tasks]


def _prepare(initializer: Callable[..., None], initargs: tuple[Any, ...], interruptible: bool) -> None:
    # Treat Ctrl-C as the run itself does: the background job of a shell ignores it.
    signal.signal(signal.SIGINT, signal.default_int_handler if interruptible else signal.SIG_IGN)
    end_with_parent()
    initializer(*initargs)


def end_with_parent() -> None:
    """End this process when its parent process has ended, for whatever reason: nobody would take its results."""
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def watch() -> None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, name="end-with-parent", daemon=True).start()


def _context(preload: tuple[str, ...]) -> Any:
    """A fork server imports the slow libraries once and forks each worker; a plain fork is unsafe with threads."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(preload))
    return context
