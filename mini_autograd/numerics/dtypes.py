"""`torch.dtype`: the types of elements, by PyTorch's names.

The one idea to know: NumPy accepts anything with an attribute `dtype` as a dtype, so these work wherever NumPy's do,
and `x.dtype == np.float32` holds as well. The engine itself works with the dtypes of arrays, which are NumPy's.
"""

from __future__ import annotations

from typing import Any

import numpy as np


class dtype:  # noqa: N801  (PyTorch's name)
    """One of NumPy's dtypes with PyTorch's name; there is one object for each. The attribute `dtype` is NumPy's."""

    __slots__ = ("dtype",)
    dtype: np.dtype

    def __init__(self, kind: Any) -> None:
        self.dtype = np.dtype(kind)

    @property
    def is_floating_point(self) -> bool:
        return self.dtype.kind == "f"

    @property
    def is_signed(self) -> bool:
        return self.dtype.kind in "fi"

    @property
    def is_complex(self) -> bool:
        return False

    def __getattr__(self, name: str) -> Any:  # kind, name, itemsize and the like
        return getattr(self.dtype, name)

    def __eq__(self, other: object) -> bool:
        return self is other or self.dtype == other

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __reduce__(self) -> Any:
        return of, (self.dtype,)

    def __repr__(self) -> str:
        return f"torch.{self.dtype.name}"


class Known(dict[np.dtype, dtype]):
    """The one object for each of NumPy's dtypes."""

    def __missing__(self, kind: np.dtype) -> dtype:
        return self.setdefault(kind, dtype(kind))


KNOWN = Known()


def of(kind: Any) -> dtype:
    """The object for one of NumPy's dtypes, or for anything that NumPy accepts as a dtype."""
    return KNOWN[np.dtype(kind)]


float16, float32, float64, bool_ = of("float16"), of("float32"), of("float64"), of("bool")
uint8, int8, int16, int32, int64 = (of(name) for name in ("uint8", "int8", "int16", "int32", "int64"))
