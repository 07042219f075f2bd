"""`autograder check my_engine.py`: tries an engine on a standard list of operations and prints a table, with cards for
what is wrong.

The engine runs in a process of its own, which is ended if an operation takes too long; a new one then goes on without
that operation. Exit status: 0 if all is right, 1 if something is wrong, 2 if the engine could not be tried.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import importlib
import inspect
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from autograder.runs.ways import BACKWARDS, Adapter

SECONDS = 20.0
STARTING = 6  # times as long, for imports
MOST_BYTES = 4 << 30
MOST_STOPPED = 3
USUAL = ("Tensor", "Value", "Variable", "Scalar", "MiniTensor", "Node", "Var")
FILE = "engine.py, module or engine.py:Name"


class CannotTry(Exception):  # noqa: N818
    """The engine cannot be tried; the message says why and what to do."""


@dataclass
class Told:
    """What the other process has said. `at`: what it was doing last; `stopped`: it was ended there."""

    at: str = "the import"
    stopped: bool = False
    failure: str = ""
    said: dict[str, Any] = field(default_factory=dict)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("engine", metavar=FILE, help="a file or module, and the name of the engine if it is not plain")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for each operation; default %(default)g")
    parser.add_argument("--how", action="store_true", help="say only how the engine works")
    parser.add_argument("--inside", help=argparse.SUPPRESS)  # JSON, for the process in which the engine runs


def run(arguments: argparse.Namespace) -> int:
    if arguments.inside:
        return _inside(arguments.engine, json.loads(arguments.inside))
    stopped: dict[str, str] = {}
    while True:
        answer, where = _tried_apart(arguments, list(stopped))
        if not answer.stopped:
            break
        stopped[answer.at] = where
        if len(stopped) > MOST_STOPPED or answer.at in ("the import", "a leaf"):
            break
    for operation, where in stopped.items():
        print(f"{operation}: did not end within {arguments.seconds:g} seconds{where}.")
        print("  Does a loop there ever end? Does `backward` visit a node once for each path that leads to it?")
    if answer.failure or not answer.said:
        print(answer.failure or ("" if stopped else f"the engine ended the process, at {answer.at}"), file=sys.stderr)
        return 1 if stopped else 2
    said = answer.said
    print("\n".join([said["how"], "", *([] if arguments.how else [said["table"], *said["notes"]])]).rstrip())
    for card in said["cards"]:
        print(f"\n{card}")
    return 0 if said["right"] and not stopped else 1


def _tried_apart(arguments: argparse.Namespace, without: list[str]) -> tuple[Told, str]:
    """The answer of another process, and where it was when it was ended."""
    options = {"without": without, "how": arguments.how, "seconds": arguments.seconds}
    command = [sys.executable, "-m", "autograder.cli", "check", arguments.engine, "--inside", json.dumps(options)]
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, stdin=subprocess.DEVNULL)
        answer = _listen(process, arguments.seconds)
        if answer.stopped:
            process.kill()
        process.wait()
        errors.seek(0)
        printed = errors.read()
    if not answer.stopped and not answer.said and not answer.failure:
        answer.failure = f"the process of the engine ended early, at {answer.at}\n{printed[-2000:]}".rstrip()
    return answer, _line_in(printed)


def _listen(process: subprocess.Popen[bytes], seconds: float) -> Told:
    answer, lines = Told(), queue.Queue[bytes]()

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            lines.put(line)
        lines.put(b"")

    threading.Thread(target=read, daemon=True).start()
    while True:
        try:
            line = lines.get(timeout=seconds * (STARTING if answer.at == "the import" else 1) + 1)
        except queue.Empty:
            answer.stopped = True
            return answer
        if not line:
            return answer
        told = json.loads(line)
        answer.at = told.get("at", answer.at)
        answer.failure = told.get("failure", answer.failure)
        answer.said = told.get("said", answer.said)


def _line_in(printed: str) -> str:
    """The engine's innermost line in the last traceback that `faulthandler` has printed, as the end of a sentence."""
    ours = str(Path(__file__).parents[3])
    for line in printed.rpartition("(most recent call first)")[2].splitlines():
        file, _, rest = line.strip().removeprefix("File ").partition(", line ")
        name = Path(file.strip('"'))
        if rest and name.is_file() and "site-packages" not in file and not str(name).startswith((ours, sys.prefix)):
            number = int(rest.split()[0])
            lines = name.read_text(encoding="utf-8", errors="replace").splitlines()
            return f", in line {number} of {name.name}: `{lines[number - 1].strip()}`" if number <= len(lines) else ""
    return ""


def _inside(target: str, options: dict[str, Any]) -> int:
    """Try the engine in this process, and tell the other one about it in lines of JSON."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as told:
        os.dup2(2, 1)  # what the engine prints must not get between the lines
        sys.stdout = sys.stderr
        _limit_memory()

        def tell(**what: Any) -> None:
            print(json.dumps(what), file=told, flush=True)

        try:
            tell(said=_said(target, options, lambda name: _announce(tell, name, options["seconds"])))
        except CannotTry as reason:
            tell(failure=str(reason))
        faulthandler.cancel_dump_traceback_later()
    return 0


def _announce(tell: Callable[..., None], name: str, seconds: float) -> None:
    tell(at=name)
    faulthandler.dump_traceback_later(seconds, file=2)


def _said(target: str, options: dict[str, Any], announced: Callable[[str], Any]) -> dict[str, Any]:
    engine, functions = load(target)
    from autograder.checks.standard import try_engine
    from autograder.runs.engine_protocol import ways_in_words
    from autograder.runs.engines import TORCH, has_torch

    if has_torch():  # its import takes seconds, and counts for no operation
        TORCH(np.ones(()), requires_grad=True).tanh().backward()
    if options["how"]:
        announced("a leaf")
        return {"how": ways_in_words(engine), "right": True, "cards": []}
    try:
        tried = try_engine(engine, functions, announced, options["without"])
    except Exception as error:
        raise CannotTry(_does_not_work(engine, error)) from error
    if not tried.rows:
        raise CannotTry(f"none of the operations of the list was found. How the engine was understood: {tried.how}")
    cards = [report.text() for report in tried.reports]
    return {"how": tried.how, "table": tried.table(), "notes": tried.notes, "right": tried.right, "cards": cards}


def _does_not_work(engine: Any, error: Exception) -> str:
    name = getattr(engine, "__name__", "the engine")
    return (
        f"a leaf could not be made of {name}: {type(error).__name__}: {error}\n"
        "An Adapter in the file says how: adapter = autograder.student.Adapter(leaf=lambda numbers: ...)"
    )


def load(target: str) -> tuple[Any, dict[str, Callable[..., Any]]]:
    """The engine of a file or module, perhaps with `:Name` behind it, and the functions that stand beside it. Raises
    CannotTry.
    """
    path, colon, name = target.rpartition(":")
    if not colon or not name.isidentifier():  # the colon of a drive
        path, name = target, ""
    module = _imported(path)
    engine = _named(module, name) if name else _found(module)
    functions: dict[str, Callable[..., Any]] = {
        key: value for key, value in vars(module).items() if inspect.isroutine(value)
    }
    return engine, functions


def _imported(path: str) -> Any:
    """The module of a file, under its name in its package if it is in one, or of a dotted name."""
    file = Path(path).resolve()
    if path.endswith(".py") or file.is_file():
        if not file.is_file():
            raise CannotTry(f"there is no file {path}")
        folder, parts = file.parent, [file.stem]
        while (folder / "__init__.py").is_file():
            folder, parts = folder.parent, [folder.name, *parts]
        sys.path.insert(0, str(folder))
        path = ".".join(parts)
    else:
        sys.path.insert(0, os.getcwd())
    try:
        return importlib.import_module(path)
    except Exception as error:
        line = _last_line(error, str(file))
        raise CannotTry(f"importing {path} failed: {type(error).__name__}: {error}{line}") from error


def _last_line(error: BaseException, file: str) -> str:
    lines = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    return f" (line {lines[-1].lineno}: `{lines[-1].line}`)" if lines else ""


def _named(module: Any, name: str) -> Any:
    if not hasattr(module, name):
        raise CannotTry(f"{module.__name__} has no {name}; its classes: {', '.join(_classes(module)) or 'none'}")
    return getattr(module, name)


def _found(module: Any) -> Any:
    """The one engine of a module: an Adapter, else the one class whose objects can go backward."""
    adapters = [value for value in vars(module).values() if isinstance(value, Adapter)]
    if adapters:
        return adapters[0]
    classes = _classes(module)
    usual = [name for name in USUAL if name in classes] or list(classes)
    if not classes:
        raise CannotTry(
            f"no class in {module.__name__} has operators (or `add` or `mul`) and a method {', '.join(BACKWARDS[:3])} "
            "or the like. Name it, as in my_engine.py:Name, or make an Adapter in the file"
        )
    if len(usual) > 1 and usual[0] not in USUAL:
        raise CannotTry(f"which of these is the engine? {', '.join(usual)}. Name it, as in my_engine.py:{usual[0]}")
    return classes[usual[0]]


def _classes(module: Any) -> dict[str, Any]:
    """The classes of a module that can go backward and have an operator."""
    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, type)
        and any(hasattr(value, each) for each in BACKWARDS)
        and any(hasattr(value, each) for each in ("__add__", "__mul__", "add", "mul"))
    }


def _limit_memory() -> None:
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, resource.getrlimit(resource.RLIMIT_DATA)[1]))
