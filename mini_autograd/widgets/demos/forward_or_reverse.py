"""Forward or reverse: how many passes a whole Jacobian takes in each mode, and how long they take, measured.

Forward mode gives a column per pass, one for each input; reverse mode a row per pass, one for each output.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mini_autograd.func import jvp
from mini_autograd.tensors.creation import tensor
from mini_autograd.tensors.gradients import grad
from mini_autograd.widgets.demo import COLORS, Bet, Demo, Shown, Slider
from mini_autograd.widgets.demos.stopwatch import Times, now, times
from mini_autograd.widgets.sketch import SMALL, box, from_step, picture, words

HIDDEN = 32
SIZES = (1, 2, 4, 8, 16, 32, 64)
RUNS = 9
"""Runs of each mode. The modes take turns, so that a busy moment of the machine affects both."""
FORWARD, REVERSE = COLORS[0], COLORS[1]
TOP, WIDTH, HEIGHT = 34.0, 382.0, 190.0
"""Of a Jacobian in the picture: its entries get smaller, not the whole."""
TIME_TOP = TOP + HEIGHT + 66


@dataclass(frozen=True)
class Measured:
    """The Jacobian by both modes, and the times that each took."""

    forward: np.ndarray
    reverse: np.ndarray
    forward_times: Times
    reverse_times: Times


def network(inputs: int, outputs: int) -> tuple[Callable[[Any], Any], Any]:
    """A function from `inputs` numbers to `outputs` numbers, and a point."""
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
    start = now()
    result = compute(*arguments)
    return result, now() - start


def measure(inputs: int, outputs: int) -> Measured:
    function, x = network(inputs, outputs)
    runs = [(timed(by_columns, function, x), timed(by_rows, function, x)) for _ in range(RUNS)]
    (forward, _), (reverse, _) = runs[0]
    return Measured(forward, reverse, times([run[0][1] for run in runs]), times([run[1][1] for run in runs]))


def show(inputs: float, outputs: float) -> Shown:
    """The Jacobian filled pass by pass in both modes, and the times if they can be told apart."""
    n, m = int(inputs), int(outputs)
    done = measure(n, m)
    apart = done.forward_times.apart(done.reverse_times)
    last = max(n, m)
    parts = [
        *mode_picture(14, "Forward mode", n, m, "column", FORWARD),
        *mode_picture(434, "Reverse mode", n, m, "row", REVERSE),
    ]
    if apart:
        longest = max(done.forward_times.median, done.reverse_times.median)
        drawn = []
        for left, each, color in ((14, done.forward_times, FORWARD), (434, done.reverse_times, REVERSE)):
            drawn.append(words(left, TIME_TOP, f"median computing time {each}", size=SMALL))
            drawn.append(box(left, TIME_TOP + 10, WIDTH * each.median / longest, 24, fill=color, stroke=color))
        parts.append(from_step(last, *drawn))  # the question is which one is shorter
    sentences = (
        f"{count(n, 'input', 'inputs')}, {count(m, 'output', 'outputs')}: the Jacobian has {m} x {n} entries. "
        f"Forward mode needs {count(n, 'pass', 'passes')}, reverse mode {count(m, 'pass', 'passes')}.",
        compared(done.forward_times, done.reverse_times),
        f"The two results differ by at most {np.abs(done.forward - done.reverse).max():.1e}.",
    )
    steps = tuple(after(passes, n, m) for passes in range(last + 1))
    svg = picture(830, TIME_TOP + 44, parts, sentences[0])
    return Shown(svg, sentences, steps, words_at_end=True, bet=bet(n, m, done))


def after(passes: int, n: int, m: int) -> str:
    """The progress of both modes."""
    return (
        f"after {count(passes, 'pass', 'passes')}: forward mode has {min(passes, n)} of "
        f"{count(n, 'column', 'columns')}, reverse mode {min(passes, m)} of {count(m, 'row', 'rows')}"
    )


def bet(n: int, m: int, done: Measured) -> Bet:
    """The question of which mode is quicker."""
    question = f"Which mode is quicker for {count(n, 'input', 'inputs')} and {count(m, 'output', 'outputs')}?"
    right = "no clear winner"
    if done.forward_times.apart(done.reverse_times):
        right = "forward mode" if done.forward_times.median < done.reverse_times.median else "reverse mode"
    reason = f"forward mode takes {count(n, 'pass', 'passes')}, reverse mode {m}"
    return Bet(question, ("forward mode", "reverse mode", "no clear winner"), right, reason)


def compared(forward: Times, reverse: Times) -> str:
    """Which mode was quicker, if the runs agree."""
    if not forward.apart(reverse):
        return f"The times of {RUNS} runs overlap, so they do not show which mode is quicker here."
    quicker, time_of, other = (
        ("Forward", forward, reverse) if forward.median < reverse.median else ("Reverse", reverse, forward)
    )
    return f"{quicker} mode is quicker on this machine: median of {RUNS} runs {time_of}, against {other}."


def count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def mode_picture(left: float, title: str, n: int, m: int, what: str, color: str) -> list[str]:
    """A Jacobian of m rows and n columns that fills with the passes of a mode, and a bar of these passes below it."""
    passes = n if what == "column" else m
    across, down = (WIDTH / n, HEIGHT) if what == "column" else (WIDTH, HEIGHT / m)
    each, below = WIDTH / max(n, m), TOP + HEIGHT + 16
    lines = [f"M{left + WIDTH * column / n:.1f} {TOP}v{HEIGHT}" for column in range(n)]
    lines += [f"M{left} {TOP + HEIGHT * row / m:.1f}h{WIDTH}" for row in range(m)]
    parts = [
        words(left, 20, f"{title}: {count(passes, 'pass', 'passes')}, one per {what}", bold=True),
        box(left, TOP, WIDTH, HEIGHT, fill=color, opacity=0.08, stroke=color, radius=0),
        f'<path d="{"".join(lines)}" stroke="{color}" stroke-opacity="0.4" stroke-width="0.7"/>',
    ]
    for number in range(passes):
        x, y = (left + number * across, TOP) if what == "column" else (left, TOP + number * down)
        piece = box(x, y, across, down, fill=color, opacity=0.6, stroke=color, line=0.8, radius=0)
        run = box(left + number * each, below, each, 24, fill=color, opacity=0.6, stroke=color, line=0.8, radius=0)
        parts.append(from_step(number + 1, piece, run))
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


def forward_or_reverse(predict: bool = True, **state: Any) -> Any:
    """The demo: passes and measured time of both modes for n inputs and m outputs. `state` sets its controls; `predict`
    asks first which mode is quicker.
    """
    return demo().live(predict=predict, **state)
