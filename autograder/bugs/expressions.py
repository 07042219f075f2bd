"""Expressions as text, such as "(a * b + a).tanh()": read, never run as Python, so they may come from a submission.

Inputs are a, b, c, ... in order. Only numbers, arithmetic operators, `@`, and methods of tensors are allowed.
"""

from __future__ import annotations

import ast
import operator
import string
from collections.abc import Callable
from typing import Any

from autograder.runs.errors import LessonError

LONGEST, LARGEST = 400, 1e6
BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.MatMult: operator.matmul,
}
METHODS = frozenset(
    (
        *("exp", "log", "tanh", "relu", "sigmoid", "sin", "cos", "sqrt", "abs", "sum", "mean", "max", "min"),
        *("softmax", "log_softmax", "reshape", "transpose"),
    )
)


def expression_of(text: str, inputs: int) -> Callable[..., Any]:
    """The function that an expression stands for. Raises LessonError for anything but an expression of the inputs."""
    if not isinstance(text, str) or len(text) > LONGEST:
        raise LessonError(f"an expression is a string of at most {LONGEST} characters, such as 'a * b + a'")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise LessonError(f"{text!r} is not an expression: {error}") from error
    names = string.ascii_lowercase[:inputs]
    for node in ast.walk(tree):
        _check(node, names, text)
    return lambda *leaves: _value(tree, dict(zip(names, leaves, strict=True)))


def _check(node: ast.AST, names: str, text: str) -> None:
    """Raise LessonError if a node is not allowed in an expression."""
    if isinstance(node, ast.Name) and node.id not in list(names):
        raise LessonError(f"{text!r}: {node.id!r} is not an input; the inputs are {', '.join(names)}")
    if isinstance(node, ast.Constant) and not _is_number(node.value):
        raise LessonError(f"{text!r}: {node.value!r:.20} is not allowed here")
    if isinstance(node, ast.Attribute) and node.attr not in METHODS:
        raise LessonError(f"{text!r}: there is no method {node.attr!r}; the methods are {', '.join(sorted(METHODS))}")
    if isinstance(node, ast.Call) and (not isinstance(node.func, ast.Attribute) or node.keywords):
        raise LessonError(f"{text!r}: only methods can be called, as in a.tanh()")
    allowed = (ast.Name, ast.Constant, ast.Attribute, ast.Call, ast.BinOp, ast.UnaryOp, ast.USub, ast.Load, *BINARY)
    if not isinstance(node, allowed):
        raise LessonError(f"{text!r}: {type(node).__name__} is not allowed in an expression")


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and abs(value) <= LARGEST


def _value(node: ast.AST, leaves: dict[str, Any]) -> Any:
    match node:
        case ast.Name():
            return leaves[node.id]
        case ast.Constant():
            return node.value
        case ast.BinOp():
            return BINARY[type(node.op)](_value(node.left, leaves), _value(node.right, leaves))
        case ast.UnaryOp():
            return -_value(node.operand, leaves)
        case ast.Call(func=ast.Attribute() as method):
            arguments = [_value(argument, leaves) for argument in node.args]
            return getattr(_value(method.value, leaves), method.attr)(*arguments)
    raise LessonError(f"{type(node).__name__} has no value")
