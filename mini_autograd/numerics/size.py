"""`Size`: the shape of a tensor, a tuple that prints as `torch.Size`.

The one idea to know: making one for every `tensor.shape` costs less than a tenth of an operation, and the engine itself
reads the shapes of arrays, which are plain tuples.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from typing import Any


class Size(tuple):
    """The lengths of all axes. Slices of a Size, and a Size joined with another tuple, are Sizes too.

    Raises TypeError for anything that is not a whole number.
    """

    __slots__ = ()

    def __new__(cls, lengths: Iterable[Any] = ()) -> Size:
        size = [length.item() if hasattr(length, "item") else length for length in lengths]
        for place, length in enumerate(size):
            if not isinstance(length, int):
                kind = type(length).__name__
                raise TypeError(f"torch.Size() takes an iterable of 'int' (item {place} is '{kind}')")
        return size_of(tuple(size))

    def numel(self) -> int:
        """How many elements a tensor of this size has."""
        return math.prod(self)

    def __getitem__(self, place: Any) -> Any:
        found = tuple.__getitem__(self, place)
        return size_of(found) if isinstance(place, slice) else found

    def __add__(self, other: Any) -> Size:
        if not isinstance(other, tuple):
            raise TypeError(f"can only concatenate tuple (not {type(other).__name__}) to torch.Size")
        return size_of(tuple.__add__(self, other))

    def __radd__(self, other: Any) -> Size:
        return size_of(tuple(other) + tuple(self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, times: Any) -> Size:
        return size_of(tuple(self) * times)

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"


size_of = functools.partial(tuple.__new__, Size)
"""Make a Size of a tuple that is known to hold lengths."""
