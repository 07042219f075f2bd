"""A confined process: gives up every right that it does not need, then serves its connections.

Started as `python -I -c "..." DESCRIPTORS SETTINGS`; each descriptor is one end of a socket pair, the settings are
JSON. What it serves is a class that the settings name: a submission's cells and objects, or the judge. With
`"warm": true` it becomes a warm process, which forks one such process after another (see `warm.py`).
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import signal
import socket
import sys


def main() -> None:
    descriptors, settings = [int(number) for number in sys.argv[1].split(",")], json.loads(sys.argv[2])
    from . import absent, confine

    if settings["uid"] is not None:
        if settings.get("warm"):  # an uncovered /proc: otherwise the kernel lets forks mount none
            confine.mount("proc", "/proc", confine.NO_SUID | confine.NO_DEVICES | confine.NO_PROGRAMS)
        confine.become(settings["uid"])
    connections = [socket.socket(fileno=number) for number in descriptors]
    for connection in connections:
        connection.set_inheritable(False)
    if settings["withholds"]:
        absent.withhold(settings["withholds"])
    module, _, name = settings["serves"].partition(":")
    if settings.get("warm"):
        gc.disable()  # imports stay in memory, and looking through them again and again takes a tenth of the time
        from .warm import serve_forks

        serving = getattr(importlib.import_module(module), name)()
        serving.load(settings["preload"])
        serve_forks(connections[0], bytes.fromhex(settings["filter"]), serving)
        os._exit(0)  # nothing is left to do, and Python would take everything apart first
    if settings.get("unsafe"):
        _end_with_judge(connections[0])
    confine.limit(settings["rlimits"])
    getattr(importlib.import_module(module), name)().serve(connections, settings)


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
