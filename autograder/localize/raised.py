"""Questions, ideas and places to look for a card when the student's code raised an error, by kind of error."""

from __future__ import annotations

import re

ANYTHING = (
    "Which line raised the error, and which values did it get there?",
    "The error shows where Python had to stop. The mistake may be in an earlier line, which made these values.",
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
NOT_A_TUPLE = (
    "Which object does that line go through, entry by entry, and what is it?",
    "`(a,)` is a tuple with one entry; without the comma, `(a)` is `a` itself. Python's own `sum` and `max` go through "
    "what they are given, too; a tensor has its own.",
    "Look at that line first. If it is right, look at the inputs that you give to a result and at what a rule returns.",
)
ONE_FOR_EACH_ENTRY = (
    "What does the condition in that line give for an array with several entries?",
    "An `if` needs one True or False. An array, or a comparison with one, gives one for each entry.",
    "Look at the condition. NumPy has operations that choose entry by entry; `is None` asks whether there is an array.",
)
NOT_AN_ARRAY = (
    "Which value in that line is a tensor where an array is needed?",
    "A rule calculates with arrays, which are in the `data` of a tensor.",
    "Look at the rule: does it use `a` where it needs `a.data`?",
)
NO_SUCH_NAME = (
    "Which name does that line use, and which line gives it a value?",
    "A name exists once the line that gives it a value has run, in the same function or in a cell.",
    "Compare the spelling of the name in both places.",
)
HINTS = {
    re.compile("backward through the graph a second time"): FREED,
    re.compile("does not require grad and does not have a grad_fn"): NOT_RECORDED,
    re.compile("^RecursionError"): ENDLESS,
    re.compile("^TypeError: '(?!NoneType)[A-Z]\\w*' object is not iterable"): NOT_A_TUPLE,
    re.compile("truth value of an array"): ONE_FOR_EACH_ENTRY,
    re.compile("^AttributeError: '(?!NoneType)[A-Z]\\w*' object has no attribute '(copy|ndim|astype|swapaxes)'"): (
        NOT_AN_ARRAY
    ),
    re.compile("^(NameError|UnboundLocalError)"): NO_SUCH_NAME,
    re.compile("^(ValueError|IndexError|AxisError).*(shape|size|dimension|broadcast|axis|axes)", re.DOTALL): SHAPES,
}


def hints_on(error: str) -> tuple[str, ...] | None:
    """A question, an idea and where to look, for an error that shows its cause; None for all others."""
    return next((hints for pattern, hints in HINTS.items() if pattern.search(error)), None)


def freed_too_early(error: str) -> bool:
    """Whether a rule found the saved values of its node freed. A check walks each graph once, so no earlier walk has
    freed them."""
    return hints_on(error) is FREED
