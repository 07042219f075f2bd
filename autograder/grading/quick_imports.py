"""Imports of nbgrader, and of whatever comes with it, in half of the processor time.

They make hundreds of thousands of objects that stay. Python would look through them for garbage again and again while
it imports, and once more when the command ends.
"""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def quick_imports() -> Iterator[None]:
    """Nobody looks for garbage meanwhile, nor later in what was imported. Does nothing where nbgrader is loaded."""
    if "nbgrader" in sys.modules:
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
