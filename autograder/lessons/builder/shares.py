"""What the first line of a test cell says about its points: how many of them hidden tests decide about."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from autograder.notebooks.giving_points import called, gives_points
from autograder.notebooks.regions import hidden_lines
from autograder.notebooks.statements import parse

# JupyterLab folds a test cell to its first line, and does not wrap that line.
APART = ": {:g} here, {:g} in hidden tests"
TOO = "; hidden tests count too"
INPUTS = {"between", "positive"}
ALL = ", all or none; hidden tests count too"


def points_of_test(source: str, points: float) -> str:
    """The points of a test cell in words. Its card shows only those of the tests that a student has."""
    return f"{points:g} point" + "s" * (points != 1) + _hidden_share(parse(source), hidden_lines(source), points)


def _hidden_share(statements: Sequence[ast.stmt], hidden: frozenset[int], points: float) -> str:
    nodes = [node for statement in statements for node in ast.walk(statement)]
    tests = [node for node in nodes if isinstance(node, ast.stmt) and node.lineno in hidden]
    if not tests:
        return ""
    named = [(node.lineno, amount) for node in nodes if gives_points(node) for amount in _amounts(node)]
    here = sum(amount for line, amount in named if line not in hidden)
    simple = all(test in statements and _only_adds(test) for test in tests if not _within_another(test, tests))
    if simple and 0 < here < points == sum(amount for _, amount in named) and _has_value(statements):
        return APART.format(here, points - here)
    return TOO if _has_value(statements) else ALL


def _amounts(check: ast.Call) -> Iterator[float]:
    """The number that a check is given as its points, if it stands there as a number."""
    for keyword in check.keywords:
        if keyword.arg == "points" and isinstance(keyword.value, ast.Constant):
            amount = keyword.value.value
            if isinstance(amount, int | float):
                yield amount


def _within_another(test: ast.stmt, tests: Sequence[ast.stmt]) -> bool:
    return any(test is not other and test in ast.walk(other) for other in tests)


def _only_adds(statement: ast.stmt) -> bool:
    """Whether a statement can neither raise nor take points away: a definition, or one that adds what a check gives."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom):
        return True
    if not isinstance(statement, ast.Assign | ast.AugAssign):
        return False
    parts = list(_now(statement.value))
    calls = [part for part in parts if isinstance(part, ast.Call) and not gives_points(part)]
    harmless = all(called(call) in INPUTS or ast.unparse(call).startswith("np.") for call in calls)
    return harmless and not any(isinstance(part, ast.IfExp) for part in parts)


def _now(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of an expression that run with it: not those of a function that it makes."""
    yield node
    if not isinstance(node, ast.Lambda):
        for child in ast.iter_child_nodes(node):
            yield from _now(child)


def _has_value(statements: Sequence[ast.stmt]) -> bool:
    """Whether the last line can be a number of points. A cell without one gives all points unless it raises."""
    last = statements[-1]
    if not isinstance(last, ast.Expr) or isinstance(last.value, ast.Compare | ast.BoolOp | ast.Constant):
        return False
    name = called(last.value)
    functions = [each for each in statements if isinstance(each, ast.FunctionDef) and each.name == name]
    return all(_returns_something(function) for function in functions)


def _returns_something(function: ast.FunctionDef) -> bool:
    return any(isinstance(node, ast.Return) and node.value is not None for node in ast.walk(function))
