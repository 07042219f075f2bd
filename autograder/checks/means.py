"""By what means an engine finds gradients that are right: they should come from the chain rule.

A difference quotient betrays itself by its digits (see `comparison.py`), but a complex step has them all, and a
quotient of high order nearly. So one draw of each expression that passed is run once more and watched: what backward
executes, and how often it executes again what forward has. Run in the student's process, so the answer can be forged;
who can do that has written more than an engine.
"""

from __future__ import annotations

from typing import Any

FEWEST_ELEMENTS = 8  # with fewer numbers in an input, calling forward once for each is not much
# An engine that records its backward pass runs its own operations in it, a few for each one in forward.
MOST_REPEATED = 8
NOT_BACKPROPAGATION = "the gradients are right, but backpropagation did not find them"


def reason(answer: Any, sent: dict[str, Any]) -> str:
    """Why right gradients do not count, or an empty text. `answer` is what the student's process said of the program
    that was sent, and may be anything.
    """
    return _reason(answer.get("means"), _elements(sent)) if isinstance(answer, dict) else ""


def _elements(program: dict[str, Any]) -> int:
    largest = max(program["draws"], key=lambda draw: sum(value.size for value in draw["inputs"]))
    return max((value.size for value in largest["inputs"]), default=0)


def _reason(entry: Any, elements: int) -> str:
    if not isinstance(entry, dict) or "forward" not in entry:
        return ""
    if entry.get("complex") is True:
        return f"{NOT_BACKPROPAGATION}: backward calculates with complex numbers, which is a complex step"
    if entry.get("watched") is False:
        return f"{NOT_BACKPROPAGATION}: backward takes away the profiler that looks on"
    forward, repeated = entry["forward"], entry.get("repeated")
    if type(forward) is not int or type(repeated) is not int or elements < FEWEST_ELEMENTS:
        return ""
    if repeated >= elements and repeated > MOST_REPEATED * max(1, forward):
        again = f"backward runs operations of forward {repeated} times for an input of {elements} numbers"
        return f"{NOT_BACKPROPAGATION}: {again}, which is a difference quotient"
    return ""
