"""For the tests of grading: the process that workers are forked from."""

from __future__ import annotations

import pytest

from autograder.grading.workers.early_forkserver import FOR_FEEDBACK, PRELOAD
from autograder.grading.workers.pool import start_server


@pytest.fixture(scope="session", autouse=True)
def fork_server() -> None:
    """One for all tests. The test that comes first would decide what it imports, and each worker import the rest."""
    start_server((*FOR_FEEDBACK, *PRELOAD, "tests.autograder.grading.test_watch"))
