"""The source of a file of cases, `checks_NN.py`, and which of its statements students do not get: hidden cases, and the
definitions that only these use.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from autograder.notebooks.statements import bound_names

NAME = re.compile(r"[^\W\d]\w*")
DEFINITION = (ast.FunctionDef, ast.ClassDef, ast.Assign)
TITLE = re.compile(r"^\s*# .*$", re.MULTILINE)


@dataclass(frozen=True)
class HiddenStatement:
    """A statement that adds hidden cases to a check, which the file calls `variable`, or what these need."""

    check: str
    variable: str
    source: str
    lines: range


def cases_file(text: Path) -> Path:
    """The file of cases beside a lesson's text, whether it exists or not."""
    return text.with_name(f"checks_{text.stem[:2]}.py")


@lru_cache(maxsize=64)  # each test cell of a lesson asks for those in the same file
def hidden_statements(source: str) -> tuple[HiddenStatement, ...]:
    """The statements of the form `check.hidden(...)` or `check.gradients(..., hidden=True)`, and before those of each
    check the definitions that they use and no visible case does, as `check.define(...)`. Raises SyntaxError.
    """
    lines, body = source.splitlines(), ast.parse(source).body
    calls = {statement: check for statement, check in _with_their_checks(body) if _is_hidden(statement)}
    defining = [each for each in body if isinstance(each, DEFINITION) and not _check_made(each)]
    definitions = {name: each for each in defining for name in bound_names([each])}
    visible = {definitions[name] for name in _used([each for each in body if each not in calls], definitions)}
    found: list[HiddenStatement] = []
    for check in dict.fromkeys(calls.values()):
        own = [statement for statement, of in calls.items() if of == check]
        variable = ast.unparse(own[0].value.func.value)  # type: ignore[attr-defined]
        needed = {definitions[name] for name in _used(own, definitions)} - visible
        for statement in body:
            numbers = range(_first_line(statement), (statement.end_lineno or statement.lineno) + 1)
            *before, last = (lines[number - 1] for number in numbers)
            text = "\n".join([*before, last.encode()[: statement.end_col_offset].decode()])
            if statement in needed:
                found.append(HiddenStatement(check, variable, f"{variable}.define({text!r})", numbers))
            elif statement in own:
                found.append(HiddenStatement(check, variable, text, numbers))
    return tuple(found)


def without_hidden_cases(source: str) -> str:
    """A file of cases as students get it. Raises SyntaxError."""
    hidden = {line for statement in hidden_statements(source) for line in statement.lines}
    lines = source.splitlines(keepends=True)
    return "".join(line for number, line in enumerate(lines, 1) if number not in hidden)


def _with_their_checks(body: Sequence[ast.stmt]) -> Iterator[tuple[ast.stmt, str]]:
    """Each statement that calls a method of a check, and the name of that check."""
    checks: dict[str, str] = {}  # variable -> the name of the check that it stands for by now
    for statement in body:
        if name := _check_made(statement):
            checks |= dict.fromkeys(bound_names([statement]), name)
        call = getattr(statement, "value", None)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute):
            yield statement, checks.get(ast.unparse(call.func.value), "")


def _check_made(statement: ast.stmt) -> str:
    """The name of the check that a statement makes, if it does."""
    value: Any = getattr(statement, "value", None)
    made = isinstance(value, ast.Call) and getattr(value.func, "id", "") == "Check"
    return str(ast.literal_eval(value.args[0])) if made else ""


def _is_hidden(statement: ast.stmt) -> bool:
    call: ast.Call = statement.value  # type: ignore[attr-defined]
    named = any(k.arg == "hidden" and getattr(k.value, "value", True) is not False for k in call.keywords)
    return named or getattr(call.func, "attr", "") == "hidden"


def _used(statements: Iterable[ast.stmt], definitions: Mapping[str, ast.stmt]) -> set[str]:
    """The defined names that statements use, in the steps of cases, too, and what the definitions of these use."""
    used: set[str] = set()
    waiting = [name for each in statements if each not in definitions.values() for name in _names(each)]
    while waiting:
        name = waiting.pop()
        if name in definitions and name not in used:
            used.add(name)
            waiting += _names(definitions[name])
    return used


def _names(statement: ast.stmt) -> Iterator[str]:
    for node in ast.walk(statement):
        if isinstance(node, ast.Name):
            yield node.id
        text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""
        if ">>> " in text or _check_made(statement):  # steps
            yield from NAME.findall(TITLE.sub("", text))


def _first_line(statement: ast.stmt) -> int:
    return min([statement.lineno, *(each.lineno for each in getattr(statement, "decorator_list", ()))])
