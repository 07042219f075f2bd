"""For all tests of the engine: a GPU, or a stand-in for one."""

from __future__ import annotations

import sys

import pytest

from mini_autograd import cuda
from tests.mini_autograd import strict_array

REAL = [pytest.param("CuPy", marks=pytest.mark.gpu)] if cuda.is_available() else []


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for a GPU: its arrays are strict ones."""
    monkeypatch.setitem(sys.modules, "cupy", strict_array.module)


@pytest.fixture(params=["stand-in", *REAL])
def gpu(request: pytest.FixtureRequest) -> None:
    """The stand-in, and then the GPU of this machine, if CuPy finds one."""
    if request.param == "stand-in":
        request.getfixturevalue("stand_in")
