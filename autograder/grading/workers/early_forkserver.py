"""Starts the process that workers are forked from before a run knows what there is to grade, so that the imports of
both overlap. What that process does first is in `preloaded.py`.

A small class pays mostly for this start. For 8 students and 2 workers, a run took 2.4 s of processor time, 0.4 s more
without forked helpers, and 0.3 and 0.5 s more without the two halves of `quick_imports`.
"""

from __future__ import annotations

import glob
import importlib
import json
import multiprocessing
import multiprocessing.util
import os
import signal
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from multiprocessing import forkserver, resource_tracker
from pathlib import Path
from typing import Any, NoReturn

from autograder.grading.quick_imports import quick_imports
from autograder.notebooks.libraries import kind_for, libraries_in, needs_our_checks
from autograder.sandbox.process.isolation import isolation_available
from autograder.sandbox.process.kind import STUDENT

TOLD = "AUTOGRADER_TOLD"  # the environment variable with what `preloaded` needs to know, as JSON
PRELOAD = ("autograder.grading.workers.preloaded",)


@dataclass(frozen=True)
class Needs:
    """What workers will need for an assignment, as far as its source notebooks show. A wrong guess only costs time.

    `checks`: our checks, and PyTorch. `libraries`: what the notebooks import; None if that is not known. `lesson`:
    whether other engines are withheld from submissions.
    """

    checks: bool = True
    libraries: tuple[str, ...] | None = None
    lesson: bool = True


def import_for_both() -> None:
    """Import what a run and its workers need: once, before workers are forked from what is forked from the run."""
    importlib.import_module("autograder.grading.workers.local")
    nbformat = importlib.import_module("nbformat")
    nbformat.validate(nbformat.v4.new_notebook())  # it compiles its schema at the first notebook


def needs_of(course: Path, assignment: str) -> Needs:
    """Read the source notebooks in the usual folder; without any, everything may be needed."""
    sources = glob.glob(os.path.join(glob.escape(str(course)), "source", glob.escape(assignment), "*.ipynb"))
    texts = [Path(source).read_bytes() for source in sources]
    if not texts:
        return Needs()
    checks = any(map(needs_our_checks, texts))
    try:
        notebooks = [json.loads(text) for text in texts]
        return Needs(checks, tuple(libraries_in(notebooks)), STUDENT in map(kind_for, notebooks))
    except ValueError:
        return Needs(checks)  # the next reader will say what is wrong


def warm_up(needs: Needs, feedback: bool = False, unsafe: bool = False, apart: bool = False) -> None:
    """Let the fork server import what workers need, while this process imports what it needs itself. `apart`: signals
    to the process group of this process, such as Ctrl-C in a terminal, do not reach workers.
    """
    with quick_imports():
        trial = threading.Thread(target=isolation_available)  # which waits for another process
        trial.start()
        import_for_both()
        trial.join()
    told = asdict(needs) | {"feedback": feedback, "apart": apart} | ({"libraries": None} if unsafe else {})
    start_server(PRELOAD, {TOLD: json.dumps(told)})


def start_server(preload: tuple[str, ...], environment: Mapping[str, str] | None = None) -> None:
    """Start the process that workers are forked from; it imports these modules in the background. `environment`:
    additional environment variables for it. It begins with what this process has imported.
    """
    if "forkserver" in multiprocessing.get_all_start_methods():
        multiprocessing.get_context("forkserver").set_forkserver_preload(list(preload))
        with _interrupts_ignored(), _added_to_environment(environment or {}), _helpers_forked():
            resource_tracker.ensure_running()
            forkserver.ensure_running()


@contextmanager
def _helpers_forked() -> Iterator[None]:
    """Let multiprocessing's own processes begin as forks, unless this process has threads, which a fork would lose.

    As new Pythons they would import again what is here, and starting them takes longer. Only Linux says how many
    threads there are, including those that Python has not started.
    """
    start = multiprocessing.util.spawnv_passfds
    if sys.platform == "linux" and len(os.listdir("/proc/self/task")) == 1:
        multiprocessing.util.spawnv_passfds = _fork_helper
    try:
        yield
    finally:
        multiprocessing.util.spawnv_passfds = start


def _fork_helper(path: Any, args: Sequence[Any], passfds: Sequence[int]) -> int:
    """In place of `spawnv_passfds`: fork a process that runs the text of `python -c TEXT`. Returns its process id."""
    sys.stdout.flush()
    sys.stderr.flush()
    process = os.fork()
    if process == 0:
        _run_helper(args[-1], passfds)
    return process


def _run_helper(text: str, descriptors: Sequence[int]) -> NoReturn:
    """In the fork: keep what a new Python would get, which is these descriptors and the standard ones, and run the
    text. Every other open file becomes `/dev/null`. It is not closed: an object here still has its number, and would
    close whatever had the same number by then.
    """
    try:
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in {*map(int, os.listdir("/proc/self/fd"))} - {0, 1, 2, nothing, *descriptors}:
            os.dup2(nothing, number, inheritable=False)
        for helper in (forkserver._forkserver, resource_tracker._resource_tracker):  # type: ignore[attr-defined]
            helper.__init__()  # type: ignore[misc]  # forget those that this process has started
        exec(text, {})
    except Exception:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(0)


@contextmanager
def _added_to_environment(variables: Mapping[str, str]) -> Iterator[None]:
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            os.environ.pop(name, None)


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Let processes that start within the context ignore Ctrl-C, which is for their parent. Workers restore it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
