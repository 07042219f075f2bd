"""Printing tensors as PyTorch does: four digits, `1.` for whole numbers, scientific notation if sizes differ a lot."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mini_autograd.numerics import arrays
from mini_autograd.numerics.arrays import bool_, int64, is_floating

PREFIX = "tensor("


@dataclass
class Options:
    """What `set_printoptions` sets: digits, above how many elements only edges are shown, how long these edges and a
    line are, and whether numbers are in scientific notation (None: as needed).
    """

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


PROFILES = {"default": Options(), "short": Options(precision=2, edgeitems=2), "full": Options(threshold=math.inf)}
options = Options()


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Set how tensors are printed: first all options of a profile ("default", "short" or "full"), then the others."""
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    chosen = vars(PROFILES[profile]) if profile in PROFILES else {}
    for name, value in {**chosen, **{name: value for name, value in given.items() if value is not None}}.items():
        setattr(options, name, value)
    options.sci_mode = sci_mode


def tensor_text(tensor: Any, array: np.ndarray, tangent: Any = None) -> str:
    """The text of a tensor, given its numbers in NumPy: `tensor([1., 2.], requires_grad=True)`. In forward mode, it
    ends with the tangent.
    """
    text = PREFIX + (nested(array, len(PREFIX), style_of(array)) if array.size else "[]")
    used = len(text) - text.rfind("\n") + 1
    found = suffixes(array, tensor.requires_grad, node_name(tensor), tensor.device)
    if tangent is not None:
        found.append(f"tangent={tangent}")
    for suffix in found:
        if used + len(suffix) + 2 > options.linewidth:
            text += ",\n" + " " * len(PREFIX) + suffix
            used = len(PREFIX) + len(suffix)
        else:
            text += ", " + suffix
            used += len(suffix) + 2
    return text + ")"


def node_name(tensor: Any) -> str | None:
    """The name of the node that made a tensor; "Invalid", as in PyTorch, for a view that a change left without one."""
    try:
        return tensor.grad_fn.name() if tensor.grad_fn else None
    except RuntimeError:
        return "Invalid"


def suffixes(array: np.ndarray, requires_grad: bool, grad_fn_name: str | None, device: arrays.Device) -> list[str]:
    """The parts of the text after the elements: what the elements do not show."""
    found = [] if device.type == "cpu" else [f"device='{device}'"]
    if array.size == 0 and array.shape != (0,):
        found.append(f"size={array.shape}")
    if array.dtype != arrays.default_dtype and (array.size == 0 or array.dtype not in (int64, bool_)):
        found.append(f"dtype=torch.{array.dtype.name}")
    if grad_fn_name is not None:
        found.append(f"grad_fn=<{grad_fn_name}>")
    elif requires_grad:
        found.append("requires_grad=True")
    return found


@dataclass(frozen=True)
class Style:
    """How every element of a tensor is printed, and whether only the tensor's edges are printed."""

    form: Callable[[object], str]
    width: int
    shortened: bool


def style_of(array: np.ndarray) -> Style:
    """One style for all elements that will be shown."""
    shortened = array.size > options.threshold
    shown = edges(array) if shortened else array
    if is_floating(array.dtype):
        form, measured = float_form(shown), shown[np.isfinite(shown) & (shown != 0)]
    else:
        form, measured = str, shown.ravel()
    return Style(form, max([1, *map(len, map(form, measured))]), shortened)


def edges(array: np.ndarray) -> np.ndarray:
    """The elements near the ends of every axis."""
    for axis, size in enumerate(array.shape):
        if size > 2 * options.edgeitems:
            array = np.take(array, [*range(options.edgeitems), *range(-options.edgeitems, 0)], axis)
    return array


def nested(array: np.ndarray, indent: int, style: Style) -> str:
    """The elements in nested brackets, `indent` columns from the left."""
    if array.ndim == 0:
        return style.form(array[()])
    cut = style.shortened and len(array) > 2 * options.edgeitems
    shown = [*array[: options.edgeitems], *array[-options.edgeitems :]] if cut else list(array)
    if array.ndim == 1:
        words = [style.form(element).rjust(style.width) for element in shown]
        if cut:
            words.insert(options.edgeitems, " ...")
        per_line = max(1, (options.linewidth - indent) // (style.width + 2))
        rows = [", ".join(words[start : start + per_line]) for start in range(0, len(words), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(rows) + "]"
    parts = [nested(part, indent + 1, style) for part in shown]
    if cut:
        parts.insert(options.edgeitems, "...")
    return "[" + ("," + "\n" * (array.ndim - 1) + " " * (indent + 1)).join(parts) + "]"


def float_form(array: np.ndarray) -> Callable[[object], str]:
    """PyTorch's choice between `1.`, `1.5000` and `1.0000e+10`, made for all elements together."""
    finite = np.abs(array[np.isfinite(array) & (array != 0)].astype(np.float64))
    whole = bool((finite == np.floor(finite)).all())
    largest, smallest = finite.max(initial=0.0), finite.min(initial=np.inf)
    scientific = finite.size and (largest / smallest > 1000.0 or largest > 1.0e8 or (not whole and smallest < 1.0e-4))
    if scientific if options.sci_mode is None else options.sci_mode and finite.size:
        return lambda x: f"{x:.{options.precision}e}"
    if whole:
        return lambda x: f"{x:.0f}." if np.isfinite(x) else f"{x:.0f}"  # type: ignore[call-overload]
    return lambda x: f"{x:.{options.precision}f}"
