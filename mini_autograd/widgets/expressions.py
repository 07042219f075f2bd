"""Expressions that a reader types, such as `(a*b + a).tanh()`, computed with the tensors of any engine.

Only names, numbers, lists, operators, indices and calls are understood; an expression cannot import, assign, or reach
an attribute that begins with an underscore.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.MatMult: operator.matmul,
}
UNARY: dict[type, Callable[[Any], Any]] = {ast.USub: operator.neg, ast.UAdd: operator.pos}
NO_GRAD = "no_grad"


class ExpressionError(ValueError):
    """The typed text is not an expression, or uses something that expressions do not support."""


def parsed(text: str) -> ast.expr:
    """The tree of an expression. Raises ExpressionError for anything that is not one."""
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError) as error:
        reason = error.msg if isinstance(error, SyntaxError) else str(error)
        raise ExpressionError(f"This is not an expression ({reason}). Type one such as (a*b + a).tanh().") from None


def names_used(tree: ast.expr) -> tuple[str, ...]:
    """The names that need a value, in reading order."""
    functions = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in functions]
    return tuple(dict.fromkeys(node.id for node in sorted(found, key=lambda node: (node.lineno, node.col_offset))))


def computed(tree: ast.expr, tensors: Mapping[str, Any], no_grad: Callable[[], AbstractContextManager[Any]]) -> Any:
    """The value of an expression. `tanh(a)` is `a.tanh()`; `no_grad(...)` computes its argument under `no_grad`.

    Raises ExpressionError for syntax that expressions do not support; the engine's own errors pass through.
    """

    def value(node: ast.expr) -> Any:
        match node:
            case ast.Name(id=name) if name in tensors:
                return tensors[name]
            case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
                return number
            case ast.BinOp(left=left, op=op, right=right) if type(op) in BINARY:
                return BINARY[type(op)](value(left), value(right))
            case ast.UnaryOp(op=op, operand=operand) if type(op) in UNARY:
                return UNARY[type(op)](value(operand))
            case ast.BinOp(op=ast.BitXor()):
                raise ExpressionError(f"^ is not a power here: write {ast.unparse(node).replace('^', '**')}.")
            case ast.List(elts=items):
                return [value(item) for item in items]
            case ast.Tuple(elts=items):
                return tuple(value(item) for item in items)
            case ast.Subscript(value=whole, slice=index):
                return value(whole)[value(index)]
            case ast.Slice(lower=lower, upper=upper, step=step):
                return slice(*(None if part is None else value(part) for part in (lower, upper, step)))
            case ast.Call(func=ast.Name(id=name), args=[argument], keywords=[]) if name == NO_GRAD:
                with no_grad():
                    return value(argument)
            case ast.Call(func=ast.Name(id=name), args=[first, *rest], keywords=keywords) if name[:1] != "_":
                return method(value(first), name)(*map(value, rest), **options(keywords))
            case ast.Call(func=ast.Attribute(value=owner, attr=name), args=args, keywords=keywords) if name[:1] != "_":
                return method(value(owner), name)(*map(value, args), **options(keywords))
        raise ExpressionError(
            f"{ast.unparse(node)} cannot be used in an expression here: use names, numbers, operators and calls "
            "such as tanh(a)."
        )

    def options(keywords: list[ast.keyword]) -> dict[str, Any]:
        return {keyword.arg: value(keyword.value) for keyword in keywords if keyword.arg}

    return value(tree)


def method(owner: Any, name: str) -> Callable[..., Any]:
    """A method of a tensor. Raises ExpressionError, with a message for readers, if there is none of that name."""
    found = getattr(owner, name, None)
    if not callable(found):
        raise ExpressionError(f"This engine's {type(owner).__name__} has no operation {name!r}.")
    return found
