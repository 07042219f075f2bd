"""The allocator's setting: made only on request, in force afterwards, and harmless if it is not possible."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import pytest

from mini_autograd import allocator

on_glibc = pytest.mark.skipif(
    sys.platform != "linux" or os.confstr("CS_GNU_LIBC_VERSION") is None, reason="only glibc has the setting"
)

PAGE_FAULTS = """
import resource
import mini_autograd as ma
in_force = {request}
x = ma.ones(4_000_000)
for step in range(10):
    if step == 5:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    values = [x * x for _ in range(4)]
    del values
print(in_force, resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults_after(request: str, **environment: str) -> tuple[str, int]:
    """What the request returned, and the page faults of five steps that need 64 MB each, in a process of its own."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    code = PAGE_FAULTS.format(request=request)
    run = subprocess.run(
        [sys.executable, "-c", code], env=inherited | environment, capture_output=True, text=True, check=True
    )
    answer, faults = run.stdout.split()
    return answer, int(faults)


@on_glibc
def test_keeps_freed_memory_on_request_only() -> None:
    answer, faults = faults_after("ma.allocator.keep_freed_memory()")
    _, as_imported = faults_after("None")
    assert answer == "True"
    assert as_imported > 100  # every step gets new memory, in pages of 4 kB or of 2 MB
    assert faults < as_imported / 10


def test_importing_the_engine_asks_the_c_library_for_nothing() -> None:
    code = (
        "import ctypes; library = ctypes.CDLL; asked = []\n"
        "ctypes.CDLL = lambda name, *rest, **options: (asked.append(name), library(name, *rest, **options))[1]\n"
        "import numpy; asked.clear(); import mini_autograd; print(asked)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_a_choice_of_glibc_s_variables_stands() -> None:
    answer, _ = faults_after("ma.allocator.keep_freed_memory()", MALLOC_TRIM_THRESHOLD_="131072")
    assert answer == "False"


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
    monkeypatch.setattr(sys, "platform", "linux")
    for name in allocator.GLIBC_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def raise_os_error(name: object) -> None:
    raise OSError(name)


@pytest.mark.parametrize("library", [lambda name: WithoutMallopt(), raise_os_error], ids=["musl", "no library"])
def test_without_glibc_nothing_happens(elsewhere: pytest.MonkeyPatch, library: object) -> None:
    elsewhere.setattr(ctypes, "CDLL", library)
    assert not allocator.keep_freed_memory()


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_elsewhere_no_library_is_asked(elsewhere: pytest.MonkeyPatch, platform: str) -> None:
    elsewhere.setattr(sys, "platform", platform)
    elsewhere.setattr(ctypes, "CDLL", raise_os_error)
    assert not allocator.keep_freed_memory()


def test_takes_the_largest_threshold_that_is_allowed(elsewhere: pytest.MonkeyPatch) -> None:
    library = OldGlibc()
    elsewhere.setattr(ctypes, "CDLL", lambda name: library)
    assert allocator.keep_freed_memory()
    assert library.calls[-2:] == [
        (allocator.MMAP_THRESHOLD, allocator.LARGEST_ALLOWED),
        (allocator.TRIM_THRESHOLD, allocator.KEEP_UP_TO),
    ]
