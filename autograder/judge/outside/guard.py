"""Keeps a test cell from running a submission's code in the judge's process by accident.

Test cells read files and texts that student code has made, and some ways of reading them execute their content:
unpickling, executing text, starting a program, loading a library. The process is confined, so that could reach nothing
outside, but it could change what the tests see and so the submission's own marks. Python reports most such steps to
audit hooks before they are taken, so one hook refuses them while a test cell runs, in its thread and in the threads
that it starts; the functions in `NAMING` refuse by themselves. Only what plain data and the instructor's own texts need
is allowed (see `texts.py`): the origin of any other text cannot be known.
"""

from __future__ import annotations

import _thread
import ast
import contextlib
import functools
import importlib
import keyword
import multiprocessing
import multiprocessing.process
import os
import sys
import tarfile
import tempfile
import threading
import time
import types
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from autograder.judge.outside.texts import Texts
from autograder.sandbox.inside.protocol import words

# The only module that may start programs, even while a test runs.
STARTING = "autograder.sandbox.process.starting"
STARTS = words("subprocess.Popen os.system os.exec os.posix_spawn os.spawn pty.spawn os.startfile webbrowser.open")
# The names in pickles of plain data, NumPy arrays included.
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
# Library code that generates Python text from names that it has checked, and from nothing else.
GENERATORS = frozenset(
    (
        ("autograder.student", "_in_caller"),  # the engine's name
        ("autograder.checks.cases", "evaluated"),  # what is right in a case, as the instructor's file says
        ("collections", "namedtuple"),
        ("unittest.mock", "_set_signature"),
        ("scipy.stats._distn_infrastructure", "_construct_argparser"),  # the shapes of a distribution are identifiers
        ("networkx.utils.decorators", "compile"),  # the signatures of its own functions
    )
)
WRITE_METHODS = ("dataclasses", "attr._make")  # from fields, whose names are checked here
PUT_TOGETHER = {"timeit": ("setup", "stmt"), "sympy.parsing.sympy_parser": ("s",)}  # the variables with the text
# Functions of libraries that give what a text names, which the library then calls; none of them compiles anything.
NAMING = {
    "logging.config": ("BaseConfigurator.resolve",),
    "yaml.constructor": ("FullConstructor.find_python_name", "FullConstructor.find_python_module"),
}
# A library that evaluates texts by itself, once Python has parsed them, and the variable with the text.
EVALUATING = {"pandas.core.computation.expr": ("expr",)}
LOCAL = "__pd_eval_local_"  # in place of the `@` before the name of a test's variable
CALLS_OF_TIMEIT = ("_setup()", "_stmt()")
OUR_GENERATORS = ("mini_autograd.numerics.blocks",)  # the text of a chain of operations, from their names
TREES = "autograder.judge."  # may compile syntax trees: of test cells and of the instructor's other cells
IMPORTERS = ("importlib._bootstrap", "importlib._bootstrap_external", "zipimport")
CELLS = ("<test ", "<instructor's cells>")  # prefixes of file names: test cells, and the instructor's other cells
NOT_TEXT = "a test cell may execute only the instructor's own text, not text that may come from a submission"
NOT_CODE = "a test cell cannot load compiled code when it is graded"
NOT_FILE = "a test cell cannot import a file that a submission could have written"
NO_PROGRAMS = "a test cell cannot start programs when it is graded"
NO_ARCHIVES = "during grading, a test cell can unpack archives only on Python 3.11.4 or newer"
NOT_NAMED = "during grading, a test cell cannot call or load what a text names"
NOT_THREAD = "during grading, a test cell can start threads only with threading.Thread"


class Forbidden(PermissionError):  # noqa: N818
    """A test cell would have executed something that a submission has written."""


class _Guard(threading.local):
    """The guard's state in this thread. `folder` holds the submission's files while they are within reach; `texts` are
    the instructor's; `roots` are the folders from which libraries are imported.
    """

    on = False
    folder: Path | None = None
    texts = Texts()
    roots: tuple[str, ...] = ()


_guard = _Guard()
_installed = threading.Event()
_since = 0.0  # when the guard was installed: older files were not written while submissions were graded


def on_guard(texts: Texts | None = None) -> AbstractContextManager[None]:
    """While inside, this thread and the threads it starts run a test cell, which may execute `texts`."""
    if not _installed.is_set():
        _install()
    return _while(on=True, texts=texts or Texts(), roots=tuple(sys.path))


def _install() -> None:
    global _since
    _installed.set()
    _since = time.time()
    sys.addaudithook(_hook)
    tame_archives()
    for module in NAMING.keys() & sys.modules.keys():
        _tame(module)
    threading.Thread.start = _handing_on(threading.Thread.start)  # type: ignore[method-assign]
    for name in ("start_new_thread", "start_new", "start_joinable_thread"):  # `threading` keeps its own references
        if hasattr(_thread, name):
            setattr(_thread, name, _refused_in_tests(getattr(_thread, name), NOT_THREAD))
    multiprocessing.process.BaseProcess.start = _forked(multiprocessing.process.BaseProcess.start)  # type: ignore[method-assign]


def _handing_on(start: Callable[..., None]) -> Callable[..., None]:
    """A thread that a guarded thread starts is guarded until it ends, even if the test ends earlier."""

    @functools.wraps(start)
    def guarded(thread: threading.Thread) -> None:
        if _guard.on:
            thread.run = functools.partial(_run_guarded, thread.run, dict(vars(_guard)))  # type: ignore[method-assign]
        start(thread)

    return guarded


def _run_guarded(run: Callable[[], None], guard: dict[str, Any]) -> None:
    vars(_guard).update(guard)
    run()


def _forked(start: Callable[..., None]) -> Callable[..., None]:
    """A fork inherits the guard of its parent; a freshly started process would have none."""

    @functools.wraps(start)
    def checked(process: Any) -> None:
        method = process._start_method or multiprocessing.get_start_method()
        if _guard.on and method != "fork":
            raise Forbidden(NO_PROGRAMS)
        start(process)

    return checked


def _tame(module: str) -> None:
    """Let functions of a library refuse to work while a test runs."""
    for path in NAMING[module]:
        name, _, method = path.partition(".")
        owner = getattr(sys.modules[module], name)
        setattr(owner, method, _refused_in_tests(getattr(owner, method), NOT_NAMED))


def tame_archives() -> None:
    """Keep archives from being unpacked outside of the target folder. Before Python 3.11.4 there is no option for this,
    so there a test cell cannot unpack archives.
    """
    if hasattr(tarfile, "data_filter"):
        tarfile.TarFile.extraction_filter = staticmethod(tarfile.data_filter)
        return
    for name in ("extract", "extractall"):
        setattr(tarfile.TarFile, name, _refused_in_tests(getattr(tarfile.TarFile, name), NO_ARCHIVES))


def _refused_in_tests(function: Callable[..., Any], reason: str) -> Callable[..., Any]:
    @functools.wraps(function)
    def checked(*args: Any, **options: Any) -> Any:
        if _guard.on:
            raise Forbidden(reason)
        return function(*args, **options)

    return checked


def within_reach(folder: Path) -> AbstractContextManager[None]:
    """While inside, this folder holds files that a submission has written."""
    return _while(folder=folder)


@contextlib.contextmanager
def _while(**now: Any) -> Iterator[None]:
    """Change the guard's state in this thread while inside."""
    before = {name: getattr(_guard, name) for name in now}
    vars(_guard).update(now)
    try:
        yield
    finally:
        vars(_guard).update(before)


def _hook(event: str, arguments: tuple[Any, ...]) -> None:
    check = CHECKS.get(event)
    if check is not None and _guard.on:
        _guard.on = False
        try:
            check(*arguments)
        finally:
            _guard.on = True


def _unpickled(module: Any, name: Any) -> None:
    if name not in PLAIN.get(module, ()):
        raise Forbidden(f"during grading, a test cell may unpickle only plain data, not {module}.{name}")


def _started(*arguments: Any) -> None:
    frame: Any = sys._getframe()
    while frame is not None:
        if frame.f_globals.get("__name__") == STARTING:
            return
        frame = frame.f_back
    raise Forbidden(NO_PROGRAMS)


def _loaded(name: Any) -> None:
    with contextlib.suppress(TypeError, ValueError):
        if name and os.path.exists(name) and not _is_library(name):
            raise Forbidden("a test cell cannot load a library that a submission could have written")


def _imported(module: Any, filename: Any, *more: Any) -> None:
    """Python reports an import by name, without a file, and again with the file if it loads a compiled library."""
    if filename is not None:
        _loaded(filename)
    elif module in NAMING:
        importlib.import_module(module)
        _tame(module)


def _opened(path: Any, *more: Any) -> None:
    """An imported file is opened first: source, byte code or archive."""
    if isinstance(path, (str, bytes)) and _module(_caller()) in IMPORTERS and not _is_library(path):
        raise Forbidden(NOT_FILE)


def _unmarshalled(*data: Any) -> None:
    if _module(_caller()) not in IMPORTERS:  # the file was checked when it was opened
        raise Forbidden(NOT_CODE)


def _made_of_bytes(*parts: Any) -> None:
    caller = _caller()
    if _module(caller) != "types" and not _is_importing(caller):  # types.coroutine changes a flag
        raise Forbidden(NOT_CODE)


def _compiled(source: Any, filename: Any) -> None:
    caller = _caller()
    module, function = _module(caller), caller.f_code.co_name if caller else ""
    if isinstance(source, ast.AST):
        allowed = module.startswith(TREES)
    elif module == "importlib._bootstrap":
        allowed = _is_library(filename)
    else:
        allowed = (
            module == "zipimport"
            or (module, function) in GENERATORS
            or module in OUR_GENERATORS
            or (module == "ast" and function == "parse" and _may_be_parsed(source, caller))
            or (module in WRITE_METHODS and _has_good_fields(caller))
            or (module in PUT_TOGETHER and _is_of_allowed_texts(caller, PUT_TOGETHER[module]))
            or (
                isinstance(source, (str, bytes))
                and (_guard.texts.allow(source) or _is_written_in(_user(caller), source))
            )
        )
    if not allowed and not _is_importing(caller):
        raise Forbidden(NOT_TEXT)


def _user(caller: types.FrameType | None) -> types.FrameType | None:
    """The function that executes a text or, if `typing` compiles an annotation, the one that annotates."""
    while caller is not None and _module(caller) == "typing":
        caller = caller.f_back
    return caller


def _may_be_parsed(source: Any, caller: types.FrameType | None) -> bool:
    """Whether a text may become a tree: a tree is no code, unless it is for a library that evaluates it. There, any
    text may calculate with the library's own values, but only the instructor's may use a test's variables and methods.
    """
    above = caller.f_back if caller else None
    if _module(above) not in EVALUATING or _is_of_allowed_texts(above, EVALUATING[_module(above)]):
        return True
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True  # the library will say so
    names = (node.id for node in nodes if isinstance(node, ast.Name))
    acts = any(isinstance(node, ast.Call | ast.Attribute) for node in nodes)
    return not acts and not any(name.startswith(LOCAL) for name in names)


def _is_written_in(frame: types.FrameType | None, source: str | bytes) -> bool:
    """Whether a text stands, word for word, in the function that executes it."""
    text = source.decode("utf-8", "replace") if isinstance(source, bytes) else source
    return frame is not None and text.strip() != "" and text in frame.f_code.co_consts


def _has_good_fields(caller: types.FrameType | None) -> bool:
    """Whether the class for which methods are generated has only plain identifiers as field names."""
    for known in _locals_in(caller):
        fields = getattr(known.get("cls"), "__dataclass_fields__", None) or getattr(
            known.get("self"), "_attr_names", ()
        )
        if fields:
            return all(str(name).isidentifier() and not keyword.iskeyword(name) for name in fields)
    return _module(caller) == "dataclasses"  # it has no fields


def _is_of_allowed_texts(caller: types.FrameType | None, names: tuple[str, ...]) -> bool:
    """Whether everything from which a library assembles its text is allowed."""
    parts = [known[name] for known in _locals_in(caller) for name in names if isinstance(known.get(name), str)]
    return bool(parts) and all(part in CALLS_OF_TIMEIT or _guard.texts.allow(part) for part in parts)


def _locals_in(caller: types.FrameType | None) -> Iterator[dict[str, Any]]:
    """The variables of a caller and of its own callers, as far as they are in the same module."""
    frame = caller
    while frame is not None and _module(frame) == _module(caller):
        yield frame.f_locals
        frame = frame.f_back


def _is_importing(frame: types.FrameType | None) -> bool:
    """Whether a library is being imported. It may do anything: no text of a submission reaches it."""
    while frame is not None and not frame.f_code.co_filename.startswith(CELLS):
        if frame.f_code.co_filename.startswith("<frozen importlib") and frame.f_code.co_name == "exec_module":
            return True
        frame = frame.f_back
    return False


def _caller() -> types.FrameType | None:
    """The frame that caused the audit event."""
    frame: types.FrameType | None = sys._getframe()
    while frame is not None and _module(frame) == __name__:
        frame = frame.f_back
    return frame


def _module(frame: types.FrameType | None) -> str:
    return str(frame.f_globals.get("__name__", "")) if frame is not None else ""


def _is_library(path: Any) -> bool:
    """Whether a file belongs to Python or a library: it lies where these do, or it is older than all submissions that
    are graded here and not in the working directory. A submission's own files never count.
    """
    try:
        real = Path(os.fsdecode(path)).resolve()
        if _guard.folder is not None and real.is_relative_to(_guard.folder.resolve()):
            return False
        if any(real.is_relative_to(root) for root in _resolved((*_guard.roots, sys.prefix, sys.base_prefix))):
            return True
        if any(real.is_relative_to(root) for root in _packages()):
            return True
        return not real.is_relative_to(Path.cwd()) and real.stat().st_ctime < _since
    except (OSError, TypeError, ValueError):
        return False


def _packages() -> Iterator[str]:
    """The folders of loaded packages, and of packages in editable installs. One can be in the working directory, as
    when this project grades from its own folder.
    """
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and "." not in name and isinstance(getattr(module, "__path__", None), list):
            yield os.path.dirname(os.path.realpath(file))
        if name.startswith("__editable__"):
            yield from map(os.path.realpath, getattr(module, "MAPPING", {}).values())


@functools.lru_cache(maxsize=64)
def _resolved(roots: tuple[str, ...]) -> tuple[Path, ...]:
    found = (Path(root).resolve() for root in roots if os.path.isabs(root))
    return tuple(root for root in found if not Path(tempfile.gettempdir()).resolve().is_relative_to(root))


CHECKS: dict[str, Callable[..., None]] = {
    "pickle.find_class": _unpickled,
    "compile": _compiled,
    "marshal.load": _unmarshalled,
    "marshal.loads": _unmarshalled,
    "code.__new__": _made_of_bytes,
    "open": _opened,
    "import": _imported,
    "ctypes.dlopen": _loaded,
    "cpython.PyInterpreterState_New": _started,  # an interpreter of its own, of which this hook hears nothing
    **dict.fromkeys(STARTS, _started),
}
