"""Reads the graph of a student's own engine: objects with `data`, `grad`, `inputs` and `operation`.

micrograd's names `_prev` and `_op` are understood too. What a node sends to its inputs comes from the object's own
`rule(gradient)` when it has one, so a wrong rule shows as it is; otherwise from the textbook, for known operations.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mini_autograd.drawing.formatting import symbol
from mini_autograd.drawing.graph import Draft, Graph, Rule, assemble, check_size, evaluation_order, is_scalar, plain

TEXTBOOK: dict[str, Callable[..., tuple[float, ...]]] = {
    "+": lambda out, a, b: (1.0, 1.0),
    "-": lambda out, a, b: (1.0, -1.0),
    "*": lambda out, a, b: (b, a),
    "/": lambda out, a, b: (1.0 / b, -a / (b * b)),
    "neg": lambda out, a: (-1.0,),
    "relu": lambda out, a: (float(a > 0),),
    "tanh": lambda out, a: (1.0 - out * out,),
    "exp": lambda out, a: (out,),
    "log": lambda out, a: (1.0 / a,),
    "sigmoid": lambda out, a: (out * (1.0 - out),),
}


def is_minitensor(candidate: Any) -> bool:
    """Whether the object looks like a node of a student's engine."""
    return hasattr(candidate, "data") and (hasattr(candidate, "inputs") or hasattr(candidate, "_prev"))


def read_minitensor(output: Any, names: Mapping[str, Any], limit: int | None, gradient: Any) -> Graph:
    """The graph behind a student's tensor; gradients and values come from the objects, which are not changed."""
    constants: dict[int, list[Any]] = {}

    def inputs_of(item: Any) -> list[Any]:
        # A number among the inputs is wrapped once per operation: small integers are shared objects in Python.
        if id(item) not in constants:
            constants[id(item)] = [entry if is_minitensor(entry) else _Constant(entry) for entry in _inputs(item)]
        return constants[id(item)]

    objects = evaluation_order(output, inputs_of)
    check_size(len(objects), limit)
    index = {id(item): position for position, item in enumerate(objects)}
    labels = {id(item): label for label, item in names.items()}
    drafts: list[Draft] = []
    for item in objects:
        inputs = tuple(index[id(entry)] for entry in inputs_of(item))
        drafts.append(_draft(item, inputs, [drafts[position] for position in inputs], labels.get(id(item), "")))
    seed = drafts[-1].stored if gradient is None else plain(gradient)
    if seed is None or not np.any(seed):
        seed = np.ones(drafts[-1].shape or ())[()]
    return assemble(drafts, seed)


class _Constant:
    """A plain number among the inputs of an operation."""

    def __init__(self, value: Any) -> None:
        self.data = value
        self.inputs = ()


def _inputs(item: Any) -> tuple[Any, ...]:
    found = getattr(item, "inputs", None)
    if found is None:
        found = getattr(item, "_prev", None)
    if found is None or callable(found):
        return ()
    return tuple(found) if isinstance(found, (tuple, list, set, frozenset)) else (found,)


def _operation(item: Any) -> str:
    found = getattr(item, "operation", None)
    if found is None:
        found = getattr(item, "_op", None)
    return str(found or "")


def _draft(item: Any, inputs: tuple[int, ...], sources: list[Draft], label: str) -> Draft:
    value = plain(item.data)
    shape = getattr(value, "shape", ()) if value is not None else None
    if not inputs:
        constant = isinstance(item, _Constant) or getattr(item, "requires_grad", True) is False
        kind, stored = ("constant", None) if constant else ("leaf", plain(getattr(item, "grad", None)))
        return Draft(kind, name=label, shape=shape, value=value, stored=stored)  # type: ignore[arg-type]
    operation = _operation(item)
    sign = symbol(operation)
    if sign == "-" and len(inputs) == 1:
        sign = "neg"
    if sign == "**" and len(inputs) == 1:
        sign += _exponent(sources[0].value, value)
    stored = plain(getattr(item, "grad", None))
    rule = _own_rule(item) or _textbook_rule(sign, value, sources)
    return Draft("operation", inputs, label, sign or "?", operation, shape, value, stored, rule)


def _own_rule(item: Any) -> Rule | None:
    """The object's `rule`, guarded: a rule that adds into `.grad` instead of returning must leave no trace."""
    rule = getattr(item, "rule", None)
    if not callable(rule):
        return None

    def guarded(gradient: Any) -> Any:
        touched = [entry for entry in (item, *_inputs(item)) if hasattr(entry, "grad")]
        before = [entry.grad for entry in touched]
        try:
            sent = rule(gradient)
        finally:
            for entry, grad in zip(touched, before, strict=True):
                entry.grad = grad
        return sent if sent is None or isinstance(sent, (tuple, list)) else (sent,)

    return guarded


def _textbook_rule(sign: str, value: Any, sources: list[Draft]) -> Rule | None:
    values = [source.value for source in sources]
    if not all(is_scalar(entry) for entry in (value, *values)):
        return None
    derivative = TEXTBOOK.get(sign) or (_power_derivative(sign) if sign.startswith("**") else None)
    if derivative is None:
        return None
    return lambda gradient: tuple(gradient * local for local in derivative(value, *values))


def _exponent(base: Any, out: Any) -> str:
    """The exponent of base**n, computed from base and result; empty if these do not determine it (0, 1, overflow)."""
    try:
        n = round(math.log(abs(out)) / math.log(abs(base)), 6)
        return f"{n:g}" if math.isclose(base**n, out, rel_tol=1e-6) else ""
    except (TypeError, ValueError, ArithmeticError):
        return ""


def _power_derivative(sign: str) -> Callable[..., tuple[float, ...]]:
    """For x**n with the exponent written in the sign ("**2") or given as a second input; otherwise it is unknown."""
    written = re.fullmatch(r"\*\*\s*\(?(-?[\d.]+)\)?", sign)

    def derivative(out: float, base: float, exponent: float | None = None) -> tuple[float, ...]:
        if exponent is not None:
            return exponent * base ** (exponent - 1), (out * math.log(base) if base > 0 else math.nan)
        if written is None:
            raise ValueError("the exponent is not known")
        n = float(written[1])
        return (n * base ** (n - 1),)

    return derivative
