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
from mini_autograd.widgets.demo import COLORS, Demo, Shown, Slider
from mini_autograd.widgets.demos.stopwatch import Times, times
from mini_autograd.widgets.sketch import box, picture, segment, words

HIDDEN = 32
SIZES = (1, 2, 4, 8, 16, 32, 64)
RUNS = 9
"""So many times each mode is run, in turns, so that a busy moment of the machine meets both."""
FORWARD, REVERSE = COLORS[0], COLORS[1]


@dataclass(frozen=True)
class Measured:
    """The Jacobian by both modes, and the times that each took."""

    forward: np.ndarray
    reverse: np.ndarray
    forward_times: Times
    reverse_times: Times


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
    """The result, and the seconds that it took."""
    start = time.perf_counter()
    result = compute(*arguments)
    return result, time.perf_counter() - start


def measure(inputs: int, outputs: int) -> Measured:
    function, x = network(inputs, outputs)
    runs = [(timed(by_columns, function, x), timed(by_rows, function, x)) for _ in range(RUNS)]
    (forward, _), (reverse, _) = runs[0]
    return Measured(forward, reverse, times([run[0][1] for run in runs]), times([run[1][1] for run in runs]))


def show(inputs: float, outputs: float) -> Shown:
    """The Jacobian cut into columns and into rows, the passes, and the times where they can be told apart."""
    n, m = int(inputs), int(outputs)
    done = measure(n, m)
    rows = [
        ("Forward mode", "column", n, done.forward_times, FORWARD),
        ("Reverse mode", "row", m, done.reverse_times, REVERSE),
    ]
    apart = done.forward_times.apart(done.reverse_times)
    parts = []
    for number, (title, what, passes, taken, color) in enumerate(rows):
        top = 14 + 152 * number
        parts.append(words(14, top + 14, f"{title}: {count(passes, 'pass', 'passes')}, one per {what}", bold=True))
        parts += jacobian_picture(14, top + 26, n, m, what, color)
        parts.append(box(330, top + 26, 480 * passes / max(n, m), 26, fill=color, opacity=0.5, stroke=color))
        for line in range(1, passes):
            x = 330 + 480 * line / max(n, m)
            parts.append(segment(x, top + 26, x, top + 52, color=color, width=0.8))
        if apart:
            parts.append(words(330, top + 74, f"median time {taken}"))
    sentences = (
        f"{count(n, 'input', 'inputs')}, {count(m, 'output', 'outputs')}: the Jacobian has {m} x {n} entries. "
        f"Forward mode needs {count(n, 'pass', 'passes')}, reverse mode {count(m, 'pass', 'passes')}.",
        compared(rows[0][3], rows[1][3]),
        f"The two results differ by at most {np.abs(done.forward - done.reverse).max():.1e}.",
    )
    return Shown(picture(830, 318, parts, " ".join(sentences)), sentences)


def compared(forward: Times, reverse: Times) -> str:
    """Which mode was quicker, if the runs agree about it."""
    if not forward.apart(reverse):
        return f"The times of {RUNS} runs overlap, so they do not say which mode is quicker here."
    quicker, time_of, other = (
        ("Forward", forward, reverse) if forward.median < reverse.median else ("Reverse", reverse, forward)
    )
    return f"{quicker} mode is quicker on this machine: median of {RUNS} runs {time_of}, against {other}."


def count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def jacobian_picture(x: float, y: float, n: int, m: int, what: str, color: str) -> list[str]:
    """A Jacobian of m rows and n columns, cut as a mode computes it: the first pass is filled."""
    width, height = 24.0 + 36 * np.log2(n), 16.0 + 16 * np.log2(m)
    pieces = n if what == "column" else m
    across = width / n if what == "column" else width
    down = height if what == "column" else height / m
    parts = [box(x, y, width, height, fill=color, opacity=0.12, stroke=color, radius=0)]
    parts.append(box(x, y, across, down, fill=color, opacity=0.7, stroke=color, radius=0))
    for piece in range(1, pieces):
        if what == "column":
            parts.append(segment(x + piece * across, y, x + piece * across, y + height, color=color, width=0.8))
        else:
            parts.append(segment(x, y + piece * down, x + width, y + piece * down, color=color, width=0.8))
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
