"""Step size: the error of a numerical derivative against the step, for one-sided and central differences.

A large step is wrong because the function curves, a small one because of rounding; the best step lies in between.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from mini_autograd.widgets.demo import Bet, Choice, Demo, Shown, Slider, Switch, axes, logarithmic, plotting, svg_of

FUNCTIONS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "sin x": (np.sin, np.cos),
    "exp x": (np.exp, np.exp),
    "x cubed": (lambda x: x**3, lambda x: 3 * x**2),
    "tanh 3x": (lambda x: np.tanh(3 * x), lambda x: 3 / np.cosh(3 * x) ** 2),
}
"""Each function and its derivative."""

EXPONENTS = tuple(round(exponent, 2) for exponent in np.arange(-15.0, 0.01, 0.25).tolist())
CHOICES = (-2.0, -4.0, -8.0, -12.0)
SCHEMES = {"one-sided": 1, "central": 2}
"""The power of h with which the error of each scheme falls."""


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


def show(function: str, precision: str, exponent: float, point: float, slopes: bool) -> Shown:
    """The curves of both schemes, with the chosen step marked."""
    steps = 10.0 ** np.array(EXPONENTS)
    at = EXPONENTS.index(exponent)
    words = []
    with plotting():
        axis = axes()
        logarithmic(axis, "xy")
        for scheme, order in SCHEMES.items():
            curve = np.maximum(errors(function, point, scheme, precision), 1e-18)
            (line,) = axis.plot(steps, curve, label=scheme)
            axis.plot(steps[at], curve[at], "o", color=line.get_color(), markersize=9)
            best = int(curve.argmin())
            words.append(
                f"{scheme}: relative error {curve[at]:.1e} at h = {steps[at]:.0e}; smallest {curve[best]:.1e} at "
                f"h = {steps[best]:.0e}."
            )
            if slopes:
                guide = curve[-1] * (steps / steps[-1]) ** order
                _guide(axis, steps, guide, guide > 1e-14, ":", line.get_color(), f"h**{order}")
        if slopes:
            rounding = np.finfo(precision).eps / steps
            _guide(axis, steps, rounding, rounding < 10, "--", "gray", "rounding / h")
        axis.set(xlabel="step h", ylabel="relative error", ylim=(1e-15, 30))
        axis.set_title(f"derivative of {function} at {point:g}")
        figure = axis.get_figure()
        figure.subplots_adjust(bottom=0.24)  # room for the legend, as no corner is free of curves at all settings
        figure.legend(loc="lower center", ncols=5, fontsize=10.5, columnspacing=1.2, handletextpad=0.5)
        svg = svg_of(axis, f"Error of the numerical derivative of {function} against the step, in {precision}")
    return Shown(svg, tuple(words), bet=bet(function, precision, point))


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


def _guide(axis: Any, x: np.ndarray, y: np.ndarray, kept: np.ndarray, style: str, color: str, label: str) -> None:
    """A thin line for comparison, at the `kept` points."""
    axis.plot(x[kept], y[kept], style, color=color, linewidth=1.5, label=label)


@functools.cache
def demo() -> Demo:
    points = (0.25, 0.5, 1.0, 1.5, 2.0)
    exponents = Slider("exponent", "step h", EXPONENTS, tuple(f"{10**e:.0e}" for e in EXPONENTS), plays=True)
    return Demo(
        title="Step size of a numerical derivative",
        controls=(
            Choice("function", "function", tuple(FUNCTIONS)),
            Choice("precision", "precision", ("float64", "float32")),
            Slider("point", "at x =", points),
            exponents,
            Switch("slopes", "draw guide lines"),
        ),
        show=show,
        start={"function": "sin x", "precision": "float64", "exponent": -5.0, "point": 1.0, "slopes": True},
        presets={
            "Too large": {"exponent": -1.0},
            "Too small": {"exponent": -13.0},
            "float32": {"precision": "float32", "exponent": -2.5},
        },
    )


def step_size(predict: bool = False, **state: Any) -> Any:
    """The demo: error of numerical derivatives against the step. `state` sets its controls; `predict` asks first which
    step is best.
    """
    return demo().live(predict=predict, **state)
