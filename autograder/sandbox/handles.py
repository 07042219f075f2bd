"""Handles: how the judge's test code holds objects of the submission. They forward operators, attributes, calls and
iteration.

Each class of the submission gets its own handle class with exactly the special methods that it has, so `callable`,
`len`, `with` and error messages behave as with the real object. The submission must not answer a comparison with an
expected value by itself, so operations with the test's own values follow these rules:

* An object that the test made by calling a class of the submission (`Money(3)`), or that arithmetic made of one, is
  *declared*: the test asks for the class's own behavior. Everything is forwarded except comparisons with plain values
  and arithmetic with plain results, which are refused. (An attribute may return the object itself, and a function may
  return it instead of a number.)
* An object whose class derives from a plain one (a named tuple, a `Counter`) is compared and calculated with by its
  plain value.
* Any other object, for example one returned instead of a number, never equals a plain value and cannot be ordered
  against one. It contains a plain value only if iterating finds an equal item. A difference from a value of the test,
  or a quotient, is refused before the value is sent: it may be the expected one, from which the object would learn what
  to answer. (If the test has called the object's class, it does not expect a number. Then the difference is calculated,
  but the object itself is *tainted*, as is the result of any arithmetic with one and a value of the test.) What is
  tainted cannot be converted to a plain value, iterated, indexed or passed to NumPy. Its attributes and methods work,
  because tests of objects use them.

If the instructor's own solution needs more than that, the test is judged inside.
"""

from __future__ import annotations

import collections
import operator
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from autograder.sandbox.inside.protocol import BINARY, COMPARISONS, CONTAINERS, SPECIAL_METHODS, UNARY, words
from autograder.sandbox.port import Port
from autograder.sandbox.process.limits import Refused

LOCAL = frozenset(
    {
        "__class__",
        "__run_remotely__",
        "__copy__",
        "__deepcopy__",
        "__array_ufunc__",
        "__array__",
        "__await__",
        "__setattr__",
        "__mro_entries__",
    }
)
FORWARDED_DUNDERS = SPECIAL_METHODS | words("""
    __name__ __qualname__ __doc__ __dict__ __module__ __annotations__ __init__ __new__ __mro__ __bases__ __base__
    __subclasses__ __defaults__ __kwdefaults__ __wrapped__ __self__ __func__ __slots__ __all__ __version__ __str__
    __repr__ __format__ __len__ __eq__ __ne__ __hash__ __match_args__ __dataclass_fields__ __dataclass_params__
    __post_init__ __members__ __cause__ __context__ __notes__ __abstractmethods__ __isabstractmethod__ __signature__
    __code__ __closure__ __contains__
""")
COMPARING = words("sub truediv floordiv mod divmod xor isub itruediv ifloordiv imod ixor")
BUILTINS = (int, float, complex, str, bytes, tuple, list, dict, set, frozenset)
BUILTIN_BASES: dict[str, type] = {**{kind.__name__: kind for kind in BUILTINS}, **CONTAINERS}
# Nothing derives from these.
FINAL: dict[str, type] = {"range": range, "function": types.FunctionType, "generator": types.GeneratorType}
ORDERED: dict[str, Callable[[Any], Any]] = {
    "deque": collections.deque,
    "OrderedDict": collections.OrderedDict,
    "Counter": collections.Counter,
    "dict_values": list,
    "range": lambda parts: range(*parts),
    "dict_keys": set,
    "dict_items": set,
}


@dataclass(eq=False)
class Reference:
    """What a handle refers to: an object of a sandbox, by number. `declared` and `tainted`: see above."""

    sandbox: Port
    number: int
    generation: int
    base: str | None
    declared: bool = False
    tainted: bool = False
    constructor: bool = False

    def __post_init__(self) -> None:
        self.sandbox.hold(self)

    def __del__(self) -> None:
        self.sandbox.release(self)

    def ask(self, operation: str, *args: Any, **kwargs: Any) -> Any:
        return self.sandbox.apply(operation, args, kwargs)

    def handle(self) -> Any:
        return self.sandbox.handle_of(self)

    def plain(self) -> Any:
        """The plain value beneath, for a class with a plain base."""
        value = self.sandbox.base_value(self)
        if is_handle(value):
            raise Refused(f"{describe(value)} is too large or nested too deeply for a test, or holds other objects")
        convert = ORDERED.get(self.base or "")
        return convert(value) if convert else value


class Handle:
    """An object in the sandbox. Subclasses, one per class of the submission, add the forwarded special methods."""

    __slots__ = ("__weakref__", "_autograder_reference")
    _called = False  # whether a test has made an object of this class by calling it

    def __getattribute__(self, name: str) -> Any:
        if name in LOCAL:
            return object.__getattribute__(self, name)
        if name.startswith("__") and name.endswith("__") and name not in FORWARDED_DUNDERS:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        value = reference(self).ask("getattr", self, name)
        if is_handle(value) and reference(self).constructor:
            mark_constructor(value)  # Money.from_text(...) makes a Money as well
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        reference(self).ask("setattr", self, name, value)

    def __delattr__(self, name: str) -> None:
        reference(self).ask("delattr", self, name)

    def __dir__(self) -> list[str]:
        return [name for name in reference(self).ask("dir", self) if isinstance(name, str)]

    def __str__(self) -> str:
        return _exactly(str, reference(_untainted(self, "str()")).ask("str", self))

    def __repr__(self) -> str:
        return _exactly(str, reference(_untainted(self, "repr()")).ask("repr", self))

    def __format__(self, spec: str) -> str:
        return _exactly(str, reference(_untainted(self, "format()")).ask("format", self, spec))

    def __eq__(self, other: object) -> Any:
        return _compare("eq", self, other)

    def __ne__(self, other: object) -> Any:
        return _compare("ne", self, other)

    def __hash__(self) -> int:
        return hash(("handle", reference(self).number))

    def __copy__(self) -> Any:
        return reference(self).ask("copy", self)

    def __deepcopy__(self, memo: Any) -> Any:
        return reference(self).ask("deepcopy", self)

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        """The base that a class statement in a test uses instead of this object."""
        return () if any(is_handle(base) for base in bases[: bases.index(self)]) else (DERIVED,)

    def __run_remotely__(self, function: Callable[..., Any], *args: Any) -> Any:
        """Run a trusted function in the sandbox with this object as its first argument. See `autograder.checks`."""
        return reference(self).sandbox.run(function, self, *args)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """NumPy meets handles: forward operators, compare by the rules, and run other functions in the sandbox."""
        name = ufunc.__name__
        if method == "__call__" and not kwargs and len(inputs) == 2:
            if name in COMPARED_UFUNCS:
                left, right = inputs
                if is_handle(left):
                    return _compare(COMPARED_UFUNCS[name], left, right)
                return _compare(MIRRORED[COMPARED_UFUNCS[name]], right, left)
            if name in OPERATOR_UFUNCS:
                return _calculate(OPERATOR_UFUNCS[name], *inputs)
        values = [input_ for input_ in inputs if not is_handle(input_)]
        if values and not all(reference(h).declared for h in inputs if is_handle(h)):
            raise Refused(
                f"numpy.{name} was given {describe(next(h for h in inputs if is_handle(h)))} instead of numbers"
            )
        for handle in filter(is_handle, inputs):
            _untainted(handle, f"numpy.{name}")
        return reference(self).ask("ufunc", name, method, *inputs, **kwargs)


class _Derived(type):
    """Makes a class that a test derives from a class of the submission: in the sandbox, where the base is."""

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **keywords: Any) -> Any:
        originals = namespace.pop("__orig_bases__", None)
        if originals is None:
            return super().__new__(cls, name, bases, namespace)
        namespace.pop("__classcell__", None)
        sandbox = reference(next(base for base in originals if is_handle(base))).sandbox
        made = sandbox.apply("derive", (name, originals, types.SimpleNamespace(**namespace), keywords))
        if is_handle(made):
            mark_constructor(made)
        return made


DERIVED = _Derived("Derived", (), {})
_SLOT: Any = Handle.__dict__["_autograder_reference"]


def reference(handle: Any) -> Reference:
    """The reference of a handle. It is no attribute: the attributes of a handle are those of the student's object."""
    return _SLOT.__get__(handle)


def is_handle(value: object) -> bool:
    return issubclass(type(value), Handle)


def mark_constructor(handle: Handle) -> None:
    """From now on, objects that a test makes by calling this object are declared."""
    reference(handle).constructor = True


def declare(handle: Handle) -> None:
    """Note that the test made this object by calling its class."""
    reference(handle).declared = True
    type(handle)._called = True


def make_handle(kind: type[Handle], ref: Reference) -> Handle:
    handle = object.__new__(kind)
    _SLOT.__set__(handle, ref)
    return handle


def make_handle_class(name: str, special: list[str], base: str | None) -> type[Handle]:
    """The handle class for one class of the submission, with the special methods that it has.

    If the class derives from a builtin one, `__class__` makes `isinstance(handle, tuple)` true. The same holds for
    functions, so `inspect.signature` finds their parameters, for generators and ranges.
    """
    methods = _forwarded(special)
    if base in BUILTIN_BASES:
        apparent = type(name, (BUILTIN_BASES[base],), {"__module__": "submission"})
        methods["__class__"] = property(lambda self: apparent)
    elif final := FINAL.get(base or name):
        methods["__class__"] = property(lambda self: final)
    return type(name, (Handle,), {"__slots__": (), "__module__": "submission", **methods})


def change_handle_class(kind: type[Handle], special: list[str]) -> None:
    """Give a handle class, and all its handles, the special methods that the submission's class has now."""
    methods = _forwarded(special)
    for name in FORWARDS.keys() & vars(kind).keys() - methods.keys():
        delattr(kind, name)
    for name, method in methods.items():
        setattr(kind, name, method)


def _forwarded(special: list[str]) -> dict[str, Any]:
    methods: dict[str, Any] = {method: FORWARDS[method] for method in special if method in FORWARDS}
    if "__len__" in methods and "__bool__" not in methods:
        methods["__bool__"] = FORWARDS["__bool__"]
    if "__len__" in methods and "__getitem__" in methods and "__iter__" not in methods:
        methods["__iter__"] = FORWARDS["__iter__"]  # a loop gets its items by number; count them too
    return methods


# Rules for operations with values of the test's own


def describe(handle: Any) -> str:
    """How to call the object of a handle in a message."""
    return f"an object of the submission's class {type(handle).__name__}"


def _untainted(handle: Handle, what: str) -> Handle:
    if reference(handle).tainted and not reference(handle).declared:
        raise Refused(f"{what} of {describe(handle)} was asked for where a plain number was expected")
    return handle


def _exactly(kind: type, value: Any) -> Any:
    if type(value) is not kind:
        raise TypeError(f"the submission returned a {type(value).__name__} where a {kind.__name__} was expected")
    return value


def _compare(name: str, handle: Handle, other: object) -> Any:
    """`==`, `!=`, `<`, ... between a handle and anything."""
    ref = reference(handle)
    if is_handle(other) or ref.sandbox.is_exception_proxy(other):
        return ref.ask(name, handle, other)
    if ref.base is not None:
        return getattr(operator, name)(ref.plain(), other)
    if name in ("eq", "ne") and (other is None or not ref.declared):
        if other is not None:
            ref.sandbox.note(f"{describe(handle)} was compared with a plain value and counts as different from it")
        return name == "ne"
    raise Refused(f"{describe(handle)} was compared with a plain value; a plain number was expected")


def _calculate(name: str, left: Any, right: Any) -> Any:
    """A binary operator with a handle on at least one side."""
    handles = [reference(side) for side in (left, right) if is_handle(side)]
    declared = any(ref.declared for ref in handles)
    ref = handles[0]
    if len(handles) == 1 and ref.base is not None and not declared:
        plain = ref.plain()
        left, right = (plain, right) if is_handle(left) else (left, plain)
        return divmod(left, right) if name == "divmod" else getattr(operator, _operator_name(name))(left, right)
    if name in COMPARING and len(handles) == 1 and not declared:
        handle = left if is_handle(left) else right
        if not type(handle)._called:
            raise Refused(f"{describe(handle)} was used in a difference or quotient as if it were a number")
        ref.tainted = True
    result = ref.ask(name, left, right)
    if is_handle(result):
        made = reference(result)
        made.declared = made.declared or declared
        made.tainted = made.tainted or len(handles) == 1 or any(ref.tainted for ref in handles)
    elif result is not NotImplemented and (len(handles) == 1 or (not declared and any(r.tainted for r in handles))):
        raise Refused(f"{describe(left if is_handle(left) else right)} was used in arithmetic as if it were a number")
    return result


def _operator_name(name: str) -> str:
    return f"{name}_" if name in ("and", "or") else name


# The special methods


def _binary(name: str) -> Callable[..., Any]:
    def method(self: Handle, other: Any) -> Any:
        return _calculate(name, self, other)

    return method


def _reflected(name: str) -> Callable[..., Any]:
    def method(self: Handle, other: Any) -> Any:
        return _calculate(name, other, self)

    return method


def _comparison(name: str) -> Callable[..., Any]:
    def method(self: Handle, other: Any) -> Any:
        return _compare(name, self, other)

    return method


def _convert(name: str, kind: type | None = None) -> Callable[..., Any]:
    """A builtin such as `abs` or `float`. Its result must be of type `kind`, if given."""

    def method(self: Handle, *args: Any) -> Any:
        result = reference(_untainted(self, f"{name}()")).ask(name, self, *args)
        if is_handle(result):
            _inherit(result, self)
        return result if kind is None else _exactly(kind, result)

    return method


def _inherit(result: Handle, origin: Handle) -> None:
    """Apply an object's rules to the result of a builtin or unary operator."""
    made, ref = reference(result), reference(origin)
    made.declared = made.declared or ref.declared
    made.tainted = made.tainted or ref.tainted


def _sign(name: str) -> Callable[..., Any]:
    """A unary operator. It is allowed on a tainted object if it returns an object again."""

    def method(self: Handle) -> Any:
        ref = reference(self)
        result = ref.ask(name, self)
        if is_handle(result):
            _inherit(result, self)
        elif not ref.declared:
            _untainted(self, f"{name}()")
        return result

    return method


def _forward(name: str) -> Callable[..., Any]:
    def method(self: Handle, *args: Any) -> Any:
        return reference(_untainted(self, name)).ask(name, self, *args)

    return method


def _call(self: Handle, *args: Any, **kwargs: Any) -> Any:
    return reference(self).sandbox.call(self, args, kwargs)


def _next(self: Handle) -> Any:
    return reference(_untainted(self, "an item")).ask("next", self)


def _length(self: Handle) -> int:
    length = _exactly(int, reference(_untainted(self, "len()")).ask("len", self))
    return int(length)


def _contains(self: Handle, item: Any) -> bool:
    ref = reference(self)
    if is_handle(item) or ref.declared:
        return _exactly(bool, ref.ask("contains", self, item))
    if ref.base is not None and ref.base != "ndarray":
        return item in ref.plain()
    if type(self).__dict__.get("__iter__") is None:
        raise Refused(f"{describe(self)} was asked whether it contains a plain value, but it cannot be iterated")
    return any(found is item or found == item for found in iter(self))


def _iterate(self: Handle) -> Iterator[Any]:
    result = reference(_untainted(self, "an item")).ask("iter", self)
    found = iter(result) if isinstance(result, (list, tuple)) else result
    return _as_many_as_said(self, found) if "__len__" in vars(type(self)) else found


def _as_many_as_said(handle: Handle, found: Iterator[Any]) -> Iterator[Any]:
    """Yield an object's items and compare their number with its length. An object with length 3 and no items would end
    a test's loop before anything is compared.
    """
    own = found is handle  # an iterator, whose length may be how many items are left
    said = len(handle) if own else 0  # type: ignore[arg-type]
    number = 0
    while True:  # no `for`: it would ask an object that is its own iterator for an iterator again, without end
        try:
            item = next(found)
        except StopIteration:
            break
        yield item
        number += 1
    said = said if own else len(handle)  # type: ignore[arg-type]
    if said != number:
        raise Refused(f"{describe(handle)} says that it has {said} items, but gives {number}")


def _exit(self: Handle, kind: Any, error: Any, traceback: Any) -> Any:
    return reference(self).ask("exit", self, kind, error)


def _await(self: Handle) -> Iterator[Any]:
    return reference(self).ask("await", self)
    yield


def _array(self: Handle, dtype: Any = None, copy: Any = None) -> np.ndarray:
    ref = reference(_untainted(self, "numpy.asarray()"))
    result = (
        ref.plain() if ref.base == "ndarray" else ref.ask("array", self, None if dtype is None else np.dtype(dtype).str)
    )
    return np.asarray(result if isinstance(result, np.ndarray) else _exactly(np.ndarray, result), dtype=dtype)


FORWARDS: dict[str, Callable[..., Any] | None] = {
    **{f"__{name}__": _binary(name) for name in BINARY},
    **{f"__r{name}__": _reflected(name) for name in BINARY},
    **{f"__i{name}__": _binary(f"i{name}") for name in BINARY if name != "divmod"},
    **{f"__{name}__": _comparison(name) for name in COMPARISONS},
    **{f"__{name}__": _sign(name) for name in UNARY},
    **{f"__{name}__": _convert(name) for name in ("round", "trunc", "floor", "ceil")},
    **{
        f"__{name}__": _convert(name, kind)
        for name, kind in {"float": float, "int": int, "complex": complex, "bool": bool}.items()
    },
    "__index__": _convert("index", int),
    "__hash__": _convert("hash", int),
    "__len__": _length,
    "__getitem__": _forward("getitem"),
    "__setitem__": _forward("setitem"),
    "__delitem__": _forward("delitem"),
    "__contains__": _contains,
    "__iter__": _iterate,
    "__next__": _next,
    "__reversed__": _forward("reversed"),
    "__call__": _call,
    "__enter__": _forward("enter"),
    "__exit__": _exit,
    "__await__": _await,
    "__array__": _array,
    "__instancecheck__": lambda self, instance: _check("isinstance", self, instance),
    "__subclasscheck__": lambda self, subclass: _check("issubclass", self, subclass),
}


def _check(name: str, class_: Handle, value: Any) -> bool:
    """isinstance and issubclass with a class of the submission. No value of the test's own is an instance of it."""
    if not is_handle(value) and not reference(class_).sandbox.is_exception_proxy(value):
        return False
    return _exactly(bool, reference(class_).ask(name, value, class_))


MIRRORED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}
COMPARED_UFUNCS = {
    "equal": "eq",
    "not_equal": "ne",
    "less": "lt",
    "less_equal": "le",
    "greater": "gt",
    "greater_equal": "ge",
}
OPERATOR_UFUNCS = {"add": "add", "subtract": "sub", "multiply": "mul", "divide": "truediv", "floor_divide": "floordiv"}
OPERATOR_UFUNCS |= {"remainder": "mod", "power": "pow", "matmul": "matmul", "divmod": "divmod", "bitwise_and": "and"}
OPERATOR_UFUNCS |= {"bitwise_or": "or", "bitwise_xor": "xor", "left_shift": "lshift", "right_shift": "rshift"}

CLASSES_LIMIT = 2_000
