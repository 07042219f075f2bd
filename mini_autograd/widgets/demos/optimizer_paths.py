"""Optimizer paths: SGD, momentum, Adam and SGD without zero_grad walk down the same two-dimensional landscape.

Every step is taken by an optimizer of `mini_autograd` with gradients of its engine. The browser walks through the steps
by itself, drawing each path as far as the step.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mini_autograd.widgets.demo import COLORS, Bet, Choice, Demo, Shown, Slider
from mini_autograd.widgets.sketch import PAPER, SMALL, along, picture, through, way, words

STEPS = 60
RATES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)


@dataclass(frozen=True)
class Landscape:
    """A loss of two numbers, where to start, what part of the plane to draw, and the lowest point of it."""

    loss: Callable[[Any, Any], Any]
    start: tuple[float, float]
    left: float
    right: float
    bottom: float
    top: float
    lowest: tuple[float, float]


def sine(x: Any) -> Any:
    """The sine of an array or a tensor."""
    return np.sin(x) if isinstance(x, np.ndarray | float) else x.sin()


LANDSCAPES = {
    "round bowl": Landscape(lambda x, y: (x**2 + y**2) / 2, (-2.0, 1.5), -3, 3, -2, 2, (0.0, 0.0)),
    "narrow valley": Landscape(lambda x, y: (x**2 + 12 * y**2) / 2, (-2.6, 1.2), -3, 3, -2, 2, (0.0, 0.0)),
    "curved valley": Landscape(
        lambda x, y: (1 - x) ** 2 + 10 * (y - x**2) ** 2, (-1.3, 1.2), -1.8, 1.8, -0.7, 1.7, (1.0, 1.0)
    ),
    "saddle": Landscape(lambda x, y: x**2 / 2 - y**2 / 2 + y**4 / 8, (-2.4, 0.01), -3, 3, -2, 2, (0.0, math.sqrt(2))),
    "many hollows": Landscape(
        lambda x, y: (x**2 + y**2) / 4 + sine(3.0 * x) ** 2 / 2 + sine(3.0 * y) ** 2 / 2,
        (-2.3, 1.2), -3, 3, -2, 2, (0.0, 0.0),
    ),
}  # fmt: skip
"""The losses by name."""

METHODS = ("SGD", "momentum 0.9", "Adam", "forgot to zero")
WIDTH, RIGHT, HEIGHT = 470, 330, 292
"""Widths of the two panels and the height of both."""
LOW_POWER, TOP_POWER = -6, 3
"""The ends of the axis of losses, as powers of ten."""


@functools.lru_cache(maxsize=256)
def path(landscape: str, method: str, lr: float) -> np.ndarray:
    """The points that an optimizer visits, from the start on: one row per step. Ends early if it runs away.

    The path is the same every time, so it is cached: a slider that goes back need not compute it again.
    """
    import mini_autograd as torch
    from mini_autograd import optim

    ground = LANDSCAPES[landscape]
    place: list[Any] = [torch.tensor(np.array(value), requires_grad=True) for value in ground.start]
    optimizer: Any
    if method == "Adam":
        optimizer = optim.Adam(place, lr=lr)
    else:
        optimizer = optim.SGD(place, lr=lr, momentum=0.9 if method == "momentum 0.9" else 0.0)
    points = [ground.start]
    for _ in range(STEPS):
        if method != "forgot to zero":
            optimizer.zero_grad()
        ground.loss(*place).backward()
        optimizer.step()
        points.append((place[0].item(), place[1].item()))
        if not max(map(abs, points[-1])) < 1e3:
            break
    found = np.array(points)
    found.flags.writeable = False
    return found


def heights(landscape: str, points: np.ndarray) -> np.ndarray:
    """The loss at each point."""
    return np.asarray(LANDSCAPES[landscape].loss(points[:, 0], points[:, 1]))


def show(landscape: str, lr: float, method: str) -> Shown:
    """The landscape with the paths of one method or of all, the losses along them, and a sentence per step."""
    methods = METHODS if method == "all" else (method,)
    paths = {name: path(landscape, name, lr) for name in methods}
    losses = {name: heights(landscape, points) for name, points in paths.items()}
    told = tuple(sentence(name, losses[name]) for name in methods)
    count = max(map(len, paths.values()))
    steps = tuple(f"step {step}: loss {'; '.join(at_step(losses, step))}" for step in range(count))
    label = f"Paths on the landscape {landscape!r} with learning rate {lr:g}. {' '.join(told)}"
    parts = [ground_panel(landscape, paths), loss_panel(landscape, losses)]
    drawing = picture(WIDTH + RIGHT + 73, HEIGHT + 62, parts, label)
    return Shown(drawing, told, steps, words_at_end=True, bet=bet(landscape, lr, losses) if len(losses) > 1 else None)


def bet(landscape: str, lr: float, losses: dict[str, np.ndarray]) -> Bet:
    """The question of which method ends lowest."""
    ends = {name: float(along[-1]) if len(along) > STEPS else math.inf for name, along in losses.items()}
    best, second = sorted(ends, key=lambda name: ends[name])[:2]
    question = f"Which method has the lowest loss after {STEPS} steps (landscape: {landscape}, learning rate {lr:g})?"
    reason = f"its loss ends at {ends[best]:.3g}, that of {second} at {ends[second]:.3g}"
    return Bet(question, tuple(losses), best, reason)


def sentence(name: str, losses: np.ndarray) -> str:
    """Where a path ended."""
    if len(losses) <= STEPS:
        return f"{name}: diverged, stopped after {len(losses) - 1} steps."
    return f"{name}: loss {losses[-1]:.3g} after {STEPS} steps; the lowest along the way was {losses.min():.3g}."


def at_step(losses: dict[str, np.ndarray], step: int) -> list[str]:
    """Each method's loss at a step."""
    return [f"{name} {at[step]:.3g}" if step < len(at) else f"{name} diverged" for name, at in losses.items()]


Place = Callable[[float, float], tuple[float, float]]


def ground_panel(landscape: str, paths: dict[str, np.ndarray]) -> str:
    """The landscape from above, with the paths and a mark where each walker is."""
    ground = LANDSCAPES[landscape]

    def place(x: float, y: float) -> tuple[float, float]:
        across, up = (
            (x - ground.left) / (ground.right - ground.left),
            (y - ground.bottom) / (ground.top - ground.bottom),
        )
        return min(max(across, -20), 20) * WIDTH, (1 - min(max(up, -20), 20)) * HEIGHT

    low, start = place(*ground.lowest), place(*ground.start)
    parts = [*contours(landscape, place), words(low[0], low[1] + 7, "+", size=22, anchor="middle")]
    ring = (
        f'<circle cx="{start[0]:.1f}" cy="{start[1]:.1f}" r="10" fill="none" stroke="currentColor" stroke-width="1.5"/>'
    )
    parts.append(ring)
    parts += walked({name: [place(*point) for point in points] for name, points in paths.items()}, "ground")
    below = f"{landscape}, from above; ring: start, +: lowest point"
    return (
        inner(0, WIDTH, "".join(parts))
        + words(0, HEIGHT + 17, f"{ground.left:g}", size=SMALL)
        + words(WIDTH, HEIGHT + 17, f"{ground.right:g}", size=SMALL, anchor="end")
        + words(WIDTH / 2, HEIGHT + 18, below, size=SMALL, anchor="middle")
        + key(list(paths))
    )


def contours(landscape: str, place: Place) -> list[str]:
    """Lines of equal height, closer together near the ground."""
    from contourpy import contour_generator

    ground = LANDSCAPES[landscape]
    x, y = np.meshgrid(np.linspace(ground.left, ground.right, 61), np.linspace(ground.bottom, ground.top, 41))
    height = np.asarray(ground.loss(x, y))
    low, high = float(height.min()), float(height.max())
    maker, drawn = contour_generator(x, y, height), []
    for share in np.linspace(0.08, 0.98, 12) ** 2:
        for line in maker.lines(low + (high - low) * float(share)):
            points = [place(float(a), float(b)) for a, b in np.asarray(line)]
            drawn.append(f'<path d="{through(points)}" fill="none" stroke="currentColor" stroke-opacity="0.22"/>')
    return drawn


def loss_panel(landscape: str, losses: dict[str, np.ndarray]) -> str:
    """How far each method is above the lowest point, on a logarithmic axis."""
    lowest = float(heights(landscape, np.array([LANDSCAPES[landscape].lowest]))[0])

    def place(step: float, height: float) -> tuple[float, float]:
        power = math.log10(max(height, 10.0 ** (LOW_POWER - 3)))
        return 8 + step / STEPS * (RIGHT - 16), (TOP_POWER - power) / (TOP_POWER - LOW_POWER) * HEIGHT

    parts, labels = [], []
    for power in range(LOW_POWER, TOP_POWER + 1, 2):
        y = place(0, 10.0**power)[1]
        parts.append(f'<path d="M0 {y:.1f}H{RIGHT}" stroke="currentColor" stroke-opacity="0.15"/>')
        labels.append(
            words(WIDTH + 66, min(max(y + 4, 10), HEIGHT), f"1e{power}" if power else "1", size=SMALL, anchor="end")
        )
    ways = {name: [place(step, at - lowest) for step, at in enumerate(along)] for name, along in losses.items()}
    parts += walked(ways, "loss")
    title = "loss above the lowest point, step by step"
    labels.append(words(WIDTH + 72 + RIGHT / 2, HEIGHT + 18, title, size=SMALL, anchor="middle"))
    return inner(WIDTH + 72, RIGHT, "".join(parts)) + "".join(labels)


def walked(ways: dict[str, list[tuple[float, float]]], panel: str) -> list[str]:
    """The paths of all methods, and a mark at the current point of each."""
    lines = [way(f"{panel} {name}", points, COLORS[METHODS.index(name)]) for name, points in ways.items()]
    return lines + [along(f"{panel} {name}", points[-1], marker(name)) for name, points in ways.items()]


def marker(name: str, x: float = 0.0, y: float = 0.0) -> str:
    """The sign of a method: each has a shape of its own besides its color."""
    shapes = ("M-5 0a5 5 0 1 0 10 0a5 5 0 1 0 -10 0z", "M-5 -5h10v10h-10z", "M0 -7l7 12h-14z", "M0 -7l7 7l-7 7l-7 -7z")
    number = METHODS.index(name)
    return (
        f'<path transform="translate({x:.1f} {y:.1f})" d="{shapes[number]}" fill="{COLORS[number]}" '
        f'stroke="{PAPER}" stroke-width="1.2"/>'
    )


def inner(x: float, width: float, content: str) -> str:
    """A framed panel; what lies outside it is not drawn."""
    return (
        f'<svg x="{x}" y="0" width="{width}" height="{HEIGHT}">{content}<rect x="0.5" y="0.5" width="{width - 1}" '
        f'height="{HEIGHT - 1}" fill="none" stroke="currentColor" stroke-opacity="0.4"/></svg>'
    )


def key(methods: list[str]) -> str:
    """A key to the shapes and colors of the methods."""
    parts = []
    for number, name in enumerate(methods):
        parts += [marker(name, 12 + 150 * number, HEIGHT + 46), words(26 + 150 * number, HEIGHT + 50, name, size=SMALL)]
    return "".join(parts)


@functools.cache
def demo() -> Demo:
    return Demo(
        title="The paths of optimizers",
        controls=(
            Choice("landscape", "landscape", tuple(LANDSCAPES)),
            Choice("method", "method", ("all", *METHODS)),
            Slider("lr", "learning rate", RATES),
        ),
        show=show,
        start={"landscape": "narrow valley", "method": "all", "lr": 0.05},
        presets={
            "Forgot to zero": {"landscape": "narrow valley", "method": "forgot to zero", "lr": 0.02},
            "SGD too fast": {"landscape": "narrow valley", "method": "all", "lr": 0.2},
            "A curved valley": {"landscape": "curved valley", "method": "all", "lr": 0.01},
            "Leaving a saddle": {"landscape": "saddle", "method": "all", "lr": 0.05},
            "Many hollows": {"landscape": "many hollows", "method": "all", "lr": 0.05},
        },
    )


def optimizer_paths(step: int = 0, predict: bool = True, **state: Any) -> Any:
    """The demo: four optimizers on a landscape, from the first step on. `state` sets its controls, such as `lr=0.2`;
    `predict` asks first which will end lowest.
    """
    return demo().live(step, predict, **state)
