"""Asks the C library to keep freed memory for the next step of a training, instead of handing it back each time.

Imports the standard library only. The one idea to know: a graph keeps every intermediate array until the backward pass
frees it. By default glibc returns such large blocks to the operating system at once, and the next step gets them anew,
page by page, each first touch a fault: for arrays of a few megabytes that takes several times as long as the arithmetic
(a chain of ten operations on a million numbers took 16 ms so, and 4.5 ms with this setting).

What it does: two calls of glibc's `mallopt`, which set the sizes from which memory is returned and from which a block
is mapped by itself. What it costs: memory that was freed stays with the process, up to the most it ever used at once
(other programs do not get it back before the process ends), and the setting holds for everything in the process.

`MINI_AUTOGRAD_ALLOCATOR=system` in the environment leaves the C library as it is. Elsewhere than on Linux with glibc
nothing happens. Whoever has set glibc's own variables, such as `MALLOC_TRIM_THRESHOLD_`, keeps their choice.
"""

from __future__ import annotations

import ctypes
import os
import sys

VARIABLE = "MINI_AUTOGRAD_ALLOCATOR"
GLIBC_VARIABLES = ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TOP_PAD_", "MALLOC_MMAP_MAX_")

TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3  # numbers of mallopt's parameters, from malloc.h
KEEP_UP_TO = 1 << 30
LARGEST_ALLOWED = 32 << 20  # what some versions of glibc accept at most for the second of them

keeps_memory = False
"""Whether the setting is in force."""


def keep_freed_memory() -> bool:
    """Ask for it, where that is possible and wanted. Returns whether it is in force; never raises."""
    global keeps_memory
    if sys.platform != "linux" or os.environ.get(VARIABLE, "").lower() == "system":
        return keeps_memory
    if any(name in os.environ for name in GLIBC_VARIABLES):
        return keeps_memory
    try:
        library = ctypes.CDLL(None)
        library.gnu_get_libc_version  # noqa: B018  (other C libraries lack it, and may have a `mallopt` that differs)
        mallopt = library.mallopt
    except (AttributeError, OSError):
        return keeps_memory
    mapped = mallopt(MMAP_THRESHOLD, KEEP_UP_TO) or mallopt(MMAP_THRESHOLD, LARGEST_ALLOWED)
    keeps_memory = bool(mapped and mallopt(TRIM_THRESHOLD, KEEP_UP_TO))
    return keeps_memory
