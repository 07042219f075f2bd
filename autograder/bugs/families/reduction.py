"""Reduction: sum, mean and max, whose gradients must be spread over what was combined."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from autograder.bugs.bug import Bug
from autograder.runs.reference_patch import Call, Rule


def dims_of(call: Call) -> tuple[int, ...]:
    """The axes along which a call reduces."""
    dim = call.options["dim"]
    return tuple(range(np.ndim(call.inputs[0]))) if dim is None else dim


def combined(call: Call) -> int:
    """How many elements each result combines."""
    return math.prod(np.shape(call.inputs[0])[axis] for axis in dims_of(call))


def kept(grad: Any, call: Call) -> Any:
    """A gradient with the reduced axes restored at size 1."""
    shape = np.shape(call.inputs[0])
    return np.reshape(grad, [1 if axis in dims_of(call) else size for axis, size in enumerate(shape)])


def scaled(factor: Callable[[Call], float]) -> Any:
    return lambda right, call, grad: right(grad) * factor(call)


mean_not_divided = Bug(
    explanation="the 1/N of the mean is missing: every element got the whole gradient, as for a sum",
    hint="Move one of N elements by 1. By how much does their mean move?",
    misconception="A mean passes its gradient on like a sum.",
    rules={"Mean": scaled(combined)},
)

mean_divided_by_all = Bug(
    explanation=(
        "the gradient of a mean along an axis is divided by the size of the array, not by the length of that axis"
    ),
    hint="Take means along an axis of length 3 of an array with 12 elements. How many numbers does each combine?",
    misconception="N is the size of the array.",
    rules={"Mean": scaled(lambda call: combined(call) / max(np.size(call.inputs[0]), 1))},
)

mean_divided_by_results = Bug(
    explanation="the gradient of a mean is divided by the number of means, not by how many numbers each combines",
    hint="Take means along the longer axis, and then along the shorter one. Which length is N in each case?",
    misconception="N is the size of the result.",
    rules={"Mean": scaled(lambda call: combined(call) / max(np.size(call.output), 1))},
)

sum_divided = Bug(
    explanation="the gradient of a sum is divided by N, as for a mean",
    hint="Move one of N elements by 1. By how much does their sum move?",
    misconception="The gradient of a sum is shared among the summands.",
    rules={"Sum": scaled(lambda call: 1.0 / max(combined(call), 1))},
)


def _share(right: Rule, grad: Any) -> Any:
    """What a reduction passes on from a gradient of ones: 1 or 1/N."""
    return np.asarray(right(grad * 0.0 + 1.0)).reshape(-1)[0]


def unexpanded(right: Rule, call: Call, grad: Any) -> Any:
    return grad * _share(right, grad)


reduction_not_expanded = Bug(
    explanation="the gradient has the shape of the result: it was not repeated for all the elements that were combined",
    hint="Compare the shape of the gradient with that of the input. How many elements took part in one result?",
    misconception="A rule returns a gradient with the shape of the one that it was given.",
    rules={"Sum": unexpanded, "Mean": unexpanded},
    shapes=(True,),  # added to zeros, NumPy repeats it: see the next bug
)


def along_last_axes(right: Rule, call: Call, grad: Any) -> Any:
    return np.broadcast_to(grad * _share(right, grad), np.shape(call.inputs[0]))


reduction_expanded_wrongly = Bug(
    explanation="the gradient was repeated along the wrong axis: the axis that was reduced must be put back first",
    hint="Sum along axis 1, and write down the shapes of gradient and input. Where does NumPy put a missing axis?",
    misconception="NumPy knows along which axis a gradient has to be repeated.",
    rules={"Sum": along_last_axes, "Mean": along_last_axes},
)


def chosen(call: Call) -> Any:
    x = call.inputs[0]
    return x == kept(call.output, call)


def to_all(right: Rule, call: Call, grad: Any) -> Any:
    return kept(grad, call) + call.inputs[0] * 0.0


max_to_all = Bug(
    explanation="every element got the gradient of the maximum, but only the largest one has any influence",
    hint="Slightly change an element that is not the largest. Does the maximum change?",
    misconception="A maximum passes its gradient on like a sum.",
    rules={"Amax": to_all, "Amin": to_all},
)


def whole_to_ties(right: Rule, call: Call, grad: Any) -> Any:
    return kept(grad, call) * chosen(call)


max_ties_all = Bug(
    explanation="elements that tie for the largest got the whole gradient each, but they have to share it",
    hint="Two elements are both 5. Increase both by a little: the maximum grows by that much once, not twice.",
    misconception="Every element that equals the maximum gets its gradient.",
    rules={"Amax": whole_to_ties, "Amin": whole_to_ties},
)


def to_place(place: Callable[[Any, Any], Any]) -> Any:
    """The whole gradient goes to one element, found along the axis; without an axis, in the flat array."""

    def wrong(right: Rule, call: Call, grad: Any) -> Any:
        x, dims = call.inputs[0], dims_of(call)
        rows = np.moveaxis(x, dims, range(-len(dims), 0)).reshape(*np.shape(kept(grad, call).squeeze(dims)), -1)
        marked = np.zeros_like(rows)
        np.put_along_axis(marked, np.expand_dims(place(rows, -1), -1), 1.0, -1)
        moved = marked.reshape(np.moveaxis(x, dims, range(-len(dims), 0)).shape)
        return kept(grad, call) * np.moveaxis(moved, range(-len(dims), 0), dims)

    return wrong


max_first_element = Bug(
    explanation="the first element got the gradient of the maximum, wherever the largest one is",
    hint="Put the largest element last. Does the gradient follow it?",
    misconception="The gradient of one number goes to index 0.",
    rules={name: to_place(lambda rows, axis: np.zeros(rows.shape[:-1], dtype=int)) for name in ("Amax", "Amin")},
)

max_wrong_extreme = Bug(
    explanation="the gradient of the maximum went to the smallest element (or that of the minimum to the largest)",
    hint="Print where the gradient is not 0, and the input at that place.",
    misconception="argmin and argmax only differ by a sign.",
    rules={"Amax": to_place(np.argmin), "Amin": to_place(np.argmax)},
)

max_times_value = Bug(
    explanation="the gradient of the maximum is multiplied by the maximum instead of by the slope 1",
    hint="Let the largest element grow from 5 to 6. By how much does the maximum grow?",
    misconception="The derivative of a maximum is the maximum.",
    rules={name: lambda right, call, grad: right(grad) * call.inputs[0] for name in ("Amax", "Amin")},
)


def of_everything(extreme: Callable[[Any], Any]) -> Any:
    return lambda right, call, grad: kept(grad, call) * (call.inputs[0] == extreme(call.inputs[0]))


max_over_everything = Bug(
    explanation=(
        "only the largest element of the whole array got a gradient, but each row (or column) has its own maximum"
    ),
    hint="How many maxima did you take along the axis, and how many elements got a gradient?",
    misconception="There is one largest element.",
    rules={"Amax": of_everything(np.max), "Amin": of_everything(np.min)},
)
