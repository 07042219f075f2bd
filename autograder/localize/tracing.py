"""What an expression does, step by step, as the expression itself writes it: `(a * b).tanh()` is a `*` and a `tanh`.

The reference runs the expression while stand-ins for its tensors note every operator and method. Each step keeps the
arrays that went in and the gradient that comes back to it, so that it can be tried alone, on any engine, without
looking into that engine's graph.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

import mini_autograd as ma
from autograder.runs.engines import REFERENCE, Draw
from autograder.runs.inputs import FLOAT64, Array
from autograder.runs.methods import reference_methods
from autograder.runs.programs import Program

MOST_STEPS = 60
BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul")
COMPARISONS = ("lt", "le", "gt", "ge")
UNARY = ("neg", "pos", "abs")
SYMBOLS = dict(zip(BINARY, ("+", "-", "*", "/", "//", "%", "**", "@"), strict=True))
SYMBOLS |= {"neg": "-a", "getitem": "a[...]", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


@dataclass(frozen=True)
class Value:
    """Stands in the arguments of a step for a tensor: the inputs are counted first, then the results of the steps."""

    number: int


@dataclass(frozen=True)
class Step:
    """One operator ("operator"), method ("method") or property ("attribute") that an expression uses.

    `pick`: which of several results is meant.
    """

    kind: str
    name: str
    arguments: tuple[Any, ...]
    options: tuple[tuple[str, Any], ...] = ()
    pick: int | None = None

    @property
    def symbol(self) -> str:
        """The name that a student uses for it."""
        return SYMBOLS.get(self.name, self.name)

    def operands(self) -> tuple[int, ...]:
        """The numbers of the tensors that go in, in order; one that is used twice appears twice."""
        return tuple(values_in((self.arguments, self.options)))

    def renumbered(self, number: Callable[[int], int]) -> Step:
        arguments, options = _replaced((self.arguments, self.options), lambda value: Value(number(value.number)))
        return Step(self.kind, self.name, arguments, options, self.pick)

    def sent(self) -> tuple[Any, ...]:
        """The plain form that `engine_protocol.replayed` understands."""
        arguments, options = _replaced((self.arguments, self.options), lambda value: {"value": value.number})
        return self.kind, self.name, arguments, dict(options), self.pick


@dataclass(frozen=True)
class Trace:
    """The steps of an expression on one draw. `arrays` and `cotangents` belong to the inputs and then to the results of
    the steps; a cotangent is None if no gradient arrives."""

    inputs: int
    steps: tuple[Step, ...]
    arrays: tuple[Array, ...]
    cotangents: tuple[Array | None, ...]
    dtype: str = FLOAT64

    def draw(self, arrays: Sequence[Array], cotangent: Array) -> Draw:
        """A draw in the dtype of the check, for a part that gets these arrays."""
        return Draw.in_dtype(self.dtype, arrays, cotangent)

    def is_like(self, other: Trace) -> bool:
        """Whether the steps, and the shapes of all arrays, are the same."""
        shapes = [[array.shape for array in entry.arrays] for entry in (self, other)]
        return shapes[0] == shapes[1] and _equal(*([astuple(step) for step in entry.steps] for entry in (self, other)))


def _equal(one: Any, other: Any) -> bool:
    """Whether arguments are equal: an expression may make an array, such as an index, anew each time."""
    if isinstance(one, list | tuple) and type(one) is type(other):
        return len(one) == len(other) and all(map(_equal, one, other))
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(one, other)
    return bool(one == other)


class Untraceable(Exception):  # noqa: N818
    """The expression does something that cannot be recorded."""


def traces_of(program: Program, draws: Sequence[Draw], most: int) -> list[Trace]:
    """The traces of the first draw and of others on which the expression takes the same steps, at most `most` in all.
    They end before a draw that cannot be traced, so there are none if that is the first.
    """
    found: list[Trace] = []
    with reference_methods(), np.errstate(all="ignore"):
        for draw in draws:
            entry = _trace(program, draw)
            if entry is None:
                break
            if not found or entry.is_like(found[0]):
                found.append(entry)
            if len(found) == most:
                break
    return found


def _trace(program: Program, draw: Draw) -> Trace | None:
    leaves = REFERENCE.leaves(draw)
    recorder = Recorder(leaves)
    try:
        output = program.function(*(Traced(recorder, number) for number in range(len(leaves))))
        if not isinstance(output, Traced) or output.number < len(leaves):
            return None
        for tensor in recorder.values:
            if tensor.requires_grad and not tensor.is_leaf:
                tensor.retain_grad()
        REFERENCE.start_draw(recorder.values[output.number], draw)
    except Exception:
        return None
    return Trace(
        len(leaves),
        tuple(recorder.steps),
        tuple(np.asarray(tensor.data, dtype=np.float64) for tensor in recorder.values),
        tuple(None if tensor.grad is None else np.asarray(tensor.grad.data) for tensor in recorder.values),
        draw.dtype,
    )


class Recorder:
    """The tensors of the reference and the steps that made them."""

    def __init__(self, leaves: Sequence[ma.Tensor]) -> None:
        self.values: list[ma.Tensor] = list(leaves)
        self.steps: list[Step] = []

    def record(self, kind: str, name: str, arguments: tuple[Any, ...], options: dict[str, Any], result: Any) -> Any:
        """Record a step and return a stand-in for its result. A result that is not a tensor is returned as it is."""
        arguments = _replaced(arguments, Value)
        if isinstance(result, tuple) and any(isinstance(entry, ma.Tensor) for entry in result):
            steps = [(entry, number) for number, entry in enumerate(result)]
            return tuple(self._noted(kind, name, arguments, options, entry, number) for entry, number in steps)
        return self._noted(kind, name, arguments, options, result, None)

    def _noted(self, kind: str, name: str, arguments: Any, options: Any, result: Any, pick: int | None) -> Any:
        if not isinstance(result, ma.Tensor):
            return result
        if len(self.steps) >= MOST_STEPS or name.endswith("_"):
            raise Untraceable(name)
        self.steps.append(Step(kind, name, arguments, tuple(_replaced(options, Value).items()), pick))
        self.values.append(result)
        return Traced(self, len(self.values) - 1)

    def plain(self, tree: Any) -> Any:
        """The tree with the reference's tensors in place of their stand-ins."""
        return _replaced(tree, lambda value: self.values[value.number])


class Traced:
    """Stands for a tensor of the reference while an expression runs."""

    __slots__ = ("number", "recorder")

    def __init__(self, recorder: Recorder, number: int) -> None:
        self.recorder, self.number = recorder, number

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.recorder.values[self.number], name)
        if not callable(found) or isinstance(found, ma.Tensor):
            return self.recorder.record("attribute", name, (self,), {}, found)

        def method(*arguments: Any, **options: Any) -> Any:
            plain = self.recorder.plain
            result = found(*plain(arguments), **plain(options))
            return self.recorder.record("method", name, (self, *arguments), options, result)

        return method

    def __len__(self) -> int:
        return len(self.recorder.values[self.number])

    def __iter__(self) -> Iterator[Any]:
        return (self[number] for number in range(len(self)))  # type: ignore[index]


def _operator(name: str, reflected: bool = False) -> Callable[..., Any]:
    def method(self: Traced, *others: Any) -> Any:
        arguments = (*others, self) if reflected else (self, *others)
        result = getattr(operator, name)(*self.recorder.plain(arguments))
        return self.recorder.record("operator", name, arguments, {}, result)

    return method


for _name in (*BINARY, *COMPARISONS, *UNARY, "getitem"):
    setattr(Traced, f"__{_name}__", _operator(_name))
for _name in BINARY:
    setattr(Traced, f"__r{_name}__", _operator(_name, reflected=True))


def _replaced(tree: Any, change: Callable[[Any], Any]) -> Any:
    """The tree with every stand-in changed. `change` gets a Value, or makes one (then it is Value itself)."""
    if isinstance(tree, Traced):
        return change(tree.number) if change is Value else change(Value(tree.number))
    if isinstance(tree, Value):
        return change(tree)
    if isinstance(tree, dict):
        return {key: _replaced(entry, change) for key, entry in tree.items()}
    if isinstance(tree, list | tuple):
        return type(tree)([_replaced(entry, change) for entry in tree])
    return tree


def values_in(tree: Any) -> Iterable[int]:
    """The numbers of the tensors in a tree of arguments."""
    if isinstance(tree, Value):
        yield tree.number
    elif isinstance(tree, list | tuple):
        for entry in tree:
            yield from values_in(entry)
