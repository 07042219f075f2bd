"""Finds test cells that throw the points of their checks away. Reads source text only.

A check that is given `points` returns what was earned and never raises, and a test cell's value is that of its last
line. A cell without that line has no value, and to nbgrader a cell without a value has passed: every notebook would get
full marks, right or wrong. So such a cell is refused before a student sees it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from typing import TypeGuard

from autograder.notebooks.regions import without_hidden_tests
from autograder.notebooks.statements import tree_of

POINTS_GIVING = {
    *("check_gradients", "check_handwritten_gradient", "check_tangents", "check_function"),
    *("check", "expose", "quiz"),
}
SHOWING = {"print", "display"}


@lru_cache(maxsize=4096)  # the builder and the release both ask
def unclaimed_points(source: str) -> tuple[int, str] | None:
    """The line of a test cell and what to write there, if the points from its checks do not become the cell's value;
    None if all is well. A cell that uses these points itself, as in `assert credit > 1`, is left alone.

    Source that is not plain Python gives None.
    """
    if "points" not in source:
        return None
    try:
        statements = tree_of(source).body
    except (SyntaxError, ValueError):
        return None
    given = [node for statement in statements for node in ast.walk(statement) if gives_points(node)]
    if not given:
        return None
    held = set(_holding(statements))
    if lost := _lost_on_the_way(statements, held):
        return lost
    if _is_value(statements[-1]) or _used_otherwise(statements, held):
        return None
    return _no_last_line(source, statements, given[0])


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


def _holding(statements: list[ast.stmt]) -> Iterator[str]:
    """The names to which points are assigned, in the order of the text."""
    for node in _assignments(statements):
        if node.value is not None and any(map(gives_points, ast.walk(node.value))):
            yield from _names(node, ast.Store)


def _assignments(statements: list[ast.stmt]) -> Iterator[ast.Assign | ast.AugAssign | ast.AnnAssign]:
    for statement in statements:
        for node in ast.walk(statement):
            if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign):
                yield node


def _names(node: ast.AST, context: type[ast.expr_context]) -> Iterator[str]:
    return (part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, context))


def _lost_on_the_way(statements: list[ast.stmt], held: set[str]) -> tuple[int, str] | None:
    """Points lost before the last line: by a check on a line of its own, or by a name that is assigned new points."""
    full: set[str] = set()
    for statement in statements:
        alone = isinstance(statement, ast.Expr) and gives_points(statement.value)
        if alone and statement is not statements[-1]:
            wanted = "credit = credit + ..." if full else "credit = ..."
            return (
                statement.lineno,
                f"the points of this check are lost; write `{wanted}`, and `credit` as the last line",
            )
        if isinstance(statement, ast.Assign) and any(map(gives_points, ast.walk(statement.value))):
            for name in set(_names(statement, ast.Store)) & full - set(_names(statement, ast.Load)):
                return statement.lineno, f"the points that `{name}` had are lost; write `{name} = {name} + ...`"
        full |= held & set(_names(statement, ast.Store))
    return None


def _is_value(last: ast.stmt) -> bool:
    """Whether a last statement can be a number of points."""
    return isinstance(last, ast.Expr) and not isinstance(last.value, ast.Constant) and called(last.value) not in SHOWING


def _used_otherwise(statements: list[ast.stmt], held: set[str]) -> bool:
    """Whether the cell itself decides something by the points of its checks."""
    decisions = [
        node.test
        for statement in statements
        for node in ast.walk(statement)
        if isinstance(node, ast.Assert | ast.If | ast.While | ast.IfExp)
    ]
    return any(held & set(_names(test, ast.Load)) or any(map(gives_points, ast.walk(test))) for test in decisions)


def _no_last_line(source: str, statements: list[ast.stmt], first: ast.AST) -> tuple[int, str]:
    """The complaint, with the name that holds the points if there is one."""
    held = list(_holding(statements))
    name = held[-1] if held else "credit"
    write = f"write `{name}` as its last line"
    if held and name not in _holding(tree_of(without_hidden_tests(source)).body):
        write += ", before END HIDDEN TESTS"  # students do not have the name
    if not held:
        line = getattr(first, "lineno", 1)
        write = f"keep what the check in line {line} gives, as in `credit = {called(first)}(...)`, and {write}"
    last = statements[-1].end_lineno or statements[-1].lineno
    return (
        last,
        f"the points of its checks are lost, so every answer, right or wrong, would get full marks; {write}",
    )
