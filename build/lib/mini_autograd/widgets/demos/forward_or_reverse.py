"""Forward or reverse: how many passes a whole Jacobian takes in either mode, and how long they take, measured.

Forward mode gives a column per pass, one for each input; reverse mode a row per pass, one for each output.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mini_autograd.autograd.forward_ad import jvp
from mini_autograd.tensors.creation import tensor
from mini_autograd.tensors.gradients import grad
from mini_autograd.widgets.demo import COLOURS, Demo, Shown, Slider
from mini_autograd.widgets.sketch import box, picture, segment, words

HIDDEN = 32
SIZES = (1, 2, 4, 8, 16, 32, 64)
LIMIT = 0.002  # seconds that repeating a measurement may take
FORWARD, REVERSE = COLOURS[0], COLOURS[1]


@dataclass(frozen=True)
class Measured:
    """The Jacobian by both modes, and the seconds that each took."""

    forward: np.ndarray
    reverse: np.ndarray
    forward_seconds: float
    reverse_seconds: float


def network(inputs: int, outputs: int) -> tuple[Callable[[Any], Any], Any]:
    """A function of `inputs` numbers that gives `outputs` numbers, and a point."""
    generator = np.random.default_rng(inputs * 1000 + outputs)
    first = tensor(generator.normal(size=(inputs, HIDDEN)) / np.sqrt(inputs))
    second = tensor(generator.normal(size=(HIDDEN, outputs)) / np.sqrt(HIDDEN))
    return lambda x: (x @ first).tanh() @ second, tensor(generator.normal(size=inputs))


def by_columns(function: Callable[[Any], Any], x: Any) -> np.ndarray:
    """The Jacobian by forward mode: one pass per input."""
    basis = np.eye(x.shape[0])
    return np.stack([jvp(function, (x,), (tensor(row),))[1].numpy() for row in basis], axis=1)


def by_rows(function: Callable[[Any], Any], x: Any) -> np.ndarray:
    """The Jacobian by reverse mode: the function once, then one backward pass per output."""
    x = x.detach().requires_grad_()
    y = function(x)
    basis = np.eye(y.shape[0])
    return np.stack([grad(y, x, tensor(row), retain_graph=True)[0].numpy() for row in basis])


def timed(compute: Callable[..., np.ndarray], *arguments: Any) -> tuple[np.ndarray, float]:
    """The result and the shortest of a few times."""
    best, started = float("inf"), time.perf_counter()
    while True:
        start = time.perf_counter()
        result = compute(*arguments)
        end = time.perf_counter()
        best = min(best, end - start)
        if end - started > LIMIT:
            return result, best


def measure(inputs: int, outputs: int) -> Measured:
    function, x = network(inputs, outputs)
    forward, forward_seconds = timed(by_columns, function, x)
    reverse, reverse_seconds = timed(by_rows, function, x)
    return Measured(forward, reverse, forward_seconds, reverse_seconds)


def show(inputs: float, outputs: float) -> Shown:
    """The Jacobian cut into columns and into rows, and the times."""
    n, m = int(inputs), int(outputs)
    done = measure(n, m)
    rows = [
        ("Forward mode", "column", n, done.forward_seconds, FORWARD),
        ("Reverse mode", "row", m, done.reverse_seconds, REVERSE),
    ]
    slowest = max(done.forward_seconds, done.reverse_seconds)
    parts = []
    for number, (title, what, passes, seconds, colour) in enumerate(rows):
        top = 14 + 152 * number
        parts.append(words(14, top + 14, f"{title}: {count(passes, 'pass', 'passes')}, one per {what}", bold=True))
        parts += jacobian_picture(14, top + 26, n, m, what, colour)
        parts.append(words(330, top + 48, f"{1000 * seconds:.3g} ms", size=15, bold=True))
        parts.append(box(330, top + 57, max(480 * seconds / slowest, 2), 26, fill=colour, opacity=0.5, stroke=colour))
    quicker, slower = sorted(rows, key=lambda row: row[3])
    sentences = (
        f"{count(n, 'input', 'inputs')}, {count(m, 'output', 'outputs')}: the Jacobian has {m} x {n} entries. "
        f"{quicker[0]} is {slower[3] / quicker[3]:.1f} times as fast: {count(quicker[2], 'pass', 'passes')} "
        f"in {1000 * quicker[3]:.3g} ms, against {count(slower[2], 'pass', 'passes')} in {1000 * slower[3]:.3g} ms.",
        f"The two results differ by at most {np.abs(done.forward - done.reverse).max():.1e}.",
    )
    return Shown(picture(830, 318, parts, " ".join(sentences)), sentences)


def count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def jacobian_picture(x: float, y: float, n: int, m: int, what: str, colour: str) -> list[str]:
    """A Jacobian of m rows and n columns, cut as a mode computes it: the first pass is filled."""
    width, height = 24.0 + 36 * np.log2(n), 16.0 + 16 * np.log2(m)
    pieces = n if what == "column" else m
    across = width / n if what == "column" else width
    down = height if what == "column" else height / m
    parts = [box(x, y, width, height, fill=colour, opacity=0.12, stroke=colour, radius=0)]
    parts.append(box(x, y, across, down, fill=colour, opacity=0.7, stroke=colour, radius=0))
    for piece in range(1, pieces):
        if what == "column":
            parts.append(segment(x + piece * across, y, x + piece * across, y + height, colour=colour, width=0.8))
        else:
            parts.append(segment(x, y + piece * down, x + width, y + piece * down, colour=colour, width=0.8))
    return parts


@functools.cache
def demo() -> Demo:
    texts = tuple(str(size) for size in SIZES)
    return Demo(
        title="A whole Jacobian: forward or reverse mode",
        controls=(Slider("inputs", "inputs n", SIZES, texts), Slider("outputs", "outputs m", SIZES, texts)),
        show=show,
        start={"inputs": 16, "outputs": 2},
        presets={
            "A loss": {"inputs": 64, "outputs": 1},
            "One parameter": {"inputs": 1, "outputs": 64},
            "Square": {"inputs": 32, "outputs": 32},
        },
    )


def forward_or_reverse(**state: Any) -> Any:
    """The demo: passes and measured time of both modes for n inputs and m outputs. `state` sets its controls."""
    return demo().live(**state)
