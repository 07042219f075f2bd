"""How a kernel slides over the last axes of an array: the geometry that convolution and pooling share.

The one idea to know: instead of visiting windows one after the other, visit the places of the kernel. All elements that
one place of the kernel meets are one strided slice, so a 3x3 kernel needs nine slices however large the image is.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Sizes = tuple[int, ...]


@dataclass(frozen=True)
class Windows:
    """The windows of a kernel over axes of length `size`. Each field has one number per axis."""

    size: Sizes
    kernel: Sizes
    stride: Sizes
    before: Sizes  # how much is padded in front
    after: Sizes  # and behind
    dilation: Sizes
    output: Sizes  # how many windows there are

    @property
    def padded(self) -> Sizes:
        """The lengths with padding, which is extended if the last windows reach beyond it (`ceil_mode`)."""
        reach = [(o - 1) * s + (k - 1) * d + 1 for o, s, k, d in self._each("output", "stride", "kernel", "dilation")]
        sizes = self._each("size", "before", "after")
        return tuple(max(n + b + a, r) for (n, b, a), r in zip(sizes, reach, strict=True))

    @property
    def inside(self) -> tuple[Any, ...]:
        """Where the array lies in the padded array."""
        return (..., *[slice(b, b + n) for b, n in self._each("before", "size")])

    @property
    def first(self) -> tuple[Any, ...]:
        """Where the first elements of all windows are in the padded array, if the stride is 1."""
        return (..., *map(slice, self.output))

    @property
    def overlap(self) -> bool:
        """Whether an element may be in more than one window."""
        return any(k > 1 and (d > 1 or k > s) for k, d, s in self._each("kernel", "dilation", "stride"))

    def places(self) -> Iterator[tuple[Any, ...]]:
        """For each place of the kernel, the index of the elements of the padded array that it meets."""
        for slices in itertools.product(*self.slices()):
            yield (..., *slices)

    def slices(self) -> list[list[slice]]:
        """Like `places`, axis by axis: for each place of the kernel along an axis, the slice of the axis it meets."""
        return [
            [slice(i * d, i * d + (o - 1) * s + 1, s) for i in range(k)]
            for k, o, s, d in self._each("kernel", "output", "stride", "dilation")
        ]

    def shifts(self) -> tuple[list[int], int]:
        """For each place of the kernel, its distance from the first place in a padded array laid out as one line.

        Also returns the length of the part of that line in which windows begin, if the stride is 1.
        """
        steps = [math.prod(self.padded[axis + 1 :]) for axis in range(len(self.padded))]
        places = itertools.product(*[range(0, k * d, d) for k, d in self._each("kernel", "dilation")])
        shifts = [sum(map(operator.mul, place, steps)) for place in places]
        return shifts, sum((o - 1) * step for o, step in zip(self.output, steps, strict=True)) + 1

    def pad(self, x: Any, value: float = 0) -> Any:
        """The array in a frame of `value`; the array itself if there is no padding."""
        if self.padded == self.size:
            return x
        padded = np.full_like(x, value, shape=(*x.shape[: x.ndim - len(self.size)], *self.padded))
        padded[self.inside] = x
        return padded

    def frame_for(self, x: Any) -> Any:
        """Zeros in the padded shape, with the leading axes and the dtype of `x`."""
        return np.zeros_like(x, shape=(*x.shape[: x.ndim - len(self.size)], *self.padded))

    def _each(self, *names: str) -> Iterator[tuple[int, ...]]:
        return zip(*[getattr(self, name) for name in names], strict=True)


def one_per_axis(value: int | Sequence[int], axes: int, name: str = "argument") -> Sizes:
    """One number per axis, from a number or a sequence. Raises PyTorch's error for a sequence of the wrong length."""
    if isinstance(value, int):
        return (value,) * axes
    if len(value) == 1:
        return tuple(value) * axes
    if len(value) != axes:
        raise RuntimeError(
            f"expected {name} to be a single integer value or a list of {axes} values to match the "
            f"convolution dimensions, but got {name}={list(value)}"
        )
    return tuple(value)


def count_windows(length: int, kernel: int, stride: int, before: int, after: int, dilation: int, ceil: bool) -> int:
    """How many windows fit. With `ceil`, a window that begins inside counts even if it ends outside."""
    room = length + before + after - dilation * (kernel - 1) - 1
    count = (math.ceil(room / stride) if ceil else room // stride) + 1
    return count - 1 if ceil and (count - 1) * stride >= length + before else count
