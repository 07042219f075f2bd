"""Step size: the error of a numerical derivative against the step, for one-sided and central differences.

A large step is wrong because the function curves, a small one because of rounding; the best step lies in between. The
steps of the demo make h smaller and smaller, so a reader can say first where the errors will turn.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from mini_autograd.widgets.demo import COLORS, Bet, Choice, Demo, Shown, Slider
from mini_autograd.widgets.sketch import SMALL, along, box, dragged, from_step, line, picture, segment, way, words

FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "sin x": (np.sin, np.cos),
    "exp x": (np.exp, np.exp),
    "x cubed": (lambda x: x**3, lambda x: 3 * x**2),
    "tanh 3x": (lambda x: np.tanh(3 * x), lambda x: 3 / np.cosh(3 * x) ** 2),
}
"""Each function and its derivative."""

EXPONENTS = tuple(round(-exponent, 2) for exponent in np.arange(0.0, 15.01, 0.25).tolist())
CHOICES = (-2.0, -4.0, -8.0, -12.0)
SCHEMES = {"one-sided": 1, "central": 2}
"""The power of h with which the error of each scheme falls."""

LEFT, TOP, WIDTH, HEIGHT = 64.0, 34.0, 690.0, 290.0
LOW_POWER, HIGH_POWER = -15.0, 1.5


def errors(function: str, point: float, scheme: str, precision: str) -> np.ndarray:
    """The relative error of a numerical derivative for steps of 10 to the power of each of EXPONENTS."""
    f, derivative = FUNCTIONS[function]
    kind = np.dtype(precision).type
    x, right = kind(point), float(derivative(np.float64(point)))
    found = []
    for exponent in EXPONENTS:
        h = kind(10.0**exponent)
        behind = x if scheme == "one-sided" else x - h
        width = kind((x + h) - behind)
        estimate = (f(x + h) - f(behind)) / width if width else kind(0)
        found.append(abs(float(estimate) - right) / abs(right))
    return np.array(found)


def show(function: str, precision: str, point: float) -> Shown:
    """The errors of both schemes as h gets smaller, and at the end the lines that explain them."""
    curves = {scheme: errors(function, point, scheme, precision) for scheme in SCHEMES}
    steps = tuple(
        f"h = {10**exponent:.0e}: relative error " + ", ".join(f"{name} {curves[name][at]:.1e}" for name in SCHEMES)
        for at, exponent in enumerate(EXPONENTS)
    )
    told = tuple(
        f"{name}: the smallest error is {curve.min():.1e}, at h = {10 ** EXPONENTS[int(curve.argmin())]:.0e}."
        for name, curve in curves.items()
    )
    parts = [*frame(f"Relative error of the derivative of {function} at {point:g}, in {precision}")]
    parts.append(from_step(len(EXPONENTS) - 1, *guides(curves, precision)))
    for (name, curve), color in zip(curves.items(), COLORS, strict=False):
        points = [at(exponent, error) for exponent, error in zip(EXPONENTS, curve, strict=True)]
        mark = f'<circle r="6" fill="{color}"/>'
        parts += [way(name, points, color), along(name, points[-1], mark)]
    parts.append(dragged("one-sided", LEFT, TOP, WIDTH, HEIGHT))
    label = f"Error of the numerical derivative of {function} against the step, in {precision}. {' '.join(told)}"
    drawing = picture(LEFT + WIDTH + 110, TOP + HEIGHT + 52, parts, label)
    return Shown(drawing, told, steps, words_at_end=True, bet=bet(function, precision, point))


def at(exponent: float, error: float) -> tuple[float, float]:
    """Where a step and its error are in the picture, on logarithmic axes."""
    power = float(np.clip(np.log10(max(error, 1e-300)), LOW_POWER, HIGH_POWER))
    x = LEFT + WIDTH * (1 + exponent / -EXPONENTS[-1])
    return x, TOP + HEIGHT * (HIGH_POWER - power) / (HIGH_POWER - LOW_POWER)


def frame(title: str) -> list[str]:
    """The axes, their numbers, and a key."""
    parts = [words(LEFT, 20, title, size=SMALL, bold=True), box(LEFT, TOP, WIDTH, HEIGHT)]
    for power in range(-15, 2, 3):
        x, y = at(power, 1.0)[0], at(0, 10.0**power)[1]
        parts += [segment(LEFT - 5, y, LEFT, y), words(LEFT - 9, y + 5, mark(power), size=SMALL, anchor="end")]
        if power <= 0:
            parts += [segment(x, TOP + HEIGHT, x, TOP + HEIGHT + 5)]
            parts += [words(x, TOP + HEIGHT + 20, mark(power), size=SMALL, anchor="middle")]
    parts.append(words(LEFT + WIDTH / 2, TOP + HEIGHT + 42, "step h", size=SMALL, anchor="middle"))
    for number, name in enumerate(SCHEMES):
        parts.append(words(LEFT + WIDTH + 12, TOP + 20 + 24 * number, name, fill=COLORS[number], bold=True))
    return parts


def mark(power: int) -> str:
    return f"1e{power}" if power else "1"


def guides(curves: dict[str, np.ndarray], precision: str) -> list[str]:
    """Dashed lines: what the curve of the function gives for large steps, and rounding for small ones."""
    steps = 10.0 ** np.array(EXPONENTS)
    lines = [(f"h**{order}", curves[name][0] * steps**order, COLORS[order - 1]) for name, order in SCHEMES.items()]
    lines.append(("rounding / h", np.finfo(precision).eps / steps, "currentColor"))
    parts = []
    for number, (text, values, color) in enumerate(lines):
        shown = [
            at(*pair) for pair in zip(EXPONENTS, values, strict=True) if 10.0**LOW_POWER < pair[1] < 10.0**HIGH_POWER
        ]
        parts.append(line(shown, color, "3 5"))
        parts.append(words(LEFT + WIDTH + 12, TOP + 76 + 24 * number, text, size=SMALL, fill=color))
    return parts


def bet(function: str, precision: str, point: float) -> Bet | None:
    """The question of which step is best. Asked once for each precision, but not if the rounding cancels, as for the
    cube of 1/4, where any small step is exact.
    """
    curve = errors(function, point, "one-sided", precision)

    def largest_near(exponent: float) -> float:
        """The largest error of a step and those beside it: at a single step the rounding may cancel by luck."""
        at = EXPONENTS.index(exponent)
        return float(curve[at - 2 : at + 3].max())

    best = min(CHOICES, key=largest_near)
    if largest_near(best) == 0.0:
        return None
    question = f"Which step h gives the best one-sided derivative in {precision}?"
    reason = "a larger step is wrong because the function curves, a smaller one because of rounding"
    return Bet(question, tuple(f"1e{exponent:g}" for exponent in CHOICES), f"1e{best:g}", reason)


@functools.cache
def demo() -> Demo:
    return Demo(
        title="Step size of a numerical derivative",
        controls=(
            Choice("function", "function", tuple(FUNCTIONS)),
            Choice("precision", "precision", ("float64", "float32")),
            Slider("point", "at x =", (0.25, 0.5, 1.0, 1.5, 2.0)),
        ),
        show=show,
        start={"function": "sin x", "precision": "float64", "point": 1.0},
        presets={"float32": {"precision": "float32"}, "No rounding": {"function": "x cubed", "point": 0.25}},
    )


def step_size(step: int = 0, predict: bool = True, **state: Any) -> Any:
    """The demo: error of numerical derivatives as the step gets smaller. `state` sets its controls; `predict` asks
    first which step is best.
    """
    return demo().live(step, predict, **state)
