"""Small experiments with an engine, for what the values and gradients of one expression do not show: which tensors keep
a gradient, what is freed, what is recorded. Like the functions of `engine_protocol`, these travel into the sandbox, so
they are self-contained and return plain trees.

A probe is `probe(make, no_grad)`: `make(numbers)` gives a leaf that requires a gradient. It returns what it saw, by
description.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from autograder.runs.plain_values import described, plain

Probe = Callable[[Any, Any], dict[str, Any]]


def gradients_of_leaves_only(make: Any, no_grad: Any) -> dict[str, Any]:
    a = make([1.5, -2.0])
    b = a * a
    (b * b).sum().backward()
    return {"`a.grad` after (b * b).sum().backward(), where b = a * a": a.grad, "`b.grad`": b.grad}


def none_and_zero(make: Any, no_grad: Any) -> dict[str, Any]:
    a, b, c = make([1.5, -2.0]), make([0.5, 3.0]), make([2.5, 1.0])
    (a * 0.0 + b).sum().backward()
    return {
        "`a.grad` after (a * 0 + b).sum().backward()": a.grad,
        "`b.grad`": b.grad,
        "`c.grad`, where c took no part": c.grad,
    }


def freed_after_backward(make: Any, no_grad: Any) -> dict[str, Any]:
    a = make([1.5, -2.0])
    loss = (a * a).sum()
    loss.backward()
    return {"a second loss.backward(), where loss = (a * a).sum()": outcome(loss.backward)}


def retained_graph(make: Any, no_grad: Any) -> dict[str, Any]:
    a = make([1.5, -2.0])
    loss = (a * a).sum()
    loss.backward(retain_graph=True)
    second = outcome(loss.backward)
    return {
        "loss.backward() after loss.backward(retain_graph=True)": second,
        "`a.grad` after both": a.grad,
        "a third loss.backward()": outcome(loss.backward),
    }


def no_grad_and_after(make: Any, no_grad: Any) -> dict[str, Any]:
    a = make([1.5, -2.0])
    with no_grad():
        inside = a * a
        with no_grad():
            pass
        nested = a * a
    after = a * a
    try:
        with no_grad():
            raise KeyError
    except KeyError:
        pass
    after_error = a * a
    return {
        "requires_grad of a * a inside no_grad": inside.requires_grad,
        "after an inner no_grad has ended, inside the outer one": nested.requires_grad,
        "after no_grad": after.requires_grad,
        "after no_grad was left by an exception": after_error.requires_grad,
    }


def outcome(call: Callable[[], Any]) -> str:
    """Whether a call raises."""
    try:
        call()
    except Exception:
        return "raises"
    return "runs"


PROBES: dict[str, Probe] = {
    "gradients of leaves only": gradients_of_leaves_only,
    "None and zero": none_and_zero,
    "freed after backward": freed_after_backward,
    "retained graph": retained_graph,
    "no_grad": no_grad_and_after,
}


def run_probes(
    engine: Any, probes: list[Probe], no_grad: Any, caught: type[BaseException] = BaseException
) -> list[dict[str, Any]]:
    """Run every probe: {"seen": {...}} or {"error": {...}} each."""

    def make(numbers: Any) -> Any:
        return engine(np.array(numbers, dtype=np.float64), requires_grad=True)

    answers: list[dict[str, Any]] = []
    for probe in probes:
        try:
            answers.append({"seen": {key: plain(value, True) for key, value in probe(make, no_grad).items()}})
        except KeyboardInterrupt:
            raise
        except caught as error:
            answers.append({"error": described(error)})
    return answers
