"""Questions, ideas and places to look for a card when the student's code raised an error, by kind of error."""

from __future__ import annotations

import re

ANYTHING = (
    "Which line raised the error, and which values did it get there?",
    "A rule gets the gradient that arrives; the forward pass must have saved everything else that it needs.",
    "Look at the line that raised the error, and at where the values in it come from.",
)
IN_A_FUNCTION = (
    ANYTHING[0],
    "Without that function nothing raises an error. So something that it does, or leaves out, causes the error.",
    ANYTHING[2],
)
FREED = (
    "In which order does your `backward` call the rule of a node and release that node? Which nodes does it release?",
    "The values that a node has saved are needed until its own rule has run, and not after that.",
    "Look in `backward` at the line that releases a node, and at the line that calls its rule.",
)
NOT_RECORDED = (
    "Print `requires_grad` of the inputs and of the result. Is recording on at that moment?",
    "A result is recorded if recording is on and some input requires grad. Code that switches recording off has "
    "to restore the state from before, even after an error.",
    "Look at the code that makes results, and at every line that switches recording on or off.",
)
ENDLESS = (
    "Which function is called again and again, and by which line?",
    "A function may call itself only if some case ends without a further call. Reading `self.x` inside the function "
    "that computes `self.x` is a call, too.",
    "Look at the line that the error repeats.",
)
SHAPES = (
    "Which line raised the error, and which shapes do the arrays in that line have?",
    "In `forward` the arrays have the shapes of the inputs. In a rule, the gradient that arrives has the shape of the "
    "output.",
    "Print the shapes before that line, and compare them with those that you expect.",
)
HINTS = {
    re.compile("backward through the graph a second time"): FREED,
    re.compile("does not require grad and does not have a grad_fn"): NOT_RECORDED,
    re.compile("^RecursionError"): ENDLESS,
    re.compile("^(ValueError|IndexError|AxisError).*(shape|size|dimension|broadcast|axis|axes)", re.DOTALL): SHAPES,
}


def hints_on(error: str) -> tuple[str, ...] | None:
    """A question, an idea and where to look, for an error that shows its cause; None for all others."""
    return next((hints for pattern, hints in HINTS.items() if pattern.search(error)), None)


def freed_too_early(error: str) -> bool:
    """Whether a rule found the saved values of its node freed. A check walks each graph once, so no earlier walk has
    freed them."""
    return hints_on(error) is FREED
