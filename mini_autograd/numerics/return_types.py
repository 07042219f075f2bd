"""`torch.return_types`: the results of functions that return several, as named tuples that print as PyTorch's do.

The one idea to know: `x.max(dim=0)` is a `return_types.max`, so its text says which function returned it.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Found(NamedTuple):
    """Values and their indices."""

    values: Any
    indices: Any


class Extremes(NamedTuple):
    """The smallest and the largest element."""

    min: Any
    max: Any


def described(results: Any) -> str:
    """The text: `torch.return_types.max(` and every result on a line of its own."""
    parts = [f"{name}={value!r}" for name, value in zip(results._fields, results, strict=True)]
    return f"torch.return_types.{type(results).__name__}(\n" + ",\n".join(parts) + ")"


def named(name: str, kind: type) -> Any:
    """A type of results like `kind`, with the name of a function."""
    return type(
        name, (kind,), {"__slots__": (), "__module__": __name__, "__repr__": described, "__doc__": kind.__doc__}
    )


max, min, sort, topk = (named(name, Found) for name in ("max", "min", "sort", "topk"))
median, aminmax = named("median", Found), named("aminmax", Extremes)
