"""Starts the process that workers are forked from, before anything slow is imported here: the imports then overlap."""

from __future__ import annotations

import glob
import os
from pathlib import Path

from autograder.grading.workers.pool import start_server

PRELOAD = ("autograder.grading.workers.preloaded",)
FOR_CHECKS = ("autograder.grading.workers.preloaded_checks",)
FOR_FEEDBACK = ("autograder.grading.workers.feedback_pages",)


def warm_up(checks: bool, feedback: bool = False) -> None:
    """Let the fork server import what workers need, while this process imports what it needs itself."""
    start_server((*PRELOAD, *(FOR_CHECKS if checks else ()), *(FOR_FEEDBACK if feedback else ())))


def uses_checks(course: Path, assignment: str) -> bool:
    """Whether an assignment seems to use our checks, or PyTorch: its source notebooks name them. True where there is no
    source in the usual folder; a wrong guess costs time alone.
    """
    sources = glob.glob(os.path.join(glob.escape(str(course)), "source", glob.escape(assignment), "*.ipynb"))
    texts = [Path(source).read_bytes() for source in sources]
    return not texts or any(name in text for text in texts for name in (b"autograder", b"mini_autograd", b"torch"))
