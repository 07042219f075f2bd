"""Empty arrays in answers. NumPy stretches an empty array to the shape of what it is compared with and then finds no
number that differs, so an empty answer would be as right as any other. The judge therefore gets the empty arrays of a
submission as a class of their own, whose differences from anything that is not empty, and comparisons with arrays that
are not, are refused. With a single number it can be compared: "all of them are positive" is true of an empty array.
"""

from __future__ import annotations

import contextlib
import functools
import math
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from autograder.sandbox.handles import COMPARED_UFUNCS, COMPARING, OPERATOR_UFUNCS, is_handle
from autograder.sandbox.process.limits import Refused

REFUSING = {*COMPARED_UFUNCS, *(name for name, operator in OPERATOR_UFUNCS.items() if operator in COMPARING)}
CONVERSIONS = ("array", "asarray")  # of NumPy; they turn arrays of all classes into plain ones


class EmptyArray(np.ndarray):
    """An empty array that a submission returned, or what was calculated from one."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
        empty = [value.shape for value in inputs if isinstance(value, EmptyArray) and not value.size]
        if empty and ufunc.__name__ in REFUSING and method in ("__call__", "outer"):
            for other in inputs:
                if not is_handle(other) and _holds_numbers(other, alone=ufunc is np.subtract):
                    raise Refused(f"an empty array of shape {empty[0]} was compared with something that is not empty")
        if out is not None:
            options["out"] = tuple(map(_plain, out))
        return from_submission(getattr(ufunc, method)(*map(_plain, inputs), **options))

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        return from_submission(super().__array_function__(function, types, arguments, options))

    @property
    def flat(self) -> Any:  # type: ignore[override]
        """An iterator over the numbers. `pytest.approx(3)` finds none there that is not about 3."""
        if sys._getframe(1).f_globals.get("__name__", "").startswith("_pytest."):
            raise Refused(f"an empty array of shape {self.shape} was compared with a number")
        return _plain(self).flat

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _plain(self).__reduce_ex__(protocol)


def from_submission(value: Any) -> Any:
    """A value of the submission, or what was calculated from one, with its own class if it is an empty array."""
    if isinstance(value, tuple):
        return tuple(map(from_submission, value))
    if isinstance(value, np.ndarray) and type(value) in (np.ndarray, EmptyArray):
        return value.view(np.ndarray if value.size else EmptyArray)
    return value


def _plain(value: Any) -> Any:
    return value.view(np.ndarray) if isinstance(value, EmptyArray) else value


def _holds_numbers(value: Any, alone: bool) -> bool:
    """Whether a value is an array, list or the like that is not empty, or, if `alone`, a single number."""
    shape = np.shape(value)
    return math.prod(shape) > 0 and (alone or isinstance(value, np.ndarray) or len(shape) > 0)


@contextlib.contextmanager
def empty_arrays_kept() -> Iterator[None]:
    """While inside, NumPy's conversions leave the class of an empty array as it is."""
    before = {name: getattr(np, name) for name in CONVERSIONS}
    for name, convert in before.items():
        setattr(np, name, _keeping(convert))
    try:
        yield
    finally:
        for name, convert in before.items():
            setattr(np, name, convert)


def _keeping(convert: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(convert)
    def converted(*arguments: Any, **options: Any) -> Any:
        made = convert(*arguments, **options)
        if made.size or not arguments or "subok" in options:
            return made
        parts = arguments[0] if isinstance(arguments[0], (list, tuple)) else arguments[:1]
        return from_submission(made) if any(isinstance(part, EmptyArray) or is_handle(part) for part in parts) else made

    return converted
