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
from autograder.notebooks.libraries import kind_for, libraries_in, needs_our_checks
from autograder.sandbox.process.isolation import isolation_available
from autograder.sandbox.process.kind import STUDENT

LIBRARIES = "AUTOGRADER_LIBRARIES"  # the environment variable that tells the fork server of them
CHECKS = "AUTOGRADER_CHECKS"  # and the one that says whether judges will need what our checks need
LESSON = "AUTOGRADER_LESSON"  # and whether a notebook is one of our lessons
BEFORE_FORKING = "autograder.grading.workers.preloaded_everywhere"
PRELOAD = ("autograder.grading.workers.preloaded_processes", "autograder.grading.workers.preloaded")
FOR_FEEDBACK = ("autograder.grading.workers.feedback_pages", "nbgrader.converters.generate_feedback")
APART = ("autograder.grading.workers.preloaded_apart",)


@dataclass(frozen=True)
class Needs:
    """What workers will need for an assignment, as far as its source notebooks show. A wrong guess only costs time.

    `checks`: our checks, and PyTorch. `libraries`: what the notebooks import; None if that is not known. `lesson`:
    whether other engines are withheld from submissions.
    """

    checks: bool = True
    libraries: tuple[str, ...] | None = None
    lesson: bool = True


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
    first, last = PRELOAD
    modules = (*(APART if apart else ()), first, *(FOR_FEEDBACK if feedback else ()), last)
    libraries = None if unsafe else needs.libraries
    with quick_imports():
        trial = threading.Thread(target=isolation_available)  # which waits for another process
        trial.start()
        importlib.import_module(BEFORE_FORKING)
        trial.join()
    told = {LIBRARIES: " ".join(libraries or ()), CHECKS: "yes" * needs.checks, LESSON: "yes" * needs.lesson}
    start_server(modules, {} if libraries is None else told)
