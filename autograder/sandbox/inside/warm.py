"""The warm process: it has loaded what notebooks need, and forks one process for each submission.

It never runs a student's code, holds nothing secret, and takes nothing from the processes it forks: they get a socket
that leads to the judge, and all it hears of them is that they have ended. Requests come from the judge alone, each with
one end of a socket pair.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import random
import socket
from typing import Any

from . import confine
from .protocol import words
from .server import Server
from .shell import warm_up

PRELOADED = words("""
    asyncio collections csv dataclasses datetime decimal fractions heapq inspect pathlib pexpect statistics string
    subprocess typing unittest matplotlib.backends.backend_agg matplotlib.pyplot numpy.fft numpy.linalg numpy.random
    numpy.testing
""")
MOST_BYTES = 1 << 16
READY, FAILED = b"+", b"-"


def serve_forks(control: socket.socket, rules: bytes, preload: list[str]) -> None:
    """Fork a process for every request until the judge hangs up. `preload` names further libraries to load."""
    server = Server()
    for name in sorted(PRELOADED.union(preload)):
        with contextlib.suppress(Exception):  # a notebook that needs it will say what is wrong
            importlib.import_module(name)
    warm_up(server.shell)
    gc.collect()
    gc.freeze()  # a collection in a fork would touch, and so copy, every page
    while True:
        request, descriptors, _, _ = socket.recv_fds(control, MOST_BYTES, 1)
        _clear_away()
        if not request or not descriptors:
            return
        if os.fork() == 0:
            _become_sandbox(server, descriptors[0], json.loads(request), rules)
        os.close(descriptors[0])


def _clear_away() -> None:
    """Take note of forks that have ended, so that the time they used counts as used by this process's children."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _become_sandbox(server: Server, descriptor: int, settings: dict[str, Any], rules: bytes) -> None:
    """In the fork: confine this process, tell the judge, and serve. Never returns."""
    connection = socket.socket(fileno=descriptor)
    try:
        confine.enter_namespaces()
        if os.fork():
            os._exit(0)  # the other one is process 1 in there
        os.setsid()
        confine.close_all_but(descriptor)
        confine.sacrifice()
        confine.mount_private(settings["folders"], settings["disk"])
        os.chdir(os.environ["HOME"])  # into the new mount
        confine.limit(settings["rlimits"])
        confine.drop_rights(rules)
        random.seed()
        _seed_numpy()
        connection.send(READY)
    except BaseException as error:
        with contextlib.suppress(OSError):
            connection.send(FAILED + str(error).encode()[:500])
        os._exit(1)
    try:
        server.serve(connection, settings)
    finally:
        os._exit(0)


def _seed_numpy() -> None:
    import numpy

    numpy.random.seed()
