"""Upstream: what a rule does with the gradient that arrives, and what the backward pass starts with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from autograder.bugs.bug import Bug, Variant
from autograder.bugs.families.reduction import combined
from autograder.bugs.families.shares import each, local, ones
from autograder.runs.reference_patch import OPERATIONS, Call, Rule, WrongRule, engine_changed
from mini_autograd.graph import backward as engine
from mini_autograd.graph.function import GraphRoot

ELEMENTWISE = (
    *("Add", "Subtract", "Multiply", "Divide", "Negate", "Power", "Exp", "Log", "Tanh", "Relu", "Sigmoid", "Sqrt"),
    *("Abs", "Sin", "Cos", "Maximum", "Minimum"),
)
BASIC = (*ELEMENTWISE, "Sum", "Mean", "MatMul")
OF_TWO = ("Add", "Subtract", "Multiply", "Divide", "Maximum", "Minimum", "MatMul")


def ignore_upstream(right: Rule, call: Call, grad: Any) -> Any:
    return right(ones(grad))


def ignore_upstream_in_a_sum(right: Rule, call: Call, grad: Any) -> Any:
    """The result for a mean that is a sum divided by N, if the rule of the sum is the wrong one."""
    return right(ones(grad)) * combined(call)


def ignored_for(position: int) -> WrongRule:
    """A wrong rule: of the gradients of two inputs, one is the local derivative alone."""

    def wrong(right: Rule, call: Call, grad: Any) -> Any:
        shares, derivatives = right(grad), right(ones(grad))
        if not isinstance(shares, tuple):
            return shares
        return (*shares[:position], derivatives[position], *shares[position + 1 :])

    return wrong


upstream_ignored = Bug(
    explanation="the gradient that arrives at the output is ignored: only the local derivative is passed on",
    hint="What would change in your numbers if the output mattered ten times as much to the final result?",
    misconception="The gradient of an input is the local derivative.",
    said_in="in the rule{s} of {rules}, or where `backward` calls a rule,",
    look_at="{where}, and at what `backward` passes to it",
    rules={name: ignore_upstream for name in OPERATIONS if name not in ("Where", "Put")},
    forms=(
        {"Sum": ignore_upstream, "Mean": ignore_upstream_in_a_sum},
        dict.fromkeys(OF_TWO, ignored_for(0)),
        dict.fromkeys(OF_TWO, ignored_for(1)),
    ),
)


def add_upstream(right: Rule, call: Call, grad: Any) -> Any:
    return each(local(right, grad), lambda derivative: derivative + grad)


upstream_added = Bug(
    explanation="the incoming gradient is added to the local derivative, but it must be multiplied by it",
    hint="The chain rule for c = f(b), b = g(a): are the two slopes added or multiplied?",
    misconception="Gradients along a path add up.",
    rules=dict.fromkeys(ELEMENTWISE, add_upstream),
)

upstream_used_twice = Bug(
    explanation="the local derivative is multiplied by the incoming gradient twice",
    hint="Let the incoming gradient be 3 and the slope 1. Does the rule give 3 or 9?",
    misconception="Both the rule and the place that calls it have to apply the incoming gradient.",
    rules={name: lambda right, call, grad: right(grad * grad) for name in (*BASIC, "Transpose", "Reshape", "Index")},
)

output_for_upstream = Bug(
    explanation="the rule multiplies by the value of the output (`out.data`) instead of by its gradient (`out.grad`)",
    hint="Which attribute of the output holds what arrives from the rest of the graph?",
    misconception="What flows backwards is the value.",
    rules={name: lambda right, call, grad: right(ones(grad) * call.output) for name in BASIC},
)


def collapsed(summary: Callable[[Any], Any]) -> Any:
    return lambda right, call, grad: right(ones(grad) * summary(grad))


upstream_collapsed = Bug(
    explanation="every element gets the sum (or mean) of all incoming gradients, but it needs only its own",
    hint="Suppose that only one element of the output matters. Which elements of the input should get a gradient?",
    misconception="The incoming gradient is one number.",
    rules={name: collapsed(np.sum) for name in ELEMENTWISE},
    forms=({name: collapsed(np.mean) for name in ELEMENTWISE},),
)

rule_not_connected = Bug(
    explanation=(
        "no gradient is passed on at all: the rule is empty or was never attached to its output, a `return` is missing "
        "in it or in a function that it calls, the rule or `backward` uses a `.grad` that is still 0, or `backward` "
        "ends too early, visits the nodes from the leaves to the output, or adds to the `.grad` of another node"
    ),
    hint="Print what the rule returns. Is the rule ever called, and does its result arrive at the inputs?",
    misconception="The engine finds the rule of an operation by itself.",
    rules={name: lambda right, call, grad: right(grad * 0.0) for name in (*BASIC, "Reshape", "Transpose", "Permute")},
    drops_gradients=True,
)


def _started_with_ones() -> AbstractContextManager[None]:
    right_send = engine.send

    def send(pending: Any, node: Any, grads: Sequence[Any]) -> None:
        right_send(pending, node, [ones(grad) for grad in grads] if type(node) is GraphRoot else grads)

    return engine_changed(send=send)


seed_ignored = Bug(
    explanation="`backward(gradient)` starts with 1 and ignores the gradient that it is given",
    hint="Call `backward` with the gradient 10. Where in your code does that number appear?",
    misconception="A backward pass always starts with 1.",
    look_at="the gradient that `backward` starts with",
    engine=lambda present: [Variant((), (_started_with_ones,))],
    engine_operations=tuple(OPERATIONS),
)
