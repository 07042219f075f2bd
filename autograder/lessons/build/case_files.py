"""The source of a file of cases, `checks_NN.py`, and which of its statements students do not get."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path


@dataclass(frozen=True)
class HiddenStatement:
    """A statement that adds hidden cases to a check, which the file calls `variable`."""

    check: str
    variable: str
    source: str
    lines: range


def cases_file(text: Path) -> Path:
    """The file of cases beside a lesson's text, whether it exists or not."""
    return text.with_name(f"checks_{text.stem[:2]}.py")


@lru_cache(maxsize=64)  # each test cell of a lesson asks for those in the same file
def hidden_statements(source: str) -> tuple[HiddenStatement, ...]:
    """The statements of the form `check.hidden(...)` or `check.gradients(..., hidden=True)`. Raises SyntaxError."""
    found = []
    lines = source.splitlines(keepends=True)
    checks: dict[str, str] = {}  # variable -> the name of the check that it stands for by now
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.Assign) and _called(statement.value) == "Check":
            name = statement.value.args[0]  # type: ignore[attr-defined]
            checks |= {target.id: name.value for target in statement.targets if isinstance(target, ast.Name)}
        call = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and _is_hidden(call):
            variable = ast.unparse(call.func.value)
            numbers = range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)
            *before, last = (lines[number - 1] for number in numbers)
            text = "".join(before) + last.encode()[: statement.end_col_offset].decode()
            found.append(HiddenStatement(checks.get(variable, ""), variable, text, numbers))
    return tuple(found)


def without_hidden_cases(source: str) -> str:
    """A file of cases as students get it. Raises SyntaxError."""
    hidden = {line for statement in hidden_statements(source) for line in statement.lines}
    lines = source.splitlines(keepends=True)
    return "".join(line for number, line in enumerate(lines, 1) if number not in hidden)


def _called(node: ast.expr) -> str:
    return node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""


def _is_hidden(call: ast.Call) -> bool:
    named = any(k.arg == "hidden" and getattr(k.value, "value", True) is not False for k in call.keywords)
    return named or getattr(call.func, "attr", "") == "hidden"
