"""Arrays without numbers that record every NumPy operation on them: `compile` finds its steps with them.

The one idea to know: NumPy hands a call such as `np.exp(x)` or `a * b` over to an argument that has `__array_ufunc__`.
So the engine's own rules can run on a `Traced`, which computes nothing and records each call. Every value has a number;
an in-place change gives the array the number of a new value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Step = tuple[Callable, tuple[int, ...], int]
"""A function of arrays, the numbers of its arguments, the number of its result."""


class UntraceableError(Exception):
    """The function does something that is not an elementwise operation."""


class Trace:
    """The operations recorded so far, and all values: a dtype for a computed value, a Python number for a constant."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self.values: list[Any] = []
        self.steps: list[Step] = []

    def new(self, dtype: np.dtype) -> Traced:
        """A new array of which only shape and dtype are known."""
        self.values.append(dtype)
        return Traced(self, len(self.values) - 1)

    def number_of(self, value: Any) -> int:
        """The number of an argument: a traced array, or a constant.

        Raises UntraceableError for anything else: an array with numbers in it might change later.
        """
        if isinstance(value, Traced) and value.record is self:
            return value.number
        if type(value) not in (bool, int, float):
            raise UntraceableError(f"{type(value).__name__} from outside")
        self.values.append(value)
        return len(self.values) - 1

    def note(self, function: Callable, arguments: Sequence[Any], dtype: np.dtype) -> Traced:
        """Add a step."""
        numbers = tuple([self.number_of(argument) for argument in arguments])
        result = self.new(dtype)
        self.steps.append((function, numbers, result.number))
        return result


class Traced(np.lib.mixins.NDArrayOperatorsMixin):
    """An array without numbers: it records elementwise operations, and refuses others and requests for numbers.

    Attributes that it lacks, such as `sum` or `T`, raise AttributeError; so everything that succeeds is in the trace.
    """

    def __init__(self, record: Trace, number: int, shared: bool = False) -> None:
        self.record, self.number, self.shared = record, number, shared
        self.shape, self.dtype = record.shape, record.values[number]
        self.ndim, self.size = len(self.shape), math.prod(self.shape)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        out = options.pop("out", None)
        if method != "__call__" or ufunc.signature or ufunc.nout > 1 or options:
            raise UntraceableError(f"{ufunc.__name__}.{method}")
        result = self.record.note(ufunc, inputs, ufunc(*samples(inputs)).dtype)
        if out is None:
            return result
        (target,) = out
        if not isinstance(target, Traced) or target.shared or target.dtype != result.dtype:
            raise UntraceableError("an array from outside changed in place")
        target.number = result.number  # from now on the array stands for the new value
        return target

    def __array_function__(self, function: Any, kinds: Any, arguments: Any, options: Any) -> Any:
        if function is np.shape:
            return self.shape
        if function not in FUNCTIONS or options:
            raise UntraceableError(function.__name__)
        return self.record.note(FUNCTIONS[function], arguments, function(*samples(arguments)).dtype)

    def astype(self, dtype: Any, **options: Any) -> Traced:
        """Record the conversion as a step."""
        return self.record.note(convert, (self,), np.dtype(dtype))

    def copy(self) -> Traced:
        """The same value. An in-place change of either array gives only that one a new value, so no step is needed."""
        return Traced(self.record, self.number)

    def __getitem__(self, key: Any) -> Traced:
        if key not in (..., ()):
            raise UntraceableError("indexing")
        self.shared = True  # a change in place would have to show in both
        return Traced(self.record, self.number, shared=True)

    def _refuse(self, *arguments: Any, **options: Any) -> Any:
        raise UntraceableError("the numbers themselves")

    __array__ = __bool__ = __iter__ = _refuse


def samples(arguments: Sequence[Any]) -> list[Any]:
    """The arguments, with empty arrays for traced ones: enough for NumPy to tell the dtype of the result."""
    return [np.empty(0, x.dtype) if isinstance(x, Traced) else x for x in arguments]


def select(condition: Any, a: Any, b: Any, out: Any) -> None:
    """`np.where` into an existing array."""
    out[...] = np.where(condition, a, b)


def convert(x: Any, out: Any) -> None:
    """`astype` into an existing array."""
    np.copyto(out, x, casting="unsafe")


FUNCTIONS: dict[Any, Callable] = {np.where: select, np.clip: np.clip}
"""The elementwise functions besides NumPy's ufuncs, each with a function that writes into an array for the result."""
