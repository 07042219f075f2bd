"""Watches an engine at work: which of its own functions backward calls, and at which numbers it evaluates `tanh`, `exp`
and the like.

A difference quotient of any order needs the values of a function at several points around the one that forward used,
and backpropagation never does. Like the functions of `engine_protocol`, these travel into the sandbox. Besides a
profiler they install two things for one run: arrays of a class that notes which universal functions are applied to it,
and, for engines of single numbers, functions of `math` and NumPy that note their argument. A profiler sees one thread
of one process, so it is also noted whether an engine starts another one or waits for it.
"""

from __future__ import annotations

import _thread
import contextlib
import math
import os
import queue
import select
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any, ClassVar

import numpy as np

from autograder.runs.ways import Ways

# `__missing__` is how functions that traveled look up names, those of this file among them.
NO_OPERATIONS = ("__init__", "__new__", "__missing__", "shape", "ndim", "size", "dtype")
CURVED_NAMES = """
    exp expm1 exp2 log log1p log2 log10 sqrt cbrt square reciprocal power float_power sin cos tan arcsin arccos arctan
    asin acos atan sinh cosh tanh arcsinh arccosh arctanh asinh acosh atanh erf erfc gamma lgamma divide true_divide
"""
CURVED = frozenset(CURVED_NAMES.split())
QUOTIENTS = ("divide", "true_divide")
# What Python reports to audit hooks when work begins that the profiler does not see.
STARTING_NAMES = """
    _thread.start_new_thread _thread.start_joinable_thread os.fork os.forkpty os.exec os.posix_spawn os.spawn os.system
    pty.spawn subprocess.Popen cpython.PyInterpreterState_New
"""
STARTING = frozenset(STARTING_NAMES.split())
WAITING_NAMES = "read wait waitpid waitid wait3 wait4"
WAITING = {select.select, *(vars(os)[name] for name in WAITING_NAMES.split() if name in vars(os))}
# Python's own functions that wait, or need not, since the other thread was faster.
WAITING_METHODS = (
    threading.Condition.wait,
    threading.Event.wait,
    threading.Barrier.wait,
    threading.Thread.join,
    Future.result,
    Future.exception,
)
WAITING_CODE = {method.__code__ for method in WAITING_METHODS}
PUT, GET = ("put", "put_nowait"), ("get", "get_nowait")
NEAR, ROUNDING = 0.3, 1e5  # up to this far (relative) is around a point; up to this many epsilons is the point itself
FEWEST, SAMPLE, MOST_NOTED = 8, 64, 600


def watch_programs(engine: Any, programs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Run each program on its one draw and watch it. Returns for each program, empty after an error:

    `forward`: how many calls of the engine's own functions forward made; `repeated`: how many calls of the same
    functions backward made; `complex`: whether backward works with complex numbers; `watched`: whether it left the
    profiler in place; `elsewhere`: whether it started a thread or process or waited for one; `around`: at how many
    points, around one that forward used, a function was evaluated again; `value` and `gradients`.
    """
    return [_watched(engine, program["function"], program["draw"]) for program in programs]


def _watched(engine: Any, function: Callable[..., Any], draw: dict[str, Any]) -> dict[str, Any]:
    for spied in (True, False):  # an engine may refuse arrays of another class
        try:
            return _watch(Ways(engine), function, draw, spied)
        except KeyboardInterrupt:
            raise
        except BaseException:
            continue
    return {}


def _watch(ways: Ways, function: Callable[..., Any], draw: dict[str, Any], spied: bool) -> dict[str, Any]:
    calls: list[Any] = []
    ours = (_watch.__code__.co_filename, Ways.leaf.__code__.co_filename)
    libraries = (sys.prefix, sys.base_prefix, "<frozen")
    events = _audited_events()
    queues: dict[int, tuple[Any, int]] = {}  # how many things in a queue are from this thread

    def spy(frame: Any, event: str, argument: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename not in ours and not code.co_filename.startswith(libraries):
            calls.append(code)
        elif (event == "call" and code in WAITING_CODE and not _is_for_output(frame)) or (
            event == "c_call" and _waits(argument, in_library=code.co_filename.startswith(libraries))
        ):
            events.append("wait")
        elif event == "return" and code in (queue.Queue.put.__code__, queue.Queue.get.__code__):
            passed_on(frame.f_locals["self"], code.co_name)
        elif event == "c_return" and isinstance(getattr(argument, "__self__", None), queue.SimpleQueue):
            passed_on(argument.__self__, argument.__name__)

    def passed_on(waiting: Any, method: str) -> None:
        """What this thread gets from a queue and has not put there comes from another one."""
        change = (method in PUT) - (method in GET)
        _, held = queues.get(id(waiting), (waiting, 0))
        queues[id(waiting)] = waiting, max(0, held + change)
        if held + change < 0:
            events.append("wait")

    before = sys.getprofile()
    with _noting(spied) as notes:
        sys.setprofile(spy)
        try:
            leaves = [ways.leaf(value, draw["dtype"]) for value in draw["inputs"]]
            calls.clear()
            began = len(events)
            output = function(*leaves)
            forward = [code for code in calls if code.co_name not in NO_OPERATIONS]
            calls.clear()
            evaluated, notes[:] = list(notes), []
            ways.start(output, draw["cotangent"], draw["dtype"])
            value, gradients = ways.numbers(output), [ways.gradient(leaf) for leaf in leaves]
            seen = events[began:]
            watched = sys.getprofile() is spy and "sys.setprofile" not in seen
        finally:
            sys.setprofile(before)
        again = list(notes)
    known, backward = set(forward), set(calls)
    return {
        "forward": len(forward),
        "repeated": sum(code in known for code in calls),
        "complex": any(map(_is_about_complex_numbers, backward)) or any(point.dtype.kind == "c" for _, point in again),
        "watched": watched,
        "elsewhere": any(event != "sys.setprofile" for event in seen),
        "around": max(points_around(evaluated, again), pairs_around(evaluated, again)),
        "value": value,
        "gradients": gradients,
    }


def _audited_events() -> list[str]:
    """A list that grows when something starts in this process that the profiler does not see, and with every call of
    `sys.setprofile`, so that removing the profiler and putting it back is noticed. Python's audit hooks cannot be
    removed, so one serves all runs.
    """
    if not hasattr(sys, "_audited_events"):
        events: list[str] = []

        def hook(event: str, arguments: Any) -> None:
            if event == "sys.setprofile" or event in STARTING:
                events.append(event)

        sys._audited_events = events  # type: ignore[attr-defined]
        sys.addaudithook(hook)
    return sys._audited_events  # type: ignore[attr-defined,no-any-return]


def _waits(function: Any, in_library: bool) -> bool:
    """Whether a call of a builtin function waits for another thread or process. Libraries use locks for themselves."""
    if function in WAITING:
        return True
    owner = getattr(function, "__self__", None)
    return isinstance(owner, (_thread.LockType, _thread.RLock)) and function.__name__ == "acquire" and not in_library


def _is_for_output(frame: Any) -> bool:
    """Whether a kernel waits until its front end has been sent what was printed."""
    while frame is not None and "/ipykernel/" not in frame.f_code.co_filename.replace("\\", "/"):
        frame = frame.f_back if frame.f_code.co_filename == threading.__file__ else None
    return frame is not None


def _is_about_complex_numbers(code: Any) -> bool:
    words = {"imag", "complex", "complex64", "complex128", "complex256", "clongdouble", "csingle", "cdouble"}
    return any(type(constant) is complex for constant in code.co_consts) or not words.isdisjoint(code.co_names)


# Where functions are evaluated

Note = tuple[str, Any]  # the name of a function, and some of the numbers that it was applied to


class Spy(np.ndarray):
    """An array that notes which universal functions are applied to it, and makes others of its kind."""

    notes: ClassVar[list[Note] | None] = None

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
        if method == "__call__" and ufunc.__name__ in CURVED:
            _note(Spy.notes, ufunc.__name__, inputs)
        if out is not None:
            options["out"] = tuple(_unspied(array) for array in out)
        result = getattr(ufunc, method)(*map(_unspied, inputs), **options)
        if out is not None:
            return out[0] if len(out) == 1 else out
        return tuple(map(_spied, result)) if isinstance(result, tuple) else _spied(result)


def _unspied(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, Spy) else value


def _spied(value: Any) -> Any:
    return value.view(Spy) if type(value) is np.ndarray and value.dtype.kind in "fc" else value


def _note(notes: list[Note] | None, name: str, inputs: Any) -> None:
    """Note a function and the argument that makes it curved; for a power also the exponent."""
    if notes is not None and len(notes) < MOST_NOTED:
        point = _unspied(np.array(inputs[name in QUOTIENTS]).ravel()[:SAMPLE])
        if point.dtype.kind in "fciu":
            notes.append((name if name in QUOTIENTS else f"{name} {inputs[1:]!r:.80}", point))


@contextlib.contextmanager
def _noting(spied: bool) -> Iterator[list[Note]]:
    """A context in which evaluations of functions are noted. `spied`: arrays are Spies."""
    notes: list[Note] = []
    kept = [(module, name, getattr(module, name)) for module in (math, np) for name in CURVED if hasattr(module, name)]
    patches = [(module, name, _noted(notes, name, function)) for module, name, function in kept]
    if spied:
        makers = [(np, name, getattr(np, name)) for name in ("array", "asarray")]
        kept += makers
        patches += [(np, name, _spying(make)) for _, name, make in makers]
        Spy.notes = notes
    try:
        for module, name, function in patches:
            setattr(module, name, function)
        yield notes
    finally:
        Spy.notes = None
        for module, name, function in kept:
            setattr(module, name, function)


class Noted:
    """A universal function that notes its arguments if they are single numbers, and otherwise works as before."""

    def __init__(self, notes: list[Note], name: str, function: Any) -> None:
        self.notes, self.name, self.function = notes, name, function

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        if all(np.ndim(argument) == 0 for argument in arguments):
            _note(self.notes, self.name, arguments)
        return self.function(*arguments, **options)

    def __getattr__(self, attribute: str) -> Any:
        return getattr(self.function, attribute)


def _noted(notes: list[Note], name: str, function: Any) -> Any:
    """A function that notes its arguments if they are single numbers, and otherwise works as before."""
    if not isinstance(function, np.ufunc):

        def of_numbers(*arguments: Any) -> Any:
            _note(notes, name, arguments)
            return function(*arguments)

        return of_numbers

    return Noted(notes, name, function)


def _spying(make: Any) -> Any:
    def made(*arguments: Any, **options: Any) -> Any:
        return _spied(make(*arguments, **options))

    return made


def points_around(evaluated: list[Note], again: list[Note]) -> int:
    """The number of different points at which backward evaluated a function, all around one at which forward did;
    points of forward itself do not count. For arrays only: single numbers may be close to each other by chance.
    """
    most = 0
    for name, center in evaluated:
        others = [point for other, point in evaluated if other == name and point.shape == center.shape]
        found: list[Any] = []
        if center.size >= FEWEST:
            for other, point in again:
                if other == name and point.shape == center.shape and _is_around(point, center):
                    found += [] if any(_same(point, known) for known in others + found) else [point]
        most = max(most, len(found))
    return most


def pairs_around(evaluated: list[Note], again: list[Note]) -> int:
    """The number of points, in pairs, at which a function was evaluated: one as far above a point that forward used as
    the other is below. A single pair may be innocent. For arrays, evaluations in forward itself count too.
    """
    most = 0
    for name, center in evaluated:
        of_forward = [point for other, point in evaluated if other == name and point.shape == center.shape]
        points = [point for other, point in again if other == name and point.shape == center.shape]
        points = [point for point in points if not any(_same(point, known) for known in of_forward)]
        points += of_forward if center.size >= FEWEST else []
        points = [point for point in points if _is_around(point, center)]
        found: list[Any] = []
        for number, first in enumerate(points):
            for second in points[:number]:
                if _same((first + second) / 2, center) and not _same(first, center):
                    found += [] if any(_same(first, p) or _same(second, p) for p in found) else [first]
        most = max(most, 2 * len(found))
    return most


def _is_around(point: Any, center: Any) -> bool:
    room = 0.02 * np.max(np.abs(center), initial=0.0) if center.size >= FEWEST else 0.05
    return bool(np.any(center) and np.all(np.abs(point - center) <= NEAR * np.abs(center) + room))


def _same(first: Any, second: Any) -> bool:
    epsilon = np.finfo(np.result_type(first, second, np.float32)).eps
    return bool(np.all(np.abs(first - second) <= ROUNDING * epsilon * np.max(np.abs(second), initial=0.0)))
