"""Which calls in a test cell give points, and whether the cell asks for anything. Reads source text only."""

from __future__ import annotations

import ast
from typing import TypeGuard

from autograder.notebooks.statements import tree_of

POINTS_GIVING = {
    *("check_gradients", "check_handwritten_gradient", "check_tangents", "check_function"),
    *("check", "expose", "quiz"),
}
SHOWING = {"print", "display"}


def asserts_nothing(source: str) -> bool:
    """Whether a test cell can cost an answer points only by an error on the way: it asserts and raises nothing, calls
    nothing that might, and its last line is no number. Cells that are not plain Python may do anything.
    """
    try:
        statements = tree_of(source).body
    except (SyntaxError, ValueError):
        return False
    nodes = [node for statement in statements for node in ast.walk(statement)]
    asks = any(isinstance(node, ast.Assert | ast.Raise) for node in nodes)
    calls = any(isinstance(node, ast.Call) and called(node) not in SHOWING for node in nodes)
    return not asks and not calls and not (statements and _is_value(statements[-1]))


def gives_points(node: ast.AST) -> TypeGuard[ast.Call]:
    """Whether a node is a call of a check with `points`."""
    if not isinstance(node, ast.Call) or called(node) not in POINTS_GIVING:
        return False
    values = [keyword.value for keyword in node.keywords if keyword.arg == "points"]
    return bool(values) and not (isinstance(values[0], ast.Constant) and values[0].value is None)


def called(node: ast.AST) -> str:
    """The name of the function or method that is called, or nothing."""
    if not isinstance(node, ast.Call):
        return ""
    return node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")


def _is_value(last: ast.stmt) -> bool:
    """Whether a last statement can be a number of points."""
    return isinstance(last, ast.Expr) and not isinstance(last.value, ast.Constant) and called(last.value) not in SHOWING
