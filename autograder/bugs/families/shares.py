"""Small tools for wrong rules: the gradients that a rule returns, one per input, and how they are changed.

A right rule returns one gradient, or a tuple of them in which None stands for a gradient that is not needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from autograder.runs.reference_patch import Rule, WrongRule


def each(result: Any, change: Callable[[Any], Any]) -> Any:
    """The result of a rule with every gradient changed."""
    if isinstance(result, tuple):
        return tuple(None if share is None else change(share) for share in result)
    return change(result)


def ones(grad: Any) -> Any:
    """An incoming gradient of ones."""
    return grad * 0.0 + 1.0


def local(right: Rule, grad: Any) -> Any:
    """The derivatives of an elementwise operation, without the incoming gradient."""
    return right(ones(grad))


def slope(derivative: Callable[[Any, Any], Any]) -> WrongRule:
    """The rule `grad * derivative(x, output)` of an operation with one input."""

    def wrong(right: Rule, call: Any, grad: Any) -> Any:
        return grad * derivative(call.inputs[0], call.output)

    return wrong
