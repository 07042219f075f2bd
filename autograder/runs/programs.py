"""A program is one expression of a check: a Python function of tensors that every engine can run.

Its name on a card is the one that the lesson gave it, else its source text.
"""

from __future__ import annotations

import ast
import builtins
import dis
import hashlib
import inspect
import linecache
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain
from types import CodeType
from typing import Any

import numpy as np

from autograder.runs.engine_protocol import replayed
from autograder.runs.errors import LessonError

LONGEST_NAME = 120


@dataclass(frozen=True)
class Program:
    """One expression of a check. `arguments` names its inputs, which may be fewer than the check draws. `steps`: the
    steps that it carries out, as a text, if it was made of steps.
    """

    name: str
    function: Callable[..., Any]
    arguments: tuple[str, ...]
    steps: str | None = None

    def seed(self) -> int:
        """A number that depends on what the expression does, not on where it is written or in which process."""
        return int.from_bytes(hashlib.sha256(_fingerprint(self.function.__code__).encode()).digest()[:8])

    def identity(self) -> str | None:
        """A text that only expressions with the same meaning share; None if that is not certain."""
        return self.steps or _meaning(self.function, 0)

    def functions(self) -> tuple[str, ...]:
        """The names of the global functions that the expression uses, with which it does more than its operations.
        Functions of this package are not among them: they only spell an operation (`ways.operated`).
        """
        known = self.function.__globals__
        found = {name: known.get(name) for name in _global_names(self.function.__code__)}
        return tuple(name for name, value in found.items() if _is_function(value) and not _is_of_this_package(value))


def _is_function(value: Any) -> bool:
    return callable(value) and not isinstance(value, type)


def _is_of_this_package(function: Any) -> bool:
    return str(getattr(function, "__module__", "")).startswith("autograder.")


def programs_of(
    expression: Callable[..., Any] | Mapping[str, Callable[..., Any]], inputs_drawn: int
) -> tuple[Program, ...]:
    """The programs of a check. Raises LessonError when an expression is not a Python function that takes the inputs."""
    if isinstance(expression, Mapping):
        named: list[tuple[str | None, Any]] = [(str(name), function) for name, function in expression.items()]
    else:
        named = [(None, expression)]
    if not named:
        raise LessonError("a check needs at least one expression")
    return tuple(_program(name, function, inputs_drawn) for name, function in named)


def program_of_steps(name: str, steps: list[Any], arguments: tuple[str, ...], uses_methods: bool) -> Program:
    """A program that carries out recorded steps, in the form for `engine_protocol.replayed`. `uses_methods`: whether
    some are methods that PyTorch's tensors lack (see `methods.py`).
    """

    def function(*leaves: Any) -> Any:
        return replayed(steps, leaves)

    vars(function)["uses_methods"] = uses_methods
    return Program(name, function, arguments, _text_of(steps))


def _text_of(value: Any) -> str | None:
    """A text that only equal constants share, or lists and the like of constants; None for anything else."""
    if value is None or type(value) in (bool, int, float, str):
        return repr(value)
    if type(value) is slice:
        return _text_of(("slice", value.start, value.stop, value.step))
    if type(value) not in (list, tuple, dict):
        return None
    inside = [_text_of(entry) for entry in (value.items() if type(value) is dict else value)]
    return None if None in inside else f"{type(value).__name__}({', '.join(map(str, inside))})"


def _program(name: str | None, function: Any, inputs_drawn: int) -> Program:
    if type(function) is not types.FunctionType:  # a handle of a student's function looks like one
        raise LessonError(f"an expression must be a Python function, not a {type(function).__name__}")
    arguments = argument_names(function, inputs_drawn)
    return Program((name or shown_source(function) or function.__name__)[:LONGEST_NAME], function, arguments)


def argument_names(function: Callable[..., Any], inputs_drawn: int) -> tuple[str, ...]:
    """Names for the inputs of a function, of which it may use fewer than are drawn."""
    parameters = list(inspect.signature(function).parameters.values())
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    starred = [p.name for p in parameters if p.kind is p.VAR_POSITIONAL]
    if starred:
        positional += [f"{starred[0]}[{number}]" for number in range(inputs_drawn - len(positional))]
    if not 0 < len(positional) <= inputs_drawn:
        raise LessonError(f"the expression takes {len(positional)} inputs, but the check draws {inputs_drawn}")
    return tuple(positional)


def shown_source(function: Callable[..., Any]) -> str | None:
    """The text of a lambda's body, or None if there is no source or the function is not a lambda."""
    code = function.__code__
    if code.co_name != "<lambda>":
        return None
    source = "".join(linecache.getlines(code.co_filename))
    try:
        candidates = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Lambda)]
    except (SyntaxError, ValueError):
        return None
    around = [node for node in candidates if _surrounds(node.body, code)]
    if not around:
        return None
    innermost = min(around, key=lambda node: len(ast.unparse(node)))
    return " ".join((ast.get_source_segment(source, innermost.body) or "").split()) or None


def _surrounds(body: ast.expr, code: CodeType) -> bool:
    """Whether all instructions of the code lie within the text of this lambda body."""
    start, end = (body.lineno, body.col_offset), (body.end_lineno or 0, body.end_col_offset or 0)
    places = [place for place in code.co_positions() if None not in place and place[2] != place[3]]
    if not places:
        return False
    first = min((line, column) for line, _, column, _ in places)  # type: ignore[type-var]
    last = max((line, column) for _, line, _, column in places)  # type: ignore[type-var]
    return start <= first and last <= end  # type: ignore[operator]


def _meaning(function: Any, depth: int) -> str | None:
    """The code of a function and of everything it refers to; None unless these are functions, modules, constants
    and arrays of numbers.
    """
    known = function.__globals__
    names = sorted(set(_global_names(function.__code__)) - set(vars(builtins)))
    if not all(name in known for name in names):
        return None
    referred = [*(known[name] for name in names), *(function.__defaults__ or ())]
    try:
        referred += [cell.cell_contents for cell in function.__closure__ or ()]
    except ValueError:
        return None
    parts: list[str | None] = [_fingerprint(function.__code__)]
    for value in referred:
        if type(value) is types.FunctionType and depth < 5:
            parts.append(_meaning(value, depth + 1))
        elif inspect.ismodule(value):
            parts.append(value.__name__)
        elif value is None or type(value) in (bool, int, float, str):
            parts.append(repr(value))
        elif type(value) is np.ndarray and value.dtype.kind in "biuf":
            parts.append(f"{value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}")
        else:
            return None
    return None if None in parts or function.__kwdefaults__ else "\n".join(str(part) for part in parts)


@cache
def _global_names(code: CodeType) -> tuple[str, ...]:
    names = [one.argval for one in dis.get_instructions(code) if one.opname in ("LOAD_GLOBAL", "LOAD_NAME")]
    inner = [_global_names(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return tuple(chain(names, *inner))


@cache
def _fingerprint(code: CodeType) -> str:
    constants = [_fingerprint(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts]
    return "|".join([code.co_code.hex(), *constants, *code.co_names, *code.co_varnames])
