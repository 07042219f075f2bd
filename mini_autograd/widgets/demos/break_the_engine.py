"""Break the engine live: two engines train the same network on the same curve, and one of them has a bug.

Both run `mini_autograd`. A bug is a wrong rule, a share that is overwritten, or a gradient that is never cleared. The
reader guesses the bug from how training looks: the steps of the demo are training steps.
"""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mini_autograd.autograd import Function
from mini_autograd.numerics.dtypes import float64
from mini_autograd.tensors.creation import tensor
from mini_autograd.tensors.tensor import Tensor
from mini_autograd.widgets.demo import COLORS, Demo, Entry, Shown, Slider
from mini_autograd.widgets.sketch import (
    SMALL,
    along,
    box,
    button,
    by_step,
    dragged,
    line,
    picture,
    press,
    segment,
    through,
    way,
    words,
)  # fmt: skip

POINTS, HIDDEN, RATE, STEPS, ROUNDS = 24, 6, 0.1, 120, 10
SHOWN = range(0, STEPS + 1, 4)
"""The training steps that are shown."""
BLUE, ORANGE, GREEN = COLORS[0], COLORS[1], COLORS[2]
WIDTH, HEIGHT, LEFT, GAP = 226.0, 140.0, 60.0, 47.0
CHOICE, ROW = 410.0, 40.0  # the width of a choice, and the distance between two
CURVES: tuple[Callable[[Any], Any], ...] = (np.sin, lambda x: np.cos(2 * x), lambda x: np.tanh(2 * x) - x / 4)
NAMES = ("w1", "b", "w2", "w3")
NETWORK = "tanh(tanh(tanh(x @ w1 + b) @ w2) @ w2) @ w3"


@dataclass(frozen=True)
class Bug:
    """A bug: its text among the choices, and its sign in the pictures."""

    words: str
    sign: str


BUGS = {
    "cleared": Bug(
        ".grad is never set to zero",
        "All bars are wrong and swing from step to step: each step uses the sum of all gradients so far.",
    ),
    "slope": Bug(
        "the rule of tanh leaves out its slope",
        "Every bar except w3 is wrong. Only w3 comes after the last tanh, so its gradient loses no slope.",
    ),
    "overwritten": Bug(
        "the second use of w2 overwrites the first",
        "Only the bar of w2 is wrong. It is used twice, and one of its two shares is missing.",
    ),
    "sign": Bug(
        "the rule of the product loses a sign",
        "Only the bar of w1 is wrong. It points to the left, so the steps of w1 go uphill.",
    ),
    "row": Bug(
        "the gradient of b comes from one row only",
        "Only the bar of b is wrong. b was stretched over all rows, so the gradients of all rows have to be added up.",
    ),
}


class TanhWithoutSlope(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.tanh()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        return grad


class ProductWithLostSign(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor) -> Tensor:
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        x, w = ctx.saved_tensors
        return grad @ w.T, -(x.T @ grad)


class SumWithOneRow(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, b: Tensor) -> Tensor:
        return x + b

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        return grad, grad[0]


@dataclass(frozen=True)
class Moment:
    """The state before a training step: the loss, the outputs, and for each parameter how much of the right gradient
    its gradient contains (1 if nothing is wrong)."""

    loss: float
    outputs: np.ndarray
    shares: tuple[float, ...]


def bug_of(number: int) -> str:
    """The bug of a round. Every five rounds contain each bug once."""
    block, place = divmod(number - 1, len(BUGS))
    return random.Random(f"block {block}").sample(list(BUGS), len(BUGS))[place]


@functools.lru_cache(maxsize=32)
def training(number: int, bug: str) -> tuple[Moment, ...]:
    """The moments of a training run in a round. `bug` is one of BUGS, or empty for the right engine."""
    generator = np.random.default_rng(number)
    x = np.linspace(-2, 2, POINTS)[:, None]
    target = tensor(CURVES[number % len(CURVES)](x), dtype=float64)
    sizes = (1, HIDDEN), (HIDDEN,), (HIDDEN, HIDDEN), (HIDDEN, 1)
    parameters = [tensor(generator.normal(0, 0.7, size), dtype=float64, requires_grad=True) for size in sizes]
    kept: list[np.ndarray] = [np.zeros(size) for size in sizes]
    moments = []
    for _ in range(STEPS + 1):
        loss, outputs, found = gradients(tensor(x, dtype=float64), target, parameters, bug)
        kept = [before + new for before, new in zip(kept, found, strict=True)] if bug == "cleared" else found
        right = gradients(tensor(x, dtype=float64), target, parameters, "")[2] if bug else found
        shares = tuple(share(*pair) for pair in zip(kept, right, strict=True))
        moments.append(Moment(loss, outputs, shares))
        for parameter, gradient in zip(parameters, kept, strict=True):
            parameter.data = parameter.data - RATE * tensor(gradient, dtype=float64)
    return tuple(moments)


def share(found: np.ndarray, right: np.ndarray) -> float:
    """How much of the right gradient another one contains: their dot product over the square of the right one."""
    square = float((right * right).sum())
    if square == 0.0:  # far out, where tanh is flat
        return math.inf if found.any() else 1.0
    return float((found * right).sum()) / square


def gradients(
    x: Tensor, target: Tensor, parameters: list[Tensor], bug: str
) -> tuple[float, np.ndarray, list[np.ndarray]]:
    """The loss, the outputs and the gradients of one backward pass, through the rule that the bug spoils."""
    w1, b, w2, w3 = [parameter.detach().requires_grad_() for parameter in parameters]
    again = w2.detach().requires_grad_()  # the second use of w2, so that both shares can be told apart
    product = ProductWithLostSign.apply(x, w1) if bug == "sign" else x @ w1
    first = SumWithOneRow.apply(product, b) if bug == "row" else product + b
    tanh = TanhWithoutSlope.apply if bug == "slope" else Tensor.tanh
    outputs = tanh(tanh(tanh(first) @ w2) @ again) @ w3
    loss = ((outputs - target) ** 2).mean()
    loss.backward()
    found = [np.zeros(leaf.shape) if leaf.grad is None else leaf.grad.numpy() for leaf in (w1, b, w2, w3, again)]
    other = found.pop()
    if bug != "overwritten":
        found[2] = found[2] + other
    return loss.item(), outputs.detach().numpy(), found


def guesses_in(text: str) -> dict[int, str]:
    """The guesses in a text such as "1=sign 2=row". Raises ValueError for anything else."""
    found: dict[int, str] = {}
    for part in text.split():
        number, equals, bug = part.partition("=")
        if not number.isdigit() or not equals or bug not in BUGS:
            raise ValueError(f"{part!r} is not a guess. Write a round and one of {', '.join(BUGS)}, such as 1=sign")
        found[int(number)] = bug
    return found


def show(number: float, guesses: str) -> Shown:
    """Both training runs, the choices, and the answer after a guess."""
    current, made = int(number), guesses_in(guesses)
    bug, guess = bug_of(current), made.get(current)
    right, broken = ([training(current, name)[at] for at in SHOWN] for name in ("", bug))
    told = words_for(current, made)
    steps = tuple(
        f"after {at} training steps: loss {one.loss:.3g} with the right engine, {other.loss:.3g} with the broken one"
        for at, one, other in zip(SHOWN, right, broken, strict=True)
    )
    parts = [*losses(right, broken), *fits(current, right, broken), *bars(broken)]
    parts.append(words(10, HEIGHT + 78, f"Both engines train the network {NETWORK} on the dots.", size=SMALL))
    top = HEIGHT + 92
    places = [(10 + (CHOICE + 12) * (place % 2), top + ROW * (place // 2)) for place in range(len(BUGS) + 1)]
    for (name, choice), (x, y) in zip(BUGS.items(), places, strict=False):
        color = "currentColor" if guess is None or name not in (guess, bug) else GREEN if name == bug else ORANGE
        drawing, _ = button(choice.words, x, y, CHOICE, color=color)
        state = {"guesses": " ".join(f"{n}={b}" for n, b in {**made, current: name}.items())}
        parts.append(drawing if guess else press(drawing, choice.words, state))
    x, y = places[-1]
    score = sum(bug_of(n) == b for n, b in made.items())
    parts.append(words(x + 145, y + 22, f"Round {current} of {ROUNDS}. Right so far: {score} of {len(made)}", size=15))
    if guess and current < ROUNDS:
        drawing, _ = button("Next round", x, y, 130)
        parts.append(press(drawing, "Next round", {"number": current + 1}, tool=True))
    size = LEFT + 3 * WIDTH + 2 * GAP + 20, y + ROW
    return Shown(picture(*size, parts, " ".join(told), role="group"), told, steps, asks=guess is None)


def words_for(number: int, made: dict[int, str]) -> tuple[str, ...]:
    """The question; after a guess, whether it was right, and the sign of the bug."""
    if number not in made:
        return ("What is broken? Choose one of the five bugs. A bar that ends at 1 is a right gradient.",)
    bug = BUGS[bug_of(number)]
    verdict = "Right" if made[number] == bug_of(number) else "No. It is another bug"
    return (f"{verdict}: {bug.words}.", bug.sign)


def losses(right: list[Moment], broken: list[Moment]) -> list[str]:
    """The losses of both engines, on a logarithmic scale from 1e-4 to 100."""

    def curve(moments: list[Moment]) -> list[tuple[float, float]]:
        heights = [min(max(math.log10(max(moment.loss, 1e-9)), -4.0), 2.0) for moment in moments]
        return [(LEFT + WIDTH * at / STEPS, 30 + HEIGHT * (2 - y) / 6) for at, y in zip(SHOWN, heights, strict=True)]

    parts = frame(LEFT, "loss", "training steps")
    for power in (-4, -2, 0, 2):
        y = 30 + HEIGHT * (2 - power) / 6
        parts += [segment(LEFT - 4, y, LEFT, y), words(LEFT - 7, y + 5, f"{10.0**power:g}", size=SMALL, anchor="end")]
    for name, moments, color in (("right", right, BLUE), ("broken", broken, ORANGE)):
        points = curve(moments)
        parts += [way(name, points, color), along(name, points[-1], f'<circle r="4.5" fill="{color}"/>')]
    return [*parts, dragged("right", LEFT, 30, WIDTH, HEIGHT)]


def fits(number: int, right: list[Moment], broken: list[Moment]) -> list[str]:
    """The curve to learn, and the outputs of both networks."""
    left = LEFT + WIDTH + GAP
    xs = np.linspace(-2, 2, POINTS)
    target = CURVES[number % len(CURVES)](xs)

    def at(x: float, y: float) -> tuple[float, float]:
        return left + WIDTH * (x + 2) / 4, 30 + HEIGHT * (0.5 - min(max(float(y), -1.8), 1.8) / 3.6)

    def curve(outputs: np.ndarray) -> list[tuple[float, float]]:
        return [at(x, y) for x, y in zip(xs, outputs.ravel(), strict=True)]

    dots = [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.6" fill="currentColor"/>' for x, y in curve(target)]
    lines = []
    for moments, color, dashes in ((right, BLUE, ""), (broken, ORANGE, "6 4")):
        curves = [curve(moment.outputs) for moment in moments]
        lines.append(by_step(line(curves[-1], color, dashes), d=[through(points, 0) for points in curves]))
    key = [
        words(left, 30 + HEIGHT + 18, "right engine", size=SMALL, fill=BLUE, bold=True),
        words(left + WIDTH, 30 + HEIGHT + 18, "broken engine", size=SMALL, fill=ORANGE, bold=True, anchor="end"),
    ]
    return [*frame(left, "output of the network", ""), *dots, *lines, *key]


def bars(moments: list[Moment]) -> list[str]:
    """How much of the right gradient each gradient of the broken engine contains."""
    left, low, high = LEFT + 2 * (WIDTH + GAP), -2.0, 4.0

    def at(value: float) -> float:
        return left + WIDTH * (min(max(value, low), high) - low) / (high - low)

    parts = frame(left, "broken / right gradient", "")
    for mark in (-2, 0, 1, 4):
        parts.append(segment(at(mark), 30, at(mark), 30 + HEIGHT, color=BLUE if mark == 1 else "currentColor"))
        parts.append(words(at(mark), 30 + HEIGHT + 18, mark, size=SMALL, anchor="middle"))
    for place, name in enumerate(NAMES):
        y, shares = 36 + place * HEIGHT / 4, [moment.shares[place] for moment in moments]
        starts, ends = zip(*(sorted((at(0.0), at(share))) for share in shares), strict=True)
        widths = [max(end - start, 1.0) for start, end in zip(starts, ends, strict=True)]
        colors = [BLUE if abs(share - 1) < 0.005 else ORANGE for share in shares]
        bar = box(starts[-1], y, widths[-1], 20, fill=colors[-1], opacity=0.55, stroke=colors[-1])
        lists = {"x": [f"{start:.0f}" for start in starts], "width": [f"{width:.0f}" for width in widths]}
        parts.append(by_step(bar, **lists, fill=colors, stroke=colors))
        texts = [f"{name}: {share:.2g}" for share in shares]
        text = words(left + WIDTH - 4, y + 15, texts[-1], size=SMALL, anchor="end", bold=True)
        parts.append(by_step(text, text=texts))
    return parts


def frame(left: float, title: str, below: str) -> list[str]:
    return [
        box(left, 30, WIDTH, HEIGHT, opacity=0.0),
        words(left, 20, title, size=SMALL, bold=True),
        words(left + WIDTH / 2, 30 + HEIGHT + 18, below, size=SMALL, anchor="middle"),
    ]


@functools.cache
def demo() -> Demo:
    start: dict[str, Any] = {"number": 1, "guesses": ""}
    controls = (
        Slider("number", "Round", tuple(range(1, ROUNDS + 1))),
        Entry("guesses", "Guesses", hidden=True),
    )
    return Demo("Break the engine", controls, show, start, {}, {"guesses": f"1={bug_of(1)}"})


def break_the_engine(step: int = 0, **state: Any) -> Any:
    """The demo: the reader finds the bug in one of two engines from how they train. Rounds are always the same.

    `number` is the round, `guesses` the choices, such as "1=sign", `step` the step shown first, each of four training
    steps. Raises ValueError for other values.
    """
    return demo().live(step, **state)
