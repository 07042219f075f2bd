"""Plain values to JSON and back: numbers, text, bytes, arrays, and lists, tuples, dicts and sets of them, and what
pandas and PyTorch make of these. Both sides use this file.

What a call can change is a *part*: a list, dict, array, frame and so on, wherever in an argument it is. Both sides
number the parts in the order in which they are complete, so a reply can name one instead of sending a copy.

A JSON list is always a tagged value, `[tag, ...]`; None, booleans, floats, small integers and strings stand for
themselves. Only exact builtin types count as plain; what is not plain is handed to `other`, which turns it into a
handle (or, towards the sandbox, a pickle). Decoding checks every type, count and size before it allocates, because the
sender may be hostile.
"""

from __future__ import annotations

import datetime
import decimal
import fractions
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from .frames import exact_as_plain, exact_from_plain, is_of_library, library_as_plain, library_from_plain
from .protocol import CONTAINERS

MAX_DEPTH = 100
MAX_NODES = 1_000_000
MAX_INTEGER_BITS = 1 << 20
MAX_FRACTION_BITS = 1 << 16
MAX_SAME_HASH = 64  # in a set or dict; the time to build one grows with the square of it
DTYPE = re.compile(r"[<>|=]?(b1|[iu][1248]|f(2|4|8|16)|c(8|16|32)|S\d{1,6}|U\d{1,6}|[mM]8(\[[A-Za-z0-9]{1,8}\])?)")
NUMPY_KINDS = frozenset("biufcSUmM")
CHANGEABLE = frozenset({list, dict, set, bytearray, np.ndarray, *CONTAINERS.values()})
STANDING_FOR_THEMSELVES = frozenset({type(None), bool, float, str})
SEQUENCES: dict[type, str] = {list: "l", tuple: "t", set: "s", frozenset: "f"}
BUILDERS: dict[str, Callable[[list[Any]], Any]] = {
    "l": list,
    "t": tuple,
    "s": lambda items: set(_hashable(items)),
    "f": lambda items: frozenset(_hashable(items)),
}


class NotPlain(Exception):  # noqa: N818
    """A value, or something in it, has no plain form."""


class Malformed(Exception):  # noqa: N818
    """An encoded value breaks the format."""


class Encoder:
    """Encodes one message. `other(value)` is called for everything that is not plain; it may raise NotPlain. `parts`
    are those of what was encoded; `known` has the numbers of those that the other side has, by `id`.
    """

    def __init__(self, other: Callable[[Any], Any]):
        self.other = other
        self.buffers: list[Any] = []
        self.parts: list[Any] = []
        self.known: dict[int, int] = {}
        self.nodes = 0

    def encode(self, value: Any, depth: int = 0) -> Any:
        kind = type(value)
        if kind in STANDING_FOR_THEMSELVES:
            return value
        if kind is int:
            return value if -(2**63) <= value < 2**63 else self._long(value)
        self.nodes += 1
        if depth > MAX_DEPTH or self.nodes > MAX_NODES:
            raise NotPlain("too deep or too many parts")
        if id(value) in self.known:
            return ["w", self.known[id(value)]]
        code = self._compound(value, kind, depth)
        if is_part(kind) and self.other is not _refuse:
            self.parts.append(value)
        return code

    def _compound(self, value: Any, kind: type, depth: int) -> Any:
        if kind is list or kind is tuple:
            return [SEQUENCES[kind], self._all(value, depth + 1)]
        if kind is dict:
            return ["d", [self._key(k, depth) for k in value], [self.encode(v, depth + 1) for v in value.values()]]
        if kind is set or kind is frozenset:
            return [SEQUENCES[kind], [self._key(item, depth) for item in value]]
        if kind is np.ndarray and value.dtype.kind in NUMPY_KINDS:
            return ["a", value.dtype.str, list(value.shape), self._buffer(np.ascontiguousarray(value).tobytes())]
        if kind is np.ndarray and value.dtype.kind == "O":
            return self._objects(value)
        if isinstance(value, np.generic) and kind.__module__ == "numpy" and value.dtype.kind in NUMPY_KINDS:
            return ["n", value.dtype.str, self._buffer(value.tobytes())]
        encode = OTHER_PLAIN.get(kind)
        if encode is None:
            encode = OF_LIBRARIES.get(kind.__module__.partition(".")[0])
        return encode(self, value) if encode else self.other(value)

    def _all(self, items: Iterable[Any], depth: int) -> list[Any]:
        """Encode each. A column of texts is long, so no function is called for a text."""
        return [item if type(item) in STANDING_FOR_THEMSELVES else self.encode(item, depth) for item in items]

    def _long(self, value: int) -> Any:
        if value.bit_length() > MAX_INTEGER_BITS:
            return self.other(value)
        return ["i", hex(value)]

    def of_library(self, value: Any) -> Any:
        plain = library_as_plain(value)
        try:
            return self.other(value) if plain is None else ["P", self._key(plain, 0)]
        except NotPlain:  # raised for something in it
            return self.other(value)

    def _objects(self, value: np.ndarray) -> Any:
        """An array of plain values of several kinds, such as a row of a table."""
        try:
            return ["o", list(value.shape), self._key(value.ravel().tolist(), 0)]
        except NotPlain:  # raised for something in it
            return self.other(value)

    def exact(self, value: Any) -> Any:
        """A whole number, fraction or truth value of SymPy."""
        plain = exact_as_plain(value)
        return self.other(value) if plain is None else ["E", [self.encode(part) for part in plain]]

    def fraction(self, value: fractions.Fraction) -> Any:
        parts = value.numerator, value.denominator
        if any(part.bit_length() > MAX_FRACTION_BITS for part in parts):
            return self.other(value)
        return ["F", [self.encode(part) for part in parts]]

    def _key(self, value: Any, depth: int) -> Any:
        """Encode a member of a set or a key. It must be plain: a handle's hash would be a question to its owner."""
        other, self.other = self.other, _refuse
        try:
            return self.encode(value, depth + 1)
        finally:
            self.other = other

    def _buffer(self, data: bytes) -> int:
        self.buffers.append(data)
        return len(self.buffers) - 1


def is_part(kind: type) -> bool:
    """Whether a call may change a value of exactly this class."""
    return kind in CHANGEABLE or is_of_library(kind, "DataFrame Series Tensor Parameter")


def _refuse(value: Any) -> Any:
    raise NotPlain(type(value).__name__)


OTHER_PLAIN: dict[type, Callable[[Encoder, Any], Any]] = {
    bytes: lambda e, v: ["b", e._buffer(v)],
    bytearray: lambda e, v: ["B", e._buffer(bytes(v))],
    complex: lambda e, v: ["c", v.real, v.imag],
    type(...): lambda e, v: ["e"],
    type(NotImplemented): lambda e, v: ["N"],
    slice: lambda e, v: ["S", [e.encode(part) for part in (v.start, v.stop, v.step)]],
    fractions.Fraction: lambda e, v: e.fraction(v),
    decimal.Decimal: lambda e, v: ["D", str(v)],
    datetime.date: lambda e, v: ["date", v.isoformat()],
    datetime.datetime: lambda e, v: ["datetime", v.isoformat()] if v.tzinfo is None else e.other(v),
    datetime.timedelta: lambda e, v: ["delta", v.days, v.seconds, v.microseconds],
}


OF_LIBRARIES: dict[str, Callable[[Encoder, Any], Any]] = {
    "pandas": Encoder.of_library,
    "torch": Encoder.of_library,
    "sympy": Encoder.exact,
}


class Decoder:
    """Decodes one message. `others` maps further tags (handles, pickles) to functions of the tagged list's remaining
    items. `of_array` is what becomes of each array. `parts` are those of what was decoded, if they are wanted.
    """

    of_array: Callable[[np.ndarray], np.ndarray] = staticmethod(lambda array: array)

    def __init__(self, buffers: Sequence[Any], others: dict[str, Callable[..., Any]]):
        self.buffers = buffers
        self.others = others
        self.parts: list[Any] | None = None
        self.nodes = 0

    def decode(self, code: Any, depth: int = 0) -> Any:
        if code is None or isinstance(code, (bool, int, float, str)):
            return code
        self.nodes += 1
        if not isinstance(code, list) or not code or depth > MAX_DEPTH + 2 or self.nodes > MAX_NODES:
            raise Malformed("an encoded value is not a tagged list, or too deep or too large")
        tag, *rest = code
        value = self._tagged(tag, rest, depth)
        if self.parts is not None and tag != "h" and is_part(type(value)):
            self.parts.append(value)
        return value

    def _tagged(self, tag: Any, rest: list[Any], depth: int) -> Any:
        try:
            if tag in BUILDERS:
                return BUILDERS[tag](self._all(rest[0], depth + 1))
            if tag == "d":
                keys, values = ([self.decode(item, depth + 1) for item in _list(part)] for part in rest)
                return dict(zip(_hashable(keys), values, strict=True))
            if tag in self.others:
                return self.others[tag](*rest)
            return SIMPLE[tag](self, *rest)
        except (
            KeyError,
            IndexError,
            TypeError,
            ValueError,
            OverflowError,
            decimal.InvalidOperation,
            ZeroDivisionError,
        ) as error:
            raise Malformed(f"an encoded value is not well formed ({type(error).__name__})") from None

    def _all(self, codes: Any, depth: int) -> list[Any]:
        return [code if type(code) in STANDING_FOR_THEMSELVES else self.decode(code, depth) for code in _list(codes)]

    def whole(self, code: Any) -> Any:
        """Decode what one value was taken apart into: the parts of that are no parts of the message."""
        parts, self.parts = self.parts, None
        try:
            return self.decode(code)
        finally:
            self.parts = parts

    def buffer(self, index: Any) -> memoryview:
        if type(index) is not int or index < 0:
            raise Malformed("a buffer number is not a number")
        return memoryview(self.buffers[index])

    def array(self, dtype: Any, shape: Any, index: Any) -> np.ndarray:
        kind = _dtype(dtype)
        sizes = _list(shape)
        if len(sizes) > 32 or not all(type(size) is int and 0 <= size < 2**48 for size in sizes):
            raise Malformed("an array's shape is invalid")
        data = self.buffer(index)
        if math.prod(sizes) * kind.itemsize != len(data):
            raise Malformed("an array's shape does not fit its data")
        if not len(data):
            if max([math.prod(sizes), *sizes]) > MAX_NODES:  # with a type of no bytes there may be many numbers in it
                raise Malformed("an empty array is too large")
            return self.of_array(np.zeros(sizes, kind))
        return np.frombuffer(data, kind).reshape(sizes).copy()

    def objects(self, shape: Any, code: Any) -> np.ndarray:
        items = self.whole(code)
        sizes = _list(shape)
        if type(items) is not list or not all(type(size) is int and 0 <= size < 2**48 for size in sizes):
            raise Malformed("an array's shape is invalid")
        if len(sizes) > 32 or math.prod(sizes) != len(items) or max(sizes, default=0) > MAX_NODES:
            raise Malformed("an array's shape does not fit its data")
        array = np.empty(len(items), object)
        for number, item in enumerate(items):
            array[number] = item
        return self.of_array(array.reshape(sizes))

    def pair(self, code: Any) -> list[int]:
        numbers = [self.decode(part) for part in _list(code)]
        if len(numbers) != 2 or not all(type(n) is int and n.bit_length() <= MAX_FRACTION_BITS for n in numbers):
            raise Malformed("a fraction is not made of two integers of moderate size")
        return numbers

    def bounds(self, code: Any) -> slice:
        return slice(*(self.decode(part) for part in _list(code)[:3]))


def _hashable(items: list[Any]) -> list[Any]:
    """Members of a set, or keys. Raises Malformed if many have the same hash, which happens only on purpose."""
    if len(items) > MAX_SAME_HASH and max(Counter(map(hash, items)).values()) > MAX_SAME_HASH:
        raise Malformed("many parts of a set or dict have the same hash")
    return items


def _list(code: Any) -> list[Any]:
    if type(code) is not list:
        raise Malformed("a list was expected")
    return code


def _text(code: Any, longest: int) -> str:
    if type(code) is not str or len(code) > longest:
        raise Malformed("a string was expected")
    return code


def _integer(code: Any) -> int:
    return int(_text(code, MAX_INTEGER_BITS // 4 + 8), 16)


def _dtype(code: Any) -> np.dtype:
    if not DTYPE.fullmatch(_text(code, 24)):
        raise Malformed("an array's type is not numeric")
    return np.dtype(code)


SIMPLE: dict[str, Callable[..., Any]] = {
    "a": Decoder.array,
    "n": lambda d, dtype, index: d.array(dtype, [], index)[()],
    "i": lambda d, digits: _integer(digits),
    "b": lambda d, index: bytes(d.buffer(index)),
    "B": lambda d, index: bytearray(d.buffer(index)),
    "c": lambda d, real, imag: complex(real, imag),
    "e": lambda d: ...,
    "N": lambda d: NotImplemented,
    "S": Decoder.bounds,
    "o": Decoder.objects,
    "P": lambda d, code: library_from_plain(d.whole(code)),
    "E": lambda d, parts: exact_from_plain(*d.pair(parts)),
    "F": lambda d, parts: fractions.Fraction(*d.pair(parts)),
    "D": lambda d, text: decimal.Decimal(_text(text, 10_000)),
    "date": lambda d, text: datetime.date.fromisoformat(_text(text, 40)),
    "datetime": lambda d, text: datetime.datetime.fromisoformat(_text(text, 40)),
    "delta": lambda d, days, seconds, microseconds: datetime.timedelta(days, seconds, microseconds),
}
