"""Picking elements by a tensor of indices or by a mask, and adding to them: gather, scatter_add, index_select,
masked_fill, embedding and their relatives.

The one idea to know: each of them is `x[index]`, `put` or `assign` with an index that is worked out here; their rules
are in indexing.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mini_autograd.graph.function import Function, Value, as_array
from mini_autograd.graph.saved_values import kept
from mini_autograd.graph.versions import note_needed
from mini_autograd.numerics.arrays import (
    c_dtype,
    check_fits,
    device_of,
    dtype_name,
    holds,
    is_floating,
    normalize_dim,
    number,
    on_device,
    on_host,
)
from mini_autograd.operations.pointwise.elementwise import add, cast, check_broadcast, module_of, where
from mini_autograd.operations.shapes.indexing import Index, Put, assign, getitem, put
from mini_autograd.operations.shapes.shape import expand, reshape, shaped

__all__ = ["gather", "index_select", "masked_fill", "masked_select", "scatter", "scatter_add"]
IN_PLACE = ["masked_fill", "scatter", "scatter_add"]

Indices = Any
"""An integer tensor or array."""


class Gather(Index):
    """output[i, j] = x[index[i, j], j], here for axis 0. The gradient goes back to the places that were picked."""

    def name(self) -> str:
        return "GatherBackward0"


class Embedding(Index):
    """Rows of a table. A row that was looked up several times gets the sum of the gradients (their mean, if they are
    scaled by how often it was looked up); the padding row gets none.
    """

    __slots__ = ("padding", "scaled")

    @staticmethod
    def forward(ctx, x, index, padding, scaled):  # type: ignore[override]
        ctx.padding, ctx.scaled = padding, scaled
        return Index.forward(ctx, x, index)

    @staticmethod
    def backward(ctx, grad):
        if ctx.padding is not None:
            grad = where((kept(ctx.index) == ctx.padding)[..., None], 0.0, grad)
        if ctx.scaled:
            counts = np.bincount(kept(ctx.index).reshape(-1), minlength=ctx.shape[0])
            grad = grad / counts[ctx.index][..., None].astype(grad.dtype)
        return put(grad, kept(ctx.index), ctx.shape)

    def name(self) -> str:
        return "EmbeddingBackward0"


class ScatterProducts(Function):
    """Elements at an index are multiplied by the values for their places. As in PyTorch, there is no rule."""

    torch_name = "torch::autograd::NotImplemented"

    @staticmethod
    def forward(ctx, x, value, index):
        output = on_host(x).reshape(x.shape or 1).copy()  # on the host, because CuPy has no `multiply.at`
        np.multiply.at(output, tuple(map(on_host, index)), on_host(value))
        return on_device(output.reshape(x.shape), device_of(x))

    @staticmethod
    def backward(ctx, grad):
        raise RuntimeError("derivative for aten::scatter is not implemented")


def along(index: Any, dim: int) -> tuple[Any, ...]:
    """An index for every axis: `index` for `dim`, and the element's own position for the others."""
    arange = module_of(index).arange
    places = [
        arange(size).reshape([-1 if i == axis else 1 for i in range(index.ndim)])
        for axis, size in enumerate(index.shape)
    ]
    places[dim] = index
    return tuple(places)


def at_least_1d(x: Value) -> Value:
    """A 0-d tensor with an added axis of size 1; other tensors unchanged."""
    return x if x.ndim else reshape(x, 1)


def gather(input: Value, dim: int, index: Indices, *, sparse_grad: bool = False) -> Value:
    """output[i][j] = input[index[i][j]][j] for dim=0, and so on; `index` may be smaller along the other axes.

    Raises RuntimeError for an index that has a different rank, holds floats, or is out of bounds.
    """
    places = integers(index, "gather")
    axis = normalize_dim(dim, input.ndim)
    if places.size == 0:
        return shaped(getitem(reshape(input, -1), []), places.shape)
    check_index(input, axis, places, "input")
    output = note_needed(Gather.apply(at_least_1d(input), index=along(at_least_1d(places), axis)), index)
    return shaped(output, places.shape)


def scatter_add(input: Value, dim: int, index: Indices, src: Value) -> Value:
    """`input` with src[i][j] added at [index[i][j]][j] for dim=0, and so on.

    Raises RuntimeError like `gather`, and for a `src` that has a different dtype or rank, or is smaller than `index`.
    """
    places, shape = _places(input, dim, index, "scatter_add", src)
    added = Put.apply(
        corner(at_least_1d(src), places), index=along(places, normalize_dim(dim, input.ndim)), shape=shape
    )
    return add(input, reshape(note_needed(added, index), input.shape))


def scatter(
    input: Value, dim: int, index: Indices, src: Value = None, *, value: Any = None, reduce: str | None = None
) -> Value:
    """`input` with src[i][j], or the number `value`, put at [index[i][j]][j] for dim=0, and so on.

    `reduce`, "add" or "multiply", combines it with the old element instead; as in PyTorch, a backward pass through
    "multiply" raises. Raises RuntimeError like `scatter_add`.
    """
    src = number(value if src is None else src)
    places, _ = _places(input, dim, index, "scatter", src)
    put_in = corner(at_least_1d(src), places) if hasattr(src, "ndim") else src
    if reduce not in (None, "add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    if reduce == "multiply":
        return ScatterProducts.apply(input, put_in, index=along(places, normalize_dim(dim, input.ndim)))
    if reduce == "add":
        filled = put_in if hasattr(put_in, "ndim") else module_of(places).full(places.shape, put_in, input.dtype)
        return scatter_add(input, dim, places, filled)
    output = assign(at_least_1d(input), put_in, along(places, normalize_dim(dim, input.ndim)))
    return shaped(note_needed(output, index), input.shape)


def _places(input: Value, dim: int, index: Indices, name: str, src: Value = None) -> tuple[Any, tuple[int, ...]]:
    """The indices, and the shape that they index, both with at least one axis. `src` must fit both.

    Raises RuntimeError otherwise.
    """
    places = integers(index, name)
    if hasattr(src, "ndim"):
        if src.dtype != input.dtype:
            raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
        if places.size and max(src.ndim, 1) != max(places.ndim, 1):
            raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    axis = normalize_dim(dim, input.ndim)
    check_index(input, axis, places, "self")
    if hasattr(src, "ndim") and any(size > there for size, there in zip(places.shape, src.shape, strict=False)):
        raise RuntimeError(
            f"Expected index {list(places.shape)} to be no larger than self {list(input.shape)} apart from dimension "
            f"{axis} and to be no larger size than src {list(src.shape)}"
        )
    return at_least_1d(places), at_least_1d(input).shape


def corner(src: Value, places: Any) -> Value:
    """The part of `src` for which there are indices."""
    return src if src.shape == places.shape else src[tuple([slice(size) for size in places.shape])]


def index_select(input: Value, dim: int, index: Indices) -> Value:
    """The slices of `input` along `dim` that a vector of indices selects.

    Raises IndexError for an index that has more than one axis, or is out of bounds.
    """
    places = integers(index, "index_select")
    if places.ndim > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    axis = normalize_dim(dim, input.ndim)
    if holds(((places < 0) | (places >= (input.shape[axis] if input.ndim else 1))).any()):
        raise IndexError("index out of range in self")
    if input.ndim == 0:
        return shaped(gather(reshape(input, 1), 0, places.reshape(-1)), ())
    return note_needed(getitem(input, (*[slice(None)] * axis, places.reshape(-1))), index)


def masked_fill(input: Value, mask: Value, value: Value) -> Value:
    """`input` with a number, or the value of a 0-d tensor, where `mask` holds.

    Raises RuntimeError for a mask that is not bool, and for a value with axes.
    """
    value = number(value)
    if mask.dtype != bool:
        raise RuntimeError(f"masked_fill_ only supports boolean masks, but got mask with dtype {c_dtype(mask.dtype)}")
    if getattr(value, "ndim", 0):
        raise RuntimeError(
            f"masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)."
        )
    if isinstance(value, complex):
        raise RuntimeError(f"value cannot be converted to type {c_dtype(input.dtype)} without overflow")
    check_fits(value, input.dtype)
    kind = bool if input.dtype == bool else float if is_floating(input.dtype) else int
    return where(mask, cast(value, input.dtype) if hasattr(value, "dtype") else kind(value), input)


def masked_select(input: Value, mask: Value) -> Value:
    """The elements where `mask` holds, as a vector; both broadcast.

    Raises RuntimeError for a mask that is not bool.
    """
    if mask.dtype != bool:
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    check_broadcast(mask.shape, input.shape)
    shape = np.broadcast_shapes(input.shape, mask.shape)
    return note_needed(getitem(expand(input, shape), np.broadcast_to(as_array(mask), shape)), mask)


def embedding(input: Indices, weight: Value, padding_idx: int | None = None, scale_grad_by_freq: bool = False) -> Value:
    """Rows of the table `weight` (n, d), one for each index. The row `padding_idx` gets no gradient.

    The result has the shape (*input.shape, d). Raises IndexError for an index out of bounds, RuntimeError for floating
    indices and for a table that is not a matrix, AssertionError for a `padding_idx` that is not a row.
    """
    places = as_array(input)
    if places.dtype.kind not in "iu":
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
            f"torch.{dtype_name(places.dtype)}Tensor instead (while checking arguments for embedding)"
        )
    if weight.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    if holds(((places < 0) | (places >= weight.shape[0])).any()):
        raise IndexError("index out of range in self")
    if padding_idx is not None and not -weight.shape[0] <= padding_idx < weight.shape[0]:
        raise AssertionError("Padding_idx must be within num_embeddings")
    padding = None if padding_idx is None else padding_idx % weight.shape[0]
    places = np.asarray(places) if isinstance(places, np.generic) else places
    rows = Embedding.apply(weight, index=places, padding=padding, scaled=scale_grad_by_freq)
    return note_needed(rows, input)


def integers(index: Indices, name: str) -> Any:
    """The array of an index tensor, or PyTorch's error if its dtype is not an integer."""
    places = as_array(index)
    if places.dtype.kind not in "iu" or is_floating(places.dtype):
        if name == "index_select":
            raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index")
    return places


def check_index(input: Value, axis: int, places: Any, who: str) -> None:
    """Raise PyTorch's errors for an index of the wrong rank, too large along another axis, or out of bounds."""
    if max(input.ndim, 1) != max(places.ndim, 1):
        raise RuntimeError(
            "Index tensor must have the same number of dimensions as "
            + ("input" if who == "input" else "self")
            + " tensor"
        )
    for i in range(places.ndim if input.ndim else 0):
        if i != axis and places.shape[i] > input.shape[i]:
            raise RuntimeError(
                f"Size does not match at dimension {i} expected index {list(places.shape)} to be no larger than "
                f"self {list(input.shape)} apart from dimension {axis}"
            )
    size = input.shape[axis] if input.ndim else 1
    if holds(((places < 0) | (places >= size)).any()):
        wrong = places[(places < 0) | (places >= size)].reshape(-1)[0]
        raise RuntimeError(f"index {wrong} is out of bounds for dimension {axis} with size {size}")
