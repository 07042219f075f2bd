"""Views, which are tensors that show the memory of another tensor: their origin, and their place in the graph.

The one idea to know: when memory is changed in place, every tensor that shows it has a new history. A view therefore
keeps the steps that lead to it from its base, the tensor that owns the memory, and repeats these steps when it is used
after a change.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mini_autograd.graph import function
from mini_autograd.graph.edges import NO_EDGE, Edge, node_of, number_of
from mini_autograd.graph.function import Function, Value
from mini_autograd.graph.grad_mode import INFERENCE, RECORDING, state
from mini_autograd.graph.versions import error_name

Step = tuple[type[Function], dict[str, Any]]


MANY = "many"
"""The `made_in` of a view that was one of several results. As in PyTorch, none of these may be changed in place."""

CUSTOM = "custom"
"""The `made_in` of a view made in the `forward` of a custom Function, or by one that returned its input."""

OVERRIDDEN = (
    " This view was created inside a custom Function (or because an input was returned as-is) and the autograd logic "
    "to handle view+inplace would override the custom backward associated with the custom Function, leading to "
    "incorrect gradients. This behavior is forbidden. You can fix this by cloning the output of the custom Function."
)
SEVERAL_VIEWS = (
    " This view is the output of a function that returns multiple views. Such functions do not allow the output views "
    "to be modified inplace. You should replace the inplace operation by an out-of-place one."
)
AMBIGUOUS = (
    " Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both "
    "the view and the inplace either both inside the {mode} block (if you don't want the inplace to be tracked) or "
    "both outside (if you want the inplace to be tracked)."
)
RESHAPED = (
    "The shape of this view's base was changed in place (by t_, transpose_, squeeze_ or unsqueeze_) after the view was "
    "made, so the view can no longer be derived from its base. Make the view after its base has its final shape."
)
DIRECTLY, INDIRECTLY = "is being", "its base or another view of its base has been"


class View:
    """What a view knows: its base, the steps from the base to it, and its edge (out of date after a change)."""

    __slots__ = ("base", "edge", "made_in", "many", "seen", "steps")

    def __init__(self, base: Any, steps: tuple[Step, ...], edge: Edge, made_in: str | None) -> None:
        self.base, self.steps, self.edge, self.made_in = base, steps, edge, made_in
        self.seen = base.version[0] if base.version is not None else 0
        self.many: tuple[str, int] | None = None  # if one of several: the node that PyTorch makes for all, and which

    @property
    def requires_grad(self) -> bool:
        """A view requires grad if its base does, even one that was made under `no_grad`."""
        return self.edge is not NO_EDGE or self.base.requires_grad

    def current_edge(self, tensor: Any) -> Edge:
        """Where the gradient of `tensor`, this view, goes.

        If the memory has changed, the steps are repeated and recorded first. None for a view that requires grad and
        that no node made. Raises RuntimeError if the steps cannot be repeated: the view was made where that is
        forbidden, or the shape of its base has changed.
        """
        base = self.base
        if (self.edge is NO_EDGE or self.edge is None) and not base.requires_grad:
            return self.edge
        if (
            base.version is not None
            and base.version[0] != self.seen
            and state.mode & (RECORDING | INFERENCE) == RECORDING
        ):
            self.check_change(INDIRECTLY)
            again = follow(self.steps, base)
            if not shows_the_same(again, tensor):
                raise RuntimeError(RESHAPED)
            self.seen = base.version[0]
            if again._history is not NO_EDGE:
                tensor.change_edge(again._history)
        return None if self.edge is NO_EDGE else self.edge

    def check_change(self, how: str) -> None:
        """Raise PyTorch's error if changes of this memory, made DIRECTLY or INDIRECTLY, cannot be followed."""
        if self.made_in is None:
            return
        node = node_of(self.edge)
        name, number = self.many or (error_name(node.name()) if node else "", number_of(self.edge))
        if self.made_in in (MANY, CUSTOM) and node:
            reason = SEVERAL_VIEWS if self.made_in == MANY else OVERRIDDEN
            raise RuntimeError(f"Output {number} of {name} is a view and {how} modified inplace.{reason}")
        view = f"Output {number} of {name} is a view of a view which" if node else "A view"
        mode = "inference" if self.made_in == "inference_mode" else "no_grad"
        when = "in normal mode" if mode == "inference" else "with grad mode enabled"
        hint = SEVERAL_VIEWS if self.made_in == MANY else AMBIGUOUS.format(mode=self.made_in)
        raise RuntimeError(f"{view} was created in {mode} mode and {how} modified inplace {when}.{hint}")


def place_of_making() -> str | None:
    """The mode that is on, if views made in it must not be changed in grad mode later; else None."""
    if state.mode & INFERENCE:
        return "inference_mode"
    return None if state.mode & RECORDING else "no_grad"


def shows_the_same(a: Any, b: Any) -> bool:
    """Whether two tensors show the same elements of the same memory."""
    return a.shape == b.shape and a.array.strides == b.array.strides and a.data_ptr() == b.data_ptr()


def follow(steps: tuple[Step, ...], base: Value) -> Value:
    """Apply the steps that lead to a view to an array or tensor of its base's shape."""
    for operation, options in steps:
        base = operation.apply(base, **options)
    return base


def is_cut_off(tensor: Any) -> bool:
    """Whether no gradient arrives at this tensor, a view made under `no_grad`, although its base requires grad."""
    return tensor._history is None and tensor.view_info is not None and tensor.view_info.edge is NO_EDGE


def edge_of_old_values(tensor: Any) -> Edge:
    """Where the gradient of a tensor's present values goes, for use when they are about to change.

    Hooks on the nodes of a view do not see it, as in PyTorch: it then goes to the base through new nodes.
    """
    edge = tensor._history
    view = tensor.view_info
    if edge is None or view is None or not has_hooks(edge, len(view.steps)):
        return NO_EDGE if edge is None else edge
    return follow(view.steps, view.base)._history


def has_hooks(edge: Edge, steps: int) -> bool:
    """Whether any of the last `steps` nodes of the path behind `edge` has hooks."""
    for _ in range(steps):
        node = node_of(edge)
        if node is None:
            return False
        if node.hooks:
            return True
        edge = node.inputs[0] if node.inputs else NO_EDGE  # the path is shorter if a view was made under `no_grad`
    return False


def link_view(result: Any, source: Any, operation: type[Function], options: dict[str, Any]) -> None:
    """Make `result` a view of `source`, from which `operation` made it, if they share memory."""
    if not isinstance(source, function.Tensor) or owner(result.array) is not owner(source.array):
        return
    above = source.view_info
    base, steps, inherited = (source, (), None) if above is None else (above.base, above.steps, above.made_in)
    edge = result._edge
    result._view = View(base, (*steps, (operation, options)), edge, place_of_making() or inherited)
    result._edge = None  # ask the view
    result.version = source.version
    if edge is not NO_EDGE:
        edge.version = source.version


def forget_source(result: Any) -> None:
    """Make `result`, a view that was just made, an ordinary tensor: nothing else refers to its base."""
    info = getattr(result, "_view", None)
    if info is not None:
        result._edge, result._view = info.edge, None


def note_custom_view(result: Any, output: Any, alone: bool) -> None:
    """Make `result`, which a custom Function made from `output`, a view of the memory that `output` shows."""
    info = output.view_info
    base, steps = (output, ()) if info is None else (info.base, info.steps)
    result._view = View(base, steps, result._edge, CUSTOM if alone else MANY)
    result._edge = None


def owner(array: Any) -> Any:
    """The array that owns the memory."""
    while getattr(array, "base", None) is not None:
        array = array.base
    return array


def memory_of(tensor: Any) -> np.ndarray:
    """The tensor's array, in a form that can be shared: a NumPy scalar, which cannot, becomes a 0-d array."""
    if isinstance(tensor.array, np.generic):
        tensor.array = np.asarray(tensor.array)
    return tensor.array
