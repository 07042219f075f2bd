"""Broadcast: an input was repeated to fit, and its gradient has to be summed back to its own shape.

All bugs but one replace `sum_to(grad, shape)`, the one function that undoes broadcasting.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import numpy as np

from autograder.bugs.bug import Bug, Variant
from autograder.runs.reference_patch import any_shape, engine_changed, patched
from mini_autograd.graph import backward as engine
from mini_autograd.graph.edges import NO_EDGE
from mini_autograd.numerics import arrays

BROADCASTING = ("Add", "Subtract", "Multiply", "Divide", "MatMul", "Maximum", "Minimum", "Where", "Expand")
right_sum_to = arrays.sum_to
Undo = Callable[[Any, tuple[int, ...]], Any]


@contextmanager
def _undone(wrong: Undo, stored: bool) -> Iterator[None]:
    with ExitStack() as stack:
        stack.enter_context(any_shape(stored))
        stack.enter_context(patched(arrays, {"sum_to": wrong}))
        yield


def undoing(*wrong: Undo) -> Callable[[Sequence[str]], list[Variant]]:
    """Variants of an engine that undoes broadcasting in one of these ways."""
    return lambda present: [
        Variant((), (partial(_undone, way, True), partial(_undone, way, False)), arrays_only=True) for way in wrong
    ]


def added_axes(grad: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(range(grad.ndim - len(shape)))


def stretched_axes(grad: Any, shape: tuple[int, ...]) -> tuple[int, ...]:
    added = grad.ndim - len(shape)
    return tuple(axis for axis, size in enumerate(shape, start=added) if size == 1 and grad.shape[axis] != 1)


broadcast_not_summed = Bug(
    explanation="an input was broadcast to a larger shape, but its gradient was not summed back to its own shape",
    hint="Which axes did NumPy repeat to make the shapes fit? The same axes have to be summed in the gradient.",
    misconception="The gradient has the shape of the output.",
    engine=undoing(lambda grad, shape: grad),
    engine_operations=BROADCASTING,
)

broadcast_averaged = Bug(
    explanation="the gradient of a broadcast input is the mean over the repeated axes, but it must be the sum",
    hint="One number was used in every row. Do the effects of its uses add up, or do they average out?",
    misconception="Several gradients for one number are averaged.",
    engine=undoing(
        lambda grad, shape: grad.mean((*added_axes(grad, shape), *stretched_axes(grad, shape)), keepdims=True).reshape(
            shape
        )
    ),
    engine_operations=BROADCASTING,
)


def _last_axes_summed(grad: Any, shape: tuple[int, ...]) -> Any:
    surplus = grad.ndim - len(shape)
    return grad.sum(tuple(range(grad.ndim - surplus, grad.ndim))) if surplus else right_sum_to(grad, shape)


broadcast_wrong_axis = Bug(
    explanation="the gradient of a broadcast input is summed along the wrong axis: NumPy adds new axes in front",
    hint="Write the two shapes below each other, aligned on the right. Which axis does the smaller one lack?",
    misconception="A vector is repeated along the last axis.",
    engine=undoing(_last_axes_summed),
    engine_operations=BROADCASTING,
)


def _first_slice(grad: Any, shape: tuple[int, ...]) -> Any:
    for _ in added_axes(grad, shape):
        grad = grad[0]
    for axis in stretched_axes(grad, shape):
        grad = np.take(grad, [0], axis)
    return grad


broadcast_first_kept = Bug(
    explanation="only the first row (or column) of a broadcast input's gradients is kept, and the others are lost",
    hint="Which of the copies of this input influenced the result? Each of them contributes to the gradient.",
    misconception="The copies made by broadcasting all get the same gradient, so one is enough.",
    engine=undoing(_first_slice),
    engine_operations=BROADCASTING,
)

broadcast_axis_dropped = Bug(
    explanation="an axis of size 1 was summed away: the sum needs `keepdims=True` to give the input's own shape",
    hint="Compare `gradient.shape` with the shape of the input. Which axis is missing?",
    misconception="An axis of size 1 does not count.",
    engine=undoing(lambda grad, shape: grad.sum((*added_axes(grad, shape), *stretched_axes(grad, shape)))),
    engine_operations=BROADCASTING,
)

broadcast_stretched_axes_forgotten = Bug(
    explanation="the new axes in front are summed, but those of size 1 that were stretched are not",
    hint="Try the shapes (3, 1) and (3, 4). Both have two axes, and yet something was repeated.",
    misconception="Broadcasting only adds axes in front.",
    engine=undoing(lambda grad, shape: grad.sum(added_axes(grad, shape))),
    engine_operations=BROADCASTING,
)

broadcast_added_axes_forgotten = Bug(
    explanation="the axes of size 1 that were stretched are summed, but the new axes in front are not",
    hint="Try the shapes (4,) and (3, 4). How many axes does the gradient have, and how many does the input have?",
    misconception="Broadcasting only stretches axes of size 1.",
    engine=undoing(lambda grad, shape: grad.sum(stretched_axes(grad, shape), keepdims=True)),
    engine_operations=BROADCASTING,
)

broadcast_all_summed = Bug(
    explanation="the gradient of a broadcast input is summed over all axes, even those that were not repeated",
    hint="Every element of this input has its own uses. Are they kept apart in your sum?",
    misconception="Undoing a broadcast means summing everything.",
    engine=undoing(lambda grad, shape: np.full(shape, grad.sum())),
    engine_operations=BROADCASTING,
)


@contextmanager
def _undone_for_one(summed: int, stored: bool) -> Iterator[None]:
    """The gradient of one operand is summed back; the other gradient is passed on as it is."""
    undoes = [True]

    def send(pending: Any, node: Any, grads: Sequence[Any]) -> None:
        for number, (edge, grad) in enumerate(zip(node.inputs, grads, strict=False)):
            if grad is not None and edge is not NO_EDGE:
                undoes[0] = number == summed or len(node.inputs) != 2
                engine.accumulate(pending, edge, engine.fitted(grad, node, edge))

    def sum_to(grad: Any, shape: tuple[int, ...]) -> Any:
        return right_sum_to(grad, shape) if undoes[0] else grad

    with ExitStack() as stack:
        stack.enter_context(any_shape(stored))
        stack.enter_context(patched(arrays, {"sum_to": sum_to}))
        stack.enter_context(engine_changed(send=send))
        yield


broadcast_one_operand_only = Bug(
    explanation="broadcasting is undone for only one of the two operands, but the other one can be broadcast too",
    hint="Swap the operands: if a + b was right, check b + a.",
    misconception="Only the second operand is ever broadcast.",
    engine=lambda present: [
        Variant((), (partial(_undone_for_one, one, True), partial(_undone_for_one, one, False)), arrays_only=True)
        for one in (1, 0)
    ],
    engine_operations=BROADCASTING,
)
