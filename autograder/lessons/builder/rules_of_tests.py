"""The rules for test cells and their points: one function each, raising `LessonTextError` (see `rules.py`)."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from autograder.lessons.builder.lesson_files import LessonTextError
from autograder.lessons.builder.text import TextCell, syntax_tree
from autograder.notebooks.giving_points import POINTS_GIVING, called, gives_points
from autograder.notebooks.statements import bound_names, tree_of

GRADIENT_CHECKS = {"check_gradients", "check_handwritten_gradient", "check_tangents", "check_function"}


def graded_cells_have_points(cells: Sequence[TextCell]) -> None:
    for cell in cells:
        points = cell.nbgrader.get("points")
        if cell.nbgrader.get("grade"):
            if points is None:
                raise cell.error("a graded cell needs points")
            if isinstance(points, bool) or not isinstance(points, int | float) or not 0 < points < 1000:
                raise cell.error(f"points must be a positive number, not {points!r}")
        elif points is not None:
            raise cell.error('points without "grade": true')


def points_in_a_test_add_up(cells: Sequence[TextCell]) -> None:
    """The points given to the checks of a test cell must sum to the points of the cell."""
    for cell in cells:
        if not cell.is_test or cell.kind != "code" or "quiz" in cell.tags or "points" not in cell.source:
            continue
        found = list(_points_of_checks(syntax_tree(cell)))
        total = cell.nbgrader["points"]
        if found and None not in found and abs(sum(p for p in found if p is not None) - total) > 1e-9:
            raise cell.error(
                f"the checks give {sum(p for p in found if p is not None)} points, but the cell has {total}"
            )


def tests_assert(cells: Sequence[TextCell]) -> None:
    """A test without a value gives all points unless it raises, and a comparison alone does not raise."""
    for cell in cells:
        if not cell.is_test or cell.kind != "code" or "quiz" in cell.tags:
            continue
        if cell.source.lstrip().startswith("%%"):
            raise cell.error("a test cell cannot begin with a cell magic: its first line is written by the builder")
        for node in ast.walk(syntax_tree(cell)):
            alone = node.value if isinstance(node, ast.Expr) else None
            negated = isinstance(alone, ast.UnaryOp) and isinstance(alone.op, ast.Not)
            if alone and (negated or isinstance(alone, ast.Compare | ast.BoolOp)):
                nothing = "a condition on a line of its own tests nothing, so every answer passes; write `assert`"
                raise cell.error(nothing, alone.lineno)


def checks_exist(cells: Sequence[TextCell]) -> None:
    """A misspelled check in a test would cost every student its points."""
    code = [cell for cell in cells if cell.kind == "code" and "quiz" not in cell.tags]
    known = {name for name in POINTS_GIVING if name.startswith("check_")}
    for cell in code:
        for node in ast.walk(syntax_tree(cell)) if cell.is_test and "check_" in cell.source else ():
            named = node.func if isinstance(node, ast.Call) else None
            if not isinstance(named, ast.Name) or not named.id.startswith("check_") or named.id in known:
                continue
            if named.id not in bound_names(statement for each in code for statement in syntax_tree(each).body):
                raise cell.error(f"there is no {named.id}; the checks are {', '.join(sorted(known))}", named.lineno)


def cases_hide_no_names(cells: Sequence[TextCell], file: Path, engine: Collection[str]) -> None:
    """A step that names a function of its file gets that one, whatever the student has written under the name. `engine`
    are the names of the engine.
    """
    code = [cell for cell in cells if cell.kind == "code" and "quiz" not in cell.tags and not cell.style]
    taken = bound_names(statement for cell in code for statement in syntax_tree(cell).body) | {*engine}
    for statement in ast.parse(file.read_text(encoding="utf-8")).body if file.is_file() else ():
        if isinstance(statement, ast.FunctionDef | ast.ClassDef) and statement.name in taken:
            hides = f"{statement.name!r} hides what the notebook calls so from the cases; choose another name"
            raise LessonTextError(f"{file.name}:{statement.lineno}: {hides}")


def gradient_checks(source: str) -> bool:
    """Whether a test cell's source checks gradients (then zeros must score nothing)."""
    return any(called(node) in GRADIENT_CHECKS for node in ast.walk(tree_of(source)))


def _points_of_checks(tree: ast.AST) -> Iterator[float | None]:
    """The points that each check of a cell gives; None for what cannot be known without running it."""
    repeated = (ast.For, ast.While, ast.ListComp, ast.GeneratorExp, ast.FunctionDef)
    for node in ast.walk(tree):
        if isinstance(node, repeated) and any(map(gives_points, ast.walk(node))):
            yield None
        if isinstance(node, ast.AugAssign) and not any(map(gives_points, ast.walk(node.value))):
            yield None  # points that the cell itself counts
        for keyword in node.keywords if isinstance(node, ast.Call) and gives_points(node) else ():
            if keyword.arg == "points":
                value = keyword.value.value if isinstance(keyword.value, ast.Constant) else None
                yield float(value) if isinstance(value, int | float) else None
