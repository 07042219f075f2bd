"""The warm process: it has loaded what notebooks need, and forks one process for each submission.

It never runs student code, holds nothing secret, and takes nothing from the processes it forks: they get a socket to
the judge, and it only learns that they have ended. Requests come only from judges. Each comes with one end of a socket
pair, and one end of a pipe whose other end closes when that judge ends, for whatever reason. A keeper process, also
forked, waits for that and ends the submission with its judge, so several judges can share this process. A judge can
also ask for a branch: a fork that takes such requests over its own connection, until that ends.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import random
import select
import signal
import socket
from typing import Any

from . import confine, fonts
from .protocol import BRANCH, words
from .server import Server
from .shell import warm_up

# The last four are there because in a kernel, too, `import importlib` is enough to use `importlib.metadata`.
PRELOADED = words("""
    asyncio collections csv dataclasses datetime decimal fractions heapq inspect pathlib statistics string subprocess
    typing numpy.linalg numpy.random email.utils importlib.abc importlib.metadata importlib.resources
""")
PLOTS = words("matplotlib.backends.backend_agg matplotlib.pyplot")
MOST_BYTES = 1 << 16
READY, FAILED = b"+", b"-"


def serve_forks(control: socket.socket, rules: bytes, preload: list[str] | None) -> None:
    """Fork a process for every request until the judge hangs up. `preload` names further libraries to load; None if it
    is not known what notebooks will use; then those for plots are loaded too.
    """
    server = Server()
    draws = fonts.are_needed(preload)
    if draws:
        fonts.use_list()
    for name in sorted(PRELOADED.union(preload or (), PLOTS if draws else ())):
        with contextlib.suppress(Exception):  # a notebook that needs it will say what is wrong
            importlib.import_module(name)
    warm_up(server.shell)
    gc.freeze()  # a collection in a fork would touch, and so copy, every page
    gc.enable()
    while True:
        request, descriptors, _, _ = socket.recv_fds(control, MOST_BYTES, 2)
        _clear_away()
        if not request or len(descriptors) < (1 if request == BRANCH else 2):
            return
        try:
            process = os.fork()
        except OSError:  # the judge sees that its connection has ended, and tries again or says so
            process = -1
        if process == 0:
            if request == BRANCH:
                control.close()
                control = socket.socket(fileno=descriptors[0])
                control.send(READY)
                continue
            _become_sandbox(server, descriptors[0], descriptors[1], json.loads(request), rules)
        for descriptor in descriptors:
            os.close(descriptor)


def _clear_away() -> None:
    """Reap forks that have ended, so that their time counts as used by this process's children."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _become_sandbox(server: Server, descriptor: int, judge: int, settings: dict[str, Any], rules: bytes) -> None:
    """In the fork: confine this process, tell the judge, and serve. Never returns."""
    connection = socket.socket(fileno=descriptor)
    try:
        confine.enter_namespaces()
        if child := os.fork():  # the child is process 1 in there
            _keep(child, judge)
        os.setsid()
        confine.close_all_but(descriptor)
        confine.sacrifice()
        confine.mount_private(settings["folders"], settings["disk"], settings["inodes"])
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


def _keep(child: int, judge: int) -> None:
    """Wait until the child or the judge ends, and end the child. Never returns."""
    confine.close_all_but(judge)
    ended = os.pidfd_open(child)
    select.select([ended, judge], [], [])
    os.kill(child, signal.SIGKILL)  # not reaped yet, so its process id is still its own
    os.waitpid(child, 0)
    os._exit(0)


def _seed_numpy() -> None:
    import numpy

    numpy.random.seed()
