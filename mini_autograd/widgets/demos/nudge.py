"""Nudge and watch: a step of one input runs forward through a graph; the gradient predicts its effect.

Both come from the engine: the values from running the expression twice, the gradients from one backward pass.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from mini_autograd.drawing import Graph, Node, read_graph
from mini_autograd.drawing.formatting import TIMES, factor, short
from mini_autograd.drawing.layout import Spacing, lay_out
from mini_autograd.numerics.dtypes import float64
from mini_autograd.tensors.creation import tensor
from mini_autograd.tensors.tensor import Tensor
from mini_autograd.widgets.demo import COLORS, Choice, Demo, Shown, Slider
from mini_autograd.widgets.sketch import SMALL, box, curved, line, picture, segment, words

WIDTH, HEIGHT, PLOT_WIDTH, PLOT_HEIGHT = 128.0, 96.0, 300.0, 200.0
PLOT_LEFT, PLOT_TOP, PLOT_BELOW, NUMBERS_WIDTH = 70.0, 44.0, 46.0, 190.0
SPACING = Spacing(between=22.0, layers=36.0, margin=8.0)
BLUE, ORANGE, GREEN = COLORS[0], COLORS[1], COLORS[2]
TICKS = (-2.0, -1.0, 0.0, 1.0, 2.0)
STEPS = tuple(round(0.05 * number, 2) for number in range(-40, 41))
NOT_YET, SHOW = "not yet", "just show it"
GUESSES = (NOT_YET, "above the prediction", "below it", "exactly on it", SHOW)
CLOSE = 1e-12  # changes that differ by less are the same: the difference is rounding

EXPRESSIONS: dict[str, tuple[Callable[[Tensor, Tensor], Tensor], float, float]] = {
    "tanh(a * b + a)": (lambda a, b: (a * b + a).tanh(), 0.5, -0.5),
    "a * b": (lambda a, b: a * b, 2.0, -3.0),
    "a * a * b": (lambda a, b: a * a * b, 1.0, 1.0),
    "exp(a) + b": (lambda a, b: a.exp() + b, 0.5, 1.0),
}
"""Expressions of two inputs, and where they start."""


@functools.lru_cache(maxsize=400)
def graph_of(expression: str, step: float) -> Graph:
    """The graph of an expression after a step of `a`, with the gradients there."""
    function, first, second = EXPRESSIONS[expression]
    a, b = (tensor(value, dtype=float64, requires_grad=True) for value in (first + step, second))
    return read_graph(function(a, b), {"a": a, "b": b})


def changes(expression: str, step: float) -> tuple[float, float]:
    """The change of the result that the gradient predicts, and the true change."""
    before, after = graph_of(expression, 0.0), graph_of(expression, step)
    (a,) = [node for node in before.nodes if node.name == "a"]
    return number(a.incoming) * step, number(after.output.value) - number(before.output.value)


def number(value: Any) -> float:
    return float(value)


def show(expression: str, step: float, guess: str) -> Shown:
    """The graph before and after the step, and the predicted change beside the true one."""
    predicted, true = changes(expression, step)
    before, after, open_ = graph_of(expression, 0.0), graph_of(expression, step), guess != NOT_YET
    shown = [node.index for node in before.nodes if node.kind != "constant"]
    place = {index: position for position, index in enumerate(shown)}
    edges = [edge for edge in before.edges if edge.source in place]
    pairs = [(place[edge.source], place[edge.target]) for edge in edges]
    layout = lay_out([(WIDTH, HEIGHT)] * len(shown), pairs, spacing=SPACING)
    parts = []
    for route in layout.routes:
        parts.append(f'<path d="{curved(route)}" fill="none" stroke="currentColor" stroke-width="1.2"/>')
    for index, at in zip(shown, layout.boxes, strict=True):
        hidden = not open_ and before.nodes[index].kind == "operation"  # only the leaves are known
        parts.append(node_part(before.nodes[index], after.nodes[index], hidden, at.x, at.y))
    left = layout.boxes[0].x + WIDTH + PLOT_LEFT  # beside the leaves, below the nodes there
    top = max(at.y + HEIGHT for at in layout.boxes if at.x + WIDTH > left) + PLOT_TOP
    parts += plot(expression, step, open_, left, top)
    told = words_for(before, step, predicted, true, guess)
    size = max(layout.width, left + PLOT_WIDTH + NUMBERS_WIDTH), max(layout.height, top + PLOT_HEIGHT + PLOT_BELOW)
    return Shown(picture(*size, parts, " ".join(told)), told, asks=guess == NOT_YET)


def node_part(before: Node, after: Node, hidden: bool, x: float, y: float) -> str:
    """One node: its value before and after, the change, and its gradient."""
    old, new = number(before.value), number(after.value)
    moved = abs(new - old) > CLOSE
    head = f"{before.name} = {before.formula}" if before.formula else before.name
    change = "?" if hidden else f"{short(old)} \u2192 {short(new)}" if moved else short(old)
    color = ORANGE if moved and not hidden else "currentColor"
    middle = x + WIDTH / 2
    return "".join((
        box(x, y, WIDTH, HEIGHT, fill=color, opacity=0.1, stroke=color, radius=4 if before.formula else 14),
        words(middle, y + 20, head, size=SMALL, anchor="middle", bold=True),
        words(middle, y + 42, change, size=SMALL, anchor="middle"),
        words(middle, y + 63, f"change {short(new - old)}" if moved and not hidden else "", size=SMALL,
              anchor="middle", fill=ORANGE),
        words(middle, y + 84, f"gradient {short(number(before.incoming))}", size=SMALL, anchor="middle", fill=BLUE),
    ))  # fmt: skip


def plot(expression: str, step: float, open_: bool, x: float, y: float) -> list[str]:
    """Both changes over the step: the prediction is a straight line; between it and the truth is the gap."""
    lines = [changes(expression, other) for other in STEPS]
    seen = [value for pair in lines for value in (pair if open_ else pair[:1])]
    largest = max(map(abs, seen)) or 1.0
    top = float(f"{0.9 * largest:.1g}")  # a short number for the axis

    def at(where: float, value: float) -> tuple[float, float]:
        across = x + PLOT_WIDTH * (where - STEPS[0]) / (STEPS[-1] - STEPS[0])
        return across, y + PLOT_HEIGHT / 2 * (1 - value / largest)

    predicted, true = changes(expression, step)
    (left, zero), (right, _), (middle, _) = at(STEPS[0], 0.0), at(STEPS[-1], 0.0), at(0.0, 0.0)
    parts = [
        segment(left, zero, right, zero), segment(middle, y, middle, y + PLOT_HEIGHT),
        *(words(at(where, 0.0)[0], y + PLOT_HEIGHT + 18, f"{where:g}", size=SMALL, anchor="middle") for where in TICKS),
        *(words(x - 8, at(0.0, value)[1] + 5, f"{value:g}", size=SMALL, anchor="end") for value in (-top, 0.0, top)),
        words(middle, y + PLOT_HEIGHT + 38, "step of a", size=SMALL, anchor="middle"),
        words(middle, y - 12, "change of the result", size=SMALL, anchor="middle"),
        line([at(where, value) for where, (value, _) in zip(STEPS, lines, strict=True)], BLUE, "6 4"),
        mark(*at(step, predicted), BLUE),
        words(right + 16, y + 40, f"predicted: {short(predicted)}", size=15, fill=BLUE, bold=True),
    ]  # fmt: skip
    if open_:
        parts += [
            line([at(where, value) for where, (_, value) in zip(STEPS, lines, strict=True)], ORANGE),
            segment(*at(step, predicted), *at(step, true), color=ORANGE, width=5),
            mark(*at(step, true), ORANGE),
            words(right + 16, y + 66, f"true: {short(true)}", size=15, fill=ORANGE, bold=True),
            words(right + 16, y + 92, f"gap: {short(rounded(true - predicted))}", size=15),
        ]
    return parts


def mark(x: float, y: float, color: str) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5.5" fill="{color}"/>'


def rounded(gap: float) -> float:
    return 0.0 if abs(gap) < CLOSE else gap


def words_for(before: Graph, step: float, predicted: float, true: float, guess: str) -> tuple[str, ...]:
    """The prediction; and once the reader has guessed, what happened and why."""
    (a,) = [node for node in before.nodes if node.name == "a"]
    first = f"Predicted change of the result: {short(number(a.incoming))} {TIMES} {factor(step)} = {short(predicted)}."
    if guess == NOT_YET:
        return (first, "Where will the true change be? Make your guess above to see it.")
    gap = rounded(true - predicted)
    where = GUESSES[3] if gap == 0 else GUESSES[1] if gap > 0 else GUESSES[2]
    verdict = "" if guess == SHOW else "You guessed right. " if guess == where else f'You guessed "{guess}". '
    second = f"{verdict}The true change is {short(true)}, {where}."
    if gap == 0:
        return (first, second, "Along a straight line the slope does not change, so the prediction is exact.")
    share = abs(gap / predicted) if predicted else math.inf
    size = f" The gap is {share:.0%} of the predicted change." if share < 10 else ""
    return (first, second, f"The gap comes from the curve: the slope changes along the way.{size}")


@functools.cache
def demo() -> Demo:
    start = {"expression": "tanh(a * b + a)", "step": 0.5, "guess": NOT_YET}
    controls = (
        Choice("expression", "Expression", tuple(EXPRESSIONS)),
        Slider("step", "step of a", STEPS, plays=True),
        Choice("guess", "The true change is", GUESSES),
    )
    presets = {
        "A small step": {"step": 0.1, "guess": SHOW},
        "A large step": {"step": 2.0, "guess": SHOW},
        "No gap": {"expression": "a * b", "step": 1.0, "guess": SHOW},
    }
    return Demo("Nudge and watch", controls, show, start, presets, {"guess": SHOW})


def nudge(**state: Any) -> Any:
    """The demo: a step of one input, the change that the gradient predicts, and the true change.

    `state` sets its controls: expression, step and guess. Raises ValueError for others.
    """
    return demo().live(**state)
