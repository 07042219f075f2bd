"""Operations that change a tensor: `x.add_(1)`, `x += 1`, `x[i] = v`, `x.copy_(y)`, and all others that end in `_`.

The one idea to know: `x.mul_(y)` computes `x * y` as usual, writes the result into the memory of x, and gives x the
history of the result. If x is a view, its base gets a node that knows which part was replaced; everything else that
shows the memory finds its new history from there.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from mini_autograd.graph.edges import NO_EDGE, Edge, Written
from mini_autograd.graph.function import (
    COPY,
    FREED,
    OUTPUT,
    SEVERAL,
    Function,
    Value,
    as_array,
    next_sequence_nr,
    tensor_of,
    wrap,
)
from mini_autograd.graph.grad_mode import FORWARD, INFERENCE, RECORDING, state
from mini_autograd.graph.saved_values import kept
from mini_autograd.graph.versions import note_change, note_detachment, note_needed, note_node
from mini_autograd.graph.views import DIRECTLY, edge_of_old_values, follow, memory_of
from mini_autograd.numerics import arrays
from mini_autograd.operations.pointwise import comparison
from mini_autograd.operations.pointwise.elementwise import cast, check_broadcast, module_of, where
from mini_autograd.operations.shapes import shape as shapes
from mini_autograd.operations.shapes.indexing import (
    Indexed,
    as_parts,
    as_plain,
    assign,
    complain,
    getitem,
    in_two_steps,
    is_basic,
)
from mini_autograd.tensors.methods import FUNCTIONS, Tensor
from mini_autograd.tensors.tensor import register_methods

LEAF = "leaf Variable that requires grad is being used in an in-place operation."
INFERENCE_CHANGED = (
    "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a normal "
    "tensor before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details."
)
DETACHED_VIEW = (
    "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for training, "
    "and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence detach_() cannot be "
    "called on these gradients. To fix this error, please refer to the Optimizer.zero_grad() function in "
    "torch/optim/optimizer.py as the solution."
)
OVERLAPPING = (
    "unsupported operation: more than one element of the written-to tensor refers to a single memory location. Please "
    "clone() the tensor before performing the operation."
)


class CopySlices(Function):
    """A tensor in which a part, shown by a view, was replaced.

    The gradient of that part goes to the new values, and the gradient of all other elements to the old tensor.
    """

    torch_name = "torch::autograd::CopySlices"
    __slots__ = ("steps",)
    steps: Any

    @staticmethod
    def backward(ctx, grad):
        module = module_of(grad)
        numbers = module.arange(math.prod(grad.shape))
        part = follow(kept(ctx.steps), numbers.reshape(grad.shape))
        old = module.ones(numbers.shape, bool)
        old[part.reshape(-1)] = False
        return where(old.reshape(grad.shape), grad, 0.0), grad.reshape((-1,))[part]

    def release(self) -> None:
        self.steps = FREED  # as in PyTorch, whose node lets go of what it applies to the part


class Fill(Function):
    """Every element becomes one number; no gradient passes."""

    torch_name = "FillBackward2"

    @staticmethod
    def forward(ctx, x, value):
        return np.full_like(x, arrays.wrapped(value, x.dtype))

    @staticmethod
    def backward(ctx, grad):
        return zeros_of(grad)

    @staticmethod
    def jvp(ctx, tangent):
        return None


class Zero(Fill):
    """Every element becomes 0."""

    torch_name = "ZeroBackward0"


class Copy(Function):
    """The elements of another tensor, broadcast and cast to this one's dtype, replace the old ones."""

    torch_name = "torch::autograd::CopyBackwards"

    @staticmethod
    def forward(ctx, x, source):
        return np.broadcast_to(source, np.shape(x)).astype(x.dtype)

    @staticmethod
    def backward(ctx, grad):
        return zeros_of(grad), grad

    @staticmethod
    def jvp(ctx, old_tangent, tangent):
        return tangent


class FillWithTensor(Copy):
    """Every element becomes the number in a 0-d tensor, which gets the sum of the gradients."""

    torch_name = "FillBackward3"


class IndexPut(Indexed):
    """Some elements, picked by an advanced index, are replaced. If an index is repeated, the last value stays."""

    torch_name = "IndexPutBackward0"
    __slots__ = ("replaced",)

    @staticmethod
    def forward(ctx, x, value, index):
        output = x.copy()
        output[index] = value
        ctx.index, ctx.replaced = index, np.zeros_like(x, bool)
        ctx.replaced[index] = True
        return output

    @staticmethod
    def backward(ctx, grad):
        return where(ctx.replaced, 0.0, grad), grad[kept(ctx.index)]

    @staticmethod
    def jvp(ctx, tangent, value_tangent):
        if tangent is None:
            tangent = np.zeros_like(as_array(value_tangent), shape=ctx.replaced.shape)
        return assign(tangent, 0.0 if value_tangent is None else value_tangent, ctx.index)


def zeros_of(grad: Value) -> Value:
    """Zeros in the shape and dtype of a gradient."""
    return wrap(np.zeros_like(as_array(grad)), grad)


def in_place(function: Callable[..., Any]) -> Callable[..., Tensor]:
    """The method that writes the result of `function` for a tensor into that tensor."""

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        others = [x for x in (*args, *kwargs.values()) if isinstance(x, Tensor)]
        base = self._base
        concerned = [self, *others] if base is None else [self, base, *others]
        check_may_change(self, any(x.requires_grad for x in concerned))
        started = next_sequence_nr()
        before = tensor_of(self.array[...], edge_of_old_values(self))
        if not state.mode & FORWARD:
            return store(self, before, function(before, *args, **kwargs), started)
        tangent = state.forward_level.tangent_of(self)
        before._tangent = tangent  # type: ignore[attr-defined]
        result = function(before, *args, **kwargs)
        store(self, before, result, started)
        state.forward_level.replace(self, tangent, result)
        return self

    method.__doc__ = description(function)
    return method


def description(function: Callable[..., Any]) -> str:
    """The docstring of a method that does in place what `function` does."""
    return "In place: " + (function.__doc__ or "").strip().partition("\n")[0]


def check_may_change(tensor: Tensor, recorded: bool) -> None:
    """Raise PyTorch's error if the tensor may not be changed in place here."""
    if tensor.version is None and not state.mode & INFERENCE:
        raise RuntimeError(INFERENCE_CHANGED)
    if not recorded or not state.mode & RECORDING or state.mode & INFERENCE:
        return
    view = tensor.view_info
    if view is not None:
        view.check_change(DIRECTLY)
        if tensor.requires_grad and view.base.is_leaf:
            raise RuntimeError(f"a view of a {LEAF}")
    if tensor.requires_grad and tensor.is_leaf:
        raise RuntimeError(f"a {LEAF}")


def store(tensor: Tensor, before: Tensor, result: Tensor, started: int) -> Tensor:
    """Write `result`, computed from `before`, into `tensor`, and give `tensor` its history."""
    if result.shape != tensor.shape:
        raise RuntimeError(
            f"output with shape {list(tensor.shape)} doesn't match the broadcast shape {list(result.shape)}"
        )
    if result.dtype != tensor.dtype:
        kinds = "biuf"
        source, target = (kinds.index(x.dtype.kind.replace("u", "i")) for x in (result, tensor))
        if source > target and (target == 0 or source == 3):
            got, own = arrays.dtype_name(result.dtype), arrays.dtype_name(tensor.dtype)
            raise RuntimeError(f"result type {got} can't be cast to the desired output type {own}")
        result = cast(result, tensor.dtype)
    recorded = result.requires_grad and bool(state.mode & RECORDING)
    if recorded:
        keep_old_values(result.grad_fn, before, started)
    write(tensor, result.array)
    stamp = note_change(tensor.version) if tensor.version is not None else 0
    if recorded:
        rebase(tensor, result, stamp)
    return tensor


def write(tensor: Tensor, values: Any) -> None:
    """Write `values` into the memory of `tensor`."""
    if isinstance(tensor.array, np.generic):  # nothing else shares it
        tensor.array = values[()]
    elif overlaps(tensor.array):
        raise RuntimeError(OVERLAPPING)
    else:
        tensor.array[...] = values


def overlaps(array: Any) -> bool:
    """Whether several elements share one place in memory, as after `expand`."""
    return array.size > 0 and any(step == 0 and size > 1 for step, size in zip(array.strides, array.shape, strict=True))


def keep_old_values(last: Any, before: Tensor, started: int) -> None:
    """Give the new nodes a copy of the old values, if they saved them: the memory is about to change."""
    copy = None
    stack, seen = [last], {last}
    while stack:
        node = stack.pop()
        saved = node.saved_tensors if isinstance(node.saved_tensors, tuple) else ()
        if any(value is before.array for value in saved):
            copy = before.array.copy() if copy is None else copy
            saved = node.saved_tensors = tuple(copy if value is before.array else value for value in saved)
        if saved:
            node.origins = tuple(
                COPY - n if n >= 0 and (value is copy or is_cast(value, node.inputs[n], before)) else n
                for value, n in zip(saved, node.origins, strict=True)
            )
        for below, _ in node.next_functions:
            if below is not None and below not in seen and below.sequence_nr > started:
                seen.add(below)
                stack.append(below)


def is_cast(value: Any, edge: Edge, before: Tensor) -> bool:
    """Whether a saved value was cast from `before`, so that it is a copy already. `edge` is where its gradient goes."""
    return edge is not NO_EDGE and edge is before._edge and value.dtype != before.dtype


def rebase(tensor: Tensor, result: Tensor, stamp: int) -> None:
    """Give `tensor`, or the tensor of which it is a view, the history that ends in `result`."""
    node: Any = result.grad_fn
    node.changed_at = stamp
    if node.output_type is not SEVERAL:
        node.version = tensor.version
    if OUTPUT in getattr(node, "origins", ()) and isinstance(node.saved_tensors, tuple):
        node.saved_tensors = tuple(
            tensor.array if origin == OUTPUT else value
            for value, origin in zip(node.saved_tensors, node.origins, strict=True)
        )
    view = tensor.view_info
    if view is None:
        tensor.change_edge(result.gradient_edge)
        note_node(tensor.version, node)
        return
    base = view.base
    node.changed_at = Written(stamp, tensor)
    slices = CopySlices()
    slices.saved_tensors = ()
    slices.edges = (base.gradient_edge if base.requires_grad else NO_EDGE, result.gradient_edge)
    slices.steps = view.steps  # and not the view, which holds the base, which will hold this node
    slices.connect(base.array)
    slices.version = base.version
    view.seen = -1  # a custom Function has asked for the edge of its view after the write and before this
    base.change_edge(slices)
    note_node(base.version, slices)


def set_item(self: Tensor, index: Any, value: Any) -> None:
    """`self[index] = value`."""
    if isinstance(value, (str, list, tuple, dict, set)) or value is None:
        kind = type(value).__name__
        raise TypeError(f"can't assign a {kind} to a torch.{arrays.dtype_name(self.dtype)}Tensor")
    if not isinstance(value, Tensor):
        arrays.check_fits(value, self.dtype)
        value = tensor_of(arrays.beside(np.asarray(arrays.wrapped(value, self.dtype), self.dtype), self.array)[()])
    plain = as_plain(index, self.array)
    steps = in_two_steps(plain) if isinstance(plain, tuple) else None
    if steps:
        put_item(getitem(self, steps[0]), steps[1], value, as_parts(index))
        return
    if not is_basic(plain):
        put_item(self, plain, value, as_parts(index))
        return
    part = getitem(self, plain)
    while value.ndim > part.ndim and value.shape[0] == 1:
        value = value.reshape(value.shape[1:])
    copy_(part, shapes.expand(value, part.shape) if value.shape != part.shape else value)


def del_item(self: Tensor, index: Any) -> None:
    """`del self[index]`, which no tensor can do."""
    raise TypeError("Tensor does not support deleting items")


def put_item(self: Tensor, index: Any, value: Tensor, given: Any) -> None:
    """`self[index] = value` for an index that picks elements one by one; `given` is the index as the user wrote it."""
    try:
        picked = np.empty_like(self.array, bool)[index].shape
    except IndexError as error:
        complain(error, self.shape, as_parts(index))
        raise
    while value.ndim > len(picked) and value.shape[0] == 1:
        value = value.reshape(value.shape[1:])
    if not arrays.broadcasts_to(value.shape, picked):
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {list(value.shape)} cannot be broadcast to indexing result of "
            f"shape {list(picked)}"
        )
    arrays_in_index = [part for part in as_parts(index) if not is_basic(part)]
    only_a_mask = [getattr(part, "dtype", None) for part in arrays_in_index] == [arrays.bool_]
    if value.dtype != self.dtype and not (only_a_mask and value.numel() == 1):  # then it is cast
        own, got = arrays.dtype_name(self.dtype), arrays.dtype_name(value.dtype)
        raise RuntimeError(
            f"Index put requires the source and destination dtypes match, got {own} for the destination and {got} for "
            "the source."
        )
    in_place(lambda x, v: note_needed(IndexPut.apply(x, v, index=index), *given))(self, value)


_copy = in_place(lambda x, source: Copy.apply(x, broadcastable(x, source)))
_fill = in_place(lambda x, value: Fill.apply(x, value=value))
_fill_with_tensor = in_place(FillWithTensor.apply)
_zero = in_place(lambda x: Zero.apply(x, value=0))


def copy_(self: Tensor, other: Any, non_blocking: bool = False) -> Tensor:
    """Replace the elements by those of `other`, a tensor (or number) that is broadcast and cast.

    `non_blocking` is ignored. Returns `self`; raises TypeError for anything else, RuntimeError for a wrong shape.
    """
    if isinstance(other, arrays.NUMBER):
        return _copy(self, tensor_of(np.asarray(other).astype(self.dtype)))
    if not isinstance(other, Tensor):
        kind = type(other)
        name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
        raise TypeError(f"copy_(): argument 'other' (position 1) must be Tensor, not {name}")
    return _copy(self, other if arrays.is_floating(self.dtype) else other.detach())


def fill_(self: Tensor, value: Any) -> Tensor:
    """Every element becomes `value`, a number or a 0-d tensor. Raises RuntimeError if the dtype cannot hold it."""
    if isinstance(value, Tensor):
        if value.ndim:
            raise RuntimeError(
                f"fill_ only supports 0-dimension value tensor but got tensor with {value.ndim} dimensions."
            )
        return _fill_with_tensor(self, value)
    if not isinstance(value, arrays.NUMBER):
        raise TypeError(f"fill_(): argument 'value' must be a number or a 0-d Tensor, not {type(value).__name__}")
    arrays.check_fits(value, self.dtype)
    return _fill(self, value)


def zero_(self: Tensor) -> Tensor:
    """Every element becomes 0."""
    return _zero(self)


def fill_diagonal_(self: Tensor, fill_value: float, wrap: bool = False) -> Tensor:
    """The diagonal becomes one number; with `wrap`, the diagonal of a tall matrix starts again below each square."""
    if self.ndim < 2:
        raise RuntimeError("dimensions must larger than 1")
    if self.ndim > 2 and len(set(self.shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    rows = np.arange(min(self.shape))
    if wrap and self.ndim == 2:
        rows = np.array([row for row in range(self.shape[0]) if row % (self.shape[1] + 1) < self.shape[1]])
        self[rows, rows % (self.shape[1] + 1)] = fill_value
    else:
        self[(rows,) * self.ndim] = fill_value
    return self


def detach_(self: Tensor) -> Tensor:
    """Forget the history."""
    if self._is_view():
        raise RuntimeError(DETACHED_VIEW)
    version, node = self.version, self.grad_fn  # shared with the node, which may have saved this memory
    if version is not None and node is not None:
        note_detachment(version, node)
    self._edge = NO_EDGE
    if getattr(self, "_tangent", None) is not None:
        self._tangent = None  # type: ignore[attr-defined]
    return self


def in_another_shape(function: Callable[..., Any]) -> Callable[..., Tensor]:
    """The method that gives a tensor the shape of the result of `function`. The memory stays as it is, but as in
    PyTorch, this counts as a change.
    """

    def method(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        check_may_change(self, self.requires_grad)
        before = self
        if not self._is_view():
            before = tensor_of(memory_of(self)[...], self.gradient_edge if self._history is not None else NO_EDGE)
        result = function(before, *args, **kwargs)
        node = result.grad_fn  # after the change, this view would repeat its steps
        stamp = note_change(self.version) if self.version is not None else 0
        self.array = result.array
        if node is not None:
            node.version, node.changed_at = self.version, stamp
            if before is self:
                view: Any = result.view_info
                view.seen, self._view, self._edge = self._version, view, None  # type: ignore[attr-defined]
            else:
                self._edge = result._history
        elif before is self:  # the view keeps its edge, until these steps are repeated in grad mode
            self.view_info.steps = result.view_info.steps
        return self

    method.__doc__ = description(function)
    return method


def broadcastable(x: Tensor, source: Tensor) -> Tensor:
    """`source`, or PyTorch's error if it does not broadcast to the shape of `x`."""
    if not arrays.broadcasts_to(source.shape, x.shape):
        check_broadcast(x.shape, source.shape)
        shape = np.broadcast_shapes(x.shape, source.shape)
        raise RuntimeError(f"output with shape {list(x.shape)} doesn't match the broadcast shape {list(shape)}")
    return source


OPERATORS = {"add": "__add__", "sub": "__sub__", "mul": "__mul__", "truediv": "__truediv__", "pow": "__pow__"}
OPERATORS |= {name: f"__{name}__" for name in ("floordiv", "mod", "and", "or", "xor")}


METHODS: dict[str, Callable[..., Any]] = {
    "copy_": copy_,
    "fill_": fill_,
    "zero_": zero_,
    "fill_diagonal_": fill_diagonal_,
    "detach_": detach_,
    "__setitem__": set_item,
    "__delitem__": del_item,
}


def _operator(operator: str) -> Callable[..., Any]:
    change = in_place(getattr(Tensor, operator))

    def method(self: Tensor, other: Any) -> Any:
        return change(self, other) if isinstance(other, (Tensor, *arrays.NUMBER)) else NotImplemented

    return method


for _name, _function in FUNCTIONS.items():
    _family = sys.modules[_function.__module__]
    if _name in getattr(_family, "IN_PLACE", ()):
        _change = in_another_shape if _family is shapes else in_place
        register_methods({f"{_name}_": _change(comparison.RECORDED.get(_function, _function))})
register_methods({f"__i{_name}__": _operator(_of_tensors) for _name, _of_tensors in OPERATORS.items()})
register_methods(METHODS)
