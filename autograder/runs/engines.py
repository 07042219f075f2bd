"""The engines that an expression runs on: the student's, which may live in a sandbox, and the two trusted ones.

A student's engine runs by `engine_protocol.run_programs`, which believes nothing; the trusted ones by `run_trusted`,
which needs no such care. PyTorch is imported when first needed, and only here.
"""

from __future__ import annotations

import gc
import sys
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from typing import Any

import numpy as np

import mini_autograd as ma
from autograder.runs.context import current
from autograder.runs.errors import Interrupted, LessonError, TookTooMuch
from autograder.runs.inputs import FLOAT64, Array, rounded
from autograder.runs.methods import reference_methods, torch_tensor, uses_methods
from autograder.runs.plain_values import described
from autograder.runs.programs import Program
from mini_autograd.graph.edges import NO_EDGE
from mini_autograd.graph.function import tensor_of


@dataclass(frozen=True)
class Draw:
    """One run of a program: its inputs, its cotangent (None: `backward()` without argument), and the cotangent of a
    second backward call over the same leaves, if there is one. `dtype`: of the arrays for a student's engine; the
    trusted engines always calculate in float64."""

    inputs: tuple[Array, ...]
    cotangent: Array | None
    again: Array | None = None
    dtype: str = FLOAT64

    @classmethod
    def in_dtype(cls, dtype: str, inputs: Iterable[Array], cotangent: Array | None, again: Array | None = None) -> Draw:
        """A draw with numbers that the dtype can hold."""
        cotangents = [None if array is None else rounded(array, dtype) for array in (cotangent, again)]
        return cls(tuple(rounded(array, dtype) for array in inputs), cotangents[0], cotangents[1], dtype)

    @cached_property
    def epsilon(self) -> float:
        """The relative distance of neighboring numbers of the dtype."""
        return float(np.finfo(self.dtype).eps)

    def sent(self) -> dict[str, Any]:
        return {"inputs": list(self.inputs), "cotangent": self.cotangent, "again": self.again, "dtype": self.dtype}

    def key(self) -> tuple[Any, ...]:
        """A hashable key that only equal draws share."""
        arrays = (*self.inputs, self.cotangent, self.again)
        return (self.dtype, *(None if array is None else (array.shape, array.tobytes()) for array in arrays))

    def seed(self, shape: tuple[int, ...]) -> Array:
        """The cotangent, or ones if it is left out."""
        return np.ones(shape) if self.cotangent is None else self.cotangent


Gradients = tuple[Array | None, ...]
"""The gradient of each input; None if the engine left it so."""


@dataclass(frozen=True)
class Run:
    """The results of an engine on a draw. `again` holds the gradients after the second backward call, `changed` the
    inputs whose data is no longer what it was, by number, `narrowed` whether a gradient has fewer digits than its
    input."""

    value: Array
    gradients: Gradients
    again: Gradients | None = None
    changed: tuple[tuple[int, Array], ...] = ()
    narrowed: bool = False

    @cached_property
    def dense(self) -> tuple[Array, ...]:
        """The gradients, first and accumulated, with 0 for None."""
        everything = self.gradients + (self.again or ())
        return tuple(np.zeros(()) if gradient is None else gradient for gradient in everything)


def run_where_it_lives(target: Any, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call `function(target, *arguments)` in the process where the target lives: here, or behind a handle."""
    if hasattr(type(target), "__run_remotely__"):
        return target.__run_remotely__(function, *arguments)
    try:
        with np.errstate(all="ignore"):  # a card shows what came out, and warnings would stand above it
            return function(target, *arguments)
    except KeyboardInterrupt as interrupt:
        if current().graded or isinstance(interrupt, TookTooMuch):  # the instructor has stopped the whole run
            raise
        line = described(interrupt)["line"].strip()
        where = f", in the line `{line}`" if line else ""
        raise Interrupted(f"stopped while the check ran your code{where}. Is there a loop that never ends?") from None


class TrustedEngine(ABC):
    """What both trusted engines do with a draw."""

    name: str

    @abstractmethod
    def __call__(self, data: Array, requires_grad: bool = False) -> Any:
        """A tensor in float64."""

    @abstractmethod
    def start_backward(self, output: Any, gradient: Array) -> None:
        """Call `backward` with a cotangent."""

    @abstractmethod
    def numbers(self, tensor: Any) -> Array:
        """A copy of the numbers of a tensor."""

    def leaves(self, draw: Draw) -> list[Any]:
        """The inputs of a draw as leaves of a graph."""
        return [self(array, requires_grad=True) for array in draw.inputs]

    def start_draw(self, output: Any, draw: Draw) -> None:
        """The first backward call of a draw."""
        self.start_backward(output, draw.seed(tuple(output.shape)))

    def first(self, function: Callable[..., Any], leaves: Sequence[Any], draw: Draw) -> tuple[Array, Gradients]:
        """The value, and the gradients after the first backward call."""
        output = function(*leaves)
        if not hasattr(output, "backward"):
            raise TypeError(f"the result is not a tensor but a {type(output).__name__}")
        value = self.numbers(output)
        self.start_draw(output, draw)
        return value, self._gradients(leaves)

    def second(self, function: Callable[..., Any], leaves: Sequence[Any], draw: Draw) -> Gradients | None:
        """The gradients after the second backward call, over the same leaves; None if the draw has none."""
        if draw.again is None:
            return None
        self.start_backward(function(*leaves), draw.again)
        return self._gradients(leaves)

    def _gradients(self, leaves: Sequence[Any]) -> Gradients:
        return tuple(None if leaf.grad is None else self.numbers(leaf.grad) for leaf in leaves)


class ReferenceEngine(TrustedEngine):
    """mini_autograd in float64."""

    name = "the reference"
    no_grad = ma.no_grad

    def __call__(self, data: Array, requires_grad: bool = False) -> ma.Tensor:
        """What `ma.tensor` makes of an array, without its questions about anything else: a check makes thousands."""
        return tensor_of(np.array(data, dtype=np.float64)[()], None if requires_grad else NO_EDGE)

    def start_backward(self, output: ma.Tensor, gradient: Array) -> None:
        output.backward(self(gradient))

    def numbers(self, tensor: ma.Tensor) -> Array:
        return np.array(tensor.array)


class TorchEngine(TrustedEngine):
    """PyTorch on the CPU in float64."""

    name = "PyTorch"

    def __init__(self, kind: Any = None) -> None:
        self.kind = kind  # the subclass of its tensor to use

    @property
    def no_grad(self) -> Any:
        import torch

        return torch.no_grad

    def __call__(self, data: Array, requires_grad: bool = False) -> Any:
        import torch

        tensor = torch.tensor(data, dtype=torch.float64, requires_grad=requires_grad)
        return tensor if self.kind is None else tensor.detach().as_subclass(self.kind).requires_grad_(requires_grad)

    def start_backward(self, output: Any, gradient: Array) -> None:
        """The same as `output.backward(gradient)`, which would import sympy first (0.4 s)."""
        (output * self(gradient)).sum().backward()

    def numbers(self, tensor: Any) -> Array:
        return np.array(tensor.detach().numpy())


REFERENCE = ReferenceEngine()
TORCH = TorchEngine()


def has_torch() -> bool:
    """Whether checks compare with PyTorch. Some machines have no build of it: there, a student's checks do without it,
    and their cards name what the results were compared with. Grading always uses it.
    """
    if (torch := sys.modules.get("torch")) is not None:
        return torch.__name__ == "torch"  # and not what stands in for it in a notebook
    return current().graded or find_spec("torch") is not None


def prepare_torch_in_background() -> None:
    """Import PyTorch and differentiate something with it, so that the first check need not wait for that.

    For kernels only: a process that forks must have no thread in the middle of an import. Garbage collection is off
    until it is done: in Python 3.11, it makes two threads that parse clash (SystemError).
    """

    def prepare() -> None:
        try:
            TORCH(np.ones(()), requires_grad=True).tanh().backward()
        finally:
            if collects:
                gc.enable()

    if has_torch():
        collects = gc.isenabled()
        gc.disable()
        threading.Thread(target=prepare, name="prepare PyTorch").start()


def run_trusted(engine: ReferenceEngine | TorchEngine, program: Program, draws: Sequence[Draw]) -> list[Run]:
    """Run a program on a trusted engine. Raises LessonError when it fails there."""
    with reference_methods(), warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if engine is TORCH and uses_methods(program.function):
            engine = TorchEngine(torch_tensor())
        try:
            return [_run(engine, program.function, draw) for draw in draws]
        except Exception as error:
            raise _does_not_run(engine, error) from error


def _run(engine: TrustedEngine, function: Callable[..., Any], draw: Draw) -> Run:
    leaves = engine.leaves(draw)
    value, gradients = engine.first(function, leaves, draw)
    return Run(np.asarray(value, dtype=np.float64), gradients, engine.second(function, leaves, draw))


def _does_not_run(engine: TrustedEngine, error: Exception) -> LessonError:
    return LessonError(f"the expression does not run on {engine.name}: {type(error).__name__}: {error!s:.400}")


@contextmanager
def values_alone() -> Iterator[None]:
    """A context in which the reference records nothing, for `forward`."""
    with reference_methods(), ma.no_grad(), np.errstate(all="ignore"):
        yield


def forward(program: Program, inputs: Sequence[Array]) -> Array:
    """The value of a program, computed by the reference, within `values_alone`."""
    try:
        output = program.function(*(REFERENCE(array) for array in inputs))
        return np.asarray(output.array, dtype=np.float64)
    except Exception as error:
        raise _does_not_run(REFERENCE, error) from error
