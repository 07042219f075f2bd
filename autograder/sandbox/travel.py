"""What goes into the sandbox and what comes out: arguments by value (functions and objects by cloudpickle), answers
decoded strictly.
"""

from __future__ import annotations

import io
import itertools
import types
from typing import TYPE_CHECKING, Any

import cloudpickle

from autograder.sandbox.errors import RemoteError
from autograder.sandbox.handles import is_handle, reference
from autograder.sandbox.inside.protocol import words
from autograder.sandbox.inside.values import Encoder
from autograder.sandbox.limits import SandboxError, StaleHandle

if TYPE_CHECKING:
    from autograder.sandbox.sandbox import Sandbox

MAX_GENERATED = 100_000
# Modules that may stand for themselves when the submission says that a name or attribute is that module: importing one
# has no side effect.
REAL_MODULES = words("""
    numpy numpy.linalg numpy.random numpy.testing numpy.fft math cmath random itertools functools operator
    collections fractions decimal statistics string re json datetime time copy typing dataclasses abc enum io os sys
    textwrap unittest types contextlib heapq bisect
""")


class _Pickler(cloudpickle.Pickler):
    """Pickles what a test cell passes to student code; handles travel as the numbers of their objects."""

    def __init__(self, file: io.BytesIO, sandbox: Sandbox):
        super().__init__(file)
        self.sandbox = sandbox

    def persistent_id(self, value: Any) -> int | None:
        if is_handle(value):
            return self.sandbox.number_of(reference(value))
        if self.sandbox.is_exception_proxy(value):
            return self.sandbox.number_of(value.student_reference)
        return None


def encode_arguments(sandbox: Sandbox, values: list[Any]) -> tuple[list[Any], list[Any]]:
    """Codes and buffers for arguments of an operation over there."""

    def other(value: Any) -> Any:
        if is_handle(value):
            return ["h", sandbox.number_of(reference(value))]
        if isinstance(value, (types.GeneratorType, map, filter, zip)):
            return ["G", [encoder.encode(item) for item in itertools.islice(value, MAX_GENERATED)]]
        file = io.BytesIO()
        try:
            _Pickler(file, sandbox).dump(value)
        except Exception as error:
            if isinstance(error, (SandboxError, RemoteError)):
                raise
            raise TypeError(f"a {type(value).__name__} cannot be given to the submission's code ({error})") from None
        return ["p", encoder._buffer(file.getvalue())]

    encoder = Encoder(other)
    return [encoder.encode(value) for value in values], encoder.buffers


def update_in_place(old: Any, new: Any) -> None:
    """Make a mutable argument equal to what the student's function left in it."""
    if type(old) is not type(new):
        return
    if isinstance(old, (list, bytearray)):
        if isinstance(old, list) and len(old) == len(new):
            for i, (mine, theirs) in enumerate(zip(old, new, strict=True)):
                if type(mine) is type(theirs) and isinstance(mine, (list, dict, set)):
                    update_in_place(mine, theirs)
                else:
                    old[i] = theirs
        else:
            old[:] = new
    elif isinstance(old, (dict, set)):
        old.clear()
        old.update(new)
    elif getattr(old, "shape", None) == getattr(new, "shape", ()):
        old[...] = new


def stale() -> StaleHandle:
    return StaleHandle("this object was lost when the submission's process had to be started afresh")
