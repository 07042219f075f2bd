"""All operations by family: `Multiply` is in elementwise, `Sum` in reduction, `MatMul` in linear_algebra, and so on."""

import importlib
from typing import Any

from mini_autograd.function import Function
from mini_autograd.operations import (
    activations,
    binary,
    cumulative,
    diagonals,
    einstein,
    elementwise,
    extremes,
    gathering,
    indexing,
    joining,
    linear_algebra,
    mathematical,
    matrices,
    reduction,
    rounding,
    shape,
    softmax,
    sorting,
)
from mini_autograd.operations.elementwise import (
    Add,
    Cast,
    Clone,
    Divide,
    Exp,
    Log,
    Multiply,
    Negate,
    Power,
    PowerOfTensors,
    Relu,
    Subtract,
    Tanh,
    Where,
)
from mini_autograd.operations.indexing import Index, Put
from mini_autograd.operations.linear_algebra import MatMul
from mini_autograd.operations.reduction import Mean, Sum
from mini_autograd.operations.shape import Expand, Permute, Reshape, Transpose

FAMILIES = (
    *(elementwise, mathematical, rounding, binary, activations, extremes, sorting, reduction, cumulative, softmax),
    *(linear_algebra, matrices, einstein, shape, joining, diagonals, indexing, gathering),
)

ONLY_SHARED = (
    *(elementwise.Elementwise, elementwise.Arithmetic, mathematical.OfFloats, rounding.Flat),
    *(extremes.Extreme, sorting.Pick),
)
"""What several operations have in common, and no operation by itself."""

NEURAL = ("convolution", "pooling", "normalization", "dropout", "attention", "losses")
"""Families that are imported with `nn` only, so that the engine alone starts quickly."""


def __getattr__(name: str) -> Any:
    """`ALL`: every operation, for those who want to walk through them."""
    if name != "ALL":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    families = (*FAMILIES, *(importlib.import_module(f"{__name__}.{family}") for family in NEURAL))
    return tuple(
        operation
        for family in families
        for operation in vars(family).values()
        if isinstance(operation, type)
        and issubclass(operation, Function)
        and operation.__module__ == family.__name__
        and operation not in ONLY_SHARED
    )


__all__ = [
    "Add",
    "Cast",
    "Clone",
    "Divide",
    "Exp",
    "Expand",
    "Index",
    "Log",
    "MatMul",
    "Mean",
    "Multiply",
    "Negate",
    "Permute",
    "Power",
    "PowerOfTensors",
    "Put",
    "Relu",
    "Reshape",
    "Subtract",
    "Sum",
    "Tanh",
    "Transpose",
    "Where",
]
