"""Runs a small program under PyTorch and under mini_autograd, and compares results, warnings, error types and texts."""

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import mini_autograd as ma

Program = Callable[[Any], Any]

ONLY_SOMETIMES = ("__array_wrap__", "create_graph=True will create a reference cycle", "torch.jit.script")
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


def x3(lib: Any) -> Any:
    return lib.tensor([1.0, 2.0, 3.0], requires_grad=True)


def d(lib: Any, *values: float) -> Any:
    """A leaf in float64."""
    return lib.tensor(values, dtype=lib.float64, requires_grad=True)
