"""What a node saved, under PyTorch's names: `y.grad_fn._saved_self`, `_saved_other`, `_saved_result`.

The one idea to know: for each saved value, a node knows which input it was, or that it was the output. PyTorch calls
the first input self and the second other (or what the operation's `input_names` say), and the output result. Numbers
that a rule keeps on its `ctx` go by their attribute names.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mini_autograd.graph.function import (
    COPY,
    FREED,
    OUTPUT,
    SECOND_BACKWARD,
    SEVERAL,
    AccumulateGrad,
    Function,
    register_attributes,
    tensor_of,
)
from mini_autograd.graph.versions import check_saved, is_unneeded

PREFIX = "_saved_"
NAMES = ("self", "other", "result", "exponent", "mat1", "mat2", "vec", "tensor", "target", "weight", "pos_weight")


def kept(value: Any) -> Any:
    """What a node kept on `ctx`. Raises the error of a second backward pass if it was freed."""
    if value is FREED:
        raise RuntimeError(SECOND_BACKWARD)
    return value


def place_of(node: Function, name: str) -> int | None:
    """The position of a node's saved value with this name, or None."""
    if node.output_type is SEVERAL or not getattr(node, "origins", ()):
        return None
    for place, origin in enumerate(node.origins):
        number = COPY - origin if origin <= COPY else origin
        if (name == "result" and origin == OUTPUT) or (
            number >= 0 and node.input_names[number : number + 1] == (name,)
        ):
            return place
    return None


def saved_value(node: Function, name: str) -> Any:
    """The saved value of this name, as a Tensor connected to the graph; None if the backward pass does not need it.

    Raises PyTorch's errors if it was freed by a backward pass, or changed in place.
    """
    place = place_of(node, name)
    if place is None:
        if name not in NAMES[3:] or not hasattr(node, name):
            raise AttributeError(f"'{node.name()}' object has no attribute '{PREFIX}{name}'")
        return getattr(node, name)
    origin = node.origins[place]
    if is_unneeded(node, origin):
        return None
    saved = node.saved_tensors
    if saved is FREED:
        raise RuntimeError(SECOND_BACKWARD)
    check_saved(node)
    value = tuple(saved)[place]
    edge = node if origin == OUTPUT else node.inputs[COPY - origin if origin <= COPY else origin]
    if type(edge) is AccumulateGrad and isinstance(saved, tuple):  # and not packed by hooks
        return edge.variable  # the leaf itself
    return tensor_of(value if hasattr(value, "ndim") else np.asarray(value), edge)


def as_property(name: str) -> property:
    """A property of nodes that returns one saved value."""
    return property(lambda node: saved_value(node, name), doc=f"The saved value that PyTorch calls {name}.")


def listed(node: Function) -> list[str]:
    """The attributes of a node; of the `_saved_` ones, only those of values that it saved."""
    found = [name for name in object.__dir__(node) if not name.startswith(PREFIX)]
    return found + [PREFIX + name for name in NAMES if place_of(node, name) is not None]


register_attributes({PREFIX + _name: as_property(_name) for _name in NAMES})
register_attributes({"__dir__": listed})
