"""The entry point: `read_graph` finds out what kind of tensor it was given and calls the right reader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mini_autograd.drawing.autograd_nodes import is_autograd_tensor, read_autograd
from mini_autograd.drawing.graph import Graph
from mini_autograd.drawing.minitensor import is_minitensor, read_minitensor
from mini_autograd.drawing.unrecorded import CallTrace


def is_tensor(candidate: Any) -> bool:
    """Whether `read_graph` can read a graph behind this object."""
    return is_autograd_tensor(candidate) or is_minitensor(candidate)


def read_graph(
    output: Any,
    names: Mapping[str, Any] | None = None,
    *,
    limit: int | None = None,
    gradient: Any = None,
    trace: CallTrace | None = None,
) -> Graph:
    """The graph behind a student's MiniTensor, our own tensor, or a PyTorch tensor, as plain data.

    `names` maps labels to tensors; of two labels for one tensor, the first is used. `gradient` starts the replayed
    backward pass; the default is ones (for a MiniTensor on which backward has run, its own `.grad`). The tensors and
    their `.grad` are not changed, and no hook runs. A `trace` of the computation adds what ran without recording.
    Raises TypeError for an object that has no graph, GraphTooLargeError above `limit` nodes, ValueError for a cycle.
    """
    first_names: dict[int, tuple[str, Any]] = {}
    for label, tensor in (names or {}).items():
        first_names.setdefault(id(tensor), (label, tensor))
    names = dict(first_names.values())
    if is_autograd_tensor(output) and not hasattr(output, "inputs"):
        return read_autograd(output, names, limit, gradient, trace)
    if is_minitensor(output):
        return read_minitensor(output, names, limit, gradient)
    raise TypeError(
        f"There is no graph behind this {type(output).__name__}. Expected a tensor: an object with `data` and `inputs` "
        "(your MiniTensor), or with `grad_fn` (PyTorch and mini_autograd)."
    )
