"""The statements of a cell, and the names that they bind."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import lru_cache

from autograder.notebooks.regions import LINE_END


@lru_cache(maxsize=1024)
def tree_of(source: str) -> ast.Module:
    """The syntax tree of a source text, for those who only read it: many look at the same cells. Raises what
    `ast.parse` raises."""
    return ast.parse(source)


def parse(source: str) -> list[ast.stmt]:
    """The statements of a cell, for those who only read them; none if it is not plain Python even after IPython's own
    syntax is taken out."""
    try:
        return tree_of(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        lines = (("pass" if line.lstrip()[:1] in ("%", "!", "?") else line) for line in LINE_END.split(source))
        try:
            return tree_of("\n".join(lines)).body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return []


def bound_names(statements: Iterable[ast.stmt]) -> set[str]:
    """Names that statements bind at the level of the cell."""
    found: set[str] = set()
    todo: list[ast.AST] = list(statements)
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found.update(alias.asname or alias.name.partition(".")[0] for alias in node.names)
        else:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
            if not isinstance(node, (ast.Lambda, ast.GeneratorExp, ast.ListComp, ast.SetComp, ast.DictComp)):
                todo.extend(ast.iter_child_nodes(node))
    return found
