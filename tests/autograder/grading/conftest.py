"""The process that workers are forked from, for the tests of grading."""

from __future__ import annotations

import pytest

from autograder.grading.workers.early_forkserver import FOR_FEEDBACK, PRELOAD
from autograder.grading.workers.pool import start_server


@pytest.fixture(scope="session", autouse=True)
def fork_server() -> None:
    """Start one for all tests. Otherwise the first test decides what it imports, and each worker imports the rest."""
    start_server((*FOR_FEEDBACK, *PRELOAD, "tests.autograder.grading.test_watch"))
