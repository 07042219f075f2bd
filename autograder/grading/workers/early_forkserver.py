"""Starts the process that workers are forked from, before anything slow is imported here: the imports then overlap."""

from __future__ import annotations

from autograder.grading.workers.pool import start_server

PRELOAD = ("autograder.grading.workers.preloaded",)
FOR_FEEDBACK = ("autograder.grading.workers.feedback_pages",)


def warm_up(feedback: bool = False) -> None:
    """Let the fork server import what workers need, while this process imports what it needs itself."""
    start_server((*PRELOAD, *FOR_FEEDBACK) if feedback else PRELOAD)
