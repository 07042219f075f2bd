"""Starts the process that workers are forked from. What both need is imported first; the other imports then overlap."""

from __future__ import annotations

import glob
import importlib
import json
import os
import threading
from dataclasses import dataclass
from pathlib import Path

from autograder.grading.workers.pool import start_server
from autograder.imports import quick_imports
from autograder.notebooks.libraries import libraries_in, withheld_from
from autograder.sandbox.process.isolation import isolation_available

LIBRARIES, WITHHELD = "AUTOGRADER_LIBRARIES", "AUTOGRADER_WITHHELD"  # environment variables that tell the fork server
BEFORE_FORKING = "autograder.grading.workers.preloaded_everywhere"
PRELOAD = ("autograder.grading.workers.preloaded_sandbox", "autograder.grading.workers.preloaded")
FOR_CHECKS = ("autograder.grading.workers.preloaded_checks",)
FOR_FEEDBACK = ("autograder.grading.workers.feedback_pages", "nbgrader.converters.generate_feedback")
APART = ("autograder.grading.workers.preloaded_apart",)


@dataclass(frozen=True)
class Needs:
    """What workers will need for an assignment, as far as its source notebooks show. A wrong guess only costs time.

    `checks`: our checks, and PyTorch. `libraries`: what the notebooks import; None if that is not known. `withheld`:
    what submissions may not use.
    """

    checks: bool = True
    libraries: tuple[str, ...] | None = None
    withheld: tuple[str, ...] = withheld_from()


def needs_of(course: Path, assignment: str) -> Needs:
    """Read the source notebooks in the usual folder; without any, everything may be needed."""
    sources = glob.glob(os.path.join(glob.escape(str(course)), "source", glob.escape(assignment), "*.ipynb"))
    texts = [Path(source).read_bytes() for source in sources]
    if not texts:
        return Needs()
    checks = any(name in text for text in texts for name in (b"autograder", b"mini_autograd", b"torch"))
    try:
        sources = [json.loads(text) for text in texts]
        return Needs(checks, tuple(libraries_in(sources)), withheld_from(*sources))
    except ValueError:
        return Needs(checks)  # the next reader will say what is wrong


def warm_up(needs: Needs, feedback: bool = False, unsafe: bool = False, apart: bool = False) -> None:
    """Let the fork server import what workers need, while this process imports what it needs itself. `apart`: signals
    to the process group of this process, such as Ctrl-C in a terminal, do not reach workers.
    """
    first, last = PRELOAD
    needed = (*(FOR_CHECKS if needs.checks else ()), *(FOR_FEEDBACK if feedback else ()))
    modules = (*(APART if apart else ()), first, *needed, last)
    with quick_imports():
        trial = threading.Thread(target=isolation_available)  # which waits for another process
        trial.start()
        importlib.import_module(BEFORE_FORKING)
        trial.join()
    told = {} if unsafe or needs.libraries is None else {LIBRARIES: needs.libraries, WITHHELD: needs.withheld}
    start_server(modules, {name: " ".join(names) for name, names in told.items()})
