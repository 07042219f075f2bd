"""The allocator's setting: in force after the import, left out on request, and harmless where it is not possible."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from mini_autograd import allocator

IMPORTED = "import mini_autograd as ma; x = ma.ones(1000, 1000); del x; print(ma.allocator.keeps_memory)"
on_glibc = pytest.mark.skipif(
    sys.platform != "linux" or os.confstr("CS_GNU_LIBC_VERSION") is None, reason="only glibc has the setting"
)


def imported_with(**environment: str) -> str:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "MINI_AUTOGRAD"))}
    run = subprocess.run(
        [sys.executable, "-c", IMPORTED], env=inherited | environment, capture_output=True, text=True, check=True
    )
    return run.stdout.strip()


@on_glibc
def test_in_force_after_the_import() -> None:
    assert imported_with() == "True"


@pytest.mark.parametrize(
    "environment",
    [
        {"MINI_AUTOGRAD_ALLOCATOR": "system"},
        {"MINI_AUTOGRAD_ALLOCATOR": "System"},
        {"MALLOC_TRIM_THRESHOLD_": "131072"},
    ],
    ids=str,
)
def test_left_out_on_request(environment: dict[str, str]) -> None:
    assert imported_with(**environment) == "False"


class WithoutMallopt:
    """A C library that is not glibc, such as musl."""


class OldGlibc:
    """Refuses to map large blocks in the heap beyond its limit."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, int]] = []

    def gnu_get_libc_version(self) -> None: ...

    def mallopt(self, parameter: int, value: int) -> int:
        self.calls.append((parameter, value))
        return int(parameter == allocator.TRIM_THRESHOLD or value <= allocator.LARGEST_ALLOWED)


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setattr(allocator, "keeps_memory", False)
    monkeypatch.setattr(sys, "platform", "linux")
    for name in (allocator.VARIABLE, *allocator.GLIBC_VARIABLES):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def raise_os_error(name: object) -> None:
    raise OSError(name)


@pytest.mark.parametrize("library", [lambda name: WithoutMallopt(), raise_os_error], ids=["musl", "no library"])
def test_without_glibc_nothing_happens(elsewhere: pytest.MonkeyPatch, library: object) -> None:
    elsewhere.setattr(allocator.ctypes, "CDLL", library)
    assert not allocator.keep_freed_memory()


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_elsewhere_no_library_is_asked(elsewhere: pytest.MonkeyPatch, platform: str) -> None:
    elsewhere.setattr(sys, "platform", platform)
    elsewhere.setattr(allocator.ctypes, "CDLL", raise_os_error)
    assert not allocator.keep_freed_memory()


def test_takes_the_largest_threshold_that_is_allowed(elsewhere: pytest.MonkeyPatch) -> None:
    library = OldGlibc()
    elsewhere.setattr(allocator.ctypes, "CDLL", lambda name: library)
    assert allocator.keep_freed_memory()
    assert library.calls[-2:] == [
        (allocator.MMAP_THRESHOLD, allocator.LARGEST_ALLOWED),
        (allocator.TRIM_THRESHOLD, allocator.KEEP_UP_TO),
    ]
