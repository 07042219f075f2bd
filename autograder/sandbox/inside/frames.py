"""Frames, series, indexes, times and missing values of pandas, tensors of PyTorch, and exact numbers of SymPy, as plain
data, and back: a test that compares them gets real ones, rebuilt on its side.

Only values that come back exactly as they were are plain. Anything else (categories, time zones, subclasses) stays a
handle. Of a tensor, its history stays behind: what it was calculated from lives in one process. An empty tensor is a
handle, too: PyTorch would stretch it to the shape of any other and find no number that differs.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from .protocol import words

NUMBERS = frozenset("biufcmM")  # kinds of NumPy's types
# PyTorch's types, each with the one of NumPy that has the same bits.
TENSORS = {
    name: name for name in words("bool uint8 int8 int16 int32 int64 float16 float32 float64 complex64 complex128")
}
TENSORS["bfloat16"] = "int16"


def is_of_library(kind: type, names: str) -> bool:
    """Whether a class has one of these names in pandas or PyTorch."""
    return kind.__name__ in names.split() and kind.__module__.partition(".")[0] in TAKERS


def library_as_plain(value: Any) -> tuple[Any, ...] | None:
    """A value of pandas or PyTorch as a tuple of lists, arrays and texts, or None if it has no such form."""
    name = type(value).__module__.partition(".")[0]
    library = sys.modules.get(name)
    try:
        return None if library is None else TAKERS[name](value, library)
    except Exception:  # a library has many kinds of values; a handle will do
        return None


def library_from_plain(parts: tuple[Any, ...]) -> Any:
    """Rebuild what `library_as_plain` took apart. Raises whatever the library raises for parts that make no value, and
    ValueError for parts that it would repeat or take for many.
    """
    if type(parts) is not tuple:
        raise ValueError("the parts of a value are not a tuple")
    kind, *rest = parts
    library, make = MAKERS[kind]
    return make(importlib.import_module(library), *rest)


def _from_pandas(value: Any, pandas: Any) -> tuple[Any, ...] | None:
    if value is pandas.NaT or value is pandas.NA:
        return ("missing", "NaT" if value is pandas.NaT else "NA")
    if type(value) in (pandas.Timestamp, pandas.Timedelta):
        return _time(value, pandas)
    if type(value) not in (pandas.DataFrame, pandas.Series, *_indexes(pandas)):
        return None
    parts = _taken_apart(value, pandas)
    return parts if parts is not None and _is_same(library_from_plain(parts), value, pandas) else None


def _from_torch(value: Any, torch: Any) -> tuple[Any, ...] | None:
    if type(value) is torch.Size:
        return "size", list(value)
    if type(value) in (torch.dtype, torch.device):
        name = str(value).removeprefix("torch.")
        return (type(value).__name__, name) if name in TENSORS or name == "cpu" else None
    dtype = str(getattr(value, "dtype", "")).removeprefix("torch.")
    if type(value) not in (torch.Tensor, torch.nn.Parameter) or dtype not in TENSORS:
        return None
    if value.layout is not torch.strided or value.device.type != "cpu" or not value.numel():
        return None
    data = value.detach().resolve_conj().resolve_neg()
    array = (data.view(torch.int16) if dtype == "bfloat16" else data).numpy()
    return type(value).__name__, dtype, array, value.requires_grad


def _tensor(torch: Any, dtype: str, array: Any, requires_grad: Any) -> Any:
    if not isinstance(array, np.ndarray) or array.dtype != TENSORS[dtype] or not array.size:
        raise ValueError("a tensor's type does not fit its data, or there is none")
    made = torch.from_numpy(array)
    made = made.view(torch.bfloat16) if dtype == "bfloat16" else made
    if requires_grad is True and not (made.is_floating_point() or made.is_complex()):
        raise ValueError("a tensor of integers has no gradient")
    return made.requires_grad_(requires_grad is True)


def _parameter(torch: Any, dtype: str, array: Any, requires_grad: Any) -> Any:
    made = _tensor(torch, dtype, array, requires_grad)
    return torch.nn.Parameter(made.detach(), made.requires_grad)


def _name_of_torch(torch: Any, name: str) -> Any:
    return torch.device(name) if name == "cpu" else getattr(torch, {known: known for known in TENSORS}[name])


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
    made = library_from_plain(parts)
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
    rows = library_from_plain(index)
    made = pandas.DataFrame(
        {number: pandas.Series(_column(pandas, *c, len(rows)), rows) for number, c in enumerate(columns)}, rows
    )
    made.columns = library_from_plain(names)
    return made


def _series(pandas: Any, index: Any, values: tuple[str, Any], name: Any) -> Any:
    rows = library_from_plain(index)
    return pandas.Series(_column(pandas, *values, len(rows)), rows, name=name)


def _is_same(made: Any, value: Any, pandas: Any) -> bool:
    """Whether nothing was lost. Raises AssertionError if something was."""
    kinds = {pandas.DataFrame: "frame", pandas.Series: "series"}
    compare = getattr(pandas.testing, f"assert_{kinds.get(type(value), 'index')}_equal")
    compare(made, value, check_exact=True)
    return type(made) is type(value)


TAKERS: dict[str, Callable[..., tuple[Any, ...] | None]] = {"pandas": _from_pandas, "torch": _from_torch}
OF_PANDAS: dict[str, Callable[..., Any]] = {
    "frame": _frame,
    "series": _series,
    "index": _index,
    "range": lambda pandas, start, stop, step, name: pandas.RangeIndex(start, stop, step, name=name),
    "timestamp": lambda pandas, number: pandas.Timestamp(number),
    "timedelta": lambda pandas, number: pandas.Timedelta(number),
    "missing": lambda pandas, name: {"NaT": pandas.NaT, "NA": pandas.NA}[name],
    "multi": lambda pandas, rows, names: pandas.MultiIndex.from_tuples(rows, names=names),
}
OF_TORCH: dict[str, Callable[..., Any]] = {
    "Tensor": _tensor,
    "Parameter": _parameter,
    "size": lambda torch, sizes: torch.Size(sizes),
    "dtype": _name_of_torch,
    "device": _name_of_torch,
}
MAKERS = {kind: ("pandas", make) for kind, make in OF_PANDAS.items()}
MAKERS |= {kind: ("torch", make) for kind, make in OF_TORCH.items()}
