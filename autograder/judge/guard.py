"""Keeps a test cell from running a submission's code on the trusted side by accident.

Test cells read files that student code has written, and some ways of reading a file run what it says: unpickling it,
executing its text, starting it as a program, loading it as a library. Under nbgrader that happens in the student's own
kernel; here it would happen beside the gradebook. Python tells audit hooks of each such step before it is taken, so one
hook refuses them while a test cell runs. What plain data needs is allowed.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import os
import sys
import tarfile
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from autograder.sandbox.inside.protocol import words

STARTING = "autograder.sandbox.starting"  # the one place from which programs are started, also while a test runs
STARTS = words("subprocess.Popen os.system os.exec os.posix_spawn os.spawn pty.spawn os.startfile webbrowser.open")
# What pickles of plain data, NumPy's arrays among them, name.
PLAIN = {
    **dict.fromkeys(("builtins", "__builtin__"), words("set frozenset list dict tuple complex bytearray range slice")),
    **dict.fromkeys(
        ("numpy", "numpy.core.multiarray", "numpy._core.multiarray", "numpy.core.numeric", "numpy._core.numeric"),
        words("ndarray dtype _reconstruct scalar _frombuffer"),
    ),
    "_codecs": words("encode"),
    "collections": words("OrderedDict Counter deque defaultdict"),
    "datetime": words("date time datetime timedelta timezone"),
    "decimal": words("Decimal"),
    "fractions": words("Fraction"),
}
LARGEST = 1 << 20  # of a file whose text is compared with what is to be executed


class Forbidden(PermissionError):  # noqa: N818
    """A test cell would have run what a submission has written."""


class _Guard(threading.local):
    """What this thread is doing. `folder` holds what the submission has written, while that is within reach."""

    on = False
    folder: Path | None = None


_guard = _Guard()
_installed = threading.Event()


def on_guard() -> AbstractContextManager[None]:
    """While inside, this thread runs a test cell."""
    if not _installed.is_set():
        _installed.set()
        sys.addaudithook(_hook)
        tame_archives()
    return _while(on=True)


def tame_archives() -> None:
    """Let an archive that is unpacked write nothing outside of the folder it is told. Before Python 3.11.4 there is no
    way to say so: there a test cell cannot unpack any.
    """
    if hasattr(tarfile, "data_filter"):
        tarfile.TarFile.extraction_filter = staticmethod(tarfile.data_filter)
        return
    for name in ("extract", "extractall"):
        setattr(tarfile.TarFile, name, _refused_in_tests(getattr(tarfile.TarFile, name)))


def _refused_in_tests(method: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(method)
    def checked(*args: Any, **options: Any) -> None:
        if _guard.on:
            raise Forbidden("a test cell can unpack archives from Python 3.11.4 on only, when it is graded")
        method(*args, **options)

    return checked


def off_guard() -> AbstractContextManager[None]:
    """While inside, this thread does work of ours."""
    return _while(on=False)


def within_reach(folder: Path) -> AbstractContextManager[None]:
    """While inside, this folder holds files that a submission has written."""
    return _while(folder=folder)


@contextlib.contextmanager
def _while(**now: Any) -> Iterator[None]:
    """Change what the guard knows of this thread, and change it back."""
    before = {name: getattr(_guard, name) for name in now}
    vars(_guard).update(now)
    try:
        yield
    finally:
        vars(_guard).update(before)


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    check = CHECKS.get(event)
    if check is not None and _guard.on:
        with off_guard():
            check(*arguments)


def _unpickled(module: Any, name: Any) -> None:
    if name not in PLAIN.get(module, ()):
        raise Forbidden(f"a test cell may unpickle plain data only, when it is graded, and not {module}.{name}")


def _started(*arguments: Any) -> None:
    frame: Any = sys._getframe()
    while frame is not None:
        if frame.f_globals.get("__name__") == STARTING:
            return
        frame = frame.f_back
    raise Forbidden("a test cell cannot start programs when it is graded")


def _loaded(name: Any) -> None:
    with contextlib.suppress(TypeError, ValueError):
        if _guard.folder is not None and name and os.path.exists(name) and _is_within(Path(os.fsdecode(name))):
            raise Forbidden("a test cell cannot load a library that a submission has written")


def _compiled(source: Any, filename: Any) -> None:
    """Text to be executed may not be that of a file, but for a literal, such as the list that a file holds."""
    if _guard.folder is None or not isinstance(source, (str, bytes)) or not source.strip():
        return
    text = source.encode("utf-8", "replace") if isinstance(source, str) else source
    if not any(text.strip() == content.strip() for content in _contents(_guard.folder, len(text))):
        return
    try:
        ast.literal_eval(text.decode("utf-8", "replace").strip())
    except Exception:
        raise Forbidden("a test cell cannot execute a file that a submission has written") from None


def _contents(folder: Path, size: int) -> Iterator[bytes]:
    """The files that can be this text, give or take blank lines and carriage returns."""
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):
            if path.is_file() and size <= path.stat().st_size <= min(LARGEST, 2 * size + 100):
                content = path.read_bytes()
                yield content
                yield content.replace(b"\r\n", b"\n")


def _is_within(path: Path) -> bool:
    return _guard.folder is not None and path.resolve().is_relative_to(_guard.folder.resolve())


CHECKS: dict[str, Callable[..., None]] = {
    "pickle.find_class": _unpickled,
    "compile": _compiled,
    "ctypes.dlopen": _loaded,
    **dict.fromkeys(STARTS, _started),
}
