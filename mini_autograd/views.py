"""Tensors that show the memory of another tensor: where they came from, and their place in the graph.

Imports function, grad_mode and versions. The one idea to know: when memory is changed in place, every tensor that shows
it has a new history. A view therefore keeps the steps that lead to it from the tensor that owns the memory, its base,
and takes these steps again when it is used after a change.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mini_autograd import function
from mini_autograd.function import NO_EDGE, Edge, Function, Value
from mini_autograd.grad_mode import INFERENCE, RECORDING, enable_grad, state

Step = tuple[type[Function], dict[str, Any]]


class View:
    """What a view knows: its base, the steps from there to it, and its edge as long as nothing was changed."""

    __slots__ = ("base", "edge", "made_in", "many", "seen", "steps")

    def __init__(self, base: Any, steps: tuple[Step, ...], edge: Edge) -> None:
        self.base, self.steps, self.edge = base, steps, edge
        self.seen = base.version[0] if base.version is not None else 0
        self.many: tuple[str, int] | None = None
        self.made_in = state.mode & (RECORDING | INFERENCE)

    def current_edge(self) -> Edge:
        """Where the gradient goes: the steps are taken again, and recorded, if the memory was changed since."""
        base = self.base
        if base.version is not None and base.version[0] != self.seen and self.made_in == RECORDING:
            with enable_grad():
                again = follow(self.steps, base)
            replayed = again._history
            if replayed is not NO_EDGE:
                self.edge = replayed
            self.seen = base.version[0]
        return self.edge


def follow(steps: tuple[Step, ...], base: Value) -> Value:
    """Take the steps that lead to a view from an array or tensor of its base's shape."""
    for operation, options in steps:
        base = operation.apply(base, **options)
    return base


def link_view(result: Any, inputs: tuple[Any, ...], operation: type[Function], options: dict[str, Any]) -> None:
    """Note at `result` that it shows the memory of the first input, if it does."""
    source = inputs[0]
    if not isinstance(result, function.Tensor) or not isinstance(source, function.Tensor):
        return
    if owner(result.array) is not owner(source.array):
        return
    above = source.view_info
    base, steps = (source, ()) if above is None else (above.base, above.steps)
    edge = result._edge
    result._view = View(base, (*steps, (operation, options)), edge)
    result._edge = None  # ask the view
    result.version = source.version
    if edge is not NO_EDGE:
        edge.version = source.version


def owner(array: Any) -> Any:
    """The array that owns the memory."""
    while getattr(array, "base", None) is not None:
        array = array.base
    return array


def memory_of(tensor: Any) -> np.ndarray:
    """The tensor's array as one that others can share: a NumPy scalar, which nobody can, becomes a 0-d array."""
    if isinstance(tensor.array, np.generic):
        tensor.array = np.asarray(tensor.array)
    return tensor.array


function.link_view = link_view
