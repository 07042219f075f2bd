"""What a rule calculated, as a formula in what it had at hand, `grad * first`, and what the right formula is made of.

Both formulas are found in the same way: of many short ones, the simplest that gives all elements of all draws that were
tried. If none does, nothing is said. The draws are random numbers, so that no formula fits by chance. The right formula
is the solution of many an exercise, so a card says only what stands in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import product
from typing import Any

import numpy as np

from autograder.localize.rule_patterns import FEWEST, Wrong, room, same, stretch, wrong_inputs
from autograder.localize.subexpressions import Trial
from autograder.runs.inputs import Array

Formula = tuple[str, Callable[[Mapping[str, Array]], Array]]

ARRIVING, OUTPUT = "grad", "output"
EXPLAINED = "grad: the incoming gradient"
CONSTANTS = (1.0, -1.0, 2.0, 0.5, -2.0, -0.5, 3.0, 4.0)
EXPONENTS = (0, 1, -1, 2, -2, 3)
MOST_FACTORS = 3  # powers in a product, counted with their exponents

OF_ONE: dict[str, Callable[[Array, Array], Array]] = {
    "(input > 0)": lambda x, y: (x > 0).astype(float),
    "(input < 0)": lambda x, y: (x < 0).astype(float),
    "(1 - output**2)": lambda x, y: 1 - y**2,
    "(1 - output)": lambda x, y: 1 - y,
    "(1 + output**2)": lambda x, y: 1 + y**2,
    "output * (1 - output)": lambda x, y: y * (1 - y),
    "(1 - input**2)": lambda x, y: 1 - x**2,
    "input * (1 - input)": lambda x, y: x * (1 - x),
    "exp(input)": lambda x, y: np.exp(x),
    "log(input)": lambda x, y: np.log(x),
    "cos(input)": lambda x, y: np.cos(x),
    "sin(input)": lambda x, y: np.sin(x),
    "sign(input)": lambda x, y: np.sign(x),
}
OF_TWO: dict[str, Callable[[Array, Array, Array], Array]] = {
    "(first > second)": lambda a, b, y: (a > b).astype(float),
    "(first < second)": lambda a, b, y: (a < b).astype(float),
    "second * first**(second - 1)": lambda a, b, y: b * a ** (b - 1),
    "first**(second - 1)": lambda a, b, y: a ** (b - 1),
    "output * log(first)": lambda a, b, y: y * np.log(a),
    "output * log(second)": lambda a, b, y: y * np.log(b),
    "log(first)": lambda a, b, y: np.log(a),
}


def formulas(trial: Trial) -> tuple[tuple[str, str], ...]:
    """Facts for a card: for each input with a wrong gradient, the student's formula and what is in the right one."""
    runs, expected = trial.runs, trial.expected
    if not runs or len(runs) != len(expected) or any(entry.low is not None for entry in expected):
        return ()
    find = _of_matrices if trial.part.steps[0].symbol == "@" else _of_elements
    found = [(wrong.name, find(wrong, wrong.got), find(wrong, wrong.right)) for wrong in wrong_inputs(trial)]
    return tuple(
        (f"{name}.grad as a formula", f"yours: {yours}; the right one is made of {made_of(right)} ({EXPLAINED})")
        for name, yours, right in found
        if yours and right and yours != right
    )


def made_of(formula: str) -> str:
    """The names in a formula, in words."""
    return " and ".join(dict.fromkeys(re.findall(r"[a-z]+\b(?!\()", formula))) or formula


def _of_elements(wrong: Wrong, gradient: list[Array]) -> str:
    """The simplest formula for a gradient, element by element; empty if there is none."""
    target = wrong.flat(gradient)
    if not np.any(target):
        return "0"
    if len(np.unique(target)) < FEWEST:
        return ""
    at_hand = {ARRIVING: wrong.arriving} | {name.strip("`"): arrays for name, arrays in wrong.operands.items()}
    at_hand[OUTPUT] = at_hand.pop("the output")
    numbers = {name: wrong.flat(arrays) for name, arrays in at_hand.items() if stretch(arrays, wrong.right)}
    allowed = room(target)
    with np.errstate(all="ignore"):
        for text, calculate in _candidates(tuple(numbers)):
            if (np.abs(calculate(numbers) - target) <= allowed).all():
                return text
    return ""


def _of_matrices(wrong: Wrong, gradient: list[Array]) -> str:
    """The product of two matrices that equals a gradient; empty if there is none."""
    at_hand = {ARRIVING: wrong.arriving} | {name.strip("`"): arrays for name, arrays in wrong.operands.items()}
    at_hand.pop("the output")
    if any(array.ndim != 2 for arrays in at_hand.values() for array in arrays):
        return ""
    at_hand |= {f"{name}.T": [array.T for array in arrays] for name, arrays in at_hand.items()}
    for left, right in product(at_hand, repeat=2):
        factors = list(zip(at_hand[left], at_hand[right], strict=True))
        if all(a.shape[1] == b.shape[0] for a, b in factors):
            found = [a @ b for a, b in factors]
            if all(a.shape == b.shape and np.all(same(a, b)) for a, b in zip(found, gradient, strict=True)):
                return f"{left} @ {right}"
    return ""


@cache
def _candidates(names: tuple[str, ...]) -> list[Formula]:
    """The formulas of some arrays, the simplest first."""
    found = [*_products(names), *_special(names)]
    return [formula for _, formula in sorted(found, key=lambda entry: entry[0])]


def _products(names: tuple[str, ...]) -> Iterator[tuple[float, Formula]]:
    """A constant times powers of the operands and of the output, with or without the incoming gradient."""
    powers = [name for name in names if name != ARRIVING]
    for exponents in product(EXPONENTS, repeat=len(powers)):
        factors = {name: exponent for name, exponent in zip(powers, exponents, strict=True) if exponent}
        size = sum(map(abs, exponents))
        if size <= MOST_FACTORS:
            for constant, arriving in _fronts(names):
                weight = size + (constant != 1) + 1.1 * (OUTPUT in factors) + 0.25 * (arriving == 0)
                exponents_of = {ARRIVING: arriving} | factors if arriving else factors
                yield weight, (_text(constant, exponents_of), _product(constant, exponents_of))


def _special(names: tuple[str, ...]) -> Iterator[tuple[float, Formula]]:
    """A derivative that is not a product of powers, times a constant, with or without the incoming gradient."""
    operands = [name for name in names if name not in (ARRIVING, OUTPUT)]
    known: Mapping[str, Callable[..., Array]] = OF_ONE if len(operands) == 1 else OF_TWO
    if OUTPUT not in names or len(operands) > 2:
        return
    for name, function in known.items():
        for constant, arriving in _fronts(names):
            front = _text(constant, {ARRIVING: 1} if arriving else {})
            text = name if front == "1" else f"-{name}" if front == "-1" else f"{front} * {name}"
            weight = 1.5 + (constant != 1) + 0.25 * (arriving == 0)
            yield weight, (text, _times(_product(constant, {ARRIVING: arriving}), function, [*operands, OUTPUT]))


def _fronts(names: tuple[str, ...]) -> Iterator[tuple[float, int]]:
    return product(CONSTANTS, (1, 0) if ARRIVING in names else (0,))


def _product(constant: float, exponents: Mapping[str, int]) -> Callable[[Mapping[str, Array]], Array]:
    def calculate(numbers: Mapping[str, Array]) -> Array:
        result: Any = constant
        for name, exponent in exponents.items():
            if exponent:
                result = result * numbers[name] ** float(exponent)
        return result

    return calculate


def _times(
    front: Callable[[Mapping[str, Array]], Array], function: Callable[..., Array], names: list[str]
) -> Callable[[Mapping[str, Array]], Array]:
    return lambda numbers: front(numbers) * function(*(numbers[name] for name in names))


def _text(constant: float, exponents: Mapping[str, int]) -> str:
    above = [_power(name, exponent) for name, exponent in exponents.items() if exponent > 0]
    below = [_power(name, -exponent) for name, exponent in exponents.items() if exponent < 0]
    if abs(constant) != 1 or not above:
        above = [f"{abs(constant):g}", *above]
    sign = "-" if constant < 0 else ""
    text = sign + " * ".join(above)
    if below:
        text += f" / {below[0]}" if len(below) == 1 else f" / ({' * '.join(below)})"
    return text


def _power(name: str, exponent: int) -> str:
    return name if exponent == 1 else f"{name}**{exponent}"
