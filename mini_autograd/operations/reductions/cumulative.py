"""Running sums: cumsum.

The one idea to know: an element is in its own result and in all later ones, so gradients are summed from the end: a
reversed running sum.
"""

from __future__ import annotations

import numpy as np

from mini_autograd.graph.function import Function, Unary, Value
from mini_autograd.numerics.arrays import float32, float64, int64, is_floating, normalize_dim
from mini_autograd.operations.pointwise.elementwise import cast, quiet
from mini_autograd.operations.shapes.shape import flip, shaped

__all__ = ["cumsum"]
IN_PLACE = ["cumsum"]

SIDE = 32
"""Elements per block of a running sum: few, because the product takes this many steps for each element."""
LARGE = 20_000
"""Above this many elements, blocks are worth their extra calls."""


class CumulativeSum(Unary):
    """Running sums along one axis. Each element gets the sum of the gradients from its place on."""

    torch_name = "CumsumBackward0"
    __slots__ = ("dim",)

    @staticmethod
    def forward(ctx, x, dim):
        ctx.dim = dim
        return running_sums(x, dim) if type(x) is np.ndarray else x.cumsum(axis=dim, dtype=x.dtype)

    @staticmethod
    def backward(ctx, grad):
        return sum_to_the_end(grad, ctx.dim)

    @staticmethod
    def jvp(ctx, tangent):
        return cumsum(tangent, ctx.dim)


def sum_to_the_end(grad: Value, dim: int) -> Value:
    """Running sums from the end: for each element, the sum from it on."""
    if type(grad) is np.ndarray:
        return running_sums(grad, dim, -1)
    return flip(cumsum(flip(grad, dim), dim), dim)


def running_sums(x: np.ndarray, axis: int, step: int = 1) -> np.ndarray:
    """Running sums along an axis, from the start or, with step -1, from the end."""
    output = np.empty(x.shape, x.dtype)
    given, sums = [array.swapaxes(axis, -1)[..., ::step] for array in (x, output)]
    large = x.size > LARGE and x.shape[axis] > SIDE and x.dtype in (float32, float64)
    if large:
        sum_in_blocks(given, sums)
    if not large or not np.isfinite(sums[..., -1]).all():  # in a product 0 * inf is nan
        given.cumsum(-1, x.dtype, sums)
    return output


@quiet
def sum_in_blocks(given: np.ndarray, sums: np.ndarray) -> None:
    """Write the running sums along the last axis into `sums`, block by block: the product of each block with a triangle
    of ones, plus the sum of all blocks before it. `np.cumsum` is slower, as it waits for each addition before the next.
    """
    *batch, length = given.shape
    whole = length // SIDE * SIDE
    blocks = given[..., :whole].reshape(*batch, -1, SIDE) @ np.triu(np.ones((SIDE, SIDE), given.dtype))
    blocks[..., 1:, :] += blocks[..., :-1, -1:].cumsum(-2)
    sums[..., :whole] = blocks.reshape(*batch, whole)
    np.cumsum(given[..., whole:], -1, out=sums[..., whole:])
    sums[..., whole:] += sums[..., whole - 1 : whole]


def cumsum(input: Value, dim: int, *, dtype: np.dtype | None = None) -> Value:
    """Running sums of the elements along `dim`. Integers and bools are summed as int64."""
    return _along(CumulativeSum, _summable(input, dtype), dim)


def _summable(input: Value, dtype: np.dtype | None) -> Value:
    return cast(input, dtype or int64) if dtype is not None or not is_floating(input.dtype) else input


def _along(operation: type[Function], input: Value, dim: int) -> Value:
    axis = normalize_dim(dim, input.ndim)
    return operation.apply(input, dim=axis) if input.ndim else shaped(operation.apply(input.reshape(1), dim=0), ())
