"""Checkpoint planner: memory and time of a training step against the length of the segments that are recomputed.

Predicted from the number of arrays that are saved, and measured: time by the clock, memory by what Python's tracemalloc
counts, in a step of its own because counting takes time.
"""

from __future__ import annotations

import functools
import time
import tracemalloc
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mini_autograd.checkpoint import checkpoint
from mini_autograd.creation import tensor
from mini_autograd.widgets.demo import COLOURS, Choice, Demo, Shown, Slider, axes, plotting, svg_of

BATCH, WIDTH = 512, 16
LAYER = BATCH * WIDTH * 8
"""The bytes of one layer's output."""
DEPTHS = ("16", "36")
LENGTHS = (0, 1, 2, 3, 4, 6, 8, 9, 12, 16, 18, 36)
"""Layers per segment; 0 stands for a step without checkpoints."""
REPEATS = 6


@dataclass(frozen=True)
class Plan:
    """What one length of segments costs."""

    length: int
    predicted_bytes: float
    measured_bytes: float
    predicted_seconds: float
    measured_seconds: float


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
        start = time.perf_counter()
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
        between = time.perf_counter()
        loss.backward()
        end = time.perf_counter()
        for leaf in (x, *weights):
            leaf.grad = None
        return between - start, end - between

    return step


def peak_of(step: Callable[[], Any]) -> float:
    """The most bytes that a step holds at once, beyond what was there before."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        step()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def predicted_arrays(depth: int, length: int) -> int:
    """How many layer outputs are kept at most: the input of every segment, and one segment computed again."""
    return depth if length == 0 else -(-depth // length) - 1 + length


@functools.lru_cache(maxsize=16)
def measured(depth: int, number: int) -> tuple[Plan, ...]:
    """All lengths that fit the depth. `number` counts the measurements, so that one may be asked for again."""
    plans: list[Plan] = []
    forward = total = 0.0
    for length in [length for length in LENGTHS if length <= depth]:
        step = step_of(depth, length)
        step()
        forward_seconds, backward_seconds = min((step() for _ in range(REPEATS)), key=sum)
        if length == 0:
            forward, total = forward_seconds, forward_seconds + backward_seconds
        seconds = total + forward if length else total
        size = predicted_arrays(depth, length) * LAYER
        plans.append(Plan(length, size, peak_of(step), seconds, forward_seconds + backward_seconds))
    return tuple(plans)


def show(depth: str, length: float, run: float) -> Shown:
    """Both curves, with the chosen length marked."""
    plans = measured(int(depth), int(run))
    lengths = [plan.length for plan in plans]
    at = lengths.index(int(length)) if int(length) in lengths else len(plans) - 1
    plan, plain = plans[at], plans[0]
    names = ["none" if value == 0 else str(value) for value in lengths]
    with plotting():
        left, right = axes(2, figsize=(8.4, 3.6))
        kilo = [1e-6 * value.predicted_bytes for value in plans], [1e-6 * value.measured_bytes for value in plans]
        curve(left, names, *kilo, at, "memory at most, MB")
        milli = [1e3 * value.predicted_seconds for value in plans], [1e3 * value.measured_seconds for value in plans]
        curve(right, names, *milli, at, "time of a step, ms")
        svg = svg_of(left, f"Memory and time of a step of {depth} layers against the length of checkpointed segments")
    best = min(plans, key=lambda value: value.measured_bytes)
    chosen = "Without checkpoints" if plan.length == 0 else f"Segments of {plan.length}"
    kept = predicted_arrays(int(depth), plan.length)
    sentences = (
        f"{chosen}: {kept} layer outputs kept at once, predicted {plan.predicted_bytes / 1e6:.2f} MB, measured "
        f"{plan.measured_bytes / 1e6:.2f} MB ({plan.measured_bytes / plain.measured_bytes:.0%} of none); "
        f"time predicted {1e3 * plan.predicted_seconds:.1f} ms, measured {1e3 * plan.measured_seconds:.1f} ms "
        f"({plan.measured_seconds / plain.measured_seconds:.2f} times none).",
        f"Least memory measured: {'none' if best.length == 0 else f'segments of {best.length}'}, "
        f"{best.measured_bytes / 1e6:.2f} MB. The square root of {depth} is {int(depth) ** 0.5:.0f}. "
        "Predictions count saved outputs only, and one more forward pass; gradients on their way come on top.",
    )
    return Shown(svg, sentences)


def curve(axis: Any, names: list[str], predicted: Sequence[float], found: Sequence[float], at: int, title: str) -> None:
    places = range(len(names))
    axis.plot(places, predicted, "--", color=COLOURS[1], label="predicted")
    axis.plot(places, found, "o-", color=COLOURS[0], label="measured", markersize=5)
    axis.plot(at, found[at], "o", color=COLOURS[0], markersize=12, fillstyle="none", markeredgewidth=2.5)
    axis.set_xticks(places, names)
    axis.set(xlabel="layers per segment", ylim=(0, 1.15 * max(*predicted, *found)))
    axis.set_title(title, fontsize=11)
    axis.legend(loc="lower right", fontsize=9)


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
            "One segment": {"depth": "16", "length": 16},
        },
    )


def checkpoint_planner(**state: Any) -> Any:
    """The demo: memory and time against the length of checkpointed segments. `state` sets its controls."""
    return demo().live(**state)
