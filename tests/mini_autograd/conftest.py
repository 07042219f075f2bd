"""For all tests of the engine: a GPU that is none."""

from __future__ import annotations

import sys

import pytest

from tests.mini_autograd import strict_array


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A GPU whose arrays are strict ones."""
    monkeypatch.setitem(sys.modules, "cupy", strict_array.module)
