"""How often Python looks for garbage cycles: objects that are held only by each other. By default it looks so often
that a process that imports PyTorch, or compares thousands of gradients, spends much of its time on it.
"""

from __future__ import annotations

import gc

SELDOM = 10_000, 20, 20  # new objects; then how many looks at younger objects before one at the older


def collect_seldom() -> None:
    """Look for cycles less often in this process, for as long as it lives. Cycles stay in memory a little longer; all
    other objects are freed at once, as always.
    """
    gc.set_threshold(*SELDOM)
