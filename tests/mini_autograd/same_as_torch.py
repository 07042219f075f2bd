"""Runs a small program under PyTorch and under mini_autograd, and compares results, warnings, error types and texts."""

import math
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import mini_autograd as ma

Program = Callable[[Any], Any]

ONLY_SOMETIMES = (
    *("__array_wrap__", "__array__ implementation"),
    *("create_graph=True will create a reference cycle", "torch.jit.script"),
)
"""Warnings that PyTorch gives once in a process, or that come from NumPy."""


def plain(value: Any, lib: Any) -> Any:
    """A result as nested plain values, with dtypes by name."""
    if isinstance(value, lib.Tensor):
        values = np.round(np.asarray(value.detach().numpy(), dtype=np.float64), 5) + 0.0  # no -0.0
        # as text, in which nan is nan
        return str(value.dtype).removeprefix("torch."), tuple(value.shape), str(values.tolist()), value.requires_grad
    if isinstance(value, list | tuple):
        return [plain(part, lib) for part in value]
    return re.sub(r"0x[0-9a-f]+", "0x", value) if isinstance(value, str) else value


def outcome(program: Program, lib: Any) -> Any:
    """What a program gives: its result and warnings, or its error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = plain(program(lib), lib)
        except Exception as error:
            return type(error).__name__, str(error)
    texts = [str(warning.message).split(" (Triggered internally")[0] for warning in caught]
    return result, [text for text in texts if not any(words in text for words in ONLY_SOMETIMES)]


def same(program: Program) -> None:
    assert outcome(program, ma) == outcome(program, torch)


def title(program: Callable[..., Any]) -> str:
    """What a program tries, from its name."""
    return program.__name__.replace("_", " ")


def by_title(*programs: Program) -> dict[str, Program]:
    """Programs as a table, each under its title."""
    return {title(program): program for program in programs}


def scalar(lib: Any) -> Any:
    return lib.tensor(2.0, requires_grad=True)


def x3(lib: Any) -> Any:
    return lib.tensor([1.0, 2.0, 3.0], requires_grad=True)


def m23(lib: Any) -> Any:
    return lib.tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]], requires_grad=True)


def d(lib: Any, *values: float) -> Any:
    """A leaf in float64."""
    return lib.tensor(values, dtype=lib.float64, requires_grad=True)


OWNERS: dict[str, Callable[[Any], Any]] = {
    "a leaf": x3,
    "an inner tensor": lambda lib: x3(lib) * 1,
    "a constant": lambda lib: lib.ones(3),
    "a view": lambda lib: (x3(lib) * 1)[:],
    "a view of a leaf": lambda lib: x3(lib)[:],
}
"""Tensors that differ in what owns their memory and their gradient: to be saved, viewed and changed."""


def script(text: str, names: Callable[[Any], dict[str, Any]]) -> Program:
    """The program that runs these statements, separated by `; `, and returns the value of the last, an expression."""
    *statements, last = text.split("; ")

    def program(lib: Any) -> Any:
        known = {"lib": lib, "F": lib.nn.functional, "nn": lib.nn, "math": math, "np": np, **names(lib)}
        for statement in statements:
            exec(statement, known)
        return eval(last, known)

    return program


def usual_names(lib: Any) -> dict[str, Any]:
    """Tensors of several dtypes; x, X and s are leaves that require grad, and y is computed from one."""
    vector, matrix = [1.0, 2.0, 3.0], [[0.5, -1.0, 2.0], [3.0, 4.0, -5.0]]
    return {
        "u": lib.tensor([1, 200, 3], dtype=lib.uint8),
        "i": lib.tensor([3, -1, 2]),
        "ignored": lib.tensor([-100, -100]),
        "b": lib.tensor([True, False, True]),
        "f": lib.tensor(vector),
        "f0": lib.tensor(2.5),
        "d": lib.tensor(vector, dtype=lib.float64),
        "h": lib.tensor([1.5, -2.0, 3.0], dtype=lib.float16),
        "m": lib.tensor(matrix),
        "x": lib.tensor(vector, requires_grad=True),
        "X": lib.tensor(matrix, requires_grad=True),
        "y": lib.tensor(vector, requires_grad=True) * 1,
        "s": lib.tensor(2.0, requires_grad=True),
    }


def lines(text: str) -> list[str]:
    """The rows of a table of expressions."""
    return text.strip().splitlines()


def evaluated(expression: str, lib: Any) -> Any:
    """What an expression of tensors of several dtypes gives: dtype, shape and values of all results, or the error."""
    names = {
        "i": lib.tensor([1, 2, 3]),
        "f": lib.tensor([1.0, 2.0, 3.0]),
        "d": lib.tensor([1.0, 2.0, 3.0], dtype=lib.float64),
        "h": lib.tensor([1.0, 2.0, 3.0], dtype=lib.float16),
        "b": lib.tensor([True, False, True]),
        "i32": lib.tensor([1, 2, 3], dtype=lib.int32),
        "f0": lib.tensor(2.0),
        "d0": lib.tensor(2.0, dtype=lib.float64),
        "i0": lib.tensor(2),
        "m": lib.tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]),
    }
    try:
        result = eval(expression, {"lib": lib, "np": np, **names})
    except Exception as error:
        return type(error).__name__, str(error)
    return described(result)


def described(result: Any) -> Any:
    """A result as plain values: of a tensor both dtypes (its own, its array's), shape, four digits, `requires_grad`."""
    if isinstance(result, tuple | list) and not hasattr(result, "dtype"):
        return [described(part) for part in result]
    if not hasattr(result, "detach"):
        return result
    array = result.detach().numpy()
    values = np.round(array.astype(np.float64), 4).tolist()
    return str(result.dtype).removeprefix("torch."), array.dtype, array.shape, repr(values), result.requires_grad
