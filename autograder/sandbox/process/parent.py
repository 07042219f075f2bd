"""Processes that end with the one that started them."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
FAILED = 1


def end_with(parent: int) -> None:
    """Have the kernel kill this process when its parent ends, for whatever reason. `parent`: the parent's process id.
    Only Linux supports this; elsewhere it does nothing.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(FAILED)
