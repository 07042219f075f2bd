"""A warm process: it has loaded what its forks need, and forks one process for each submission, or for each judge.

It never runs student code, holds nothing secret, and takes nothing from the processes that it forks: they get their
sockets, and it only learns that they have ended. A request comes with these sockets and, first, one end of a pair whose
other end closes when the process that asked ends, for whatever reason. A keeper process, also forked, waits for that
and ends the fork, so several processes can share this one. It reports how the fork ended. A process can also ask for a
branch: a fork that takes such requests over its own connection, until that ends. What a branch is asked to do `here`,
such as to load what all its forks will need, it does itself and not in a fork.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import random
import select
import signal
import socket
from typing import Any, NoReturn, Protocol

from . import confine
from .protocol import BRANCH

MOST_BYTES, MOST_DESCRIPTORS = 1 << 16, 4
READY, FAILED = b"+", b"-"


class Serving(Protocol):
    """What a confined process is there for."""

    def load(self, libraries: list[str] | None) -> None:
        """Load what is needed, once, before any fork."""

    def serve(self, connections: list[socket.socket], settings: dict[str, Any]) -> None:
        """Serve until the other side hangs up."""


def serve_forks(control: socket.socket, rules: bytes, serving: Serving) -> None:
    """Fork a process for every request until the other side hangs up."""
    while True:
        gc.freeze()  # a collection in a fork would touch, and so copy, every page
        gc.enable()
        request, descriptors, _, _ = socket.recv_fds(control, MOST_BYTES, MOST_DESCRIPTORS)
        _clear_away()
        if not request or len(descriptors) < (1 if request == BRANCH else 2):
            return
        settings = {} if request == BRANCH else json.loads(request)
        if settings.get("here"):
            os.close(descriptors[0])
            serving.serve([socket.socket(fileno=number) for number in descriptors[1:]], settings)
            continue
        try:
            process = os.fork()
        except OSError:  # the other side sees that its connection has ended, and tries again or says so
            process = -1
        if process == 0:
            if request == BRANCH:
                control.close()
                control = socket.socket(fileno=descriptors[0])
                control.send(READY)
                continue
            _become_confined(serving, descriptors, settings, rules)
        for descriptor in descriptors:
            os.close(descriptor)


def _clear_away() -> None:
    """Reap forks that have ended, so that their time counts as used by this process's children."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _become_confined(serving: Serving, descriptors: list[int], settings: dict[str, Any], rules: bytes) -> NoReturn:
    """In the fork: confine this process, tell the other side, and serve."""
    lifeline, *served = descriptors
    connections = [socket.socket(fileno=number) for number in served]
    try:
        confine.enter_namespaces()
        if child := os.fork():  # the child is process 1 in there
            _keep(child, lifeline)
        os.setsid()
        confine.close_all_but(served)
        if settings["sacrificed"]:
            confine.sacrifice()
        confine.mount_private(settings["folders"], settings["disk"], settings["inodes"])
        os.chdir(os.environ["HOME"])  # into the new mount
        confine.limit(settings["rlimits"])
        confine.drop_rights(rules)
        random.seed()
        _seed_numpy()
        connections[0].send(READY)
    except BaseException as error:
        with contextlib.suppress(OSError):
            connections[0].send(FAILED + str(error).encode()[:500])
        os._exit(1)
    try:
        serving.serve(connections, settings)
    finally:
        os._exit(0)


def _keep(child: int, lifeline: int) -> NoReturn:
    """Wait until the child or the process that asked for it ends, end the child, and report how it ended."""
    confine.close_all_but([lifeline])
    ended = os.pidfd_open(child)
    select.select([ended, lifeline], [], [])
    os.kill(child, signal.SIGKILL)  # not reaped yet, so its process id is still its own
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with contextlib.suppress(OSError):
        os.write(lifeline, str(status).encode())
    os._exit(0)


def _seed_numpy() -> None:
    import numpy

    numpy.random.seed()
