"""When Python looks for garbage that only it can find: cycles. It looks after every 700 new objects, which is far too
often for a process that imports PyTorch or nbgrader, or compares thousands of gradients.
"""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Iterator

SELDOM = 10_000, 20, 20  # new objects; then how many looks at the young ones before one at the older


def collect_seldom() -> None:
    """For a process that lives long: leave a twentieth of its processor time to its work. Cycles live a little longer;
    all else is freed at once, as always.
    """
    gc.set_threshold(*SELDOM)


@contextlib.contextmanager
def quick_imports() -> Iterator[None]:
    """Import nbgrader, and whatever comes with it, in half of the processor time: hundreds of thousands of objects come
    that stay. Python would look through them again and again meanwhile, and once more when the command ends. Now it
    never does. Does nothing where nbgrader is loaded.
    """
    if "nbgrader" in sys.modules:
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
