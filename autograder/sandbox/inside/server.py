"""Answers the judge's messages: run a cell, look a name up, apply an operation to objects, run a function on an
object.
"""

from __future__ import annotations

import builtins
import collections
import contextlib
import copy
import importlib
import os
import signal
import socket
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import fonts
from .objects import Objects, RebuildError, let_functions_see
from .operations import OPERATIONS, base_value
from .outputs import Collector, DescriptorFile, Stream
from .protocol import words
from .shell import make_shell, warm_up
from .values import Encoder
from .wire import Wire, WireError

# The last four are there because in a kernel, too, `import importlib` is enough to use `importlib.metadata`.
PRELOADED = words("""
    asyncio collections csv dataclasses datetime decimal fractions heapq inspect pathlib statistics string subprocess
    typing numpy.linalg numpy.random email.utils importlib.abc importlib.metadata importlib.resources
""")
PLOTS = words("matplotlib.backends.backend_agg matplotlib.pyplot")
Reply = tuple[dict[str, Any], list[Any]]


class Server:
    """One shell, one table of objects, and, from `serve` on, one connection."""

    process: int
    wire: Wire
    descriptors: DescriptorFile

    def __init__(self) -> None:
        sys.argv[:] = ["ipykernel_launcher.py"]
        sys.path.insert(0, "")
        os.environ.setdefault("MPLBACKEND", "module://matplotlib_inline.backend_inline")
        self.collector = Collector()
        self.streams = Stream("stdout", self.collector, 1), Stream("stderr", self.collector, 2)
        sys.stdout, sys.stderr = self.streams  # type: ignore[assignment]
        self.shell = make_shell(self.collector)
        self.objects = Objects(self.shell.user_ns)
        self.functions: dict[int, Callable[..., Any]] = {}
        let_functions_see(self.shell.user_ns)
        self.tasks: dict[str, Callable[[dict[str, Any], list[memoryview]], Reply]] = {
            "files": self.write_files,
            "nothing": lambda request, buffers: ({}, []),
            "execute": self.execute,
            "lookup": self.lookup,
            "names": self.names,
            "bind": self.bind,
            "apply": self.apply,
            "base": self.base,
            "run": self.run,
        }

    def load(self, libraries: list[str] | None) -> None:
        """Load what notebooks need, before the warm process forks. `libraries` names what these notebooks use; None if
        that is not known: then what plots need is loaded too.
        """
        draws = fonts.are_needed(libraries)
        if draws:
            fonts.use_list()
        for name in sorted(PRELOADED.union(libraries or (), PLOTS if draws else ())):
            with contextlib.suppress(Exception):  # a notebook that needs it will say what is wrong
                importlib.import_module(name)
        warm_up(self.shell)

    def serve(self, connections: list[socket.socket], settings: dict[str, Any]) -> None:
        """Answer until the judge hangs up. Anything that belongs to one process alone is made only here: the warm
        process makes its server before it forks.
        """
        self.process = os.getpid()
        self.wire = Wire(connections[0], settings["max_bytes"], settings["max_header"])
        self.collector.max_bytes, self.collector.max_outputs = settings["max_output_bytes"], settings["max_outputs"]
        self.descriptors = DescriptorFile()
        self.collector.from_descriptors = lambda: self.descriptors.take(self.collector)
        sys.stdin = open(os.devnull)  # noqa: SIM115
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self.wire.send({"ready": True})
        while True:
            try:
                request, buffers = self.wire.receive()
            except WireError:
                os._exit(0)
            header, reply_buffers = self.answer(request, buffers)
            if os.getpid() != self.process:
                os._exit(0)  # a fork that came back out of the student's code must not answer as well
            header["id"] = request["id"]
            try:
                self.wire.send(header, reply_buffers)
            except WireError:
                self.objects.forget_descriptions()
                too_large = self.objects.error(ValueError("the answer is too large to send"))
                self.wire.send({"id": request["id"], "error": too_large})

    def answer(self, request: dict[str, Any], buffers: list[memoryview]) -> Reply:
        """Run one request with interrupts allowed; whatever is raised becomes an error reply."""
        self.objects.release(request.get("release", []))
        self.collector.start()
        try:
            try:
                signal.signal(signal.SIGINT, signal.default_int_handler)
                header, reply = self.tasks[request["do"]](request, buffers)
            finally:
                signal.signal(signal.SIGINT, signal.SIG_IGN)
        except RebuildError as failure:
            header, reply = {"error": self.objects.error(failure.__cause__ or failure), "unbuilt": str(failure)}, []
        except BaseException as error:
            header, reply = {"error": self.objects.error(error)}, []
        changed = self.objects.redescribed()
        if changed:
            header["classes"] = changed
        if "outputs" not in header:
            self.descriptors.take(self.collector)
            outputs = self.collector.finish()
            if outputs:
                header["outputs"] = outputs
        if "mirror" in request:
            with contextlib.suppress(Exception):  # such as for a file that has just been removed
                header["files"], contents = self.changed_files(request["mirror"], reply)
                reply = [*reply, *contents]
        return header, reply

    def write_files(self, request: dict[str, Any], buffers: list[memoryview]) -> Reply:
        for name, data in zip(request["names"], buffers, strict=True):
            path = Path(name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        for name in request.get("remove", ()):
            Path(name).unlink(missing_ok=True)
        return {}, []

    def changed_files(self, mirror: dict[str, Any], reply: list[Any]) -> Reply:
        """Regular files below the working directory that differ from the mirror's `known`, name -> [size, time of
        change]. Their contents follow the buffers of the reply.
        """
        known = mirror["known"]
        room = min(mirror["room"], self.wire.max_bytes - sum(memoryview(buffer).nbytes for buffer in reply))
        names, states, contents = [], [], []
        seen: set[str] = set()
        for root, folders, files in os.walk("."):
            folders[:] = [name for name in folders if not name.startswith(".")]
            for name in files:
                path = os.path.relpath(os.path.join(root, name))
                status = os.lstat(path)
                if len(seen) > 2_000 or name.startswith(".") or not stat.S_ISREG(status.st_mode):
                    continue
                seen.add(path)
                state = [status.st_size, status.st_mtime_ns]
                if known.get(path) != state and status.st_size <= room:
                    room -= status.st_size
                    names.append(path)
                    states.append(state)
                    contents.append(Path(path).read_bytes())
        gone = [name for name in known if name not in seen]
        return {"names": names, "states": states, "gone": gone, "before": len(reply)}, contents

    def execute(self, request: dict[str, Any], buffers: list[memoryview]) -> Reply:
        """Run one cell. The reply has its outputs, with pictures only if these are wanted, and whether it raised."""
        interrupted = False
        failed = True
        try:
            with contextlib.nullcontext() if request["draw"] else self.shell.without_pictures():
                result = self.shell.run_cell(request["source"], store_history=True)
            failed = not result.success
            interrupted = isinstance(result.error_in_exec, KeyboardInterrupt)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            sys.stdout, sys.stderr = self.streams  # type: ignore[assignment]
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self.descriptors.take(self.collector)
        return {"outputs": self.collector.finish(), "failed": failed, "interrupted": interrupted}, []

    def lookup(self, request: dict[str, Any], buffers: list[memoryview]) -> Reply:
        name = request["name"]
        namespace = self.shell.user_ns
        if name not in namespace and not hasattr(builtins, name):
            raise NameError(f"name {name!r} is not defined")
        return self._value(namespace[name] if name in namespace else getattr(builtins, name))

    def names(self, request: dict[str, Any], buffers: list[memoryview]) -> Reply:
        return self._value([name for name in self.shell.user_ns if name not in self.shell.user_ns_hidden])

    def bind(self, request: dict[str, Any], buffers: list[memoryview]) -> Reply:
        """Bind a name of the notebook to a value, or delete the name if there is no value."""
        decoder = self.objects.decoder(buffers)
        self.shell.user_ns.pop(request["name"], None)
        for code in request["args"]:
            self.shell.user_ns[request["name"]] = decoder.decode(code)
        return self._value(None)

    def apply(self, request: dict[str, Any], buffers: list[memoryview]) -> Reply:
        """Apply an operation to decoded arguments. The parts of them that it changed are sent back, so that the judge
        can update its own copies.
        """
        decoder = self.objects.decoder(buffers)
        args = [decoder.decode(code) for code in request["args"]]
        kwargs = {name: decoder.decode(code) for name, code in request.get("kwargs", {}).items()}
        operation = OPERATIONS[request["name"]]
        if request["name"] not in ("call", "setitem", "ufunc"):
            return self._value(operation(*args, **kwargs), args)
        everything = [*args, *kwargs.values()]
        parts = decoder.parts or []
        before = [state(part) for part in parts]
        encoder = self.objects.encoder()
        encoder.known = {id(part): number for number, part in enumerate(parts)}
        try:
            header: dict[str, Any] = {"value": self.objects.encode(operation(*args, **kwargs), encoder, everything)}
        except BaseException as error:
            header = {"error": self.objects.error(error)}
        changed = [
            [number, self.objects.encode(copy.copy(base_value(part)), encoder)]
            for number, (part, (old, _)) in enumerate(zip(parts, before, strict=True))
            if state(part)[0] != old
        ]
        if changed:
            header["changed"] = changed
        return header, encoder.buffers

    def base(self, request: dict[str, Any], buffers: list[memoryview]) -> Reply:
        return self._value(base_value(self.objects.by_number[request["number"]]))

    def run(self, request: dict[str, Any], buffers: list[memoryview]) -> Reply:
        """Call a function that the judge sent, now or earlier, with an object of ours as its first argument."""
        decoder = self.objects.decoder(buffers)
        args = [decoder.decode(code) for code in request["args"]]
        if "code" in request:
            self.functions[request["function"]] = self.objects.unpickle(buffers[request["code"]], "a function")
        function = self.functions[request["function"]] if "function" in request else args.pop(0)
        return self._value(function(*args))

    def _value(self, value: Any, arguments: list[Any] | tuple[Any, ...] = ()) -> Reply:
        encoder = self.objects.encoder()
        return {"value": self.objects.encode(value, encoder, arguments)}, encoder.buffers


def state(part: Any) -> tuple[Any, Any]:
    """Something that is equal before and after a call exactly when a part of the arguments was not changed, and what
    has to stay alive meanwhile: a new object may have the `id` of one that is gone.
    """
    if isinstance(part, (list, dict, set, collections.deque)):
        items = [*part, *part.values()] if isinstance(part, dict) else list(part)
        return [id(item) for item in items], items
    if type(part).__name__ == "ndarray":
        return (part.shape, part.dtype, part.tobytes()), None
    encoder = Encoder(lambda other: ["h", id(other)])
    try:
        return (repr(encoder.encode(part)), encoder.buffers), None
    except Exception:
        return None, None
