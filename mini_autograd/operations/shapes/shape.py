"""Operations that only rearrange: reshape, squeeze, expand, transpose, permute, flip, roll. Results share memory with
their input where NumPy can do so, except for flip and roll.

The one idea to know: the gradient is rearranged by the inverse move.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mini_autograd.graph.function import Function, Unary, Value, as_array
from mini_autograd.graph.views import forget_source, owner
from mini_autograd.numerics.arrays import dtype_name, normalize_dim, normalize_dims

__all__ = [
    "broadcast_to", "flatten", "flip", "permute", "ravel", "reshape", "roll", "squeeze", "swapaxes", "t", "transpose",
    "unsqueeze",
]  # fmt: skip
IN_PLACE = ["squeeze", "swapaxes", "t", "transpose", "unsqueeze"]


class Reshape(Function):
    """The same elements in another shape."""

    torch_name = "ViewBackward0"
    exact = True
    shows_memory = True
    __slots__ = ("new_shape", "shape")

    @staticmethod
    def forward(ctx, x, shape):
        ctx.shape, ctx.new_shape = x.shape, shape
        return x.reshape(shape)

    @staticmethod
    def backward(ctx, grad):
        return grad.reshape(ctx.shape)

    @staticmethod
    def jvp(ctx, tangent):
        return tangent.reshape(ctx.new_shape)


class Squeeze(Reshape):
    """Remove axes of size 1."""

    torch_name = "SqueezeBackward1"


class Unsqueeze(Reshape):
    """Insert a new axis of size 1."""

    torch_name = "UnsqueezeBackward0"


class Expand(Function):
    """Repeat along axes of size 1 and new leading axes, without copying. The backward pass sums, as usual."""

    exact = True
    shows_memory = True
    __slots__ = ("shape",)

    @staticmethod
    def forward(ctx, x, shape):
        ctx.shape = shape
        if math.prod(shape) == x.size:  # nothing is repeated: a view that may be changed in place
            return x.reshape(shape)
        result = np.broadcast_to(x, shape)
        if isinstance(result, np.ndarray):
            result.flags.writeable = x.flags.writeable  # as in PyTorch: a part without repeats may be written
        return result

    @staticmethod
    def backward(ctx, grad):
        return grad

    @staticmethod
    def jvp(ctx, tangent):
        return expand(tangent, ctx.shape)


class Transpose(Function):
    """Swap two axes. Swapping them again undoes it."""

    exact = True
    shows_memory = True
    __slots__ = ("dims",)

    @staticmethod
    def forward(ctx, x, dim0, dim1):
        ctx.dims = dim0, dim1
        return x.swapaxes(dim0, dim1) if x.ndim else x.transpose()  # a view too

    @staticmethod
    def backward(ctx, grad):
        return transpose(grad, *ctx.dims)

    @staticmethod
    def jvp(ctx, tangent):
        return transpose(tangent, *ctx.dims)


class Permute(Function):
    """Put the axes in another order. Axis i of the result is axis dims[i] of the input; the inverse order undoes it."""

    exact = True
    shows_memory = True
    __slots__ = ("dims",)

    @staticmethod
    def forward(ctx, x, dims):
        ctx.dims = dims
        return x.transpose(dims)

    @staticmethod
    def backward(ctx, grad):
        inverse = np.argsort(ctx.dims).tolist()
        return permute(grad, inverse)

    @staticmethod
    def jvp(ctx, tangent):
        return permute(tangent, ctx.dims)


class Flip(Unary):
    """Reverse the order along some axes. Reversing again undoes it."""

    exact = True
    __slots__ = ("dims",)

    @staticmethod
    def forward(ctx, x, dims):
        ctx.dims = dims
        return np.flip(x, dims).copy() if dims else x.copy()

    @staticmethod
    def backward(ctx, grad):
        return flip(grad, ctx.dims)

    @staticmethod
    def jvp(ctx, tangent):
        return flip(tangent, ctx.dims)


class Roll(Unary):
    """Shift along some axes; elements that leave at the end enter at the start. Shifting back undoes it."""

    exact = True
    __slots__ = ("dims", "shifts")

    @staticmethod
    def forward(ctx, x, shifts, dims):
        ctx.shifts, ctx.dims = shifts, dims
        return np.roll(x, shifts, dims)

    @staticmethod
    def backward(ctx, grad):
        return roll(grad, tuple([-shift for shift in ctx.shifts]), ctx.dims)

    @staticmethod
    def jvp(ctx, tangent):
        return roll(tangent, ctx.shifts, ctx.dims)


Sizes = int | Sequence[int]


def reshape(input: Value, *sizes: Sizes, shape: Sequence[int] | None = None) -> Value:
    """The elements of `input`, in order, in another shape, given as `2, 3` or `(2, 3)`; one size may be -1.

    Raises RuntimeError if that shape has a different number of elements.
    """
    return Reshape.apply(input, shape=complete_shape(unpack(sizes) if shape is None else tuple(shape), input.shape))


def shaped(x: Value, shape: tuple[int, ...]) -> Value:
    """`x`, just computed and used nowhere else, in the given shape. The result does not count as a view."""
    result = x if x.shape == shape else reshape(x, shape)
    if result is not x:
        forget_source(result)
    return result


def view(input: Value, *sizes: Sizes, size: Sequence[int] | None = None) -> Value:
    """Like `reshape`, but never a copy: raises RuntimeError if the memory layout does not allow a view."""
    if len(sizes) == 1 and hasattr(sizes[0], "itemsize"):
        raise NotImplementedError(
            "view(dtype), which reads the same bytes as another dtype, is left out on purpose. To convert the numbers, "
            "use x.to(dtype); to read the bytes, torch.from_numpy(x.numpy().view(numpy_dtype))."
        )
    complete = complete_shape(unpack(sizes) if size is None else tuple(size), input.shape)
    array = as_array(input)
    if not isinstance(array, np.generic) and owner(array.reshape(complete)) is not owner(array):
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
            "contiguous subspaces). Use .reshape(...) instead."
        )
    return Reshape.apply(input, shape=complete)


def flatten(input: Value, start_dim: int = 0, end_dim: int = -1) -> Value:
    """Merge the axes from `start_dim` to `end_dim` into one. Raises RuntimeError if they are in the wrong order."""
    start, end = normalize_dim(start_dim, input.ndim), normalize_dim(end_dim, input.ndim)
    if start > end:
        raise RuntimeError("flatten() has invalid args: start_dim cannot come after end_dim")
    shape = input.shape
    if not shape:
        return reshape(input, 1)
    return (
        reshape(input, (*shape[:start], math.prod(shape[start : end + 1]), *shape[end + 1 :])) if start < end else input
    )


def expand(input: Value, *sizes: Sizes, size: Sequence[int] | None = None) -> Value:
    """`input` broadcast to a larger shape; -1 keeps a size. Raises RuntimeError if the shape does not fit."""
    target, shape = unpack(sizes) if size is None else tuple(size), input.shape
    added = len(target) - len(shape)
    if added < 0:
        raise RuntimeError(
            f"expand(torch.{dtype_name(input.dtype)}Tensor{{{list(shape)}}}, size={list(target)}): the number of sizes "
            f"provided ({len(target)}) must be greater or equal to the number of dimensions in the tensor "
            f"({len(shape)})"
        )
    complete = []
    for axis, length in reversed(list(enumerate(target))):
        known = shape[axis - added] if axis >= added else None
        if length == -1 and known is None:
            raise RuntimeError(
                f"The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension {axis}"
            )
        if length != -1 and known not in (None, 1, length):
            raise RuntimeError(
                f"The expanded size of the tensor ({length}) must match the existing size ({known}) at non-singleton "
                f"dimension {axis}.  Target sizes: {list(target)}.  Tensor sizes: {list(shape)}"
            )
        complete.append(known if length == -1 else length)
    return Expand.apply(input, shape=tuple(reversed(complete)))


def transpose(input: Value, dim0: int, dim1: int) -> Value:
    """Swap two axes."""
    return Transpose.apply(input, dim0=normalize_dim(dim0, input.ndim), dim1=normalize_dim(dim1, input.ndim))


swapaxes = transpose


def permute(input: Value, *axes: Sizes, dims: Sequence[int] | None = None) -> Value:
    """Put the axes in another order. `permute(x, 1, 0)` or `permute(x, (1, 0))`.

    Raises RuntimeError unless each axis is named once.
    """
    order = unpack(axes) if dims is None else tuple(dims)
    if len(order) != input.ndim:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
            f"ordering of dimensions i.e. input.dim() = {input.ndim} is not equal to len(dims) = {len(order)}"
        )
    places = tuple(normalize_dim(dim, input.ndim) for dim in order)
    if len(set(places)) < len(places):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return Permute.apply(input, dims=places)


def t(input: Value) -> Value:
    """The transpose of a matrix; a vector or a number is returned as it is.

    Raises RuntimeError for more than two axes.
    """
    if input.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {input.ndim}D")
    return transpose(input, 0, 1) if input.ndim == 2 else reshape(input, input.shape)


def ravel(input: Value) -> Value:
    """All elements in one axis."""
    return reshape(input, -1)


def reshape_as(input: Value, other: Value) -> Value:
    """Reshape to the shape of `other`."""
    return reshape(input, other.shape)


def view_as(input: Value, other: Value) -> Value:
    """A view in the shape of `other`."""
    return view(input, other.shape)


def expand_as(input: Value, other: Value) -> Value:
    """Broadcast to the shape of `other`."""
    return expand(input, other.shape)


def broadcast_to(input: Value, size: Sequence[int]) -> Value:
    """Broadcast to the shape `size`."""
    return expand(input, tuple(size))


def squeeze(input: Value, dim: int | Sequence[int] | None = None) -> Value:
    """Remove the axes of size 1: all of them, or only those named in `dim`."""
    shape = input.shape
    named = normalize_dims(dim, input.ndim) if dim is not None and dim != () else None if dim is None else ()
    kept = [size for axis, size in enumerate(shape) if size != 1 or (named is not None and axis not in named)]
    return Squeeze.apply(input, shape=tuple(kept))


def unsqueeze(input: Value, dim: int) -> Value:
    """Insert a new axis of size 1 at position `dim`."""
    axis = normalize_dim(dim, input.ndim + 1)
    return Unsqueeze.apply(input, shape=(*input.shape[:axis], 1, *input.shape[axis:]))


def movedim(input: Value, source: int | Sequence[int], destination: int | Sequence[int]) -> Value:
    """Move axes to other positions; the others stay in order.

    Raises RuntimeError unless there is one destination per axis, and if an axis is named twice.
    """
    origin, target = ([x] if isinstance(x, int) else list(x) for x in (source, destination))
    if len(origin) != len(target):
        raise RuntimeError(
            f"movedim: Invalid source or destination dims: source ({origin} dims) should contain the same number of "
            f"dims as destination ({target} dims)"
        )
    for name, given in (("source", origin), ("destination", target)):
        if len({normalize_dim(axis, input.ndim) for axis in given}) < len(given):
            raise RuntimeError(f"movedim: repeated dim in `{name}` ({given})")
    origin, target = ([normalize_dim(axis, input.ndim) for axis in axes] for axes in (origin, target))
    if input.ndim == 0:
        return reshape(input, ())
    order = [axis for axis in range(input.ndim) if axis not in origin]
    for place, axis in sorted(zip(target, origin, strict=True)):
        order.insert(place, axis)
    return permute(input, order)


def flip(input: Value, *axes: Sizes, dims: Sequence[int] | None = None) -> Value:
    """Reverse the order along axes, given as `flip(x, 0, 1)` or `flip(x, (0, 1))`.

    Raises RuntimeError if an axis is named twice.
    """
    given = unpack(axes if dims is None else (dims,))
    places = tuple(normalize_dim(axis, input.ndim) for axis in given)
    for axis in places:
        if places.count(axis) > 1:
            raise RuntimeError(f"dim {axis} appears multiple times in the list of dims")
    return Flip.apply(input, dims=places if input.ndim else ())


def roll(input: Value, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None) -> Value:
    """Shift by `shifts` along `dims`, wrapping around; without `dims`, shift the flattened tensor.

    Raises RuntimeError unless there is one shift per axis.
    """
    steps = (shifts,) if isinstance(shifts, int) else tuple(shifts)
    if not steps:
        raise RuntimeError("`shifts` required")
    if dims is None or dims == ():
        if len(steps) != 1:
            raise RuntimeError(f"shifts and dimensions must align. shifts: {len(steps)}, dims:0")
        return shaped(roll(reshape(input, -1), steps, 0), input.shape)
    given = (dims,) if isinstance(dims, int) else tuple(dims)
    if len(steps) != len(given):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(steps)}, dims:{len(given)}")
    if input.ndim == 0:
        raise IndexError(f"Dimension specified as {given[0]} but tensor has no dimensions")
    axes = tuple(normalize_dim(axis, input.ndim) for axis in given)
    return Roll.apply(input, shifts=steps, dims=axes)


def unpack(sizes: tuple[Any, ...]) -> tuple[int, ...]:
    """The sizes as a tuple, whether given one by one or as one sequence."""
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
