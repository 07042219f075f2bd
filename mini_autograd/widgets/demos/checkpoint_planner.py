"""Checkpoint planner: memory and time of a training step against the length of the segments that are recomputed.

Both are predicted from the number of saved arrays, and measured: time by the clock of the thread, memory by Python's
tracemalloc, in a separate step because counting takes time.
"""

from __future__ import annotations

import functools
import math
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mini_autograd.tensors.creation import tensor
from mini_autograd.utils.checkpoint import checkpoint
from mini_autograd.widgets.demo import COLORS, Bet, Choice, Demo, Shown, Slider
from mini_autograd.widgets.demos.stopwatch import Times, now, times
from mini_autograd.widgets.sketch import SMALL, picture, segment, words

BATCH, WIDTH = 512, 16
LAYER = BATCH * WIDTH * 8
"""The bytes of one layer's output."""
DEPTHS = ("16", "36")
LENGTHS = (0, 1, 2, 3, 4, 6, 8, 9, 12, 16, 18, 36)
"""Layers per segment; 0 stands for a step without checkpoints."""
REPEATS = 7
"""Timed steps of each length. The lengths take turns, so that a busy moment of the machine affects all of them."""

LINES = 4
"""Grid lines above zero."""


@dataclass(frozen=True)
class Plan:
    """The cost of one segment length."""

    length: int
    predicted_bytes: float
    measured_bytes: float
    predicted_seconds: float
    measured_times: Times


def step_of(depth: int, length: int) -> Callable[[], tuple[float, float]]:
    """A training step of `depth` layers, cut into segments of `length`; returns the seconds of forward and backward."""
    generator = np.random.default_rng(depth)
    weights = [tensor(generator.normal(size=(WIDTH, WIDTH)) / 4, requires_grad=True) for _ in range(depth)]
    x = tensor(generator.normal(size=(BATCH, WIDTH)), requires_grad=True)

    def run(values: Any, *some: Any) -> Any:
        for weight in some:
            values = (values @ weight).tanh()
        return values

    def step() -> tuple[float, float]:
        start = now()
        values = x
        for first in range(0, depth, length or depth):
            part = weights[first : first + (length or depth)]
            values = (
                checkpoint(run, values, *part, use_reentrant=False, preserve_rng_state=False)
                if length
                else run(values, *part)
            )
        loss = values.sum()
        del values
        between = now()
        loss.backward()
        end = now()
        for leaf in (x, *weights):
            leaf.grad = None
        return between - start, end - between

    return step


def peak_of(step: Callable[[], Any]) -> float:
    """The peak number of bytes that a step holds, not counting what was held before."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        step()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def predicted_arrays(depth: int, length: int) -> int:
    """The largest number of layer outputs kept at once: the input of every segment, and one recomputed segment."""
    return depth if length == 0 else -(-depth // length) - 1 + length


@functools.lru_cache(maxsize=16)
def measured(depth: int, number: int) -> tuple[Plan, ...]:
    """The plans of all lengths that fit the depth. A new `number` measures again instead of using the cache."""
    steps = {length: step_of(depth, length) for length in LENGTHS if length <= depth}
    _, *rounds = [{length: step() for length, step in steps.items()} for _ in range(REPEATS + 1)]  # the first warms up
    sizes = {length: peak_of(step) for length, step in steps.items()}
    forward = times([one[0][0] for one in rounds]).median
    plain = times([sum(one[0]) for one in rounds]).median
    return tuple(
        Plan(
            length,
            predicted_arrays(depth, length) * LAYER,
            sizes[length],
            plain + forward if length else plain,
            times([sum(one[length]) for one in rounds]),
        )
        for length in steps
    )


def show(depth: str, length: float, run: float) -> Shown:
    """Both curves, with the chosen length marked."""
    plans = measured(int(depth), int(run))
    lengths = [plan.length for plan in plans]
    at = lengths.index(int(length)) if int(length) in lengths else len(plans) - 1
    plan, plain = plans[at], plans[0]
    kilo = [1e-6 * value.predicted_bytes for value in plans], [1e-6 * value.measured_bytes for value in plans]
    milli = [1e3 * value.predicted_seconds for value in plans], [1e3 * value.measured_times.median for value in plans]
    spread = [(1e3 * value.measured_times.low, 1e3 * value.measured_times.high) for value in plans]
    left = curve(50, "peak memory, MB", lengths, kilo, at)
    right = curve(480, "computing time per step, ms", lengths, milli, at, spread)
    label = f"Memory and time of a step of {depth} layers against the length of checkpointed segments"
    svg = picture(860, 300, [*left, *right], label)
    best = min(plans, key=lambda value: value.measured_bytes)
    chosen = "Without checkpoints" if plan.length == 0 else f"Segments of {plan.length}"
    kept = predicted_arrays(int(depth), plan.length)
    sentences = (
        f"{chosen}: {kept} layer outputs kept at once, predicted {plan.predicted_bytes / 1e6:.2f} MB, measured "
        f"{plan.measured_bytes / 1e6:.2f} MB ({plan.measured_bytes / plain.measured_bytes:.0%} of the memory without "
        f"checkpoints). Time: predicted {1e3 * plan.predicted_seconds:.2g} ms, median of {REPEATS} steps "
        f"{plan.measured_times}. " + against(plan, plain),
        f"Least memory measured: {'no checkpoints' if best.length == 0 else f'segments of {best.length}'}, "
        f"{best.measured_bytes / 1e6:.2f} MB. The square root of {depth} is {int(depth) ** 0.5:.0f}. "
        f"{beyond(plan)} With checkpoints, the predicted time adds a forward pass.{overhead(plan)}",
    )
    return Shown(svg, sentences, bet=bet(int(depth), plans))


def bet(depth: int, plans: Sequence[Plan]) -> Bet:
    """The question of which segments need the least memory."""
    root = round(math.sqrt(depth))
    options = {"no checkpoints": 0, "every layer": 1, f"segments of {root}": root, "one segment": depth}
    sizes = {name: plan.measured_bytes for name, length in options.items() for plan in plans if plan.length == length}
    best = min(sizes, key=lambda name: sizes[name])
    each = ", ".join(f"{name} {size / 1e6:.2f} MB" for name, size in sizes.items())
    return Bet(
        f"Which of these needs the least memory for {depth} layers?",
        tuple(options),
        best,
        f"the measured peaks are {each}",
    )


def beyond(plan: Plan) -> str:
    """What the measured memory holds that the predicted one leaves out."""
    more = plan.measured_bytes - plan.predicted_bytes
    return (
        "The prediction counts saved outputs alone. The measured peak also holds gradients on their way, and what a "
        f"rule needs for a moment: {more / 1e6:.2f} MB, the size of {more / LAYER:.1f} layer outputs."
    )


def overhead(plan: Plan) -> str:
    """Why a step with checkpoints takes longer than predicted, if its steps agree that it does."""
    if plan.length == 0 or plan.measured_times.low <= plan.predicted_seconds:
        return ""
    return " What lies above it is Python's: a checkpoint calls it for each saved value, however small the layer."


def against(plan: Plan, plain: Plan) -> str:
    """The cost of checkpoints in time, if the measured steps agree."""
    if plan is plain:
        return "Nothing is computed twice."
    ratio = plan.measured_times.median / plain.measured_times.median
    if plan.measured_times.apart(plain.measured_times):
        return f"That is {ratio:.1f} times the median without checkpoints."
    return "The times with and without checkpoints overlap, so they do not show which is quicker here."


def curve(
    left: float,
    title: str,
    lengths: Sequence[int],
    curves: Sequence[Sequence[float]],
    at: int,
    spread: Sequence[tuple[float, float]] = (),
) -> list[str]:
    """Predicted (dashed) and measured values over the lengths of segments, side by side with another such picture.

    Values with a spread are times: each is drawn with its range, and no line joins them. A range that a busy machine
    has stretched is cut off at the top, so that it does not flatten the rest.
    """
    top, width, height = 44.0, 360.0, 210.0
    unit = round_number(1.1 * max(map(max, curves)) / LINES)
    bottom, most = top + height, unit * LINES
    x = [left + width * (place + 0.5) / len(lengths) for place in range(len(lengths))]
    parts = [words(left + width / 2, 18, title, anchor="middle", bold=True)]
    for number in range(LINES + 1):
        line_y = bottom - number * height / LINES
        parts.append(segment(left, line_y, left + width, line_y, width=0.3 if number else 1.2))
        parts.append(words(left - 6, line_y + 4, f"{number * unit:g}", size=SMALL, anchor="end"))
    for place, length in enumerate(lengths):
        parts.append(words(x[place], bottom + 17, length or "none", size=SMALL, anchor="middle", bold=place == at))
    parts.append(words(left + width / 2, bottom + 36, "layers per segment", size=SMALL, anchor="middle"))
    for name, values, color, dashes, legend in zip(
        ("predicted", "measured"), curves, (COLORS[1], COLORS[0]), ("6 4", "none"), (0.0, 110.0), strict=True
    ):
        y = [bottom - value / most * height for value in values]
        points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
        line = f'fill="none" stroke="{color}" stroke-width="2" stroke-dasharray="{dashes}"'
        if name == "predicted" or not spread:
            parts.append(f'<polyline points="{points}" {line}/>')
        else:
            scale = height / most
            parts += [
                segment(a, bottom - low * scale, a, bottom - min(high, most) * scale, color=color, width=2)
                for a, (low, high) in zip(x, spread, strict=True)
            ]
        parts.append(f'<path d="M{left + legend:.1f} {top - 10}h24" {line}/>')
        label = "median, middle half" if name == "measured" and spread else name
        parts.append(words(left + legend + 30, top - 6, label, size=SMALL))
        if name == "measured":
            dots = "".join(f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3.5"/>' for a, b in zip(x, y, strict=True))
            ring = f'<circle cx="{x[at]:.1f}" cy="{y[at]:.1f}" r="8" fill="none" stroke="{color}" stroke-width="2.5"/>'
            parts.append(f'<g fill="{color}">{dots}</g>{ring}')
    return parts


def round_number(least: float) -> float:
    """The smallest of 1, 2, 2.5 and 5 times a power of ten that is not below `least`."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= least)


@functools.cache
def demo() -> Demo:
    texts = ("none", *(str(length) for length in LENGTHS[1:]))
    return Demo(
        title="Checkpoint planner",
        controls=(
            Choice("depth", "layers", DEPTHS),
            Slider("length", "layers per segment", LENGTHS, texts),
            Slider("run", "measurement", (1, 2, 3)),
        ),
        show=show,
        start={"depth": "16", "length": 4, "run": 1},
        presets={
            "No checkpoints": {"length": 0},
            "Every layer": {"length": 1},
            "Square root": {"depth": "36", "length": 6},
            "One segment": {"depth": "36", "length": 36},
        },
    )


def checkpoint_planner(predict: bool = True, **state: Any) -> Any:
    """The demo: memory and time against the length of checkpointed segments. `state` sets its controls; `predict` asks
    first which segments need the least memory.
    """
    return demo().live(predict=predict, **state)
