"""Methods for what PyTorch offers only as functions, so that an expression of a check can use them on every engine.

    check_gradients(lambda a: a.cross_entropy([0, 2, 1]), [(3, 4)])

A student's tensor needs a method of that name. The trusted engines have them while a check runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from types import CodeType, FunctionType, SimpleNamespace
from typing import Any

import numpy as np

import mini_autograd as ma
from autograder.runs.reference_patch import LOCK, patched
from mini_autograd.operations.neural import activations, losses, normalization
from mini_autograd.operations.neural.dropout import Dropout
from mini_autograd.operations.shapes import gathering


def _methods(torch: Any, functional: Any, whole: Callable[[Any], Any]) -> dict[str, Callable[..., Any]]:
    """The methods, made from an engine that has PyTorch's functions. `whole` makes a tensor of integers."""
    return {
        "cat": lambda self, other, dim=0: torch.cat([self, other], dim),
        "leaky_relu": lambda self, slope=0.01: functional.leaky_relu(self, slope),
        "cross_entropy": lambda self, targets: functional.cross_entropy(self, whole(targets)),
        "mse_loss": functional.mse_loss,
        "layer_norm": lambda self: functional.layer_norm(self, tuple(self.shape[-1:])),
        "batch_norm": lambda self: functional.batch_norm(self, None, None, training=True),
        "embedding": lambda self, indices: functional.embedding(whole(indices), self),
    }


def _dropout(self: Any, mask: Any, p: float) -> Any:
    return Dropout.apply(self, mask=np.asarray(mask, dtype=np.float64) / (1.0 - p))


FUNCTIONAL = SimpleNamespace(
    leaky_relu=activations.leaky_relu,
    cross_entropy=losses.cross_entropy,
    mse_loss=losses.mse_loss,
    layer_norm=normalization.layer_norm,
    batch_norm=normalization.batch_norm,
    embedding=gathering.embedding,
)
METHODS = {**_methods(ma, FUNCTIONAL, lambda numbers: ma.tensor(np.asarray(numbers))), "dropout": _dropout}


@contextmanager
def reference_methods() -> Iterator[None]:
    """A context in which the reference's tensors have these methods, and no other thread changes the reference. Nested,
    it does nothing: a check runs the reference hundreds of times.
    """
    with LOCK:
        inside = vars(ma.Tensor).get("dropout") is _dropout
        with nullcontext() if inside else patched(ma.Tensor, METHODS):
            yield


@cache
def torch_tensor() -> Any:
    """PyTorch's tensor with these methods."""
    import torch

    def dropout(self: Any, mask: Any, p: float) -> Any:
        return self * torch.tensor(np.asarray(mask, dtype=np.float64)) / (1.0 - p)

    methods = _methods(torch, torch.nn.functional, lambda numbers: torch.tensor(np.asarray(numbers)))
    return type("Tensor", (torch.Tensor,), {**methods, "dropout": dropout})


def uses_methods(function: Callable[..., Any]) -> bool:
    """Whether an expression, or a function that it calls, mentions one of these methods, or says so in an attribute
    named `uses_methods`.
    """
    known: set[Any] = set()
    waiting = [function]
    while waiting:
        one = waiting.pop()
        if one in known:
            continue
        known.add(one)
        names = {name for code in _codes(one.__code__) for name in (*code.co_names, *_texts(code.co_consts))}
        if getattr(one, "uses_methods", False):
            return True
        behind = _behind(one, names)
        if not names.union(_texts(behind)).isdisjoint(METHODS):  # getattr(a, name)
            return True
        waiting += [value for value in behind if type(value) is FunctionType]
    return False


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code of a function, and of the functions that are written inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _texts(values: Iterable[Any]) -> Iterator[str]:
    return (value for value in values if isinstance(value, str))


def _behind(function: Any, names: set[str]) -> list[Any]:
    """The values that a function refers to, as globals or as variables of the function around it."""
    found = [function.__globals__.get(name) for name in names]
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # a variable that has no value yet
            found.append(cell.cell_contents)
    return found
