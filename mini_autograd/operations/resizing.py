"""`interpolate`: images and signals in other sizes.

Imports arrays, function, gathering and windows. The one idea to know: every axis is resized by itself, by picking for
each new place its neighbours among the old ones and mixing these; so the rules are those of picking and mixing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mini_autograd.arrays import on_device
from mini_autograd.function import Value, tensor_of
from mini_autograd.operations.gathering import index_select
from mini_autograd.operations.windows import one_per_axis

LINEAR = {"linear": 3, "bilinear": 4, "trilinear": 5}
"""mode -> the axes of the input that it is for"""


def interpolate(
    input: Value,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
) -> Value:
    """`input` (N, C, *sizes) with other sizes, those of `size` or the old ones times `scale_factor`.

    A new element is the nearest old one ("nearest", "nearest-exact") or a mixture of its neighbours along each axis
    ("linear" of signals, "bilinear" of images, "trilinear" of volumes). With `align_corners` the first and last
    elements stay what they are. Raises ValueError for options that contradict each other, NotImplementedError for
    PyTorch's other modes.
    """
    check_mode(input, mode, align_corners)
    old = input.shape[2:]
    if (size is None) == (scale_factor is None):
        what = "either size or scale_factor should be" if size is None else "only one of size or scale_factor should be"
        raise ValueError(f"{what} defined")
    factors: Any = [scale_factor] * len(old) if isinstance(scale_factor, int | float) else scale_factor
    if size is not None:
        sizes = one_per_axis(size, len(old))
    else:
        sizes = tuple(math.floor(length * factor) for length, factor in zip(old, factors, strict=True))
    for number, (length, wanted) in enumerate(zip(old, sizes, strict=True)):
        given = None if factors is None or recompute_scale_factor else 1.0 / factors[number]
        step = length / wanted if given is None else given
        input = along_axis(input, number + 2, wanted, step, mode, bool(align_corners))
    return input


def check_mode(input: Value, mode: str, align_corners: bool | None) -> None:
    """Raise PyTorch's errors for options that do not go together, and an error for a mode that is not there."""
    if mode not in ("nearest", "nearest-exact", *LINEAR):
        known = ", ".join(["nearest", "nearest-exact", *LINEAR])
        raise NotImplementedError(f"interpolate: the mode '{mode}' is left out; there are {known}")
    if mode not in LINEAR and align_corners is not None:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
        )
    if not 3 <= input.ndim <= 5 or LINEAR.get(mode, input.ndim) != input.ndim:
        raise NotImplementedError(
            f"Got {input.ndim}D input, but {mode} mode needs {LINEAR.get(mode, '3D to 5')}D input"
        )


def along_axis(x: Value, axis: int, count: int, step: float, mode: str, align_corners: bool) -> Value:
    """One axis resized to `count` elements, whose places are `step` old ones apart."""
    length = x.shape[axis]
    if mode not in LINEAR:
        shift = 0.5 if mode == "nearest-exact" else 0.0
        places = np.floor((np.arange(count, dtype=np.float32) + np.float32(shift)) * np.float32(step))
        return picked(x, axis, np.minimum(places, length - 1))
    if length == count:
        return x
    places = np.arange(count, dtype=x.dtype)
    if align_corners:
        places = places * ((length - 1) / (count - 1) if count > 1 else 0.0)
    else:
        places = np.maximum((places + 0.5) * step - 0.5, 0.0)
    before = np.minimum(np.floor(places), length - 1)
    share = (places - before).astype(x.dtype).reshape([-1 if i == axis else 1 for i in range(x.ndim)])
    weight = tensor_of(on_device(share, x.device))
    return picked(x, axis, before) * (1.0 - weight) + picked(x, axis, np.minimum(before + 1, length - 1)) * weight


def picked(x: Value, axis: int, places: Any) -> Value:
    """The elements at these places along an axis."""
    return index_select(x, axis, tensor_of(on_device(places.astype(np.int64), x.device)))
