"""A student's objects as plain trees: None, bool, int, float, str, lists, tuples, dicts, arrays. An exception of the
student's code is data, too. These functions travel into the sandbox: standard library and NumPy only.
"""

from __future__ import annotations

import builtins
import difflib
import os
import re
import traceback
from typing import Any

import numpy as np

LONGEST_TEXT = 400
SIMILAR = 0.75
LARGEST_ARRAY = 1_000_000
NOT_STUDENTS = re.compile(r"(checks|helpers)_\d\d\.py$")
"""The files that came with a lesson: its cases and its helpers."""
OUR_PACKAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "")


def plain(value: Any, tracked: bool, depth: int = 0) -> Any:
    """A value as a plain tree. Anything else becomes {"odd": "name of its type"}.

    `tracked`: the engine keeps gradients in tensors of its own, as PyTorch does, so look inside them.
    """
    if value is None or type(value) in (bool, str, float):
        return value[:LONGEST_TEXT] if isinstance(value, str) else value
    if isinstance(value, int) and not isinstance(value, bool):
        return int(value) if abs(value) < 2**62 else {"odd": "a huge int"}
    if isinstance(value, float):
        return float(value)
    if isinstance(value, np.ndarray | np.generic):
        return _plain_array(np.asarray(value))
    if isinstance(value, list | tuple | dict) and depth < 6 and len(value) < 10_000:
        if isinstance(value, dict):
            return {str(key)[:LONGEST_TEXT]: plain(entry, tracked, depth + 1) for key, entry in value.items()}
        return [plain(entry, tracked, depth + 1) for entry in value]
    if tracked and depth < 3:
        if hasattr(value, "__array__"):
            return plain(np.asarray(value), tracked, depth + 1)
        if hasattr(value, "data"):
            return plain(value.data, tracked, depth + 1)
    return {"odd": type(value).__name__[:LONGEST_TEXT]}


def _plain_array(array: Any) -> Any:
    if array.size > LARGEST_ARRAY:
        return {"odd": f"an array of {array.size} numbers"}
    if array.dtype.kind not in "biuf":
        return {"odd": f"array of {array.dtype}"[:LONGEST_TEXT]}
    return np.array(array, subok=False)


def described(error: BaseException) -> dict[str, str]:
    """An exception as data: its type, its message, and the line of the student's code that raised it."""
    description = {"type": "an exception", "message": "", "line": ""}
    try:
        description["type"] = str(type(error).__name__)[:LONGEST_TEXT]
        description["line"] = _line_of(error)
        description["message"] = str(error).strip()[:LONGEST_TEXT]  # some of NumPy's end with a space
        description["message"] += meant(error)
    except BaseException:
        return description
    return description


def meant(error: BaseException) -> str:
    """The name that was probably meant by one that does not exist, in a sentence; empty if none is similar."""
    name = getattr(error, "name", None)
    if not isinstance(name, str) or not isinstance(error, NameError | AttributeError):
        return ""
    if isinstance(error, AttributeError):
        known = dir(error.obj)
    else:
        *_, (frame, _) = traceback.walk_tb(error.__traceback__)
        known = [*frame.f_locals, *frame.f_globals, *dir(builtins)]
    found = difflib.get_close_matches(name, [other for other in known if other != name], 1, SIMILAR)
    return f". Did you mean `{found[0]}`?" if found else ""


def _line_of(error: BaseException) -> str:
    """The text of the innermost line outside this package, the standard library, installed packages and the files of a
    lesson. An error that came from the sandbox brings the lines of the student's cells with it.
    """
    brought = getattr(error, "student_where", ())
    if brought:
        return str(brought[-1][1]).strip()[:LONGEST_TEXT]
    line = ""
    frames = traceback.walk_tb(error.__traceback__)
    for number, (frame, line_number) in enumerate(frames):
        filename = frame.f_code.co_filename
        foreign = filename.startswith(OUR_PACKAGE) or "site-packages" in filename or "/lib/python" in filename
        if not foreign and not filename.startswith("<frozen") and not NOT_STUDENTS.search(filename):
            summary = traceback.FrameSummary(filename, line_number, frame.f_code.co_name)
            line = summary.line or line
        if number > 5_000:
            break
    return line[:LONGEST_TEXT]
