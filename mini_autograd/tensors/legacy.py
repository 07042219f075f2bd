"""The constructor of PyTorch's first years, which many tutorials still show: `Tensor([1, 2])`, `Tensor(2, 3)`.

The one idea to know: today's `tensor` takes data and a dtype, and `empty` takes sizes; this takes either, and always
gives the same dtype.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mini_autograd.numerics import arrays, dtypes
from mini_autograd.numerics.size import Size
from mini_autograd.tensors.creation import as_tensor, zeros
from mini_autograd.tensors.tensor import Tensor

UNSET: Any = object()


def new_tensor(*args: Any, data: Any = UNSET, size: Any = None, device: Any = None) -> Tensor:
    """What `Tensor(...)` makes, in the default dtype: from whole numbers, a tensor of that size; from one list or other
    sequence, one with that data (an array of that dtype is shared); from nothing, an empty one. A tensor is returned as
    a view of itself.

    Raises TypeError for anything else.
    """
    given = args if data is UNSET else (data,)
    if size is None and len(given) == 1 and isinstance(given[0], Tensor):
        return given[0].view_as_itself()
    return made(given if size is None else (Size(size),), arrays.default_dtype, device)


def made(args: tuple, dtype: np.dtype, device: Any) -> Tensor:
    """A tensor of the given size, or with the given data."""
    first = args[0] if args else Size()
    if len(args) == 1 and not isinstance(first, Size | np.integer) and type(first) is not int:
        if not isinstance(first, Sequence | np.ndarray):
            raise TypeError(f"new(): data must be a sequence (got {type_name(first)})")
        return as_tensor(first, dtype, device)
    sizes = Size(first) if isinstance(first, Size) and args else Size(args or (0,))
    if any(length < 0 for length in sizes):
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(sizes)}: {list(sizes)}")
    return zeros(sizes, dtype=dtype, device=device)


class OldType(type):
    """A class for each dtype, as in PyTorch's first years: `LongTensor([1, 2])`, `x.type(LongTensor)`.

    Calling it makes a tensor as `Tensor(...)` does, in that dtype. A tensor is an instance if it has that dtype.
    """

    dtype: Any

    def __call__(cls, *args: Any, device: Any = None) -> Tensor:
        if len(args) == 1 and isinstance(args[0], Tensor):
            if args[0].dtype != cls.dtype:
                raise TypeError(f"{cls.__name__}(x) takes only a tensor of {cls.dtype}. Use x.to({cls.dtype}) instead.")
            return args[0].view_as_itself()
        return made(args, cls.dtype.dtype, device)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, Tensor) and value.dtype == cls.dtype

    def __repr__(cls) -> str:
        return f"<class 'torch.{cls.__name__}'>"


FloatTensor = OldType("FloatTensor", (), {"dtype": dtypes.float32})
LongTensor = OldType("LongTensor", (), {"dtype": dtypes.int64})


def type_name(value: Any) -> str:
    """The name of a value's type, with the module if it is not built in."""
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def Variable(data: Tensor, requires_grad: bool = False) -> Tensor:  # noqa: N802  (PyTorch's name)
    """A tensor of the same memory. In PyTorch's first years, only tensors wrapped in a Variable were recorded."""
    return data.detach().requires_grad_(True) if requires_grad else data.view_as_itself()
