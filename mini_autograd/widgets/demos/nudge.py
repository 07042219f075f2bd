"""Nudge and watch: a step of one input, and how the change runs through a graph.

The gradient predicts the change of the result; the true change comes from computing again. Between them is a gap, which
the reader guesses before seeing it. The steps of the demo are larger and larger steps of the input.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from mini_autograd.drawing import Graph, Node, read_graph
from mini_autograd.drawing.formatting import TIMES, factor, short
from mini_autograd.drawing.layout import Spacing, lay_out
from mini_autograd.numerics.dtypes import float64
from mini_autograd.tensors.creation import tensor
from mini_autograd.tensors.tensor import Tensor
from mini_autograd.widgets.demo import COLORS, Bet, Choice, Demo, Shown
from mini_autograd.widgets.sketch import (
    SMALL,
    along,
    box,
    by_step,
    curved,
    dragged,
    from_step,
    line,
    picture,
    segment,
    way,
    words,
)  # fmt: skip

WIDTH, HEIGHT, PLOT_WIDTH, PLOT_HEIGHT = 128.0, 96.0, 300.0, 200.0
PLOT_LEFT, PLOT_TOP, PLOT_BELOW, NUMBERS_WIDTH = 70.0, 44.0, 46.0, 190.0
SPACING = Spacing(between=22.0, layers=36.0, margin=8.0)
BLUE, ORANGE = COLORS[0], COLORS[1]
TICKS = (0.0, 0.5, 1.0, 1.5, 2.0)
STEPS = tuple(round(0.05 * number, 2) for number in range(41))
PLACES = ("above the prediction", "below it", "exactly on it")
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


def show(expression: str) -> Shown:
    """The graph at every step of `a`, and the predicted change beside the true one."""
    graphs = [graph_of(expression, step) for step in STEPS]
    before = graphs[0]
    shown = [node.index for node in before.nodes if node.kind != "constant"]
    place = {index: position for position, index in enumerate(shown)}
    pairs = [(place[edge.source], place[edge.target]) for edge in before.edges if edge.source in place]
    layout = lay_out([(WIDTH, HEIGHT)] * len(shown), pairs, spacing=SPACING)
    parts = []
    for route in layout.routes:
        parts.append(f'<path d="{curved(route)}" fill="none" stroke="currentColor" stroke-width="1.2"/>')
    for index, at in zip(shown, layout.boxes, strict=True):
        parts.append(node_part([graph.nodes[index] for graph in graphs], at.x, at.y))
    left = layout.boxes[0].x + WIDTH + PLOT_LEFT  # beside the leaves, below the nodes there
    top = max(at.y + HEIGHT for at in layout.boxes if at.x + WIDTH > left) + PLOT_TOP
    pairs_of_changes = [changes(expression, step) for step in STEPS]
    parts += plot(pairs_of_changes, left, top)
    slope = number(before.nodes[0].incoming)
    told = tuple(words_for(slope, step, *pair) for step, pair in zip(STEPS, pairs_of_changes, strict=True))
    size = max(layout.width, left + PLOT_WIDTH + NUMBERS_WIDTH), max(layout.height, top + PLOT_HEIGHT + PLOT_BELOW)
    asked = bet(expression, *pairs_of_changes[-1])
    return Shown(
        picture(*size, parts, f"{expression}. {told[-1]}"),
        (f"{asked.reason[0].upper()}{asked.reason[1:]}.",),
        told,
        True,
        bet=asked,
    )


def node_part(states: Sequence[Node], x: float, y: float) -> str:
    """One node: its value before and after each step, the change, and its gradient before."""
    before = states[0]
    values = [number(node.value) for node in states]
    moved = [abs(value - values[0]) > CLOSE for value in values]
    changed = [f"{short(values[0])} \u2192 {short(v)}" if m else short(v) for v, m in zip(values, moved, strict=True)]
    by = [f"change {short(v - values[0])}" if m else "" for v, m in zip(values, moved, strict=True)]
    head = f"{before.name} = {before.formula}" if before.formula else before.name
    color = ORANGE if any(moved) else "currentColor"
    middle = x + WIDTH / 2
    return "".join((
        box(x, y, WIDTH, HEIGHT, fill=color, opacity=0.1, stroke=color, radius=4 if before.formula else 14),
        words(middle, y + 20, head, size=SMALL, anchor="middle", bold=True),
        by_step(words(middle, y + 42, changed[-1], size=SMALL, anchor="middle"), text=changed),
        by_step(words(middle, y + 63, by[-1], size=SMALL, anchor="middle", fill=ORANGE), text=by),
        words(middle, y + 84, f"gradient {short(number(before.incoming))}", size=SMALL, anchor="middle", fill=BLUE),
    ))  # fmt: skip


def plot(pairs: Sequence[tuple[float, float]], x: float, y: float) -> list[str]:
    """Both changes over the step: the prediction is a straight line, the truth is drawn as far as the step goes, and
    between their ends is the gap."""
    low, high = (pick(0.0, *(pick(pair) for pair in pairs)) for pick in (min, max))
    ends = [float(f"{0.9 * end:.1g}") for end in (low, high) if end]  # short numbers for the axis

    def at(where: float, value: float) -> tuple[float, float]:
        return x + PLOT_WIDTH * where / STEPS[-1], y + PLOT_HEIGHT * (high - value) / (high - low)

    lines = [[at(step, pair[which]) for step, pair in zip(STEPS, pairs, strict=True)] for which in (0, 1)]
    gaps = [f"M{px:.1f} {py:.1f}L{tx:.1f} {ty:.1f}" for (px, py), (tx, ty) in zip(*lines, strict=True)]
    texts = [[f"{name}: {short(rounded(value))}" for value in values] for name, values in (
        ("predicted", [pair[0] for pair in pairs]),
        ("true", [pair[1] for pair in pairs]),
        ("gap", [pair[1] - pair[0] for pair in pairs]),
    )]  # fmt: skip
    (left, zero), (right, _) = at(0.0, 0.0), at(STEPS[-1], 0.0)
    middle = (left + right) / 2
    colors = (BLUE, ORANGE, "currentColor")
    numbers = [
        by_step(words(right + 16, y + 40 + 26 * row, each[-1], size=15, fill=color, bold=row < 2), text=each)
        for row, (each, color) in enumerate(zip(texts, colors, strict=True))
    ]
    return [
        segment(left, zero, right, zero), segment(left, y, left, y + PLOT_HEIGHT),
        *(words(at(where, 0.0)[0], y + PLOT_HEIGHT + 18, f"{where:g}", size=SMALL, anchor="middle") for where in TICKS),
        *(words(x - 8, at(0.0, value)[1] + 5, f"{value:g}", size=SMALL, anchor="end") for value in (0.0, *ends)),
        words(middle, y + PLOT_HEIGHT + 38, "step of a", size=SMALL, anchor="middle"),
        words(middle, y - 12, "change of the result", size=SMALL, anchor="middle"),
        line(lines[0], BLUE, "6 4"),
        by_step(f'<path d="{gaps[-1]}" fill="none" stroke="{ORANGE}" stroke-width="5"/>', d=gaps),
        way("predicted", lines[0], BLUE), along("predicted", lines[0][-1], mark(BLUE)),
        way("true", lines[1], ORANGE), along("true", lines[1][-1], mark(ORANGE)),
        numbers[0], from_step(1, *numbers[1:]),
        dragged("true", x, y, PLOT_WIDTH, PLOT_HEIGHT),
    ]  # fmt: skip


def mark(color: str) -> str:
    return f'<circle r="5.5" fill="{color}"/>'


def rounded(gap: float) -> float:
    return 0.0 if abs(gap) < CLOSE else gap


def words_for(slope: float, step: float, predicted: float, true: float) -> str:
    """The prediction of one step, and what happened."""
    gap = rounded(true - predicted)
    where = PLACES[2] if gap == 0 else PLACES[0] if gap > 0 else PLACES[1]
    product = f"{short(slope)} {TIMES} {factor(step)} = {short(predicted)}"
    return f"step of a {short(step)}: predicted change {product}; the true change is {short(true)}, {where}"


def bet(expression: str, predicted: float, true: float) -> Bet:
    """The question of where the true change lies, seen at the largest step."""
    gap = rounded(true - predicted)
    question = f"a grows by up to {STEPS[-1]:g}. Where will the true change of {expression} lie?"
    if gap == 0:
        return Bet(
            question, PLACES, PLACES[2], "along a straight line the slope does not change: the prediction is exact"
        )
    reason = (
        f"the slope changes along the way: at the end the gap is {abs(gap / predicted):.0%} of the predicted change"
    )
    return Bet(question, PLACES, PLACES[0] if gap > 0 else PLACES[1], reason)


@functools.cache
def demo() -> Demo:
    controls = (Choice("expression", "Expression", tuple(EXPRESSIONS)),)
    presets = {"No gap": {"expression": "a * b"}, "A curve": {"expression": "a * a * b"}}
    return Demo("Nudge and watch", controls, show, {"expression": "tanh(a * b + a)"}, presets)


def nudge(step: float = 0.0, predict: bool = True, **state: Any) -> Any:
    """The demo: a step of one input, the change that the gradient predicts, and the true change.

    `step` is the first one shown, from 0 to 2; `predict` asks before where the true change will lie; `state` sets its
    control: expression. Raises ValueError for others.
    """
    if step not in STEPS:
        raise ValueError(
            f"The step of a goes from 0 to {STEPS[-1]:g} in steps of {STEPS[1]:g}: {step!r} is none of them."
        )
    return demo().live(STEPS.index(step), predict, **state)
