"""The table of objects that the judge holds by number, and how objects, classes, modules and errors are described to
it.
"""

from __future__ import annotations

import builtins
import io
import pickle
import traceback
import types
from typing import Any

import cloudpickle
from cloudpickle import cloudpickle as cloudpickle_module

from .absent import Absent
from .operations import base_name, may_change, special_methods
from .protocol import CONTAINERS
from .values import Decoder, Encoder, NotPlain

MAX_MESSAGE = 2_000


class RebuildError(Exception):
    """Something that the judge sent cannot be rebuilt in here. `__cause__` says why."""


class Objects:
    """Objects by number. One object has one number for as long as the judge holds it, so that `is` works over there."""

    def __init__(self, namespace: dict[str, Any]):
        self.namespace = namespace
        self.by_number: dict[int, Any] = {}
        self.numbers: dict[int, int] = {}
        self.described: dict[int, list[str]] = {}  # the special methods of each class, as the judge knows them
        self.changeable: list[int] = []
        self.last = 0

    def number(self, target: Any) -> int:
        known = self.numbers.get(id(target))
        if known is not None:
            return known
        self.last += 1
        self.by_number[self.last] = target
        self.numbers[id(target)] = self.last
        return self.last

    def release(self, numbers: list[int]) -> None:
        for number in numbers:
            if number in self.by_number and number not in self.described:
                self.numbers.pop(id(self.by_number.pop(number)), None)

    # Towards the judge

    def encode(self, value: Any, encoder: Encoder, arguments: list[Any] | tuple[Any, ...] = ()) -> Any:
        """Encode a value for the judge: one of the call's own arguments by its position, plain data if it is plain,
        else a handle.
        """
        if value is not None and type(value) not in (bool, int, float, str):
            for position, argument in enumerate(arguments):
                if argument is value and id(value) not in self.numbers:
                    return ["g", position]
        before = len(encoder.buffers), encoder.nodes
        try:
            return encoder.encode(value)
        except (NotPlain, RecursionError):
            del encoder.buffers[before[0] :]
            return self.handle(value)

    def encoder(self) -> Encoder:
        return Encoder(self.handle)

    def handle(self, value: Any) -> Any:
        """The code of something that is not plain."""
        if isinstance(value, type):
            name = str(value.__name__)
            if value is getattr(builtins, name, None) or value is CONTAINERS.get(name):
                return ["x", name]
            if issubclass(value, BaseException):
                return ["X", self.number(value), self._exception_class(value)]
        if isinstance(value, types.ModuleType):
            return ["m", str(getattr(value, "__name__", "")), self._plain_handle(value)]
        return self._plain_handle(value)

    def _plain_handle(self, value: Any) -> Any:
        kind = type(value)
        kind_number = self.number(kind)
        code = ["h", self.number(value), kind_number]
        if kind_number not in self.described:
            special = self.described[kind_number] = special_methods(kind)
            if may_change(kind):
                self.changeable.append(kind_number)
            code.append({"name": kind.__name__, "special": special, "base": base_name(kind)})
        return code

    def redescribed(self) -> list[list[Any]]:
        """Classes that have gained or lost special methods since the judge was told of them, with their current ones.
        An operator may be attached at any time: in a later cell, by a decorator, by the test itself.
        """
        found = []
        for number in self.changeable:
            special = special_methods(self.by_number[number])
            if special != self.described[number]:
                self.described[number] = special
                found.append([number, special])
        return found

    def forget_descriptions(self) -> None:
        """The judge has not been told after all: describe every class again when one of its objects is sent."""
        self.described.clear()
        self.changeable.clear()

    def _exception_class(self, kind: type) -> list[Any]:
        """Name and bases of an exception class, up to the builtin ones."""
        bases = [base for base in kind.__bases__ if issubclass(base, BaseException)]
        return [kind.__name__, [self.handle(base) for base in bases]]

    def error(self, error: BaseException) -> dict[str, Any]:
        """A raised exception as data: its class, its text, and where in the student's cells it was raised."""
        try:
            message = str(error)[:MAX_MESSAGE]
        except BaseException:
            message = ""
        encoder = Encoder(_no_handles)
        try:
            arguments = encoder.encode(tuple(error.args))
        except (NotPlain, RecursionError):
            arguments, encoder.buffers = None, []
        frames = [
            frame
            for frame in traceback.extract_tb(error.__traceback__)
            if "ipykernel" in frame.filename or _is_cell(frame)
        ]
        where = [[frame.lineno, (frame.line or "")[:200], frame.name] for frame in frames[-3:]]
        described = {
            "class": self.handle(type(error)),
            "message": message,
            "instance": self.number(error),
            "where": where,
        }
        if arguments is not None and not encoder.buffers:
            described["args"] = arguments
        return described

    # From the judge

    def decoder(self, buffers: list[memoryview]) -> Decoder:
        decoder = _FromJudge(
            buffers,
            {
                "h": lambda number: self.by_number[number],
                "p": lambda index, what: self.unpickle(buffers[index], what),
                "C": lambda name, made_of: CONTAINERS[name](*[decoder.decode(item) for item in made_of]),
                "G": lambda items: iter([decoder.decode(item) for item in items]),
            },
        )
        decoder.parts = []
        return decoder

    def unpickle(self, data: Any, what: str) -> Any:
        """An object that the judge has pickled. Raises RebuildError, which says what it was and what it lacks here."""
        unpickler = _Unpickler(io.BytesIO(data))
        unpickler.objects = self
        try:
            return unpickler.load()
        except Exception as error:
            names = ", ".join(dict.fromkeys(unpickler.withheld))
            raise RebuildError(f"{what}, which names {names}," if names else what) from error


class _FromJudge(Decoder):
    """Decodes what the judge sends, which is well formed: what fails lacks something in here, such as its library."""

    def decode(self, code: Any, depth: int = 0) -> Any:
        try:
            return super().decode(code, depth)
        except Exception as error:
            if depth or isinstance(error, RebuildError):
                raise
            raise RebuildError("a value of the test") from error


class _Unpickler(pickle.Unpickler):
    """Objects that the judge sends: handles in them become the objects themselves again."""

    objects: Objects

    def __init__(self, file: io.BytesIO):
        super().__init__(file)
        self.withheld: list[str] = []

    def find_class(self, module: str, name: str) -> Any:
        found = super().find_class(module, name)
        if isinstance(found, Absent):
            self.withheld.append(f"{module}.{name}")
        return found

    def persistent_load(self, number: int) -> Any:
        return self.objects.by_number[number]


class Globals(dict):
    """The globals of a function from a test cell: what was sent with it, and beyond that the student's own names."""

    def __init__(self, sent: dict[str, Any], namespace: dict[str, Any]):
        super().__init__(sent)
        self.namespace = namespace

    def __missing__(self, name: str) -> Any:
        return self.namespace[name]


def let_functions_see(namespace: dict[str, Any]) -> None:
    """Give functions that arrive by pickle the student's names for globals that were not sent with them."""

    def make_function(code: Any, base_globals: dict[str, Any], name: str, defaults: Any, closure: Any) -> Any:
        base_globals["__builtins__"] = builtins.__dict__
        return types.FunctionType(code, Globals(base_globals, namespace), name, defaults, closure)

    assert hasattr(cloudpickle_module, "_make_function"), cloudpickle.__version__
    cloudpickle_module._make_function = make_function


def _no_handles(value: Any) -> Any:
    raise NotPlain(type(value).__name__)


def _is_cell(frame: traceback.FrameSummary) -> bool:
    return (
        frame.filename.startswith("<ipython-input")
        or "ipython-input" in frame.filename
        or frame.filename.startswith("<cell")
    )
