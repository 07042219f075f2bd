"""Numbers, operations and formulas as short text, and how wide it may become. No graph and no picture here."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

SYMBOLS = {
    "add": "+", "sub": "-", "subtract": "-", "mul": "*", "multiply": "*", "div": "/", "divide": "/",
    "true_divide": "/", "truediv": "/", "pow": "**", "power": "**", "negate": "neg",
    "mm": "@", "bmm": "@", "matmul": "@", "mv": "@", "dot": "@",
    "unsafeview": "view", "t": "transpose", "asstrided": "as_strided",
}  # fmt: skip
OPERATORS: dict[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "@": operator.matmul,
    "**": operator.pow,
    "neg": operator.neg,
}
INFIX = {"+", "-", "*", "/", "@"}
MINUS, TIMES = "\u2212", "\u00d7"
PRINTED = {"-": MINUS, "*": TIMES}

# Widths as fractions of the font size, a little wider than common interface fonts, so that text never outgrows its box.
_NARROW, _WIDE, _CAPITAL, _USUAL = set("iljtfrI.,:;|!'()[] "), set("mwMW@…—"), 0.78, 0.66


class Placed(float):
    """A number of a graph that a text names by its place, such as {v3}, because a browser fills the numbers in."""

    def __new__(cls, value: float, place: str) -> Placed:
        placed = super().__new__(cls, value)
        placed.place = place
        return placed

    place: str


def short(value: Any) -> str:
    """A number in at most about seven characters: 12, 0.333, 1.235e-05."""
    if value is None:
        return "?"
    if isinstance(value, Placed):
        return value.place
    if isinstance(value, complex):
        return f"{value:.3g}"
    number = float(value)
    if math.isnan(number) or math.isinf(number):
        return str(number)
    if number == int(number) and abs(number) < 1e6:
        return str(int(number))
    digits = 3 if abs(number) < 1 else 4
    text = f"{number:.{digits}g}"
    return text.replace("e-0", "e-").replace("e+0", "e")


def factor(value: Any) -> str:
    """A number as the second factor of a product: in parentheses if negative."""
    return _in_brackets(short(value))


def _in_brackets(text: str) -> str:
    return f"({text})" if text.startswith("-") else text


def shape_text(shape: Sequence[int]) -> str:
    """(3, 4) for a matrix, (3,) for a vector, () for a number."""
    return str(tuple(int(size) for size in shape))


def describe(value: Any) -> str:
    """A value for a sentence: the number, the entries of a small array, or the shape and norm of a larger one."""
    if value is None:
        return "unknown"
    if isinstance(value, float):
        return short(value)
    array = np.asarray(value)
    if array.ndim == 0:
        return short(array.item())
    if array.size <= 12:
        return _entries(array)
    return f"an array of shape {shape_text(array.shape)} with norm {short(np.linalg.norm(array))}"


def _entries(array: np.ndarray) -> str:
    if array.ndim == 0:
        return short(array.item())
    return "[" + ", ".join(_entries(part) for part in array) + "]"


def symbol(operation: str) -> str:
    """The sign or name under which an operation is shown: "MulBackward0", "Multiply" and "*" are all "*"."""
    name = operation.strip()
    base = name.rstrip("0123456789")
    if base.endswith("Backward"):
        name = base.removesuffix("Backward").lower()
    elif name[:1].isupper():
        name = name.lower()
    return SYMBOLS.get(name, name)


def numpy_function(sign: str) -> np.ufunc | None:
    """NumPy's function of single numbers that has the name of an operation: exp, sqrt, maximum. It has no options."""
    found = getattr(np, sign, None)
    return found if isinstance(found, np.ufunc) and found.nout == 1 else None


def operation_formula(sign: str, inputs: Sequence[str]) -> str:
    """ "a + b", "x**2", "tanh(v1)": the operation applied to the names of its inputs."""
    if sign in INFIX and len(inputs) == 2:
        return f"{inputs[0]} {PRINTED.get(sign, sign)} {_in_brackets(inputs[1])}"
    if sign in {"-", "neg"} and len(inputs) == 1:
        return f"{MINUS}{_in_brackets(inputs[0])}"
    if sign.startswith("**"):
        exponent = sign[2:].strip() or (inputs[1] if len(inputs) == 2 else "n")
        return f"{_in_brackets(inputs[0])}**{_in_brackets(exponent)}" if inputs else sign
    if len(inputs) > 3:
        return f"{sign}({inputs[0]}, …, {inputs[-1]})"
    return f"{sign}({', '.join(inputs)})"


def text_width(text: str, size: float) -> float:
    """A safe estimate, in the unit of `size`, of how wide `text` becomes in an interface font."""
    return size * sum(_character_width(character) for character in text)


def _character_width(character: str) -> float:
    if character in _NARROW:
        return 0.40
    if character in _WIDE:
        return 1.0
    return _CAPITAL if character.isupper() else _USUAL


def clip(text: str, length: int) -> str:
    """The text, or its beginning and an ellipsis when it is longer than `length` characters."""
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"
