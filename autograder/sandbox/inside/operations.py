"""What the judge can ask of an object in here: the operators and builtins, by name."""

from __future__ import annotations

import asyncio
import builtins
import collections
import copy
import math
import operator
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from .protocol import BASES, BINARY, COMPARISONS, CONTAINERS, SPECIAL_METHODS, UNARY


def _call(function: Any, *args: Any, **kwargs: Any) -> Any:
    return function(*args, **kwargs)


def _exit(manager: Any, kind: Any, error: Any) -> Any:
    return type(manager).__exit__(manager, kind, error, getattr(error, "__traceback__", None))


def _await(awaitable: Any) -> Any:
    async def wait() -> Any:
        return await awaitable

    return asyncio.run(wait())


def _derive(name: str, bases: tuple[Any, ...], body: types.SimpleNamespace, keywords: dict[str, Any]) -> Any:
    """Run a class statement of a test. Its methods lost the cell behind `super()` in transit, and get it back."""
    members = vars(body)
    made = types.new_class(name, bases, keywords, lambda namespace: namespace.update(members))
    for member in members.values():
        for function in (getattr(member, part, member) for part in ("__func__", "fget", "fset", "fdel")):
            code, cells = getattr(function, "__code__", None), getattr(function, "__closure__", None) or ()
            for variable, cell in zip(code.co_freevars if code else (), cells, strict=False):
                if variable == "__class__":
                    cell.cell_contents = made
    return made


def _array(target: Any, dtype: Any) -> Any:
    array = np.asarray(target) if dtype is None else np.asarray(target, np.dtype(dtype))
    if array.dtype == object:
        raise TypeError(f"an object of class {type(target).__name__} cannot be turned into an array of numbers")
    return array


def _ufunc(name: str, method: str, *args: Any, **kwargs: Any) -> Any:
    return getattr(getattr(np, name), method)(*args, **kwargs)


def _operator_name(name: str) -> str:
    return f"{name}_" if name in ("and", "or") else name


OPERATIONS: dict[str, Callable[..., Any]] = {
    **{
        name: getattr(operator, _operator_name(name))
        for name in (*BINARY, *COMPARISONS, *UNARY, "eq", "ne")
        if name != "divmod"
    },
    **{f"i{name}": getattr(operator, f"i{name}") for name in BINARY if name != "divmod"},
    **{name: getattr(builtins, name) for name in ("divmod", "float", "int", "complex", "bool", "len", "round", "hash")},
    **{name: getattr(builtins, name) for name in ("iter", "next", "reversed", "str", "repr", "format", "dir")},
    **{name: getattr(builtins, name) for name in ("isinstance", "issubclass", "getattr", "setattr", "delattr", "type")},
    **{name: getattr(operator, name) for name in ("getitem", "setitem", "delitem", "contains", "index")},
    **{name: getattr(math, name) for name in ("trunc", "floor", "ceil")},
    **{name: getattr(copy, name) for name in ("copy", "deepcopy")},
    "call": _call,
    "identity": lambda target: target,
    "enter": lambda manager: type(manager).__enter__(manager),
    "exit": _exit,
    "await": _await,
    "derive": _derive,
    "array": _array,
    "ufunc": _ufunc,
}

# What a class really is, whatever its metaclass says.
_BASES_OF: Callable[[type], tuple[type, ...]] = type.__dict__["__mro__"].__get__
_MEMBERS_OF: Callable[[type], dict[str, Any]] = type.__dict__["__dict__"].__get__
_FLAGS_OF: Callable[[type], int] = type.__dict__["__flags__"].__get__
IMMUTABLE_TYPE = 1 << 8


def _items(target: dict[Any, Any]) -> dict[Any, Any]:
    return {key: dict.__getitem__(target, key) for key in dict.__iter__(target)}


_EMPTY: dict[str, int] = {}
_VIEWS: dict[str, type] = {type(v).__name__: type(v) for v in (_EMPTY.keys(), _EMPTY.values(), _EMPTY.items())}
BASE_TYPES: dict[str, type] = {
    **CONTAINERS,  # before `dict`, from which most of them derive
    **{name: getattr(builtins, name) for name in sorted(BASES) if hasattr(builtins, name)},
    "ndarray": np.ndarray,
    **_VIEWS,
    "mappingproxy": types.MappingProxyType,
}
BASE_VALUES: dict[str, Callable[[Any], Any]] = {
    "int": lambda v: int.__add__(v, 0),
    "float": float.__float__,
    "complex": lambda v: complex.__add__(v, 0),
    "str": lambda v: str.__str__(v)[:] if type(v) is str else "".join(str.__iter__(v)),
    "bytes": lambda v: bytes(bytes.__iter__(v)),
    "tuple": lambda v: tuple(tuple.__iter__(v)),
    "list": lambda v: list(list.__iter__(v)),
    "dict": _items,
    "set": lambda v: set(set.__iter__(v)),
    "frozenset": lambda v: frozenset(frozenset.__iter__(v)),
    "range": lambda v: (v.start, v.stop, v.step),
    "ndarray": lambda v: np.ndarray.view(v, np.ndarray),
    "deque": lambda v: list(collections.deque.__iter__(v)),
    **dict.fromkeys(("OrderedDict", "Counter", "defaultdict"), _items),
    "dict_keys": set,
    "dict_values": list,
    "dict_items": set,
    "mappingproxy": dict,
}


def base_name(kind: type) -> str | None:
    """The plain base that a class derives from, such as "tuple" for a named tuple."""
    return next((name for name, base in BASE_TYPES.items() if name != "bool" and issubclass(kind, base)), None)


def base_value(target: Any) -> Any:
    """The plain value beneath an object whose class derives from a plain one, whatever its own methods say."""
    name = base_name(type(target))
    return target if name is None else BASE_VALUES[name](target)


def special_methods(kind: type) -> list[str]:
    """The special methods by which objects of a class answer operators and builtins: those found in the class and its
    bases as Python finds them, without running a line of the student's.
    """
    found: dict[str, Any] = {}
    for base in reversed(_BASES_OF(kind)):
        if base is not object:
            members = _MEMBERS_OF(base)
            found.update((name, members[name]) for name in SPECIAL_METHODS.intersection(members))
    return sorted(name for name, method in found.items() if method is not None or name == "__hash__")


def may_change(kind: type) -> bool:
    """Whether a class can be given further methods: one that is written in Python can."""
    return not _FLAGS_OF(kind) & IMMUTABLE_TYPE
