"""Diagonals and triangles of matrices: tril, triu, diagonal, diag, diag_embed, trace.

The one idea to know: a triangle is a product with a fixed mask of ones and zeros, and a diagonal is `x[i, i + offset]`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mini_autograd.graph.function import Function, Unary, Value, as_array
from mini_autograd.graph.views import forget_source
from mini_autograd.numerics.arrays import normalize_dim
from mini_autograd.operations.pointwise.elementwise import clone, module_of
from mini_autograd.operations.pointwise.rounding import refuse_bools
from mini_autograd.operations.reductions.reduction import sum
from mini_autograd.operations.shapes.indexing import put
from mini_autograd.operations.shapes.shape import movedim

__all__ = ["diag", "diag_embed", "diagonal", "trace", "tril", "triu"]
IN_PLACE = ["tril", "triu"]


class Diagonal(Function):
    """A diagonal of the matrices that two axes form, as a view. The gradient goes back to it; all else gets 0."""

    exact = True
    shows_memory = True
    __slots__ = ("place", "shape")
    place: tuple[int, int, int]

    @staticmethod
    def forward(ctx, x, offset, dim1, dim2):
        ctx.place, ctx.shape = (offset, dim1, dim2), x.shape
        output = x.diagonal(offset, dim1, dim2)
        if isinstance(x, np.ndarray):
            output.flags.writeable = x.flags.writeable  # NumPy returns it read-only
        return output

    @staticmethod
    def backward(ctx, grad):
        offset, dim1, dim2 = ctx.place
        shape = [size for axis, size in enumerate(ctx.shape) if axis not in (dim1, dim2)]
        rows, columns = ctx.shape[dim1], ctx.shape[dim2]
        matrices = put(grad, (..., *places(grad, rows, columns, offset)), (*shape, rows, columns))
        return movedim(matrices, (-2, -1), (dim1, dim2))

    @staticmethod
    def jvp(ctx, tangent):
        return diagonal(tangent, *ctx.place)


class Tril(Unary):
    """The elements on and below a diagonal, and zeros above it; the gradient is cut in the same way."""

    exact = True
    __slots__ = ("diagonal",)
    part: Callable[..., Any] = staticmethod(np.tril)

    @staticmethod
    def forward(ctx, x, diagonal):
        ctx.diagonal = diagonal
        return ctx.part(x, diagonal)

    @staticmethod
    def backward(ctx, grad):
        return ctx.apply(grad, diagonal=ctx.diagonal)

    jvp = backward


class Triu(Tril):
    """The elements on and above a diagonal, and zeros below it; the gradient is cut in the same way."""

    part = staticmethod(np.triu)


def tril(input: Value, diagonal: int = 0) -> Value:
    """The lower triangle of every matrix, up to a diagonal counted from the main one."""
    _check_matrix("tril", input)
    return Tril.apply(input, diagonal=diagonal)


def triu(input: Value, diagonal: int = 0) -> Value:
    """The upper triangle of every matrix, from a diagonal counted from the main one."""
    _check_matrix("triu", input)
    return Triu.apply(input, diagonal=diagonal)


def _check_matrix(name: str, input: Value) -> None:
    if input.ndim < 2:
        raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")


def places(x: Value, rows: int, columns: int, offset: int) -> tuple[Any, Any]:
    """Row and column of every element of a diagonal, which starts to the right of the main one if offset > 0."""
    length = max(min(rows + min(offset, 0), columns - max(offset, 0)), 0)
    steps = module_of(x).arange(length)
    return steps - min(offset, 0), steps + max(offset, 0)


def diagonal(input: Value, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    """A diagonal of every matrix that two axes form, as a new last axis. Raises RuntimeError if they are the same."""
    first, second = normalize_dim(dim1, input.ndim), normalize_dim(dim2, input.ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return Diagonal.apply(input, offset=offset, dim1=first, dim2=second)


_diagonal = diagonal


def diag_embed(input: Value, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Value:
    """Matrices of zeros with the last axis of `input` on a diagonal; their axes become `dim1` and `dim2`.

    Raises RuntimeError if `dim1` and `dim2` are the same axis.
    """
    if normalize_dim(dim1, input.ndim + 1) == normalize_dim(dim2, input.ndim + 1):
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    size = input.shape[-1] + abs(offset)
    matrices = put(input, (..., *places(input, size, size, offset)), (*input.shape[:-1], size, size))
    result = movedim(matrices, (-2, -1), (dim1, dim2))
    forget_source(result)
    return result


def diag(input: Value, diagonal: int = 0) -> Value:
    """A matrix with the vector `input` on a diagonal, or a diagonal of the matrix `input`.

    Raises RuntimeError for any other number of axes.
    """
    if input.ndim not in (1, 2):
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input.ndim}D")
    return diag_embed(input, diagonal) if input.ndim == 1 else clone(_diagonal(input, diagonal))


def trace(input: Value) -> Value:
    """The sum of the diagonal of a matrix. Raises RuntimeError if `input` is not a matrix."""
    refuse_bools(as_array(input), "trace")
    if input.ndim != 2:
        raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {input.ndim}")
    return sum(diagonal(input))
