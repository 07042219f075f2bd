"""Operations that only rearrange: reshape, expand, transpose, permute. Results share memory with their input where
NumPy can.

Imports arrays and function. The one idea to know: the gradient is rearranged back by the inverse of the same move.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mini_autograd.arrays import dtype_name, normalize_dim
from mini_autograd.function import Function, Value


class Reshape(Function):
    """The same elements in another shape."""

    torch_name = "ViewBackward0"
    __slots__ = ("shape",)

    @staticmethod
    def forward(ctx, x, shape):
        ctx.shape = x.shape
        return x.reshape(shape)

    @staticmethod
    def backward(ctx, grad):
        return grad.reshape(ctx.shape)


class Expand(Function):
    """Repeat along axes of size 1 and new ones in front, without copying. The backward pass sums back, as ever."""

    torch_name = "ExpandBackward0"

    @staticmethod
    def forward(ctx, x, shape):
        return np.broadcast_to(x, shape)

    @staticmethod
    def backward(ctx, grad):
        return grad


class Transpose(Function):
    """Swap two axes. Swapping them again undoes it."""

    torch_name = "TransposeBackward0"
    __slots__ = ("dims",)

    @staticmethod
    def forward(ctx, x, dim0, dim1):
        ctx.dims = dim0, dim1
        return x.swapaxes(dim0, dim1) if x.ndim else x

    @staticmethod
    def backward(ctx, grad):
        return transpose(grad, *ctx.dims)


class Permute(Function):
    """Put the axes in another order. Axis i of the result is axis dims[i] of the input; the inverse order undoes it."""

    torch_name = "PermuteBackward0"
    __slots__ = ("dims",)

    @staticmethod
    def forward(ctx, x, dims):
        ctx.dims = dims
        return x.transpose(dims)

    @staticmethod
    def backward(ctx, grad):
        inverse = np.argsort(ctx.dims).tolist()
        return permute(grad, inverse)


Sizes = int | Sequence[int]


def reshape(input: Value, *shape: Sizes) -> Value:
    """The elements of `input`, in order, in another shape, given as `2, 3` or `(2, 3)`; one size may be -1."""
    return Reshape.apply(input, shape=complete_shape(unpack(shape), input.shape))


def view(input: Value, *shape: Sizes) -> Value:
    """As `reshape`, but never a copy: raises where the memory layout does not allow a view."""
    complete = complete_shape(unpack(shape), input.shape)
    array = np.asarray(input.detach().array)
    try:
        np.reshape(array, complete, copy=False)
    except ValueError:
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
            "contiguous subspaces). Use .reshape(...) instead."
        ) from None
    return Reshape.apply(input, shape=complete)


def flatten(input: Value, start_dim: int = 0, end_dim: int = -1) -> Value:
    """Merge the axes from `start_dim` to `end_dim` into one."""
    start, end = normalize_dim(start_dim, input.ndim), normalize_dim(end_dim, input.ndim)
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    shape = input.shape
    if not shape:
        return reshape(input, 1)
    return (
        reshape(input, (*shape[:start], math.prod(shape[start : end + 1]), *shape[end + 1 :])) if start < end else input
    )


def expand(input: Value, *sizes: Sizes) -> Value:
    """`input` broadcast to a larger shape; -1 keeps a size."""
    target, shape = unpack(sizes), input.shape
    added = len(target) - len(shape)
    if added < 0:
        raise RuntimeError(
            f"expand(torch.{dtype_name(input.dtype)}Tensor{{{list(shape)}}}, size={list(target)}): the number of sizes "
            f"provided ({len(target)}) must be greater or equal to the number of dimensions in the tensor "
            f"({len(shape)})"
        )
    complete = []
    for axis, size in enumerate(target):
        known = shape[axis - added] if axis >= added else None
        if size == -1 and known is None:
            raise RuntimeError(
                f"The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension {axis}"
            )
        if size != -1 and known not in (None, 1, size):
            raise RuntimeError(
                f"The expanded size of the tensor ({size}) must match the existing size ({known}) at non-singleton "
                f"dimension {axis}.  Target sizes: {list(target)}.  Tensor sizes: {list(shape)}"
            )
        complete.append(known if size == -1 else size)
    return Expand.apply(input, shape=tuple(complete))


def transpose(input: Value, dim0: int, dim1: int) -> Value:
    """Swap two axes."""
    return Transpose.apply(input, dim0=normalize_dim(dim0, input.ndim), dim1=normalize_dim(dim1, input.ndim))


def permute(input: Value, *dims: Sizes) -> Value:
    """Put the axes in the order `dims`. `permute(x, 1, 0)` or `permute(x, (1, 0))`."""
    order = unpack(dims)
    if len(order) != input.ndim:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {input.ndim} is not equal to len(dims) = {len(order)}"
        )
    axes = tuple(normalize_dim(dim, input.ndim) for dim in order)
    if len(set(axes)) < len(axes):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return Permute.apply(input, dims=axes)


def t(input: Value) -> Value:
    """The transpose of a matrix; a vector or a number is returned as it is."""
    if input.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {input.ndim}D")
    return transpose(input, 0, 1) if input.ndim == 2 else input


def unpack(sizes: tuple[Any, ...]) -> tuple[int, ...]:
    """Sizes that were given one by one, or as one sequence."""
    if len(sizes) == 1 and isinstance(sizes[0], Sequence):
        return tuple(sizes[0])
    return sizes


def complete_shape(shape: tuple[int, ...], old: tuple[int, ...]) -> tuple[int, ...]:
    """`shape` with its -1 filled in, or PyTorch's error if it does not hold as many elements as `old`."""
    size = math.prod(old)
    if shape.count(-1) > 1:
        raise RuntimeError("only one dimension can be inferred")
    for index, length in enumerate(shape):
        if length < -1:
            raise RuntimeError(f"invalid shape dimension {length} at index {index} of shape {list(shape)}")
    known = math.prod(length for length in shape if length != -1)
    if -1 in shape and known == 0 and size == 0:
        raise RuntimeError(
            f"cannot reshape tensor of 0 elements into shape {list(shape)} because the unspecified dimension size -1 "
            "can be any value and is ambiguous"
        )
    fits = known != 0 and size % known == 0 if -1 in shape else known == size
    if not fits:
        raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {size}")
    return tuple(size // known if length == -1 else length for length in shape)
