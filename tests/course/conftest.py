"""For the tests of the lessons: a failing assertion of the tests that all lessons share shows its values."""

from collections.abc import Iterator

import pytest
import torch

pytest.register_assert_rewrite("tests.course.planting")


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Tiny operations of PyTorch wait for its other threads, for seconds on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
