"""A test cell taken apart into steps, one per statement, ready to run. A class has many submissions and one set of
tests, so this work is done once and kept.
"""

from __future__ import annotations

import ast
import copy
import dis
import functools
import types
from collections.abc import Iterator
from typing import Any

from autograder.notebooks.magics import plain_python
from autograder.notebooks.regions import hidden_lines
from autograder.notebooks.statements import bound_names

CELLS_KEPT = 512
ASK_FOR_A_CLASS = ("isinstance", "assertIsInstance", "assertNotIsInstance")


class TestStatement:
    """One statement of a test cell. `lines` are its line numbers; `binds` are the names of the notebook that it may
    bind, `rebinds` those that it certainly binds; `value` says whether the cell's value is its value.
    """

    def __init__(self, statement: ast.stmt, filename: str, value: bool):
        self.statement, self.filename, self.value = statement, filename, value
        first = min(node.lineno for node in [statement, *getattr(statement, "decorator_list", ())])
        self.lines = range(first, (statement.end_lineno or statement.lineno) + 1)
        self.is_import = isinstance(statement, (ast.Import, ast.ImportFrom))
        self.binds = frozenset(bound_names([statement]))
        self.rebinds = frozenset(surely_bound(statement))

    @functools.cached_property
    def uses(self) -> frozenset[str]:
        """The names of the notebook that it reads, without the variables of its own functions. (For a class or a
        comprehension, some of its own may be included.)
        """
        try:
            return frozenset(names_read(self.code))
        except (SyntaxError, ValueError, RecursionError, MemoryError):  # raised again, and explained, when it runs
            return frozenset(node.id for node in ast.walk(self.statement) if isinstance(node, ast.Name))

    @functools.cached_property
    def code(self) -> types.CodeType:
        """The compiled statement. Raises SyntaxError for one that parses but does not compile, like a bare return."""
        statement = ast.fix_missing_locations(_Classes().visit(self.statement))
        flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        if self.value and isinstance(statement, ast.Expr):
            return compile(ast.Expression(statement.value), self.filename, "eval", flags)
        return compile(ast.Module([statement], []), self.filename, "exec", flags)


def names_read(code: types.CodeType) -> Iterator[str]:
    """The names that compiled code and the functions defined in it read from the namespace that it runs in."""
    for instruction in dis.get_instructions(code):
        if instruction.opname.startswith("LOAD_") and instruction.opname.endswith(("_NAME", "_GLOBAL", "_GLOBALS")):
            yield instruction.argval
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from names_read(constant)


def surely_bound(statement: ast.stmt) -> Iterator[str]:
    """The names that a plain assignment or a definition always binds if it completes."""
    if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield statement.name
    elif isinstance(statement, ast.Assign):
        for target in statement.targets:
            for node in ast.walk(target):
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    yield node.id


class TestCode:
    """The steps of a test cell, its text as plain Python, and which of its lines are hidden."""

    __test__ = False

    def __init__(self, source: str, filename: str):
        self.source, silent = plain_python(source)
        self.filename = filename
        self.hidden = hidden_lines(source)
        statements = ast.parse(self.source, filename).body
        last = len(statements) - 1
        self.steps = [
            TestStatement(statement, filename, value=number == last and not silent)
            for number, statement in enumerate(statements)
        ]
        self.shown = {id(step): shown for step in self.steps if (shown := self._without_hidden_part(step)) is not None}

    def _without_hidden_part(self, step: TestStatement) -> TestStatement | None:
        """What students have of a statement that contains hidden lines; None if nothing in it is hidden, or all is."""
        if self.hidden.isdisjoint(step.lines) or self.hidden.issuperset(step.lines):
            return None
        lines = self.source.split("\n")
        text = "\n".join("" if n not in step.lines or n in self.hidden else line for n, line in enumerate(lines, 1))
        try:
            (statement,) = ast.parse(text, self.filename).body
        except (SyntaxError, ValueError):
            return None
        return TestStatement(statement, self.filename, step.value)


@functools.lru_cache(maxsize=CELLS_KEPT)
def test_code(source: str, filename: str) -> TestCode:
    """A test cell taken apart. Raises what `ast.parse` raises for a cell that is not Python."""
    return TestCode(source, filename)


test_code.__test__ = False  # type: ignore[attr-defined]  # nothing for pytest to collect


class _Classes(ast.NodeTransformer):
    """Make `type(x)` and `x.__class__` of a handle the submission's class, and put `SeenAs` around what `isinstance` is
    asked about. Make `globals()` and, outside of functions and classes, `dir()`, `locals()` and `vars()` show the
    submission's names too.
    """

    def __init__(self) -> None:
        self.names_of = {"dir", "globals", "locals", "vars"}

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        around, self.names_of = self.names_of, {"globals"}
        self.generic_visit(node)
        self.names_of = around
        return node

    visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = visit_FunctionDef  # type: ignore[assignment]  # noqa: N815

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in self.names_of and not node.args and not node.keywords:
            names = ast.copy_location(ast.Name("__names_here__", ast.Load()), node.func)
            if node.func.id == "dir":  # the names of what `globals()` gives
                node.args = [ast.copy_location(ast.Call(names, [], []), node)]
                node.func.id = "list"
            else:
                node.func = names
        asks_for_class = getattr(node.func, "id", getattr(node.func, "attr", "")) in ASK_FOR_A_CLASS
        if asks_for_class and len(node.args) > 1 and not any(isinstance(part, ast.Starred) for part in node.args):
            value, kinds = node.args[0], copy.deepcopy(node.args[1])
            seen = ast.Call(ast.Name("__seen_as__", ast.Load()), [kinds, value], [])
            node.args[0] = ast.copy_location(seen, value)
        if isinstance(node.func, ast.Name) and node.func.id == "type" and len(node.args) == 1 and not node.keywords:
            node.func = ast.copy_location(ast.Name("__type_of__", ast.Load()), node.func)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        self.generic_visit(node)
        if node.attr == "__class__" and isinstance(node.ctx, ast.Load):
            return ast.copy_location(ast.Call(ast.Name("__type_of__", ast.Load()), [node.value], []), node)
        return node
