"""Setup of the lesson tests: if an assertion fails in the tests that all lessons share, its values are shown."""

from collections.abc import Iterator

import pytest
import torch

pytest.register_assert_rewrite("tests.course.planting")


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Use one thread of PyTorch: tiny operations wait for its other threads, for seconds on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
