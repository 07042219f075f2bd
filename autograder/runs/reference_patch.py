"""Changing the reference engine for a while: patch functions, run something, put them back.

The changes are global to the process, so everything that runs the reference for a check holds LOCK; two threads that
check at the same time take turns.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import mini_autograd.graph.backward as engine
from mini_autograd import operations
from mini_autograd.graph.function import Function, tensor_of
from mini_autograd.numerics import arrays
from mini_autograd.tensors.tensor import Tensor

LOCK = threading.RLock()
INHERITED = object()

Rule = Callable[..., Any]
"""The backward rule of an operation: `rule(ctx, grad)` gives the gradients of the inputs."""

WrongRule = Callable[..., Any]
"""A wrong rule `wrong(right, call, grad)`: `right(grad)` is what the right rule gives, `call` a `Call`."""


@dataclass(frozen=True)
class Call:
    """One call of an operation: its inputs, as arrays, its options, such as an exponent, and its output."""

    inputs: tuple[Any, ...]
    options: dict[str, Any]
    output: Any


OPERATIONS: dict[str, type[Function]] = {operation.__qualname__: operation for operation in operations.ALL}

HEIRS = {
    operation: tuple(heir for heir in OPERATIONS.values() if issubclass(heir, operation) and heir is not operation)
    for operation in OPERATIONS.values()
}


def symbol(operation: str) -> str:
    """The name of an operation for students: `*` for Multiply, `tanh` for Tanh, `log_softmax` for LogSoftmax."""
    sign = vars(OPERATIONS.get(operation, Function)).get("sign")  # not an inherited one: Gather is an Index
    return sign or re.sub("(?<=[a-z])(?=[A-Z])", "_", operation).lower()


def patched(owner: Any, replacements: Mapping[str, Any]) -> AbstractContextManager[None]:
    """Set attributes of a module or class, and restore them at the end whatever happens."""
    return all_patched([(owner, replacements)])


@contextmanager
def all_patched(changes: Iterable[tuple[Any, Mapping[str, Any]]]) -> Iterator[None]:
    """Set attributes of several modules or classes, and restore them at the end whatever happens.

    One context for all of them: every check enters it for a hundred classes, several times per draw.
    """
    with LOCK:
        before: list[tuple[Any, str, Any]] = []
        try:
            for owner, replacements in changes:
                for name, replacement in replacements.items():
                    before.append((owner, name, vars(owner).get(name, INHERITED)))
                    setattr(owner, name, replacement)
            yield
        finally:
            for owner, name, value in reversed(before):
                if value is not INHERITED:
                    setattr(owner, name, value)
                elif name in vars(owner):
                    delattr(owner, name)


@contextmanager
def wrong_rules(rules: Mapping[str, WrongRule]) -> Iterator[None]:
    """Give operations (by class name) wrong backward rules. Operations that inherit a rule keep the right one."""
    changed = {OPERATIONS[name]: _with_wrong_rule(OPERATIONS[name], wrong) for name, wrong in rules.items()}
    for operation in list(changed):
        for heir in HEIRS[operation]:
            changed.setdefault(heir, {name: staticmethod(getattr(heir, name)) for name in ("forward", "backward")})
    with all_patched(changed.items()):
        yield


def _with_wrong_rule(operation: type[Function], wrong: WrongRule) -> dict[str, Any]:
    """Functions for the operation. The forward function remembers the inputs, which the right rule may not need."""
    right_forward, right = operation.forward, operation.backward
    calls: dict[int, Call] = {}

    def forward(ctx: Any, *arrays: Any, **options: Any) -> Any:
        output = right_forward(ctx, *arrays, **options)
        calls[id(ctx)] = Call(arrays, options, output)
        return output

    def backward(ctx: Any, grad: Any) -> Any:
        return wrong(partial(right, ctx), calls[id(ctx)], grad)

    return {"forward": staticmethod(forward), "backward": staticmethod(backward)}


@contextmanager
def disturbed(size: float, generator: np.random.Generator) -> Iterator[None]:
    """A context in which all arithmetic of the reference, forward and backward, is off by a random relative `size`.

    Operations that are exact, since they only move numbers, stay as they are.
    """

    def noisy(array: Any) -> Any:
        noise = generator.random(np.shape(array)) - 0.5
        return array * (1.0 + size * (noise + np.copysign(0.5, noise)))  # never less than half of the size

    rules = [
        (
            operation,
            {
                "forward": staticmethod(_noisy_forward(operation.forward, noisy)),
                "backward": staticmethod(_noisy_backward(operation.backward, noisy)),
            },
        )
        for operation in OPERATIONS.values()
        if not operation.exact
    ]
    with all_patched(rules):
        yield


def _noisy_forward(right: Rule, noisy: Callable[[Any], Any]) -> Rule:
    def forward(ctx: Any, *arrays: Any, **options: Any) -> Any:
        output = right(ctx, *arrays, **options)
        changed = noisy(output)
        ctx.saved_tensors = tuple(changed if saved is output else saved for saved in ctx.saved_tensors)
        return changed

    return forward


def _noisy_backward(right: Rule, noisy: Callable[[Any], Any]) -> Rule:
    def backward(ctx: Any, grad: Any) -> Any:
        grads = right(ctx, grad)
        if isinstance(grads, tuple):
            return tuple(None if one is None else noisy(one) for one in grads)
        return noisy(grads)

    return backward


def engine_changed(**replacements: Callable[..., Any]) -> Any:
    """A context in which functions of the backward pass are patched."""
    return patched(engine, replacements)


@contextmanager
def any_shape(stored: bool = True) -> Iterator[None]:
    """A context in which the engine passes on gradients of any shape, as engines for learners do.

    `stored`: a tensor keeps the first one as it is. Otherwise it is added, in place, to zeros of the right shape, so
    that NumPy broadcasts it or refuses.
    """

    def accumulate_leaf(tensor: Any, grad: Any) -> None:
        known = 0.0 if tensor.grad is None else tensor.grad.array
        tensor._grad = tensor_of(np.asarray(grad + known))  # bypasses the check of the shape

    def fitted(grad: Any, node: Function, edge: Any) -> Any:
        target, number = edge if type(edge) is tuple else (edge, 0)
        shape, _ = target.outputs[number]
        grad = arrays.sum_to(grad, shape) if arrays.broadcasts_to(shape, np.shape(grad)) else grad
        if stored:
            return grad
        zeros = np.zeros(shape)
        zeros += grad
        return zeros

    with engine_changed(accumulate_leaf=accumulate_leaf, fitted=fitted):
        yield


COMPOSED: Mapping[str, Callable[..., Any]] = {
    "__sub__": lambda self, other: self + -other,
    "__rsub__": lambda self, other: -self + other,
    "__truediv__": lambda self, other: self * other**-1.0,
    "__rtruediv__": lambda self, other: self**-1.0 * other,
    "__neg__": lambda self: self * -1.0,
}
"""How many engines make their arithmetic: a - b is a + (-b), a / b is a * b**-1 and -a is a * -1."""


def composed_arithmetic() -> AbstractContextManager[None]:
    """A context in which the reference composes its arithmetic in that way: a bug in `*` also shows in `/`."""
    return patched(Tensor, COMPOSED)
