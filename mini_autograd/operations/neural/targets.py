"""The targets of losses: class numbers as distributions, and PyTorch's errors for targets that do not fit."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from mini_autograd.graph.function import Value, as_array
from mini_autograd.graph.grad_mode import is_grad_enabled
from mini_autograd.numerics import arrays
from mini_autograd.operations.pointwise.elementwise import check_broadcast, multiply
from mini_autograd.operations.shapes.shape import expand

Shape = tuple[int, ...]
REDUCTIONS = ("none", "mean", "sum")


def class_axis(scores: Any, labels: Any) -> int:
    """The axis of the classes: 1, or 0 if there is no batch. Raises PyTorch's errors if shapes or dtypes do not fit."""
    if scores.ndim == 0:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    axis = min(scores.ndim - 1, 1)
    expected = (*scores.shape[:axis], *scores.shape[axis + 1 :])
    if labels.shape != expected:
        complain_of_shape(scores.shape, labels.shape, expected)
    if labels.dtype not in (*arrays.long, arrays.uint8):
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {arrays.dtype_name(labels.dtype)}")
    if scores.ndim > 2 and labels.dtype not in arrays.long:
        raise RuntimeError("expected scalar type Long but found Byte")
    return axis


def complain_of_shape(scores: Shape, labels: Shape, expected: Shape) -> None:
    """Raise PyTorch's error for class numbers of this shape, which is not the expected one."""
    count = labels[0] if labels else 0
    if len(scores) > 1 and scores[0] != count:
        raise ValueError(f"Expected input batch_size ({scores[0]}) to match target batch_size ({count}).")
    if len(scores) <= 2 < len(labels) + 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if len(scores) == 1:
        raise ValueError(f"For 1D input, 1D target must have size 1, but got target size: {count}")
    if len(scores) == 4 != len(labels) + 1:
        raise RuntimeError(
            f"only batches of spatial targets supported (3D tensors) but got targets of dimension: {len(labels)}"
        )
    if len(scores) == 4:
        raise RuntimeError(f"size mismatch (got input: {list(scores)} , target: {list(labels)}")
    raise RuntimeError(f"Expected target size {list(expected)}, got {list(labels)}")


def check_probabilities(scores: Any, labels: Any, weight: Any, axis: int, ignore_index: int) -> None:
    """Raise PyTorch's error for arguments that do not go with a target of probabilities."""
    if not arrays.is_floating(labels.dtype):
        got = arrays.dtype_name(labels.dtype)
        raise RuntimeError(f"Expected floating point type for target with class probabilities, got {got}")
    if ignore_index >= 0:
        raise RuntimeError("ignore_index is not supported for floating point target")
    classes = scores.shape[axis] if scores.ndim else 1
    if weight is not None and weight.shape != (classes,):
        raise RuntimeError(
            f"cross_entropy: weight tensor should be defined either for all {classes} classes or no classes but got "
            f"weight tensor of shape: {list(weight.shape)}"
        )


def check_weight_shape(weight: Shape, shape: Shape) -> None:
    """Raise PyTorch's error unless the weights of single losses broadcast to the shape of the losses."""
    for axis, (size, wanted) in enumerate(zip(reversed(weight), reversed(shape), strict=False), start=1):
        if size not in (1, wanted) and wanted != 1:
            raise RuntimeError(
                f"Attempting to broadcast a dimension of length {size} at -{axis}! Mismatching argument at index 1 had "
                f"torch.Size({list(weight)}); but expected shape should be broadcastable to {list(shape)}"
            )
    check_keeps_shape(weight, shape)


def check_keeps_shape(factor: Shape, shape: Shape) -> None:
    """Raise PyTorch's error unless losses times a factor have the shape of the losses."""
    check_broadcast(shape, factor)
    joint = np.broadcast_shapes(factor, shape)
    if joint != shape:
        raise RuntimeError(f"output with shape {list(shape)} doesn't match the broadcast shape {list(joint)}")


def one_label(scores: Any, labels: Any) -> Any:
    """The class of a single sample, which PyTorch also allows as a vector of one element."""
    return labels.reshape(()) if scores.ndim == 1 and labels.shape == (1,) else labels


def check_weight(scores: Any, weight: Any, axis: int) -> None:
    """Raise PyTorch's error unless there is one weight per class, in the dtype of the scores."""
    classes = scores.shape[axis]
    if weight.shape != (classes,):
        if scores.ndim > 2:
            raise RuntimeError("weight tensor should be defined either for all or no classes")
        raise RuntimeError(
            f"weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of "
            f"shape: {list(weight.shape)}"
        )
    if weight.dtype != scores.dtype:
        wanted, got = arrays.dtype_name(scores.dtype), arrays.dtype_name(weight.dtype)
        raise RuntimeError(f"expected scalar type {wanted} but found {got}")


def one_hot(scores: Any, labels: Any, axis: int, ignore_index: int) -> tuple[Any, int]:
    """An array like `scores` with 1 at the class of each sample that is not ignored, else 0, and the number of ones."""
    classes = scores.shape[axis]
    hot = over_classes(labels, axis) == along(np.arange(classes, like=scores), scores.ndim, axis)
    count = arrays.count(hot)
    if count < labels.size:
        wrong = labels[((labels < 0) | (labels >= classes)) & (labels != ignore_index)]
        if wrong.size:
            raise IndexError(f"Target {wrong[0].item()} is out of bounds.")
    if 0 <= ignore_index < classes:
        hot &= over_classes(labels != ignore_index, axis)
        count = arrays.count(hot)
    return hot.astype(scores.dtype), count


def weighted_classes(q: Value, weight: Value | None, axis: int) -> Value:
    """The target's distribution, with each class multiplied by its weight."""
    return q if weight is None else multiply(q, along(weight, q.ndim, axis))


def classes_of_target(scores: Any, labels: Any, weight: Value | None, ignore_index: int) -> tuple[int, Any, Any]:
    """The axis of the classes, the class numbers as distributions, and the divisor for the mean of the losses.

    The divisor is the number of samples that are not ignored, or the sum of their weights; nan if there are none.
    """
    labels = one_label(scores, labels)
    axis = class_axis(scores, labels)
    if weight is not None:
        check_weight(scores, weight, axis)
        refuse_gradient("nll_loss2d_forward" if scores.ndim > 2 else "nll_loss_forward", "weight", weight)
    q, count = one_hot(scores, labels, axis, ignore_index)
    if count == 0:
        return axis, q, math.nan
    return axis, q, count if weight is None else as_array(weighted_classes(q, weight, axis)).sum()


def along(values: Value, ndim: int, axis: int) -> Value:
    """A vector laid along one axis of `ndim`."""
    return values.reshape(*(1,) * axis, -1, *(1,) * (ndim - axis - 1))


def over_classes(grad: Value, axis: int) -> Value:
    """`grad` with an added axis for the classes, if it holds a gradient for every sample."""
    return grad if grad.ndim == 0 else grad.reshape(*grad.shape[:axis], 1, *grad.shape[axis:])


def over_target(q: Any, log_p: Any, of_classes: bool) -> Any:
    """q log p. For class numbers, classes other than the target add nothing, even where log p is -inf."""
    terms = q * log_p
    return np.where(q == 0, 0.0, terms) if of_classes else terms


def refuse_gradient(loss: str, name: str, weight: Value | None) -> None:
    """Raise PyTorch's error for a weight that requires grad, in a loss that gives its weights no gradient."""
    if is_grad_enabled() and getattr(weight, "requires_grad", False):
        raise RuntimeError(
            f"The function '{loss}' is not differentiable with respect to argument '{name}'. This input cannot have "
            "requires_grad True."
        )


def refuse_integers(kernel: str, input: Value, target: Value) -> None:
    """Raise PyTorch's error for a loss of integers: `input` and `target` may not both be integers."""
    if not arrays.is_floating(input.dtype):
        arrays.check_floating(target, kernel)


def same_shape(input: Value, target: Value) -> tuple[Value, Value]:
    """Both broadcast to one shape, with PyTorch's warning if they differ."""
    if input.shape == target.shape:
        return input, target
    warnings.warn(
        f"Using a target size ({torch_size(target)}) that is different to the input size ({torch_size(input)}). This "
        "will likely lead to incorrect results due to broadcasting. Please ensure they have the same size.",
        UserWarning,
        stacklevel=3,
    )
    check_broadcast(input.shape, target.shape)
    shape = np.broadcast_shapes(input.shape, target.shape)
    return expand(input, shape), expand(target, shape)


def torch_size(x: Value) -> str:
    return f"torch.Size({list(x.shape)})"


def check_reduction(reduction: str) -> None:
    if reduction not in REDUCTIONS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
