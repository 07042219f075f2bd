"""Joining tensors and taking them apart: cat, stack and their relatives, split, chunk, unbind; pad, repeat.

The one idea to know: the gradient of a joined tensor is split at the same places, and the gradients of the parts of a
split are joined: all parts are outputs of one node.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import Any

import numpy as np

from mini_autograd.graph.edges import OutputOf
from mini_autograd.graph.function import SEVERAL, Function, Unary, Value, as_array, next_sequence_nr
from mini_autograd.graph.grad_mode import state
from mini_autograd.graph.versions import error_name
from mini_autograd.graph.views import MANY
from mini_autograd.numerics.arrays import normalize_dim, result_type
from mini_autograd.operations.pointwise.elementwise import cast, clone, module_of
from mini_autograd.operations.shapes.shape import Sizes, expand, reshape, unpack, unsqueeze

__all__ = ["cat", "chunk", "narrow", "select", "split", "stack", "unbind"]

Tensors = Sequence[Value]


class Cat(Function):
    """Tensors end to end along one axis. Each gets its part of the gradient."""

    exact = True
    __slots__ = ("dim", "sizes")

    @staticmethod
    def forward(ctx, *arrays, dim):
        ctx.dim, ctx.sizes = dim, [x.shape[dim] for x in arrays]
        result = np.concatenate(arrays, axis=dim)
        return (
            result if result.flags.c_contiguous else np.ascontiguousarray(result)
        )  # `view` works on it, as in PyTorch

    @staticmethod
    def backward(ctx, grad):
        return tuple(cut(grad, ctx.sizes, ctx.dim))

    @staticmethod
    def jvp(ctx, *tangents):
        known = next(tangent for tangent in tangents if tangent is not None)
        shapes = [[*known.shape[: ctx.dim], size, *known.shape[ctx.dim + 1 :]] for size in ctx.sizes]
        zeros, dtype = module_of(known).zeros, known.dtype
        parts = [zeros(s, dtype) if x is None else x for s, x in zip(shapes, tangents, strict=True)]
        return Cat.apply(*parts, dim=ctx.dim)


class Several(Function):
    """Base of the operations that make several views of one tensor. The views are made one by one; then one node, with
    an output for each view, replaces their nodes.
    """

    __slots__ = ("dim", "output_versions", "outputs_known")
    dim: int
    output_versions: list[Any]
    outputs_known: tuple[tuple[Any, Any], ...]

    @classmethod
    def join(cls, source: Value, views: Sequence[Value], dim: int) -> None:
        """Make the views outputs of one node."""
        node = cls()
        node.saved_tensors, node.edges, node.hooks, node.dim = (), source.gradient_edge, None, dim
        node.output_type, node.sequence_nr = SEVERAL, next_sequence_nr()
        node.outputs_known = tuple([(view.array.shape, view.array.dtype) for view in views])
        node.output_versions = [view.version for view in views]
        for number, view in enumerate(views):
            view.change_edge(OutputOf(node, number))
        for watcher in state.watchers:
            watcher.node_was_recorded(node)

    @property
    def outputs(self) -> tuple[tuple[Any, Any], ...]:
        """The shape and dtype of each output."""
        return self.outputs_known

    def with_zeros(self, grads: Sequence[Any]) -> list[Any]:
        """The gradients of the outputs, with zeros for outputs that got none, and NumPy's scalars as arrays."""
        zeros = module_of(next(grad for grad in grads if grad is not None)).zeros
        filled = [zeros(*known) if grad is None else grad for grad, known in zip(grads, self.outputs, strict=True)]
        return [np.asarray(grad) if isinstance(grad, np.generic) else grad for grad in filled]


class ConstantPad(Unary):
    """Widen every axis at both ends, or narrow it if the number is negative. The negated numbers undo it."""

    torch_name = "ConstantPadNdBackward0"
    exact = True
    __slots__ = ("widths",)

    @staticmethod
    def forward(ctx, x, widths, value):
        ctx.widths = widths
        wider = np.pad(x, [(max(left, 0), max(right, 0)) for left, right in widths], constant_values=value)
        sizes = zip(wider.shape, widths, strict=True)
        return wider[tuple([slice(max(-left, 0), size - max(-right, 0)) for size, (left, right) in sizes])]

    @staticmethod
    def backward(ctx, grad):
        return ConstantPad.apply(grad, widths=[(-left, -right) for left, right in ctx.widths], value=0)

    @staticmethod
    def jvp(ctx, tangent):
        return ConstantPad.apply(tangent, widths=ctx.widths, value=0)


def cut(x: Value, sizes: Sequence[int], dim: int) -> list[Value]:
    """Consecutive slices of the given sizes along one axis."""
    ends = accumulate(sizes, initial=0)
    return [x[(*[slice(None)] * dim, slice(start, end))] for start, end in pairwise(ends)]


class Split(Several):
    """The parts of a tensor along one axis. Its gradient is their gradients, end to end."""

    torch_name = "SplitBackward0"

    @staticmethod
    def backward(ctx, *grads):
        return Cat.apply(*ctx.with_zeros(grads), dim=ctx.dim)


class SplitWithSizes(Split):
    """The parts of a tensor along one axis, with the size of each given."""

    torch_name = "SplitWithSizesBackward0"


class Unbind(Several):
    """All slices along one axis, without that axis. Its gradient is their gradients, side by side."""

    torch_name = "UnbindBackward0"

    @staticmethod
    def backward(ctx, *grads):
        return stack(ctx.with_zeros(grads), ctx.dim)


def siblings(views: Iterable[Value], source: Value, operation: type[Several], dim: int) -> tuple[Value, ...]:
    """The views that one operation made, as outputs of one node. As in PyTorch, none may be changed in place."""
    views = tuple(views)
    for number, view in enumerate(views):
        if (info := getattr(view, "view_info", None)) is not None:
            info.made_in, info.many = info.made_in or MANY, (error_name(operation.__name__), number)
    if views and any(getattr(view, "grad_fn", None) is not None for view in views):
        operation.join(source, views, dim)
    return views


def cat(tensors: Tensors, dim: int = 0) -> Value:
    """Tensors end to end along `dim`, in a common dtype. Empty vectors fit anywhere, as in PyTorch.

    Raises RuntimeError if the other sizes differ or a tensor has no axis, ValueError if there is no tensor.
    """
    tensors = list(tensors)
    if not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    for number, x in enumerate(tensors):
        if not hasattr(x, "ndim"):
            raise TypeError(f"expected Tensor as element {number} in argument 0, but got {type(x).__name__}")
        if x.ndim == 0:
            raise RuntimeError(f"zero-dimensional tensor (at position {number}) cannot be concatenated")
    dtype = result_type(*map(as_array, tensors))
    joined = [x for x in tensors if x.shape != (0,)] or tensors[:1]
    first, axis = joined[0], normalize_dim(dim, joined[0].ndim)
    for number, x in enumerate(joined):
        _check_fits(first, x, axis, number)
    nothing = (*first.shape[:axis], 0, *first.shape[axis + 1 :])
    fitting = [reshape(x, nothing) if x.shape == (0,) else x for x in tensors]
    return Cat.apply(*[cast(x, dtype) for x in fitting], dim=axis)


def _check_fits(first: Value, x: Value, axis: int, number: int) -> None:
    if x.ndim != first.ndim:
        raise RuntimeError(f"Tensors must have same number of dimensions: got {first.ndim} and {x.ndim}")
    for i, (expected, got) in enumerate(zip(first.shape, x.shape, strict=True)):
        if i != axis and got != expected:
            raise RuntimeError(
                f"Sizes of tensors must match except in dimension {axis}. Expected size {expected} but got size {got} "
                f"for tensor number {number} in the list."
            )


concatenate = cat


def stack(tensors: Tensors, dim: int = 0) -> Value:
    """Tensors of one shape side by side, along a new axis.

    Raises RuntimeError if shapes differ, or if there is no tensor.
    """
    tensors = list(tensors)
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    axis = normalize_dim(dim, tensors[0].ndim + 1)
    for number, x in enumerate(tensors):
        if x.shape != tensors[0].shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(tensors[0].shape)} at entry 0 and "
                f"{list(x.shape)} at entry {number}"
            )
    dtype = result_type(*map(as_array, tensors))
    return Cat.apply(*[unsqueeze(cast(x, dtype), axis) for x in tensors], dim=axis)


def split(tensor: Value, split_size_or_sections: int | Sequence[int], dim: int = 0) -> tuple[Value, ...]:
    """Parts along `dim`, of one size (the last may be smaller) or of the sizes in a list.

    Raises RuntimeError if sizes are negative or do not sum to the length of the axis.
    """
    if tensor.ndim == 0:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    axis = normalize_dim(dim, tensor.ndim)
    length = tensor.shape[axis]
    if not isinstance(split_size_or_sections, int):
        sizes = list(split_size_or_sections)
        if sum(sizes) != length:
            raise RuntimeError(
                f"split_with_sizes expects split_sizes to sum exactly to {length} (input tensor's size at dimension "
                f"{axis}), but got split_sizes={sizes}"
            )
        return siblings(cut(tensor, sizes, axis), tensor, SplitWithSizes, axis)
    size = split_size_or_sections
    if size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={size}")
    if size == 0 and length:
        raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {length}")
    starts = range(0, length, size) if length else [0]
    parts = cut(tensor, [min(size, length - start) for start in starts], axis)
    return siblings(parts, tensor, Split, axis)


def chunk(input: Value, chunks: int, dim: int = 0) -> tuple[Value, ...]:
    """At most `chunks` parts of equal size along `dim`; the last may be smaller.

    Raises RuntimeError unless `chunks` is positive.
    """
    if input.ndim == 0:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    axis = normalize_dim(dim, input.ndim)
    length = input.shape[axis]
    if length == 0:
        return siblings(cut(input, [0] * chunks, axis), input, SplitWithSizes, axis)
    return split(input, -(-length // chunks), dim)


def unbind(input: Value, dim: int = 0) -> tuple[Value, ...]:
    """All slices along `dim`, without that axis. Raises IndexError if there is no axis."""
    if input.ndim == 0:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    axis = normalize_dim(dim, input.ndim)
    slices = [input[(*[slice(None)] * axis, i)] for i in range(input.shape[axis])]
    return siblings(slices, input, Unbind, axis)


def narrow(input: Value, dim: int, start: Any, length: int) -> Value:
    """`length` slices along `dim`, from `start` on. Raises IndexError or RuntimeError if they do not all exist."""
    if input.ndim == 0:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    axis = normalize_dim(dim, input.ndim)
    size = input.shape[axis]
    if hasattr(start, "dtype"):
        if start.ndim or start.dtype.kind not in "iu":
            raise RuntimeError("start must be an 0-dim integral Tensor.")
        start = int(start)
    if not -size <= start <= size:
        raise IndexError(f"start out of range (expected to be in range of [{-size}, {size}], but got {start})")
    start += size if start < 0 else 0
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    if start + length > size:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return input[(*[slice(None)] * axis, slice(start, start + length))]


def select(input: Value, dim: int, index: int) -> Value:
    """Slice number `index` along `dim`, without that axis. Raises IndexError if there is no such slice."""
    if input.ndim == 0:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    axis = normalize_dim(dim, input.ndim)
    if not -input.shape[axis] <= index < input.shape[axis]:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(input.shape)} at dimension {axis}"
        )
    return input[(*[slice(None)] * axis, index)]


def repeat(input: Value, *times: Sizes, repeats: Sequence[int] | None = None) -> Value:
    """Copies of the whole tensor along each axis, `repeat(2, 1)` or `repeat((2, 1))`; extra numbers add new axes.

    Raises RuntimeError for fewer numbers than axes, and for negative ones.
    """
    numbers = unpack(times) if repeats is None else tuple(repeats)
    added = len(numbers) - input.ndim
    if added < 0:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    shape = (1,) * added + tuple(input.shape)
    result = [n * size for n, size in zip(numbers, shape, strict=True)]
    for number, size in zip(numbers, result, strict=True):
        if number < 0:
            raise RuntimeError(f"Trying to create tensor with negative dimension {size}: {result}")
    split_axes = [size for pair in zip([1] * len(numbers), shape, strict=True) for size in pair]
    copies = [size for pair in zip(numbers, shape, strict=True) for size in pair]
    output = reshape(expand(reshape(input, split_axes), copies), result)
    return clone(output) if hasattr(output, "_is_view") and output._is_view() else output


def pad(input: Value, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Value:
    """Widen the last axes: `pad` is (left, right) of the last axis, then of the one before it, and so on.

    The new places hold `value`, or in the modes "reflect", "replicate" and "circular" elements of the input. Negative
    numbers cut elements off.

    Raises RuntimeError for an odd number of entries, for more than two per axis, and for a negative size of the result;
    NotImplementedError for any other mode.
    """
    if len(pad) % 2:
        raise RuntimeError("Padding length must be divisible by 2")
    if len(pad) // 2 > input.ndim:
        raise RuntimeError(
            "Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(pad)} and input of dimension {input.ndim}"
        )
    widths = [(0, 0)] * (input.ndim - len(pad) // 2) + list(zip(pad[::2], pad[1::2], strict=True))[::-1]
    if mode != "constant":
        modes = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}
        if mode not in modes:
            raise NotImplementedError(f"Unrecognised padding mode {mode}")
        for axis, width in enumerate(widths):
            if width != (0, 0):
                check_reflection(mode, width, axis, input.shape)
                places = module_of(input).asarray(padded_places(input.shape[axis], width, modes[mode]))
                input = input[(*[slice(None)] * axis, places)]
        return input
    for axis, (size, width) in enumerate(zip(input.shape, widths, strict=True)):
        if size + sum(width) < 0:
            raise RuntimeError(
                f"The input size {size}, plus negative padding {width[0]} and {width[1]} "
                f"resulted in a negative output size, which is invalid. Check dimension {axis} of your input."
            )
    return ConstantPad.apply(input, widths=widths, value=value or 0)


def check_reflection(mode: str, width: tuple[int, int], axis: int, shape: tuple[int, ...]) -> None:
    """Raise PyTorch's error if the axis is too short to be reflected this far."""
    if mode == "reflect" and max(width) >= shape[axis]:
        raise RuntimeError(
            "Argument #4: Padding size should be less than the corresponding input dimension, but got: padding "
            f"({width[0]}, {width[1]}) at dimension {axis} of input {list(shape)}"
        )


def padded_places(size: int, width: tuple[int, int], mode: Any) -> Any:
    """For each place of an axis that is widened (or cut) at both ends, the place of the input that fills it."""
    left, right = width
    if mode == "wrap":  # PyTorch cuts first in this mode, and last in the others
        kept = np.arange(size)[max(-left, 0) : size - max(-right, 0)]
        return np.pad(kept, (max(left, 0), max(right, 0)), mode)
    places = np.pad(np.arange(size), (max(left, 0), max(right, 0)), mode)
    return places[max(-left, 0) : len(places) - max(-right, 0)]
