"""The process that workers are forked from, for the tests of grading."""

from __future__ import annotations

import pytest

from autograder.grading.workers.early_forkserver import PRELOAD, TOLD, start_server


@pytest.fixture(scope="session", autouse=True)
def fork_server() -> None:
    """Start one for all tests. Otherwise the first test decides what it imports, and each worker imports the rest."""
    start_server((*PRELOAD, "tests.autograder.grading.test_watch"), {TOLD: '{"feedback": true}'})
