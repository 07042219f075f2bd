"""Three ways to start the process of one submission: forked from a warm process in namespaces of its own, started fresh
in bubblewrap, or, if an instructor insists, without any isolation.

Each gives a `Started`, through which the process is interrupted and ended from here.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import py_compile
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from importlib.util import cache_from_source
from typing import Any, Protocol

from autograder.files import write_file
from autograder.sandbox.inside import fonts
from autograder.sandbox.process import isolation
from autograder.sandbox.process.allowance import Usage, usage_of_process, usage_of_tree
from autograder.sandbox.process.kind import INSIDE, STUDENT, Kind
from autograder.sandbox.process.limits import Limits, SandboxDied

LIST_FONTS_SECONDS = 60.0


class Started(Protocol):
    """A process that was started for one submission."""

    @property
    def pid(self) -> int | None:
        """Its process id as seen from here, once that is known."""

    def wait_until_ready(self, connection: socket.socket, deadline: float) -> None:
        """Wait until it can be asked. Raises SandboxDied if it cannot."""

    def interrupt(self) -> None:
        """What Ctrl-C does."""

    def has_ended(self) -> bool: ...

    def usage(self) -> Usage | None:
        """The time that the process and all that it started have used."""

    def quick_usage(self) -> Usage | None:
        """Like `usage`, without processes that it has started and that still run."""

    def fault(self) -> str:
        """What this machine, and not its own code, has done to it; empty if nothing is known."""

    def end(self) -> int | None:
        """End it with everything that it started; nothing of it is left when this returns. Returns its exit status,
        negative for a signal, if that is known.
        """


class FreshProcess:
    """A fresh Python, in bubblewrap or, if `unsafe`, only in a session and a folder of its own."""

    def __init__(
        self, served: Sequence[socket.socket], limits: Limits, unsafe: bool = False, kind: Kind = STUDENT
    ) -> None:
        self.folder = tempfile.mkdtemp(prefix="sandbox-") if unsafe else None
        if self.folder is None:
            self.popen, self.pid = start_in_bubblewrap(kind, served, limits, {})
            return
        settings = settings_of(kind, limits) | {"unsafe": True}
        del settings["rlimits"]["RLIMIT_NPROC"]  # without a namespace it would count all processes of the user
        self.popen = subprocess.Popen(
            program(kind, served, settings, confined=False),
            pass_fds=[end.fileno() for end in served],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=isolation.environment(self.folder),
            cwd=self.folder,
            start_new_session=True,
        )
        self.pid = self.popen.pid

    def wait_until_ready(self, connection: socket.socket, deadline: float) -> None:
        """Nothing to do: its first message tells the reader of the connection."""

    def interrupt(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(self.pid, signal.SIGINT)

    def has_ended(self) -> bool:
        return self.popen.poll() is not None

    def usage(self) -> Usage | None:
        return usage_of_tree(self.pid)

    def quick_usage(self) -> Usage | None:
        return usage_of_process(self.pid)

    def fault(self) -> str:
        return ""

    def end(self) -> int | None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if self.folder is None:
                os.kill(self.pid, signal.SIGKILL)  # the first process of a PID namespace takes all the others with it
            else:
                os.killpg(self.pid, signal.SIGKILL)
        status = self.popen.wait()
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
        return status


def settings_of(kind: Kind, limits: Limits) -> dict[str, Any]:
    """The settings that the process inside gets."""
    return {
        "uid": None,
        "serves": kind.serves,
        "withholds": kind.withholds,
        "sacrificed": kind.sacrificed,
        "rlimits": limits.rlimits(),
        "max_bytes": limits.message_bytes,
        "max_header": limits.header_bytes,
        "max_output_bytes": limits.output_bytes,
        "max_outputs": limits.outputs,
        "disk": limits.disk,
        "inodes": limits.inodes,
        "folders": [*isolation.WRITABLE, isolation.SHARED_MEMORY],
    }


def program(kind: Kind, served: Sequence[socket.socket], settings: dict[str, Any], confined: bool) -> list[str]:
    """The command line of the process inside."""
    numbers = ",".join(str(end.fileno()) for end in served)
    return [sys.executable, "-I", "-c", kind.start, kind.path(confined), numbers, json.dumps(settings)]


def start_in_bubblewrap(
    kind: Kind, served: Sequence[socket.socket], limits: Limits, settings: dict[str, Any]
) -> tuple[subprocess.Popen[bytes], int]:
    """Start Python in bubblewrap. Returns bubblewrap's process and the id of the one inside as seen from here."""
    found = isolation.require_isolation()
    compile_inside()
    settings = settings_of(kind, limits) | settings
    warm = "warm" in settings
    if not found.user_namespace:
        settings["uid"] = isolation.FIRST_UID + random.SystemRandom().randrange(isolation.UIDS)
    info_read, info_write = os.pipe()
    rules = None if warm else _memory_file(isolation.seccomp_filter())
    ours = [info_write, *([] if rules is None else [rules])]
    command = isolation.bubblewrap_command(found, kind, limits, info_write, rules, warm)
    try:
        popen = subprocess.Popen(
            [*command, "--", *program(kind, served, settings, confined=True)],
            pass_fds=[*(end.fileno() for end in served), *ours],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={},
        )
    except BaseException:
        os.close(info_read)
        raise
    finally:
        for descriptor in ours:
            os.close(descriptor)
    return popen, _read_pid(info_read, popen)


def _read_pid(descriptor: int, popen: subprocess.Popen[bytes]) -> int:
    """The process id, as seen from here, of the first process inside."""
    text = b""
    with open(descriptor, "rb", closefd=True) as file:
        while chunk := file.read1(4096):
            text += chunk
            with contextlib.suppress(ValueError):
                return int(json.loads(text)["child-pid"])
    popen.kill()
    popen.wait()
    raise SandboxDied("bubblewrap did not start")


def _memory_file(data: bytes) -> int | None:
    if not data:
        return None
    descriptor = os.memfd_create("seccomp")
    os.write(descriptor, data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


@functools.cache
def compile_inside() -> None:
    """Byte-compile the inner half once: the sandbox sees it read-only and would compile it again at every start."""
    for path in INSIDE.glob("*.py"):
        cached = cache_from_source(str(path))
        with contextlib.suppress(OSError, py_compile.PyCompileError):
            if not os.path.exists(cached) or os.path.getmtime(cached) < path.stat().st_mtime:
                py_compile.compile(str(path), doraise=True)


@functools.cache
def list_fonts() -> None:
    """Have Matplotlib list once which fonts the sandbox sees (see `inside/fonts.py`)."""
    with contextlib.suppress(OSError, subprocess.SubprocessError, ImportError):
        target = fonts.list_file(INSIDE)
        if target.exists() or not os.access(INSIDE, os.W_OK):
            return
        command = isolation.bubblewrap_command(isolation.require_isolation(), STUDENT, STUDENT.limits, None, None)
        command += ["--", sys.executable, "-I", "-c", fonts.PRINT_LIST]
        listed = subprocess.run(command, capture_output=True, timeout=LIST_FONTS_SECONDS, check=True, env={})
        write_file(target, listed.stdout)
