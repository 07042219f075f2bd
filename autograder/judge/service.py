"""The judge in a confined process of its own: what it is asked comes over a wire, and one verdict goes back.

The process sees Python, its packages and our code, and nothing of the course, the gradebook, the secret or another
submission; it has no network, and what it writes is gone with it. So a text or a file name of a student's that a test
hands to a library can do nothing outside, whatever the library does with it.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import json
import signal
import socket
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from autograder.judge.apart import FOR_CHECKS
from autograder.judge.judge import judge_notebook
from autograder.judge.rehearsal import read_ahead, rehearse
from autograder.notebooks.libraries import libraries_in, needs_our_checks
from autograder.notebooks.trusted import STATEFUL
from autograder.sandbox.inside import fonts
from autograder.sandbox.inside.wire import Wire, WireError
from autograder.sandbox.process.limits import Limits
from autograder.sandbox.process.process import Start
from autograder.sandbox.process.supervision import Supervised, SupervisorLine

Reply = tuple[dict[str, Any], list[bytes]]


class Service:
    """Judges what it is sent. A branch keeps sources, and what they need, for the judges that are forked from it."""

    def __init__(self) -> None:
        self.sources: dict[str, tuple[Any, dict[str, bytes]]] = {}

    def load(self, libraries: list[str] | None) -> None:
        """Import these modules, except those that test cells import in the submission's process."""
        if fonts.are_needed(libraries):
            fonts.use_list()
        for name in ("numpy.random", *(libraries or ())):  # NumPy loads it at its first use, in each judge again
            if name.partition(".")[0] not in STATEFUL:
                with contextlib.suppress(Exception):  # the test that needs it will say what is wrong
                    importlib.import_module(name)

    def serve(self, connections: list[socket.socket], settings: dict[str, Any]) -> None:
        """Answer requests until the other side hangs up."""
        _end_when_time_is_up()
        connection, line = connections
        wire = Wire(connection, settings["max_bytes"], settings["max_header"])
        start = functools.partial(Supervised, SupervisorLine(line))
        tasks = {"prepare": self.prepare, "rehearse": self.rehearse, "judge": self.judge}
        with contextlib.suppress(WireError), line:
            wire.send({"ready": True})
            while True:
                request, buffers = wire.receive()
                try:
                    reply, contents = tasks[request["do"]](request, buffers, start)
                except Exception as error:
                    reply, contents = {"raised": [type(error).__name__, str(error)[:2000]]}, []
                wire.send(reply, contents)
        wire.close()

    def prepare(self, request: dict[str, Any], buffers: Sequence[memoryview], start: Start) -> Reply:
        """Keep a source, load its libraries, and take its tests apart."""
        source = json.loads(bytes(buffers[0]))
        self.load([*libraries_in([source]), *([FOR_CHECKS] if needs_our_checks(bytes(buffers[0])) else [])])
        read_ahead(source)
        files = dict(zip(request["names"], map(bytes, buffers[1:]), strict=True))
        self.sources[request["key"]] = source, files
        return {}, []

    def rehearse(self, request: dict[str, Any], buffers: Sequence[memoryview], start: Start) -> Reply:
        source, given = self.sources[request["key"]]
        with _folder(given) as helpers:
            rehearse(source, files=given, helpers=helpers, start=start, **_options(request))
        return {}, []

    def judge(self, request: dict[str, Any], buffers: Sequence[memoryview], start: Start) -> Reply:
        notebook = json.loads(bytes(buffers[0]))
        files = dict(zip(request["names"], map(bytes, buffers[1:]), strict=True))
        source, given = self.sources.get(request["key"], (None, {}))
        with _folder(given) as helpers:
            verdict = judge_notebook(
                notebook,
                source=source,
                files=files,
                helpers=helpers,
                start=start,
                inside=request["inside"],
                undecided=request["undecided"],
                student=request["student"],
                points_only=request["points_only"],
                **_options(request),
            )
        outputs = [cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
        answer = json.dumps([asdict(verdict), outputs]).encode()
        return {}, [answer]


def _options(request: dict[str, Any]) -> dict[str, Any]:
    """The options that a rehearsal and a judgement have in common."""
    return {"limits": Limits(**request["limits"]), "seed": request["seeds"].__getitem__}


def _end_when_time_is_up() -> None:
    """End this process when its processor time is up, whatever it does. The first process of a namespace ignores
    signals that it does not handle, and C code that never ends would keep Python from handling this one.
    """
    libc = ctypes.CDLL(None)
    libc.signal(signal.SIGXCPU, ctypes.cast(libc._exit, ctypes.c_void_p))  # the exit status is the signal's number


@contextlib.contextmanager
def _folder(files: Mapping[str, bytes]) -> Iterator[Path | None]:
    """A folder with these files, which tests may change: nobody else sees it."""
    if not files:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="beside-") as name:
        for file, content in files.items():
            path = Path(name, file)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        yield Path(name)
