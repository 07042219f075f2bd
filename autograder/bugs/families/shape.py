"""Shape and index: operations that only move elements, whose gradients have to be moved back."""

from __future__ import annotations

from typing import Any

import numpy as np

from autograder.bugs.bug import KEPT_OR_ADDED, Bug
from autograder.runs.reference_patch import Call, Rule


def as_it_is(right: Rule, call: Call, grad: Any) -> Any:
    return grad


def in_shape_of_input(right: Rule, call: Call, grad: Any) -> Any:
    return np.reshape(grad, np.shape(call.inputs[0]))


transpose_not_undone = Bug(
    explanation="the gradient of a transposed array was not transposed back (at most reshaped, which moves nothing)",
    hint="Element [0, 1] of the result is element [1, 0] of the input. Where does its gradient have to go?",
    misconception="Transposing changes nothing about the numbers, so there is nothing to do.",
    rules={"Transpose": in_shape_of_input, "Permute": in_shape_of_input},
    forms=({"Transpose": as_it_is, "Permute": as_it_is},),
    shapes=KEPT_OR_ADDED,
)

permutation_not_inverted = Bug(
    explanation="the gradient was permuted in the same order as the input, but it needs the inverse order",
    hint="Permute (2, 3, 4) by (1, 2, 0), and again by (1, 2, 0). Is it (2, 3, 4) again?",
    misconception="Every rearrangement undoes itself.",
    rules={"Permute": lambda right, call, grad: np.transpose(grad, call.options["dims"])},
    shapes=KEPT_OR_ADDED,
)

flip_not_undone = Bug(
    explanation="the gradient of a flipped array was not flipped back",
    hint="The first element of the result is the last of the input. Where does its gradient have to go?",
    misconception="Reordering needs no rule of its own.",
    rules={"Flip": as_it_is},
)


def rolled_again(right: Rule, call: Call, grad: Any) -> Any:
    return np.roll(grad, call.options["shifts"], call.options["dims"])


roll_not_undone = Bug(
    explanation="the gradient was not rolled back by the same number of places (in the opposite direction)",
    hint="An element moved two places to the right. In which direction does its gradient have to move?",
    misconception="The backward pass applies the same move again.",
    rules={"Roll": rolled_again},
    forms=({"Roll": as_it_is},),
)

reshape_not_undone = Bug(
    explanation="the gradient still has the new shape: it was not reshaped back to the shape of the input",
    hint="Print the shape of the input and that of its gradient.",
    misconception="Reshaping needs no rule of its own.",
    rules={"Reshape": as_it_is, "Squeeze": as_it_is, "Unsqueeze": as_it_is},
    shapes=KEPT_OR_ADDED,
)

reshape_in_other_order = Bug(
    explanation="the gradient was reshaped in a different order from the input (column by column, not row by row)",
    hint="Give the gradient the values 0, 1, 2, ... and see at which elements they arrive.",
    misconception="Any way of reaching the right shape is right.",
    rules={"Reshape": lambda right, call, grad: np.reshape(grad, np.shape(call.inputs[0]), order="F")},
)


def overwritten(right: Rule, call: Call, grad: Any) -> Any:
    share = np.zeros_like(call.inputs[0])
    share[call.options["index"]] = grad
    return share


index_overwritten = Bug(
    explanation=(
        "an element that was picked several times kept only its last gradient, but all its gradients must be added up"
    ),
    hint="Pick index 0 twice. `gradient[index] += ...` adds once per place; what does np.add.at do?",
    misconception="`x[index] += y` adds for every repetition in `index`.",
    rules={"Index": overwritten},
)

index_not_put_back = Bug(
    explanation="the gradient of the picked elements was not put back into an array of the input's shape",
    hint="What is the gradient of an element that was not picked, and where is it in your result?",
    misconception="Elements that were not picked have no gradient, so they can be left out.",
    rules={"Index": as_it_is, "Max": as_it_is},
    shapes=KEPT_OR_ADDED,
)


def at_the_front(right: Rule, call: Call, grad: Any) -> Any:
    share = np.zeros(np.size(call.inputs[0]))
    share[: np.size(grad)] = np.ravel(grad)[: share.size]
    return share.reshape(np.shape(call.inputs[0]))


index_at_the_front = Bug(
    explanation="the gradients of the picked elements were put at the front, not at the places they were picked from",
    hint="Pick the last element. At which element does its gradient arrive?",
    misconception="The gradient of a slice starts at index 0.",
    rules={"Index": at_the_front},
)


def parts_reversed(right: Rule, call: Call, grad: Any) -> Any:
    return tuple(reversed(right(grad)))


def parts_cut_from_the_end(right: Rule, call: Call, grad: Any) -> Any:
    dim = call.options["dim"]
    ends = np.cumsum([np.shape(x)[dim] for x in reversed(call.inputs)])
    return tuple(reversed(np.split(grad, ends[:-1], axis=dim)))


concatenation_swapped = Bug(
    explanation="the parts of a concatenation got each other's gradients",
    hint="Which rows of the result came from the first array? The same rows of the gradient belong to it.",
    misconception="The order of the parts does not matter in the backward pass.",
    rules={"Cat": parts_reversed},
    forms=({"Cat": parts_cut_from_the_end},),
    shapes=KEPT_OR_ADDED,
)


def first_part_for_all(right: Rule, call: Call, grad: Any) -> Any:
    dim = call.options["dim"]
    return tuple(np.take(grad, range(np.shape(x)[dim]), axis=dim) for x in call.inputs)


concatenation_offset_lost = Bug(
    explanation="every part of a concatenation got the first rows of the gradient, wherever the part is",
    hint="At which row of the result does the second array start?",
    misconception="Each part finds its own gradient at index 0.",
    rules={"Cat": first_part_for_all},
)


def found_places(call: Call) -> Any:
    """The axis of a sort, and the resulting order."""
    index = call.options["index"]
    axis = next(n for n, part in enumerate(index) if np.size(part) == max(np.size(other) for other in index))
    return axis, np.broadcast_to(index[axis], np.shape(call.inputs[0]))


def sorted_again(right: Rule, call: Call, grad: Any) -> Any:
    axis, order = found_places(call)
    return np.take_along_axis(grad, order, axis)


sort_not_undone = Bug(
    explanation="the gradient was left in the order of the sorted array: it must go back to where each element was",
    hint="The smallest element comes first in the result. Where is it in the input?",
    misconception="Sorting does not change the numbers, so their gradients stay in place.",
    rules={"Sort": as_it_is},
    forms=({"Sort": sorted_again},),
)


def both(right: Rule, call: Call, grad: Any) -> Any:
    return grad, grad


where_condition_ignored = Bug(
    explanation="both values of `where` got the whole gradient, but each needs only the part where it was chosen",
    hint="Change the value that was not chosen. Does the result change?",
    misconception="A choice passes its gradient on like a sum.",
    rules={"Where": both, "Maximum": both, "Minimum": both},
)


def choice_inverted(right: Rule, call: Call, grad: Any) -> Any:
    first, second = right(grad)
    return second, first


where_branches_swapped = Bug(
    explanation="each value got the gradient of the places where the other one was chosen",
    hint="Where the condition holds, which of the two values is in the result?",
    misconception="The condition says what gets replaced.",
    rules={"Where": choice_inverted, "Maximum": choice_inverted, "Minimum": choice_inverted},
)


def summed_from_the_start(right: Rule, call: Call, grad: Any) -> Any:
    return np.cumsum(grad, axis=call.options["dim"])


cumulative_sum_not_reversed = Bug(
    explanation="the gradients were summed from the start, but an element is in its own sum and in all later ones",
    hint="In which of the running sums does the first element take part, and in which the last one?",
    misconception="The backward pass applies the same operation to the gradient.",
    rules={"CumulativeSum": summed_from_the_start},
    forms=({"CumulativeSum": as_it_is},),
)
