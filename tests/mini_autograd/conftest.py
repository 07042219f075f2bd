"""For all tests of the engine: a stand-in for a GPU."""

from __future__ import annotations

import sys

import pytest

from tests.mini_autograd import strict_array


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for a GPU: its arrays are strict ones."""
    monkeypatch.setitem(sys.modules, "cupy", strict_array.module)
