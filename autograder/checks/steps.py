"""Runs the steps of a case where the student's objects live: here, or in the sandbox. Only plain values come back.

Everything in this file travels into the sandbox, so it needs little but the standard library and NumPy, and knows
nothing of what is right.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import sys
import threading
import time
import types
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from autograder.runs.alarm import HAS_TIMER, alarm
from autograder.runs.plain_values import LONGEST_TEXT, described

DEEPEST, MOST = 6, 10_000
WAITING = 3.0  # a case may take this many times its processor time if it waits


class TookTooLong(BaseException):
    """The time of a case is over."""


class Beyond(dict[str, Any]):
    """The names behind those of a case: the student's, and Python's own. Python looks for a name that is not global in
    the scope's `__builtins__`, in the bodies of classes, too.
    """

    def __init__(self, students: Mapping[str, Any]):
        super().__init__(vars(builtins))
        self.students = students
        self.hidden: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        if name in self.hidden:
            raise KeyError(name)
        return self.students[name] if name in self.students else super().__getitem__(name)

    def hide_what_is_assigned(self, source: str) -> None:
        """After a step that failed: later ones do not take something of the notebook for what it should have made."""
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                self.hidden.add(node.id)


def scope_of(sent: Mapping[str, Any], students: Mapping[str, Any]) -> dict[str, Any]:
    """The names of a case: its own, those of the file with the cases, and beyond them the student's."""
    scope: dict[str, Any] = {"__name__": "__main__", "__builtins__": Beyond(students)}
    for name, value in sent.items():
        scope[name] = _bound(value, scope) if isinstance(value, types.FunctionType) else value
    return scope


def _bound(function: types.FunctionType, scope: dict[str, Any]) -> types.FunctionType:
    """The function with this scope as its globals."""
    bound = types.FunctionType(function.__code__, scope, function.__name__, function.__defaults__, function.__closure__)
    bound.__kwdefaults__ = function.__kwdefaults__
    return bound


def run_steps(
    students: Mapping[str, Any] | None, sent: Mapping[str, Any], steps: Sequence[str], seconds: float
) -> list[dict[str, Any]]:
    """Run steps one after the other, in a scope of their own over the student's names (None: those of this kernel).

    Gives {"value": plain} for each step that is an expression, {} for each other one, and {"error": {...}} for one that
    raises. `seconds` of processor time are for all steps together; if they are over, the last error is TookTooLong,
    with the line that was running.
    """
    if students is None:
        students = sys.modules["IPython"].get_ipython().user_ns
    scope = scope_of(sent, students)
    outcomes: list[dict[str, Any]] = []
    try:
        with np.errstate(all="ignore"), _limited(seconds):
            for source in steps:
                try:
                    outcomes.append(_run(source, scope))
                except (KeyboardInterrupt, TookTooLong):
                    raise
                except BaseException as error:
                    outcomes.append({"error": described(error)})
                    scope["__builtins__"].hide_what_is_assigned(source)
    except TookTooLong as error:  # out here nothing rings again
        outcomes.append({"error": described(error)})
    return outcomes


def _run(source: str, scope: dict[str, Any]) -> dict[str, Any]:
    try:
        code = compile(source, "<step>", "eval")
    except SyntaxError:
        exec(compile(source, "<step>", "exec"), scope)
        return {}
    return {"value": plain(eval(code, scope))}


@contextlib.contextmanager
def _limited(seconds: float) -> Iterator[None]:
    """Raise TookTooLong in the main thread once the processor time is over. Without such signals, there is no limit."""
    if not HAS_TIMER or threading.current_thread() is not threading.main_thread():
        yield
        return
    began, used = time.monotonic(), time.process_time()

    def ring() -> float:
        left = seconds - (time.process_time() - used)
        if left <= 0 or time.monotonic() - began > WAITING * seconds:
            raise TookTooLong(f"{seconds:g} seconds were not enough")
        return max(left, 0.01)

    with alarm(seconds, ring):
        yield


def plain(value: Any, depth: int = 0) -> Any:
    """Numbers, texts, arrays and collections of them, lists and tuples kept apart; anything else becomes
    {"odd": "name of its type"}.
    """
    if value is None or type(value) in (bool, float):
        return value
    if type(value) is int:
        return value if abs(value) < 2**62 else {"odd": "a huge int"}
    if type(value) is str:
        return value[: 5 * LONGEST_TEXT]
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "biuf":
        array = np.array(value, subok=False)
        return array if array.size < MOST else {"odd": f"an array of {array.size} numbers"}
    if type(value) in (list, tuple) and depth < DEEPEST and len(value) < MOST:
        return type(value)(plain(entry, depth + 1) for entry in value)
    if type(value) is dict and depth < DEEPEST and len(value) < MOST:
        return {str(key)[:LONGEST_TEXT]: plain(entry, depth + 1) for key, entry in value.items()}
    if isinstance(value, memoryview):  # an array has one as its `.data`
        return {"odd": f"a memoryview of {np.array2string(np.asarray(value), threshold=20)}"[:LONGEST_TEXT]}
    if isinstance(value, bytes) and len(value) < LONGEST_TEXT:
        return {"odd": f"the bytes {value!r}"[:LONGEST_TEXT]}
    return {"odd": type(value).__name__[:LONGEST_TEXT]}


class Calls:
    """Within `with Calls(Kind, "backward") as made:` notes each call of a method, as (object, positional arguments,
    keywords), and runs it; with `run=False` only notes it. The function that has the method's name among `names`, the
    names of a notebook, is noted too. `before` is called with the object before each call.
    """

    def __init__(self, kind: type, name: str, names: Any = None, before: Any = None, run: bool = True):
        self.kind, self.name, self.before, self.run = kind, name, before, run
        self.names = {} if names is None else names
        self.made: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = []

    def __enter__(self) -> list[tuple[Any, tuple[Any, ...], dict[str, Any]]]:
        self.original = self.kind.__dict__[self.name]

        def noted(target: Any, *arguments: Any, **options: Any) -> Any:
            if self.before:
                self.before(target)
            self.made.append((target if not self.run else None, arguments, options))
            return self.original(target, *arguments, **options) if self.run else None

        self.noted = noted
        self._put(self.original, noted)
        return self.made

    def __exit__(self, *error: object) -> None:
        self._put(self.noted, self.original)

    def _put(self, old: Any, new: Any) -> None:
        setattr(self.kind, self.name, new)
        if self.name in self.names and self.names[self.name] is old:
            self.names[self.name] = new
