"""What goes into the sandbox and what comes out: arguments by value (functions and objects by cloudpickle), answers
decoded strictly.
"""

from __future__ import annotations

import collections
import functools
import io
import itertools
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any

import cloudpickle
from cloudpickle import cloudpickle as cloudpickle_module

from autograder.sandbox.errors import RemoteError
from autograder.sandbox.handles import is_handle, reference
from autograder.sandbox.inside.protocol import CONTAINERS, words
from autograder.sandbox.inside.values import Encoder, NotPlain
from autograder.sandbox.port import Port
from autograder.sandbox.process.limits import NotRebuilt, SandboxError, StaleHandle

MAX_GENERATED = 100_000
# Modules that may stand for themselves when the submission says that a name or attribute is that module: importing one
# has no side effect.
REAL_MODULES = words("""
    numpy numpy.linalg numpy.random numpy.testing numpy.fft math cmath random itertools functools operator
    collections fractions decimal statistics string re json datetime time copy typing dataclasses abc enum io os sys
    textwrap unittest types contextlib heapq bisect
""")
OURS = __name__.partition(".")[0] + "."
ACTING_MODULES = words("os sys io")


class _Pickler(cloudpickle.Pickler):
    """Pickles what a test cell passes to student code; handles travel as the numbers of their objects."""

    def __init__(self, file: io.BytesIO, sandbox: Port):
        super().__init__(file)
        self.sandbox = sandbox

    def persistent_id(self, value: Any) -> int | None:
        if is_handle(value):
            return self.sandbox.number_of(reference(value))
        if self.sandbox.is_exception_proxy(value):
            return self.sandbox.number_of(value.student_reference)
        return None


def encode_arguments(sandbox: Port, values: list[Any]) -> tuple[list[Any], Encoder]:
    """Codes for arguments of an operation over there, and the encoder, which has their buffers and parts."""

    def other(value: Any) -> Any:
        if is_handle(value):
            return ["h", sandbox.number_of(reference(value))]
        if isinstance(value, (types.GeneratorType, map, filter, zip)):
            return ["G", [encoder.encode(item) for item in itertools.islice(value, MAX_GENERATED)]]
        if type(value) in CONTAINERS.values() and (code := _container(encoder, value)):
            return code
        file = io.BytesIO()
        try:
            _Pickler(file, sandbox).dump(value)
        except Exception as error:
            if isinstance(error, (SandboxError, RemoteError)):
                raise
            raise TypeError(f"{_kind_and_name(value)} cannot be given to the submission's code ({error})") from None
        return ["p", encoder._buffer(file.getvalue()), _kind_and_name(value)]

    encoder = Encoder(other)
    return [encoder.encode(value) for value in values], encoder


def _container(encoder: Encoder, value: Any) -> Any:
    """The code of a container from `collections`, made of what it is called with, or None if that has no code."""
    parts, buffers = len(encoder.parts), len(encoder.buffers)
    made_of: list[Any]
    if isinstance(value, collections.deque):
        made_of = [list(value), value.maxlen]
    elif isinstance(value, collections.defaultdict):
        made_of = [value.default_factory, dict(value)]
    else:
        made_of = [dict(value)]
    try:
        return ["C", type(value).__name__, [encoder.encode(part) for part in made_of]]
    except NotPlain:  # raised for a key
        del encoder.parts[parts:], encoder.buffers[buffers:]
        return None


def _kind_and_name(value: Any) -> str:
    """How to call a value in a message: `the class Counter`, `an object of class Counter`."""
    name = str(getattr(value, "__qualname__", "")).rpartition("<locals>.")[2]
    if isinstance(value, type) or (type(value) is types.SimpleNamespace and name):  # the body of a derived class
        return f"the class {name}"
    if callable(value) and name:
        return f"the function {name}"
    return f"an object of class {type(value).__name__}"


def not_rebuilt(what: Any, error: BaseException) -> NotRebuilt:
    """The error to raise for something that could be pickled here but not rebuilt there."""
    where = [f"`{line.strip()}`" for _, line, _ in getattr(error, "student_where", ()) if line.strip()]
    place = f", in {where[-1]}" if where else ""
    reason = f"{type(error).__name__}: {error}"
    what = what[:200] if isinstance(what, str) else "something"
    return NotRebuilt(f"{what} cannot be rebuilt in the submission's process ({reason}{place})")


def is_module_function(function: Any) -> bool:
    """Whether a module has this function under the function's own name: its pickle is then always the same."""
    module = sys.modules.get(getattr(function, "__module__", None) or "")
    return (
        isinstance(function, types.FunctionType)
        and function.__module__ != "__main__"
        and getattr(module, function.__name__, None) is function
    )


def take_our_modules_along() -> None:
    """Let functions of ours be pickled with what they need of our modules, which are not in the sandbox."""
    for name, module in tuple(sys.modules.items()):
        if name.startswith(OURS):
            cloudpickle.register_pickle_by_value(module)


@functools.cache
def pickled_function(function: Callable[..., Any]) -> bytes:
    """The pickle of a function from one of our modules."""
    return cloudpickle.dumps(function)


def imported_submodules(code: types.CodeType, dependencies: Iterable[Any]) -> list[types.ModuleType]:
    """The submodules that a function names, such as `futures` in `concurrent.futures`, of the packages it uses."""
    found = []
    todo = [d.__name__ for d in dependencies if isinstance(d, types.ModuleType) and getattr(d, "__package__", None)]
    while todo:
        package = todo.pop()
        names = [name for part in code.co_names if (name := f"{package}.{part}") in sys.modules]
        found += [sys.modules[name] for name in names]
        todo += names
    return found


# cloudpickle looks through all of sys.modules for every function that it pickles: half a millisecond once PyTorch has
# been imported.
assert hasattr(cloudpickle_module, "_find_imported_submodules"), cloudpickle.__version__
cloudpickle_module._find_imported_submodules = imported_submodules


def put_back(part: Any, contents: Any) -> None:
    """Make a part of the test's arguments what the student's function left in its copy of it."""
    if isinstance(part, dict) and type(contents) is dict:
        part.clear()
        part.update(contents)
    elif isinstance(part, collections.deque) and type(contents) is list:
        part.clear()
        part.extend(contents)
    elif type(part) is not type(contents):
        return
    elif isinstance(part, (list, bytearray)):
        part[:] = contents
    elif isinstance(part, set):
        part.clear()
        part.update(contents)
    elif hasattr(part, "iloc"):
        type(part).__init__(part, contents)  # pandas has no other public way to exchange rows and columns in place
    elif part.shape == contents.shape:
        values = part.detach() if hasattr(part, "detach") else part  # PyTorch changes no leaf that needs a gradient
        values[...] = contents


def stale() -> StaleHandle:
    return StaleHandle("this object was lost when the submission's process had to be restarted")
