"""Frames, series, indexes, times and missing values of pandas, and exact numbers of SymPy, as plain data, and back: a
test that compares them gets real ones, rebuilt on its side.

Only values that come back exactly as they were are plain. Anything else (categories, time zones, subclasses) stays a
handle.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

NUMBERS = frozenset("biufcmM")  # kinds of NumPy's types


def frame_as_plain(value: Any) -> tuple[Any, ...] | None:
    """A value of pandas as a tuple of lists, arrays and texts, or None if it has no such form."""
    pandas = sys.modules.get("pandas")
    if pandas is None:
        return None
    if value is pandas.NaT or value is pandas.NA:
        return ("missing", "NaT" if value is pandas.NaT else "NA")
    if type(value) in (pandas.Timestamp, pandas.Timedelta):
        return _time(value, pandas)
    if type(value) not in (pandas.DataFrame, pandas.Series, *_indexes(pandas)):
        return None
    try:
        parts = _taken_apart(value, pandas)
        return parts if parts is not None and _is_same(frame_from_plain(parts), value, pandas) else None
    except Exception:  # pandas has many kinds of values; a handle will do
        return None


def frame_from_plain(parts: tuple[Any, ...]) -> Any:
    """Rebuild what `frame_as_plain` took apart. Raises whatever pandas raises for parts that make no frame, and
    ValueError for parts that pandas would repeat or take for many.
    """
    if type(parts) is not tuple:
        raise ValueError("the parts of a frame are not a tuple")
    kind, *rest = parts
    return MAKERS[kind](importlib.import_module("pandas"), *rest)


def exact_as_plain(value: Any) -> tuple[int, int] | None:
    """A whole number or fraction of SymPy as numerator and denominator; its truth values as 0 and 1 over 0."""
    sympy = sys.modules.get("sympy")
    if sympy is None:
        return None
    if value is sympy.true or value is sympy.false:
        return int(value is sympy.true), 0
    is_exact = isinstance(value, sympy.Rational) and type(value).__module__ == "sympy.core.numbers" and value.is_finite
    return (int(value.p), int(value.q)) if is_exact else None


def exact_from_plain(numerator: int, denominator: int) -> Any:
    """Rebuild what `exact_as_plain` took apart."""
    sympy = importlib.import_module("sympy")
    if denominator == 0:
        return sympy.true if numerator else sympy.false
    return sympy.Rational(numerator, denominator)


def _time(value: Any, pandas: Any) -> tuple[Any, ...] | None:
    """A point in time without a time zone, or a duration."""
    if getattr(value, "tzinfo", None) is not None:
        return None
    kind = "timestamp" if isinstance(value, pandas.Timestamp) else "timedelta"
    parts = kind, value.asm8
    made = frame_from_plain(parts)
    return parts if made == value and made.unit == value.unit else None


def _indexes(pandas: Any) -> tuple[type, ...]:
    return pandas.Index, pandas.RangeIndex, pandas.MultiIndex, pandas.DatetimeIndex


def _taken_apart(value: Any, pandas: Any) -> tuple[Any, ...] | None:
    if isinstance(value, pandas.DataFrame):
        columns = [_values(value.iloc[:, number]) for number in range(value.shape[1])]
        names, index = _taken_apart(value.columns, pandas), _taken_apart(value.index, pandas)
        return None if None in (names, index) or None in columns else ("frame", names, index, columns)
    if isinstance(value, pandas.Series):
        index, values = _taken_apart(value.index, pandas), _values(value)
        return None if index is None or values is None else ("series", index, values, value.name)
    if isinstance(value, pandas.MultiIndex):
        return "multi", list(value), list(value.names)
    if isinstance(value, pandas.RangeIndex):
        return "range", value.start, value.stop, value.step, value.name
    values = _values(value)
    return None if values is None else ("index", values, value.name, getattr(value, "freqstr", None))


def _values(column: Any) -> tuple[str, Any] | None:
    """The type of a column and what is in it: an array if NumPy has the type, else a list of texts and the like."""
    dtype = column.dtype
    if isinstance(dtype, np.dtype) and dtype.kind in NUMBERS:
        return dtype.str, column.to_numpy()
    return (str(dtype), list(column)) if str(dtype) in ("object", "str") else None


def _column(pandas: Any, dtype: str, values: Any, length: int | None = None) -> Any:
    """A column, or an index. `length` is how many rows there are."""
    if type(values) is not list and not (isinstance(values, np.ndarray) and values.ndim == 1):
        raise ValueError("the values of a column are not a list")
    if length is not None and len(values) != length:
        raise ValueError("a column is longer or shorter than its index")
    if dtype == "object":
        array = np.empty(len(values), object)
        array[:] = values
        return array
    if dtype == "str":
        return pandas.array(values, dtype="str")
    kind = np.dtype(dtype)
    if kind.kind not in NUMBERS:  # a type of any size could be named
        raise ValueError("the type of a column is not numeric")
    return np.array(values, kind, subok=False)


def _index(pandas: Any, values: tuple[str, Any], name: Any, freq: str | None) -> Any:
    made = pandas.Index(_column(pandas, *values), name=name)
    return made if freq is None else pandas.DatetimeIndex(made, freq=freq)


def _frame(pandas: Any, names: Any, index: Any, columns: list[tuple[str, Any]]) -> Any:
    rows = frame_from_plain(index)
    made = pandas.DataFrame(
        {number: pandas.Series(_column(pandas, *c, len(rows)), rows) for number, c in enumerate(columns)}, rows
    )
    made.columns = frame_from_plain(names)
    return made


def _series(pandas: Any, index: Any, values: tuple[str, Any], name: Any) -> Any:
    rows = frame_from_plain(index)
    return pandas.Series(_column(pandas, *values, len(rows)), rows, name=name)


def _is_same(made: Any, value: Any, pandas: Any) -> bool:
    """Whether nothing was lost. Raises AssertionError if something was."""
    kinds = {pandas.DataFrame: "frame", pandas.Series: "series"}
    compare = getattr(pandas.testing, f"assert_{kinds.get(type(value), 'index')}_equal")
    compare(made, value, check_exact=True)
    return type(made) is type(value)


MAKERS: dict[str, Callable[..., Any]] = {
    "frame": _frame,
    "series": _series,
    "index": _index,
    "range": lambda pandas, start, stop, step, name: pandas.RangeIndex(start, stop, step, name=name),
    "timestamp": lambda pandas, number: pandas.Timestamp(number),
    "timedelta": lambda pandas, number: pandas.Timedelta(number),
    "missing": lambda pandas, name: {"NaT": pandas.NaT, "NA": pandas.NA}[name],
    "multi": lambda pandas, rows, names: pandas.MultiIndex.from_tuples(rows, names=names),
}
