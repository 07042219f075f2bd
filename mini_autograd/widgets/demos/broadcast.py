"""Broadcast: how two shapes are stretched to fit each other, and over which axes the gradient is summed to undo it.

The gradients are those of a real backward pass; the intermediate sums are made in the same way as in `sum_to`.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from mini_autograd.drawing.formatting import TIMES
from mini_autograd.tensors.creation import tensor
from mini_autograd.tensors.tensor import Tensor
from mini_autograd.widgets.demo import COLORS, Bet, Choice, Demo, Entry, Shown
from mini_autograd.widgets.sketch import SMALL, arrow, box, from_step, picture, words

CELL, GAP, TOP = 26.0, 104.0, 26.0
DRAWN_ENTRIES, DRAWN_COLUMNS, DRAWN_AXES = 60, 8, 3
LARGEST = 1_000_000
NO_FIT = "they do not fit"
OPERATIONS = ("a + b", "a * b")
Shape = tuple[int, ...]


def shape_of(text: str) -> Shape:
    """The shape in a typed text: "(3, 1)", "3, 1", "4" or "()". Raises ValueError that says what was expected."""
    inner = re.fullmatch(r"\s*[(\[]?\s*((?:\d+\s*(?:,\s*\d+\s*)*,?)?)\s*[)\]]?\s*", text)
    if inner is None:
        raise ValueError(f"{text!r} is not a shape. Write the sizes with commas: (3, 1) or (4,), or () for a number.")
    shape = tuple(int(size) for size in re.findall(r"\d+", inner[1]))
    if math.prod(shape) > LARGEST or len(shape) > 8:
        raise ValueError(f"{shape} is too large for this demo: at most 8 axes and {LARGEST:,} entries.")
    return shape


@dataclass(frozen=True)
class Run:
    """A real forward and backward pass: the result, the cotangent, and for each input its share and sums."""

    values: tuple[np.ndarray, ...]
    result: Shape
    shares: tuple[np.ndarray, ...]
    sums: tuple[tuple[tuple[str, np.ndarray], ...], ...]
    grads: tuple[np.ndarray, ...]


def run(shapes: Sequence[Shape], operation: str) -> Run:
    """Compute with 1, 2, 3 ... in `a` and 1, 2 ... in `b`, and send the cotangent 1, 2, 3 ... back."""
    a, b = (numbered(shape) for shape in shapes)
    c = a + b if operation == "a + b" else a * b
    cotangent = numbered(c.shape)
    c.backward(cotangent)
    values = a.array, b.array
    v = np.asarray(cotangent.array)
    shares = (v, v) if operation == "a + b" else (v * values[1], v * values[0])
    sums = tuple(tuple(undone(share, shape)) for share, shape in zip(shares, shapes, strict=True))
    grads = tuple(np.asarray(x.grad.array) for x in (a, b) if x.grad is not None)
    return Run(values, tuple(c.shape), shares, sums, grads)


def numbered(shape: Shape) -> Tensor:
    return tensor(np.arange(1.0, math.prod(shape) + 1).reshape(shape), requires_grad=True)


def undone(share: np.ndarray, shape: Shape) -> list[tuple[str, np.ndarray]]:
    """The sums that bring a share back to the shape of its input, each with a description."""
    steps = []
    extra = share.ndim - len(shape)
    if extra:
        axes = tuple(range(extra))
        share = share.sum(axis=axes)
        end = "it disappears" if extra == 1 else "they disappear"
        steps.append((f"sum over {named(axes)}, added in front: {end}", share))
    stretched = tuple(axis for axis, size in enumerate(shape) if size == 1 and share.shape[axis] != 1)
    if stretched:
        share = share.sum(axis=stretched, keepdims=True)
        stays = "it stays" if len(stretched) == 1 else "they stay"
        steps.append((f"sum over {named(stretched)}, stretched from size 1: {stays}, with size 1", share))
    return steps


def named(axes: Sequence[int]) -> str:
    return f"axis {axes[0]}" if len(axes) == 1 else f"axes {', '.join(map(str, axes))}"


def show(a: str, b: str, operation: str) -> Shown:
    """The shapes lined up, the entries as they are stretched, and the sums of the gradient."""
    shapes = shape_of(a), shape_of(b)
    try:
        result = np.broadcast_shapes(*shapes)
    except ValueError:
        return misfit(shapes)
    if math.prod(result) > LARGEST:
        raise ValueError(f"The result of shape {result} is too large for this demo: more than {LARGEST:,} entries.")
    done = run(shapes, operation)
    used = " ".join(uses(name, shape, result) for name, shape in zip("ab", shapes, strict=True))
    steps = [
        f"The shapes as they are: a {shapes[0]}, b {shapes[1]}.",
        "Lined up at the last axis. Missing axes in front count as 1.",
        f"On each axis the sizes are equal, or one is 1 and is stretched. The result has shape {result}.",
        used,
        f"Backward: for both, the rule of {operation} returns a gradient in the stretched shape {result}.",
    ]
    rows = []
    for name, shape, sums in zip("ab", shapes, done.sums, strict=True):
        rows.append(len(steps))
        steps += [f"{name}: {text}. The shape is now {part.shape}." for text, part in sums]
        if not sums:
            steps.append(f"{name} was not stretched, so nothing is summed: its gradient keeps the shape {shape}.")
    parts, width, height = table(shapes, result)
    if drawable(result) and all(map(drawable, shapes)):
        for number, first in enumerate(rows):
            row, right, bottom = entries("ab"[number], number, shapes[number], done, first, height)
            parts.append(row)
            width, height = max(width, right), bottom
    steps.append(" ".join(verdict(name, shape, result) for name, shape in zip("ab", shapes, strict=True)))
    sentence = f"{shapes[0]} and {shapes[1]} are stretched to {result}. {used}"
    drawing = picture(width, height, parts, f"{sentence} {steps[-1]}")
    return Shown(drawing, (sentence,), tuple(steps), words_at_end=True, bet=bet(shapes, result, sentence))


def bet(shapes: tuple[Shape, Shape], result: Shape | None, reason: str) -> Bet:
    """A question for the shape of the result. Wrong answers: no stretching, and shapes lined up at the first axis."""
    padded = [shape + (1,) * (max(map(len, shapes)) - len(shape)) for shape in shapes]
    at_first_axis = tuple(map(max, zip(*padded, strict=True)))
    others = {str(shape) for shape in (*shapes, at_first_axis, *([result] if result is not None else []))}
    question = f"What is the shape of the result, for a of shape {shapes[0]} and b of shape {shapes[1]}?"
    right = NO_FIT if result is None else str(result)
    return Bet(question, (*sorted(others), NO_FIT), right, reason.rstrip("."))


def misfit(shapes: tuple[Shape, Shape]) -> Shown:
    """Shapes that cannot be stretched to fit: lined up, with the axis that is to blame."""
    length = max(map(len, shapes))
    padded = [(1,) * (length - len(shape)) + shape for shape in shapes]
    pairs = list(enumerate(zip(*padded, strict=True)))
    wrong = [axis for axis, sizes in pairs if 1 not in sizes and sizes[0] != sizes[1]]
    parts, width, height = table(shapes, None, wrong)
    sizes = padded[0][wrong[-1]], padded[1][wrong[-1]]
    sentence = (
        f"{shapes[0]} and {shapes[1]} do not fit: lined up at the last axis, {sizes[0]} meets {sizes[1]}, "
        "and neither is 1, so neither can be stretched."
    )
    return Shown(picture(width, height, parts, sentence), (sentence,), bet=bet(shapes, None, sentence))


def uses(name: str, shape: Shape, result: Shape) -> str:
    times = math.prod(result) // max(math.prod(shape), 1)
    return f"Each entry of {name} is used {'once' if times == 1 else f'{times} times'}."


def verdict(name: str, shape: Shape, result: Shape) -> str:
    """Over which axes of the result the gradient of an input is summed."""
    extra = len(result) - len(shape)
    axes = [
        *range(extra),
        *(extra + axis for axis, size in enumerate(shape) if size == 1 and result[extra + axis] != 1),
    ]
    if not axes:
        return f"{name}.grad: nothing to sum, because {result} is already the shape of {name}."
    return f"{name}.grad: summed over {named(axes)} of {result}, which gives {shape}."


def table(shapes: Sequence[Shape], result: Shape | None, wrong: Sequence[int] = ()) -> tuple[list[str], float, float]:
    """The sizes in columns, lined up at the last axis: the parts, and how wide and high they are together."""
    length = max(map(len, shapes))
    left, wide, high = 76.0, 64.0, 28.0
    parts = []
    for axis in range(length):
        parts.append(words(left + (axis + 0.5) * wide, 16, f"axis {axis}", size=SMALL, anchor="middle", opacity=0.75))
    rows = [("a", shapes[0]), ("b", shapes[1])]
    for number, (name, shape) in enumerate(rows):
        top = 24 + number * (high + 6)
        parts.append(words(14, top + 20, name, bold=True, size=15))
        for axis in range(length):
            x = left + axis * wide
            own = axis - (length - len(shape))
            size, middle = shape[own] if own >= 0 else 1, x + wide / 2 - 3
            if axis in wrong:
                parts.append(box(x, top, wide - 6, high, fill=COLORS[1], opacity=0.35, stroke=COLORS[1], line=2.5))
            elif result is not None and size != result[axis]:
                parts.append(from_step(2, box(x, top, wide - 6, high, fill=COLORS[0], opacity=0.3, stroke="none")))
                stretch = words(x + wide - 10, top + 20, f"{TIMES} {result[axis]}", size=SMALL, anchor="end")
                parts.append(from_step(2, stretch))
                middle = x + 12
            outline = box(x, top, wide - 6, high, dashes="" if own >= 0 else "4 3")
            number_text = words(middle, top + 20, size, anchor="middle", size=15)
            parts.append(outline + number_text if own >= 0 else from_step(1, outline, number_text))
        if not shape:
            parts.append(words(left + length * wide + 4, top + 20, "() is a single number", size=SMALL, opacity=0.75))
    bottom = 24 + 2 * (high + 6)
    if result is not None:
        cells = [words(14, bottom + 24, "result", bold=True, size=15)]
        for axis, size in enumerate(result):
            x = left + axis * wide
            cells.append(box(x, bottom + 4, wide - 6, high, line=2))
            cells.append(words(x + wide / 2 - 3, bottom + 24, size, anchor="middle", size=15, bold=True))
        if not result:
            cells.append(words(left + 4, bottom + 24, "()", size=15, bold=True))
        parts.append(from_step(2, *cells))
        bottom += high + 6
    return parts, max(420.0, left + length * wide + 190), bottom + 10


def drawable(shape: Shape) -> bool:
    size = math.prod(shape)
    return 0 < size <= DRAWN_ENTRIES and len(shape) <= DRAWN_AXES and (not shape or shape[-1] <= DRAWN_COLUMNS)


def entries(name: str, number: int, shape: Shape, done: Run, first: int, top: float) -> tuple[str, float, float]:
    """A row (an input, stretched, then its share of the gradient, summed back), and its right and lower edges."""
    owner = np.arange(math.prod(shape)).reshape(shape)
    stretched = np.broadcast_to(owner, done.result)
    value = done.values[number]
    columns: list[tuple[int, str, np.ndarray, np.ndarray, str]] = [
        (3, f"{name} {shape}", value, owner, ""),
        (3, f"stretched {done.result}", np.broadcast_to(value, done.result), stretched, ""),
        (4, f"gradient {done.result}", done.shares[number], stretched, ""),
    ]
    for step, (text, part) in zip(count(first), done.sums[number]):
        over = text.partition(", added")[0].partition(", stretched")[0]
        columns.append((step, f"{part.shape}", part, np.broadcast_to(owner, part.shape), over))
    step, text, part, colors, over = columns.pop()
    last = done.grads[number] if done.sums[number] else part
    columns.append((step, f"{name}.grad {shape}", last, colors, over))
    x, bottom, parts = 14.0, top, []
    for position, (step, title, numbers, colors, over) in enumerate(columns):
        grid, right, below = cells(x, top + TOP, title, numbers, colors)
        middle = top + TOP + min(grid_height(numbers), grid_height(columns[-1][2])) / 2
        if position == 2:
            x_line = x - GAP / 2
            line = f'<path d="M{x_line:.1f} {top:.1f}v{TOP + grid_height(stretched):.1f}" stroke="currentColor" '
            parts.append(from_step(4, line + 'stroke-dasharray="3 4" stroke-opacity="0.6"/>'))
        elif position:
            plain = "stretch" if shape != done.result else "as it is"
            hint = plain if position == 1 else over.replace("sum over ", "sum ")
            parts.append(from_step(step, arrow(x - GAP + 6, middle, x - 6, hint)))
        parts.append(from_step(step, grid))
        slot = x + max(as_slabs(stretched).shape[-1] * CELL, 60.0) if position < 2 else right
        x, bottom = max(right, slot) + GAP, max(bottom, below)
    return "".join(parts), x - GAP + 14, bottom + 12


def as_slabs(array: np.ndarray) -> np.ndarray:
    return array.reshape((1,) * (3 - array.ndim) + array.shape)


def grid_height(array: np.ndarray) -> float:
    slabs, rows, _ = as_slabs(array).shape
    return slabs * rows * CELL + (slabs - 1) * 8


def cells(x: float, y: float, title: str, numbers: np.ndarray, owner: np.ndarray) -> tuple[str, float, float]:
    """An array as a grid, the first of three axes downward, a color per entry of the input; and where it ends."""
    parts, columns = [], as_slabs(numbers).shape[-1]
    for (slab, row, column), value in np.ndenumerate(as_slabs(numbers)):
        index = int(as_slabs(owner)[slab, row, column])
        top = y + (slab * as_slabs(numbers).shape[1] + row) * CELL + slab * 8
        color, strength = COLORS[index % len(COLORS)], 0.32 if index // len(COLORS) % 2 == 0 else 0.12
        parts.append(box(x + column * CELL, top, CELL, CELL, fill=color, opacity=strength, stroke=color, radius=1))
        text = f"{value:g}"
        size = 15 if len(text) < 4 else SMALL
        parts.append(words(x + (column + 0.5) * CELL, top + CELL * 0.66, text, size=size, anchor="middle"))
    width = columns * CELL
    heading = words(x + width / 2, y - 9, title, size=SMALL, anchor="middle")
    return heading + "".join(parts), x + max(width, 60.0), y + grid_height(numbers)


@functools.cache
def demo() -> Demo:
    return Demo(
        title="Broadcasting, and how the gradient undoes it",
        controls=(
            Entry("a", "shape of a"),
            Entry("b", "shape of b"),
            Choice("operation", "operation", OPERATIONS),
        ),
        show=show,
        start={"a": "(3, 1)", "b": "(4,)", "operation": "a + b"},
        presets={
            "Bias": {"a": "(3, 4)", "b": "(4,)"},
            "Row and column": {"a": "(3, 1)", "b": "(1, 4)"},
            "Number": {"a": "(2, 3)", "b": "()"},
            "Three axes": {"a": "(2, 2, 3)", "b": "(2, 1)"},
            "Do not fit": {"a": "(3, 4)", "b": "(3,)"},
        },
    )


def broadcast(a: Any = None, b: Any = None, step: int = 0, predict: bool = True, **state: Any) -> Any:
    """The demo: two shapes, stretched to fit, from the first step on. `a` and `b` are shapes, texts such as "(3, 1)",
    or objects with a shape. `predict` asks first for the shape of the result.
    """
    for name, given in (("a", a), ("b", b)):
        if given is not None:
            state[name] = given if isinstance(given, str) else str(tuple(getattr(given, "shape", given)))
    return demo().live(step, predict, **state)
