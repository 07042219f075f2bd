"""How far a mistake in a solution reaches: the functions that it changes, and the test cells that call them.

A test cell that calls none of them in the solved lesson cannot notice the mistake, so nobody has to run it.
"""

from __future__ import annotations

import ast
import difflib
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FrameType

INSIDE = ".<locals>."


def functions_changed(before: str, after: str) -> set[str] | None:
    """The qualified names of the functions whose bodies differ. None if anything else differs: a signature, a class, a
    name of the module. Raises SyntaxError if either is not Python.
    """
    lines = before.splitlines(), after.splitlines()
    bodies = _bodies(ast.parse(before)), _bodies(ast.parse(after))
    found: set[str] = set()
    for tag, *ranges in difflib.SequenceMatcher(None, *lines, autojunk=False).get_opcodes():
        for text, body, (start, end) in zip(lines, bodies, (ranges[:2], ranges[2:]), strict=True):
            for line in range(start, end) if tag != "equal" else ():
                if text[line].strip():
                    inside = body.get(line + 1)
                    if inside is None:
                        return None
                    found.add(inside)
    return found


def _bodies(tree: ast.AST) -> dict[int, str]:
    """Line number -> the innermost function whose body it belongs to, without the line of its `def`."""
    found: dict[int, str] = {}

    def visit(node: ast.AST, scope: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef):
                first = max(child.body[0].lineno, child.lineno + 1)
                found.update(dict.fromkeys(range(first, (child.end_lineno or first) + 1), scope + child.name))
                visit(child, scope + child.name + INSIDE)
            else:
                visit(child, f"{scope}{child.name}." if isinstance(child, ast.ClassDef) else scope)

    visit(tree, "")
    return found


class CallRecord:
    """Which functions of some cells are called, and by whom: `by[caller]` holds (cell, qualified name)."""

    def __init__(self) -> None:
        self.by: dict[str, set[tuple[str, str]]] = {}
        self._followed: dict[int, tuple[str, CodeType]] = {}  # by identity: a hash of code reads all of it

    def follow(self, code: CodeType, cell: str) -> None:
        """Record from now on calls of the functions that a cell's code defines."""
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self._followed[id(constant)] = cell, constant
                self.follow(constant, cell)

    @contextmanager
    def of(self, caller: str) -> Iterator[None]:
        """Record what is called in the block. A function counts as called, too, if one that it defines is."""
        called: set[int] = set()
        followed = self._followed

        def note(frame: FrameType, event: str, argument: object) -> None:
            if (code := id(frame.f_code)) in followed:
                called.add(code)

        before = sys.gettrace()
        sys.settrace(note)
        threading.settrace(note)
        try:
            yield
        finally:
            sys.settrace(before)
            threading.settrace(before)  # type: ignore[arg-type]  # None is how it is taken away
            found = self.by.setdefault(caller, set())
            for cell, code in map(followed.__getitem__, called):
                parts = code.co_qualname.split(INSIDE)
                found.update((cell, INSIDE.join(parts[:count])) for count in range(1, len(parts) + 1))
