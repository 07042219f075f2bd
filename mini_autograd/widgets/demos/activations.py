"""Activations: a number goes through the same small network with ReLU, Leaky ReLU and GELU, and gradients come back.

Every value and gradient comes from `mini_autograd`. The one idea to know: a unit passes gradient where its activation
has a slope; a ReLU unit whose input is negative for every x gets none at all, and no training step can move it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mini_autograd.widgets.demo import COLORS, Demo, Shown, Slider
from mini_autograd.widgets.sketch import PAPER, picture, segment, words

UNITS = 6
INPUTS = np.linspace(-3.0, 3.0, 61)
STEPS = 80
PANEL, NETWORK, PLOT = 310, 294, 110
"""Width of a panel, and heights of the network in it and of the plot below."""


def functions() -> dict[str, Callable[[Any], Any]]:
    """The activations, as the engine has them."""
    from mini_autograd.nn import functional

    leaky: Callable[[Any], Any] = functools.partial(functional.leaky_relu, negative_slope=0.1)
    return {"ReLU": functional.relu, "Leaky ReLU": leaky, "GELU": functional.gelu}


@dataclass(frozen=True)
class Pass:
    """One pass through a network: inputs and outputs of the activations by layer, their gradients, and the result.

    All have one row per x. `before_grad` is the gradient at a unit's weights, `after_grad` the gradient at the unit.
    """

    before_grad: tuple[np.ndarray, ...]
    after: tuple[np.ndarray, ...]
    after_grad: tuple[np.ndarray, ...]
    result: np.ndarray

    def passing(self) -> list[Any]:
        """For each layer: which units let gradient through, by row."""
        return [grad != 0 for grad in self.before_grad]

    def dead(self) -> list[Any]:
        """For each layer: which units get no gradient from any row."""
        return [~passing.any(axis=0) for passing in self.passing()]


def start_weights(shift: float) -> list[np.ndarray]:
    """Weights and biases of 1 -> 6 -> 6 -> 1; `shift` is added to the biases of the upper three units."""
    draw = np.random.default_rng(32)
    arrays = []
    for before, after in ((1, UNITS), (UNITS, UNITS), (UNITS, 1)):
        arrays += [draw.normal(size=(before, after)) / math.sqrt(before), draw.uniform(-0.5, 0.5, after)]
    arrays[1][:3] += shift
    return arrays


def forward(x: Any, weights: list[Any], activation: Callable[[Any], Any]) -> tuple[list[Any], list[Any], Any]:
    """The inputs and the outputs of the activations, and the output of the network."""
    before, after, value = [], [], x
    for layer in (0, 2):
        before.append(value @ weights[layer] + weights[layer + 1])
        value = activation(before[-1])
        after.append(value)
    return before, after, value @ weights[4] + weights[5]


def run(name: str, weights: list[np.ndarray], x: np.ndarray) -> Pass:
    """Send a column of numbers through the network, and the gradient 1 back."""
    import mini_autograd as torch

    parameters: list[Any] = [torch.tensor(array, requires_grad=True) for array in weights]
    before, after, result = forward(torch.tensor(x.reshape(-1, 1)), parameters, functions()[name])
    for tensor in (*before, *after):
        tensor.retain_grad()
    result.sum().backward()
    columns = [tuple(t.grad.numpy() for t in tensors) for tensors in (before, after)]
    return Pass(columns[0], tuple(t.detach().numpy() for t in after), columns[1], result.detach().numpy()[:, 0])


@functools.lru_cache(maxsize=64)
def trained(name: str, shift: float) -> list[list[np.ndarray]]:
    """The weights after 0, 1, ... STEPS steps of SGD towards sin(1.5 x)."""
    import mini_autograd as torch
    from mini_autograd import optim

    parameters: list[Any] = [torch.tensor(array, requires_grad=True) for array in start_weights(shift)]
    method = optim.SGD(parameters, lr=0.05)
    x, y = torch.tensor(INPUTS.reshape(-1, 1)), torch.tensor(target(INPUTS).reshape(-1, 1))
    found = [[p.detach().numpy().copy() for p in parameters]]
    for _ in range(STEPS):
        method.zero_grad()
        ((forward(x, parameters, functions()[name])[2] - y) ** 2).mean().backward()
        method.step()
        found.append([p.detach().numpy().copy() for p in parameters])
    return found


def target(x: np.ndarray) -> np.ndarray:
    return np.sin(1.5 * x)


def show(x: float, shift: float, steps: float) -> Shown:
    """Three networks from the same weights, the plots of their outputs, and how many units pass gradient."""
    parts, told, moved = [], [], []
    for number, name in enumerate(functions()):
        weights = trained(name, shift)[int(steps)] if steps else start_weights(shift)
        here, everywhere = run(name, weights, np.array([x])), run(name, weights, INPUTS)
        dead = everywhere.dead()
        left = number * (PANEL + 15)
        parts.append(f'<g transform="translate({left} 0)">{network(name, x, weights, here, dead)}')
        parts.append(f"{plot(x, here, everywhere)}</g>")
        passing = sum(int(layer.sum()) for layer in here.passing())
        count = sum(int(layer.sum()) for layer in dead)
        passes = f"{passing} of {2 * UNITS} units pass gradient at x = {x:g}"
        told.append(f"{name}: {passes}; {count} dead (no gradient at any x).")
        moved.append(f"{name} {np.abs(weights[0][0, :3] - start_weights(shift)[0][0, :3]).max():.2g}")
    if steps:
        told.append(
            f"{steps:g} steps of SGD moved the weights of the upper three units in the first layer by at most: "
            f"{', '.join(moved)}."
        )
    legend = "filled: passes gradient; dashed: passes none at this x; crossed out: dead, none at any x from -3 to 3"
    parts.append(words(22, NETWORK + PLOT + 36, legend, size=15, opacity=0.8))
    label = f"Three networks at x = {x:g}. {' '.join(told)}"
    return Shown(picture(3 * PANEL + 30, NETWORK + PLOT + 46, parts, label), tuple(told))


def places() -> list[list[tuple[float, float]]]:
    """Where the units of each column stand: the input, two layers, the output."""
    heights = [50 + 43 * unit for unit in range(UNITS)]
    middle = sum(heights) / UNITS
    return [[(25, middle)], [(108, y) for y in heights], [(206, y) for y in heights], [(285, middle)]]


def network(name: str, x: float, weights: list[np.ndarray], here: Pass, dead: list[Any]) -> str:
    """The network: lines carry gradient where they are colored, wider for more."""
    columns = places()
    arriving = [here.before_grad[0], here.before_grad[1], np.ones((1, 1))]
    parts = [words(PANEL / 2 - 5, 18, name, size=17, anchor="middle", bold=True)]
    for column, (weight, grad) in enumerate(zip(weights[::2], arriving, strict=True)):
        flow = weight * grad[0]
        for i, (from_x, from_y) in enumerate(columns[column]):
            for j, (to_x, to_y) in enumerate(columns[column + 1]):
                parts.append(line(from_x, from_y, to_x, to_y, float(flow[i, j])))
    parts += [end(*columns[0][0], "x", x), end(*columns[3][0], "out", float(here.result[0]))]
    for layer in (0, 1):
        for unit, (left, top) in enumerate(columns[layer + 1]):
            values = float(here.after[layer][0, unit]), float(here.before_grad[layer][0, unit])
            parts.append(circle(left, top, *values, bool(dead[layer][unit])))
    return "".join(parts)


def line(x: float, y: float, to_x: float, to_y: float, flow: float) -> str:
    """A connection: colored, with a width that shows the gradient flowing back along it; gray and thin if none does."""
    if flow == 0:
        return f'<g opacity="0.22">{segment(x, y, to_x, to_y)}</g>'
    width = 0.8 + 2.6 * math.tanh(abs(flow))
    return f'<g opacity="0.75">{segment(x, y, to_x, to_y, color=COLORS[1], width=round(width, 2))}</g>'


def circle(x: float, y: float, value: float, grad: float, dead: bool) -> str:
    """A unit with its output in it: filled if it passes gradient, hollow if not, crossed out if it is dead."""
    title = f"<title>output {value:.4g}, gradient {grad:.4g}{', no gradient at any x' if dead else ''}</title>"
    stroke, dashes = ("currentColor", ' stroke-dasharray="3 3"') if grad == 0 else (COLORS[1], "")
    parts = [
        f'<circle cx="{x}" cy="{y}" r="20" fill="{PAPER}"/>',
        f'<circle cx="{x}" cy="{y}" r="20" fill="{COLORS[1]}" fill-opacity="{0.28 if grad else 0}" '
        f'stroke="{stroke}" stroke-width="1.8"{dashes}>{title}</circle>',
        words(x, y + 5, f"{value + 0.0:z.2f}", size=15, anchor="middle"),
    ]
    if dead:
        parts.append(segment(x - 14, y - 14, x + 14, y + 14, width=2.2))
        parts.append(segment(x - 14, y + 14, x + 14, y - 14, width=2.2))
    return f"<g>{''.join(parts)}</g>"


def end(x: float, y: float, name: str, value: float) -> str:
    """The input or the output of the network."""
    return (
        f'<circle cx="{x}" cy="{y}" r="23" fill="{PAPER}" stroke="currentColor" stroke-width="1.5"/>'
        + words(x, y - 4, name, size=15, anchor="middle")
        + words(x, y + 12, f"{value:.2f}", size=15, anchor="middle")
    )


def plot(x: float, here: Pass, everywhere: Pass) -> str:
    """The output of the network against x, the function it is trained towards, and where x is now."""
    top, low, high = NETWORK + 10, -2.6, 2.6

    def at(value: float, height: float) -> str:
        y = top + PLOT * (1 - (min(max(height, low), high) - low) / (high - low))
        return f"{22 + (value + 3) / 6 * 266:.1f} {y:.1f}"

    def curve(values: np.ndarray, style: str) -> str:
        points = "L".join(at(float(a), float(b)) for a, b in zip(INPUTS, values, strict=True))
        return f'<path d="M{points}" fill="none" {style}/>'

    axis = f'<path d="M{at(-3, 0)}L{at(3, 0)}" stroke="currentColor" stroke-opacity="0.3"/>'
    place = at(x, float(here.result[0])).split()
    return (
        axis
        + curve(target(INPUTS), 'stroke="currentColor" stroke-opacity="0.5" stroke-dasharray="3 4" stroke-width="1.5"')
        + curve(everywhere.result, f'stroke="{COLORS[0]}" stroke-width="2.2"')
        + f'<circle cx="{place[0]}" cy="{place[1]}" r="5" fill="{COLORS[0]}"/>'
        + words(22, top + 10, "output against x; dashed: the target", size=15, opacity=0.75)
    )


@functools.cache
def demo() -> Demo:
    return Demo(
        title="Which units pass gradient",
        controls=(
            Slider("x", "x", tuple(round(-3 + 0.1 * i, 1) for i in range(61)), plays=True),
            Slider("shift", "added to the biases of the upper three units", tuple(0.5 * i for i in range(-16, 5))),
            Slider("steps", "training steps", tuple(float(i) for i in range(0, STEPS + 1, 5)), plays=True),
        ),
        show=show,
        start={"x": 0.5, "shift": 0.0, "steps": 0.0},
        presets={
            "Kill three units": {"shift": -8.0, "steps": 0.0},
            "Train them": {"shift": -8.0, "steps": float(STEPS)},
            "Train without the shift": {"shift": 0.0, "steps": float(STEPS)},
        },
    )


def activations(**state: Any) -> Any:
    """The demo: gradients through ReLU, Leaky ReLU and GELU. `state` sets its controls, such as `x=-1.0`."""
    return demo().live(**state)
