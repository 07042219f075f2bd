"""Constructors of PyTorch's first years, which many tutorials still show: `FloatTensor([1, 2])`, `LongTensor(2, 3)`.

Imports arrays, tensor and creation. The one idea to know: today's `tensor` takes data and a dtype, and `empty` takes
sizes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mini_autograd import arrays
from mini_autograd.creation import tensor, zeros
from mini_autograd.tensor import Tensor


def constructor(name: str, dtype: np.dtype) -> Callable[..., Tensor]:
    """The function that makes tensors of one dtype, of data or of a size."""

    def make(*args: Any) -> Tensor:
        if len(args) == 1 and not isinstance(args[0], int):
            return tensor(args[0], dtype)
        return zeros(*args, dtype=dtype) if args else zeros(0, dtype=dtype)

    make.__name__ = name
    make.__doc__ = f"A tensor of {dtype.name} with that data; of whole numbers, one of that size, filled with zeros."
    return make


FloatTensor = constructor("FloatTensor", arrays.float32)
DoubleTensor = constructor("DoubleTensor", arrays.float64)
HalfTensor = constructor("HalfTensor", arrays.float16)
LongTensor = constructor("LongTensor", arrays.int64)
IntTensor = constructor("IntTensor", arrays.int32)
ByteTensor = constructor("ByteTensor", arrays.uint8)
BoolTensor = constructor("BoolTensor", arrays.bool_)
