"""The sandbox's own process: gives up every right it does not need, then answers the judge's messages one after
another.

Started as `python -I -c "..." DESCRIPTOR SETTINGS`; the descriptor is one end of a socket pair, the settings are JSON.
With `"warm": true` it becomes the warm process, from which one process per submission is forked (see `warm.py`).
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import sys


def main() -> None:
    descriptor, settings = int(sys.argv[1]), json.loads(sys.argv[2])
    from . import absent, confine

    if settings["uid"] is not None:
        if settings.get("warm"):  # an uncovered /proc: otherwise the kernel lets forks mount none
            confine.mount("proc", "/proc", confine.NO_SUID | confine.NO_DEVICES | confine.NO_PROGRAMS)
        confine.become(settings["uid"])
    sys.argv[:] = ["ipykernel_launcher.py"]
    sys.path.insert(0, "")
    os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
    connection = socket.socket(fileno=descriptor)
    connection.set_inheritable(False)
    absent.withhold(settings["withheld"])
    if settings.get("warm"):
        gc.disable()  # imports stay in memory, and looking through them again and again takes a tenth of the time
        from .warm import serve_forks

        serve_forks(connection, bytes.fromhex(settings["filter"]), settings["preload"])
        os._exit(0)  # nothing is left to do, and Python would take everything apart first
    if settings.get("unsafe"):
        _end_with_judge(connection)
    confine.limit(settings["rlimits"])
    from .server import Server

    Server().serve(connection, settings)


def _end_with_judge(connection: socket.socket) -> None:
    """Start a process that ends this one, with what it will have started, when the judge has ended for whatever reason.
    Where there is no isolation, nobody else would. It is not a child of this process, which could wait for it.
    """
    if child := os.fork():
        os.waitpid(child, 0)
        return
    if os.fork():
        os._exit(0)
    judge = select.poll()
    judge.register(connection, 0)  # a closed connection is always reported
    judge.poll()
    os.killpg(0, signal.SIGKILL)
