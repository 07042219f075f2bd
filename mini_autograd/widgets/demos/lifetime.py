"""Lifetime: three training steps in slow motion, with the nodes and saved arrays that are alive at each moment.

Nothing is simulated: the lines shown are run, and a census with weak references counts after each line.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mini_autograd.optim import SGD
from mini_autograd.tensors.creation import tensor
from mini_autograd.widgets.census import Census, Sample, Seen
from mini_autograd.widgets.demo import COLORS, Bet, Choice, Demo, Shown, Switch
from mini_autograd.widgets.sketch import PAPER, SMALL, box, by_step, from_step, only_step, picture, segment, words

ROUNDS, BATCH, WIDTH = 3, 64, 32
NOTHING, STAYS, GROWS = "no node", "as many nodes each time", "more nodes each time"
KEPT = ("nothing", "losses.append(loss.item())", "losses.append(loss)")
BLUE, ORANGE = COLORS[0], COLORS[1]


def program(retain_graph: bool, kept: str, delete: bool) -> list[str]:
    """The lines of one training step."""
    lines = [
        "prediction = model(x)",
        "loss = ((prediction - target) ** 2).mean()",
        f"loss.backward({'retain_graph=True' if retain_graph else ''})",
        "optimizer.step(); optimizer.zero_grad()",
    ]
    if kept != "nothing":
        lines.append(kept)
    if delete:
        lines.append("del prediction, loss")
    return lines


def watched(lines: Sequence[str]) -> Census:
    """Run the training steps of a network with two tanh layers under a census."""
    generator = np.random.default_rng(6)

    def weight(rows: int, columns: int) -> Any:
        return tensor(generator.normal(size=(rows, columns)) / np.sqrt(rows), requires_grad=True)

    weights = [weight(WIDTH, WIDTH), weight(WIDTH, WIDTH), weight(WIDTH, 1)]
    x, target = (tensor(generator.normal(size=(BATCH, size))) for size in (WIDTH, 1))

    def model(x: Any) -> Any:
        for inner in weights[:-1]:
            x = (x @ inner).tanh()
        return x @ weights[-1]

    space = {"x": x, "target": target, "model": model, "optimizer": SGD(weights, lr=0.01), "losses": []}
    census = Census(space, [item.array for item in (x, target, *weights)])
    census.run(lines, ROUNDS)
    return census


def show(retain_graph: bool, kept: str, delete: bool) -> Shown:
    """The program, the nodes of each training step, and the curves of living nodes and bytes."""
    lines = program(retain_graph, kept, delete)
    census = watched(lines)
    curve, low = curves(census.samples, 8)
    boxes, height = nodes(census, max(low, 33.0 + 21 * len(lines)) + 14)
    parts = listing(lines, census.samples)
    sentences = verdict(census)
    label = f"Three training steps: {' '.join(sentences)}"
    steps = tuple(told(sample, lines) for sample in census.samples)
    drawing = picture(860, height, [*parts, *boxes, *curve], label)
    return Shown(drawing, sentences, steps, words_at_end=True, bet=bet(lines, ends(census.samples), sentences[1]))


def told(sample: Sample, lines: Sequence[str]) -> str:
    what = sample.event or f"{lines[sample.line]} is done"
    nodes = f"{sample.nodes} node{'s' * (sample.nodes != 1)}"
    return f"Step {sample.round + 1}: {what}. Alive: {nodes}, {kilobytes(sample.size)} of saved arrays."


def kilobytes(size: float) -> str:
    return f"{size / 1e3:,.0f} kB"


def ends(samples: Sequence[Sample]) -> list[Sample]:
    """The last sample of each training step."""
    return [[sample for sample in samples if sample.round == number][-1] for number in range(ROUNDS)]


def verdict(census: Census) -> tuple[str, ...]:
    """The counts in words, and what keeps the rest alive."""
    last = ends(census.samples)
    peak = max(sample.size for sample in census.samples)
    sizes = ", ".join(kilobytes(sample.size) for sample in last)
    counts = ", ".join(str(sample.nodes) for sample in last)
    sentence = (
        f"At the end of the three steps: {counts} nodes and {sizes} of saved arrays alive. Peak: {kilobytes(peak)}."
    )
    if last[-1].nodes > last[0].nodes:
        return sentence, "The number grows: every loss in the list keeps the graph that it came from alive."
    if last[-1].nodes:
        return sentence, "The variables prediction and loss hold one graph until they get new values."
    return sentence, "No variable holds a graph, so nothing is left."


def listing(lines: Sequence[str], samples: Sequence[Sample]) -> list[str]:
    """The program, with the line that is running marked."""
    parts = [words(14, 24, "for step in (1, 2, 3):", mono=True)]
    for number, line in enumerate(lines):
        y = 45 + 21 * number
        for step, sample in enumerate(samples):
            if sample.line == number:
                mark = box(8, y - 15, 384, 21, fill=ORANGE, opacity=0.25, stroke="none")
                parts.append(only_step(step, mark, words(400, y, f"step {sample.round + 1}", size=SMALL)))
        parts.append(words(14, y, f"    {line}", mono=True))
    return parts


def nodes(census: Census, top: float) -> tuple[list[str], float]:
    """A row of boxes per training step: filled while the node has what it saved, pale when freed, dashed when gone."""
    legend = [
        (box(14, top - 12, 16, 14, fill=BLUE, opacity=0.45, stroke=BLUE), "node with saved arrays"),
        (box(224, top - 12, 16, 14, stroke=BLUE), "node without arrays: saved none, or freed"),
        (box(582, top - 12, 16, 14, stroke="currentColor", dashes="2 3"), "gone"),
    ]
    parts = []
    for (mark, text), x in zip(legend, (36, 246, 604), strict=True):
        parts += [mark, words(x, top, text, size=SMALL)]
    top += 16
    for number in range(ROUNDS):
        row = [node for node in census.seen if node.round == number]
        parts.append(words(14, top + 22, f"step {number + 1}", size=SMALL))
        width = 780 / max(len(row), 1)
        for place, node in enumerate(row):
            size = sum(census.sizes[array] for array in node.own)
            parts.append(node_box(node, 68 + place * width, top, width - 8, size))
        top += 44
    return parts, top


def node_box(node: Seen, x: float, y: float, width: float, size: int) -> str:
    name = words(x + width / 2, y + 15, node.name, size=SMALL, anchor="middle")
    saved = words(x + width / 2, y + 30, kilobytes(size) if size else "", size=SMALL, anchor="middle")
    clear = box(x, y, width, 35, fill=PAPER, stroke=PAPER, line=3)
    full = box(x, y, width, 35, fill=BLUE, opacity=0.45 if node.own else 0.0, stroke=BLUE, line=1.5)
    parts = [from_step(node.born, full, name, saved)]
    if node.freed is not None and (node.gone is None or node.freed < node.gone):
        parts.append(from_step(node.freed, clear, box(x, y, width, 35, stroke=BLUE, line=1.5), name))
    if node.gone is not None:
        faint = words(x + width / 2, y + 15, node.name, size=SMALL, anchor="middle", opacity=0.55)
        parts.append(from_step(node.gone, clear, box(x, y, width, 35, dashes="2 3"), faint))
    return "".join(parts)


def curves(samples: Sequence[Sample], top: float) -> tuple[list[str], float]:
    """Saved bytes and nodes over the whole run, beside the program, with a line that follows the steps."""
    left, width, high = 470.0, 378.0, 42.0
    parts = []
    rows: list[tuple[str, list[int], str, Callable[[float], str]]] = [
        ("saved arrays (shared ones once)", [sample.size for sample in samples], BLUE, kilobytes),
        ("nodes", [s.nodes for s in samples], ORANGE, str),
    ]
    for title, values, color, text in rows:
        bottom = top + 18 + high
        scale = high / max(*values, 1)
        x = [left + width * step / (len(samples) - 1) for step in range(len(samples))]
        path = "".join(f"H{a:.1f}V{bottom - value * scale:.1f}" for a, value in zip(x, values, strict=True))
        parts.append(f'<path d="M{left} {bottom}{path}V{bottom}Z" fill="{color}" fill-opacity="0.3" stroke="{color}"/>')
        most = words(left + width, top + 11, f"at most {text(max(values))}", size=SMALL, anchor="end")
        parts += [words(left, top + 11, f"{title} alive", size=SMALL), from_step(len(samples) - 1, most)]
        rest = [left + width - place for place in x]  # what is still to come is covered
        cover = box(x[-1], bottom - high - 2, 0, high + 2, fill=PAPER, stroke="none", radius=0)
        parts.append(by_step(cover, x=[f"{place + 1:.1f}" for place in x], width=[f"{gap:.1f}" for gap in rest]))
        parts.append(segment(left, bottom, left + width, bottom))
        top = bottom + 10
    for step, sample in enumerate(samples):
        if step and sample.round != samples[step - 1].round:
            parts.append(words(x[step], top + 8, f"step {sample.round + 1}", size=SMALL))
            for end in (top - 10, top - 38 - high):  # through each plot, below its title
                parts.append(segment(x[step], end - high, x[step], end, width=0.6))
        parts.append(
            only_step(step, segment(x[step], top - 2 * (high + 20), x[step], top - 8, color=ORANGE, width=2.5))
        )
    parts.append(words(left, top + 8, "step 1", size=SMALL))
    return parts, top + 14


@functools.cache
def demo() -> Demo:
    return Demo(
        title="How long nodes and saved tensors live",
        controls=(
            Switch("retain_graph", "retain_graph=True"),
            Choice("kept", "keep", KEPT),
            Switch("delete", "del at the end of a step"),
        ),
        show=show,
        start={"retain_graph": False, "kept": "nothing", "delete": False},
        presets={
            "Retain": {"retain_graph": True, "kept": "nothing", "delete": False},
            "List of losses": {"retain_graph": False, "kept": "losses.append(loss)", "delete": True},
            "Both: a leak": {"retain_graph": True, "kept": "losses.append(loss)", "delete": True},
            "item()": {"retain_graph": True, "kept": "losses.append(loss.item())", "delete": True},
        },
    )


def bet(lines: Sequence[str], last: Sequence[Sample], reason: str) -> Bet:
    """The question of what is alive at the end."""
    counts = [sample.nodes for sample in last]
    right = GROWS if counts[-1] > counts[0] else STAYS if counts[-1] else NOTHING
    question = f"What is alive at the end of each of the three steps, with {', '.join([lines[2], *lines[4:]])}?"
    return Bet(question, (NOTHING, STAYS, GROWS), right, reason[0].lower() + reason[1:].rstrip("."))


def lifetime(step: int = 0, predict: bool = True, **state: Any) -> Any:
    """The demo: what a training step keeps alive, and for how long, from the first line on. `state` sets its controls;
    `predict` asks first what is alive at the end.
    """
    return demo().live(step, predict, **state)
