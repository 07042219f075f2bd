"""Indexing: `x[index]`, with every kind of index that NumPy and PyTorch share, and its transpose.

The one idea to know: an element that was picked several times gets the sum of the gradients of its copies. Gathering
and sorting use these operations with an index that they work out first.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from mini_autograd.graph.function import FREED, Function, Value, as_array
from mini_autograd.graph.saved_values import kept
from mini_autograd.graph.versions import note_needed
from mini_autograd.numerics.arrays import array_module, beside, is_floating

LIST_FOR_TUPLE = (
    "Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed in pytorch 2.9; use "
    "x[tuple(seq)] instead of x[seq]. In pytorch 2.9 this will be interpreted as tensor index, x[torch.tensor(seq)], "
    "which will result either in an error or a different result"
)
UINT8_MASK = "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead."


class Indexed(Function):
    """An operation that keeps an index. Arrays in it are freed like saved tensors, as in PyTorch; slices stay."""

    exact = True
    __slots__ = ("index", "needed")
    index: Any
    needed: Any  # the tensors in the index: see versions.note_needed

    def release(self) -> None:
        Function.release(self)
        if not is_basic(self.index):
            self.index, self.needed = FREED, ()


class Index(Indexed):
    """`x[index]`. The gradient goes back to the places that were picked; all others get 0."""

    sign = "a[...]"
    shows_memory = True
    __slots__ = ("shape",)

    @staticmethod
    def forward(ctx, x, index):
        ctx.index, ctx.shape = index, x.shape
        output = x[index]
        if isinstance(output, np.generic) and is_basic(index) and isinstance(x, np.ndarray):
            return x[(*index, ...) if isinstance(index, tuple) else (index, ...)]  # a 0-d view, not a copy
        return output

    @staticmethod
    def backward(ctx, grad):
        return put(grad, kept(ctx.index), ctx.shape)

    @staticmethod
    def jvp(ctx, tangent):
        return tangent[ctx.index]

    def name(self) -> str:
        """PyTorch has a node for each kind of index, and a chain of them for `x[0, 1:]`."""
        index = self.index if isinstance(self.index, tuple) else (self.index,)
        last = index[-1] if index else Ellipsis
        if not is_basic(index):
            return "IndexBackward0"
        if isinstance(last, slice):
            return "SliceBackward0"
        return "UnsqueezeBackward0" if last is None else "AliasBackward0" if last is Ellipsis else "SelectBackward0"


class Put(Indexed):
    """Zeros of a shape, to which `x` is added at `index`: the transpose of `Index`."""

    torch_name = "IndexPutBackward0"
    __slots__ = ("shape",)

    @staticmethod
    def forward(ctx, x, index, shape):
        ctx.index, ctx.shape = index, shape
        output = np.zeros_like(x, shape=shape)
        if is_basic(index):
            output[index] = x
        elif type(output) is not np.ndarray:
            add_on_device(output, index, x)
        elif type(index) is np.ndarray and index.dtype.kind in "iu" and x.size > index.size > 0:
            add_rows(output, index, x)
        else:
            np.add.at(output, index, x)
        return output

    @staticmethod
    def backward(ctx, grad):
        return grad[kept(ctx.index)]

    @staticmethod
    def jvp(ctx, tangent):
        return put(tangent, ctx.index, ctx.shape)


class Assign(Indexed):
    """A copy of x with `value` at `index`. The replaced elements get no gradient, and `value` gets its own."""

    torch_name = "IndexPutBackward0"
    __slots__ = ("shapes",)

    @staticmethod
    def forward(ctx, x, value, index):
        ctx.index, ctx.shapes = index, (x.shape, np.shape(value))
        output = np.array(x, copy=True, subok=True) if isinstance(x, np.generic) else x.copy()
        output[index] = value
        return output

    @staticmethod
    def backward(ctx, grad):
        index = kept(ctx.index)
        return assign(grad, 0.0, index), grad[index]

    @staticmethod
    def jvp(ctx, x, value):
        x = array_module(getattr(value, "array", value)).zeros(ctx.shapes[0], value.dtype) if x is None else x
        return Assign.apply(x, 0.0 if value is None else value, index=ctx.index)


MANY = 16
"""With more rows than this for one place, `np.add.reduceat` is faster than adding the first rows of all places at once,
then all second rows, and so on."""


def add_on_device(output: Any, index: Any, x: Any) -> None:
    """`np.add.at` for an array of CuPy, which has it only as a function of its own, and not for every dtype.

    Integers and bools are added as unsigned integers of 64 bits, which wrap around to the same bits.
    """
    add = array_module(output).add
    if is_floating(output.dtype):
        add.at(output, index, x)
        return
    sums = output.astype("uint64")
    add.at(sums, index, x.astype("uint64"))
    output[...] = sums.astype(output.dtype)


def add_rows(output: Any, index: Any, rows: Any) -> None:
    """Add `rows` at `index` to an `output` of zeros, sorted so that rows with the same index can be summed.

    Like np.add.at, but several times faster for whole rows, such as the gradients of an embedding.
    """
    flat = (index.reshape(-1) % len(output)).astype(np.min_scalar_type(len(output)))  # short integers sort faster
    rows = rows.reshape(flat.size, *output.shape[1:])
    order = flat.argsort(kind="stable")
    ordered = flat[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    places, counts = ordered[starts], np.diff(starts, append=flat.size)
    if counts.max() > MANY:
        output[places] = np.add.reduceat(rows[order], starts, axis=0)
        return
    output[places] = rows[order[starts]]
    for turn in range(1, counts.max()):
        left = np.flatnonzero(counts > turn)
        output[places[left]] += rows[order[starts[left] + turn]]


def getitem(input: Value, index: Any) -> Value:
    """`input[index]`: integers, slices, None, `...`, lists, integer and bool tensors or arrays, and tuples of these.

    Raises IndexError for an index that is out of bounds or of an unsupported dtype, ValueError for a step that is not
    positive.
    """
    plain = as_plain(index, as_array(input))
    if isinstance(plain, tuple) and (steps := in_two_steps(plain)):
        return note_needed(getitem(getitem(input, steps[0]), steps[1]), *as_parts(index))
    try:
        return note_needed(Index.apply(input, index=plain), *as_parts(index))
    except IndexError as error:
        complain(error, input.shape, plain if isinstance(plain, tuple) else (plain,))
        raise


def put(input: Value, index: Any, shape: tuple[int, ...]) -> Value:
    """Zeros of `shape` with `input` added at `index`; where an index is repeated, its values add up."""
    return Put.apply(input, index=as_plain(index, as_array(input)), shape=shape)


def assign(input: Value, value: Value, index: Any) -> Value:
    """A copy of `input` with `value` at `index`: like `input[index] = value`, but `input` is not changed."""
    return note_needed(Assign.apply(input, value, index=as_plain(index, as_array(input))), *as_parts(index))


def as_parts(index: Any) -> Any:
    """An index as a sequence, with one part for each axis or mask."""
    return index if isinstance(index, (tuple, list)) else (index,)


def as_plain(index: Any, indexed: Any) -> Any:
    """An index in the form that NumPy expects, for the array `indexed`."""
    if isinstance(index, list) and stands_for_a_tuple(index):
        warnings.warn(LIST_FOR_TUPLE, UserWarning, stacklevel=3)
        index = tuple(index)
    return tuple(as_index(part, indexed) for part in index) if isinstance(index, tuple) else as_index(index, indexed)


def stands_for_a_tuple(index: list) -> bool:
    """Whether PyTorch reads a list as an index of several axes: it has fewer than 32 parts, and not only numbers."""
    if len(index) >= 32:
        return False
    return any(not isinstance(part, (int, float, np.generic)) for part in index)


def in_two_steps(index: tuple) -> tuple[tuple, tuple] | None:
    """Split an index with integers and arrays in two: the integers, then the arrays. None for any other index.

    NumPy counts the integers as arrays when it decides where the axis of the arrays goes; PyTorch does not.
    """
    arrays = [hasattr(part, "ndim") for part in index]
    if not any(arrays) or not any(type(part) is int for part in index):
        return None
    first: list[Any] = []
    second: list[Any] = []
    for part, is_array in zip(index, arrays, strict=True):
        if is_array:
            first += [slice(None)] * (part.ndim if part.dtype == bool else 1)
            second.append(part)
        else:
            first.append(part)
            if type(part) is not int:
                second.append(part if part is Ellipsis else slice(None))
    return tuple(first), tuple(second)


def as_index(part: Any, indexed: Any) -> Any:
    """One part of an index in the form that NumPy expects: tensors and lists as arrays, on the device of `indexed`.

    Raises PyTorch's error for anything else.
    """
    if isinstance(part, slice):
        if part.step is not None and part.step <= 0:
            raise ValueError("step must be greater than zero")
        return part
    if part is None or part is Ellipsis or isinstance(part, int):  # a bool too: it adds an axis
        return part
    if isinstance(part, str):
        raise TypeError("new(): invalid data type 'str'")
    if isinstance(part, float):
        raise IndexError(
            "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices "
            f"(got {type(part).__name__})"
        )
    array = as_array(part) if hasattr(part, "ndim") and not isinstance(part, np.generic) else np.asarray(part)
    if array.size == 0 and not hasattr(part, "dtype"):
        array = array.astype(np.int64)
    if array.ndim == 0 and array.dtype.kind == "i":
        return int(array.item())  # an integer gives a view; an array would give a copy
    if array.dtype == np.uint8:
        warnings.warn(UINT8_MASK, stacklevel=4)
        array = array.astype(bool)
    if array.dtype.kind not in "iub":
        raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    return beside(array, indexed)


def is_basic(index: Any) -> bool:
    """Whether the index picks every element at most once (NumPy then gives a view)."""
    parts = index if isinstance(index, tuple) else (index,)
    return all(part is None or part is Ellipsis or type(part) in (int, slice) for part in parts)


def complain(error: IndexError, shape: tuple[int, ...], index: tuple) -> None:
    """Raise PyTorch's error for an index that NumPy refused."""
    if not shape and len(index) == 1 and isinstance(index[0], slice):
        raise IndexError("slice() cannot be applied to a 0-dim tensor.") from error
    if not shape and len(index) == 1 and isinstance(index[0], int):
        raise IndexError(
            "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a "
            "0-dim tensor to a number"
        ) from error
    if "too many indices" in str(error):
        raise IndexError(f"too many indices for tensor of dimension {len(shape)}") from error
    if "boolean index did not match" in str(error):
        mask = next(part for part in index if isinstance(part, np.ndarray) and part.dtype == bool)
        raise IndexError(
            f"The shape of the mask {list(mask.shape)} at index 0 does not match the shape of the indexed tensor "
            f"{list(shape)} at index 0"
        ) from error
    if "could not be broadcast together" in str(error):
        shapes = ", ".join(str(list(part.shape)) for part in index if isinstance(part, np.ndarray))
        raise IndexError(
            f"shape mismatch: indexing tensors could not be broadcast together with shapes {shapes}"
        ) from error
    words = str(error).split()
    if "out of bounds" in str(error):  # "index 5 is out of bounds for axis 0 with size 3"
        raise IndexError(
            f"index {words[1]} is out of bounds for dimension {words[words.index('axis') + 1]} with size {words[-1]}"
        ) from error
