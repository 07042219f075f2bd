"""Counts of in-place changes of memory, and the error for a backward rule that needs the old values.

The one idea to know: tensors that show the same memory share one list `[count, when, when, ...]`. Its stamps come from
the counter that numbers the nodes. A stamp higher than a node's number means that what the node saved has changed, so
nothing has to be noted when it saves.
"""

from __future__ import annotations

import re
from typing import Any

from mini_autograd.graph import function as graph
from mini_autograd.graph.edges import NO_EDGE, Edge, node_of, number_of
from mini_autograd.graph.function import OUTPUT, SEVERAL, Function, next_sequence_nr
from mini_autograd.graph.grad_mode import WATCHED, state
from mini_autograd.numerics.arrays import dtype_name

Version = list[int]
REMEMBERED = 100
"""How many stamps of changes are kept. Dropping older ones affects only the number in the error text."""

DETACHED = (
    "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_().This is not supported, please "
    "use out-of-place `.detach()` instead"
)

latest_change = [0]
"""The stamp of the latest change of any tensor: a newer node need not check its saved tensors."""


def note_change(version: Version) -> int:
    """Count one more change, and return its stamp."""
    stamp = next_sequence_nr()
    version[0] += 1
    version.append(stamp)
    if len(version) > REMEMBERED:
        del version[1 : REMEMBERED // 2]
    latest_change[0] = stamp
    return stamp


def check_saved(node: Function) -> None:
    """Raise PyTorch's error if something that `node` saved has been changed since."""
    check_needed(node)
    if node.output_type is SEVERAL or not isinstance(node.saved_tensors, tuple):
        return  # custom Functions check for themselves; what was freed or packed by hooks is not checked
    for value, origin in zip(node.saved_tensors, getattr(node, "origins", ()), strict=False):
        version = version_of_saved(node, origin)
        if version is None or is_unneeded(node, origin):
            continue
        if origin >= 0:
            check_attached(version, node.inputs[origin])
        since = getattr(node, "changed_at", node.sequence_nr) if origin == OUTPUT else node.sequence_nr
        changes = sum(stamp > since for stamp in version[1:] if type(stamp) is not Detachment)
        if changes:
            output = (
                f"0 of {error_name(node.name())}" if origin == OUTPUT else output_name(node.inputs[origin], version)
            )
            raise RuntimeError(changed_text(value, output, version, changes))


def note_needed(result: Any, *values: Any) -> Any:
    """Note at the node of `result` that its rule needs the tensors among `values` unchanged; returns `result`.

    These are indices and masks, which have no gradient and are not saved inputs. Raises RuntimeError for an inference
    tensor.
    """
    tensors = [value for value in values if isinstance(value, graph.Tensor)]
    node = node_of(result._edge) if tensors and isinstance(result, graph.Tensor) else None
    if node is not None and not any(getattr(watcher, "copies", False) for watcher in state.watchers):
        if any(tensor.version is None for tensor in tensors):
            raise RuntimeError(graph.SAVED_INFERENCE)
        node.needed = [(tensor.array, tensor.version, tensor.version[0]) for tensor in tensors]
    return result


def check_needed(node: Function) -> None:
    """Raise PyTorch's error if an index or a mask that the rule needs has been changed since."""
    for array, version, seen in getattr(node, "needed", ()):
        if version[0] != seen:
            raise RuntimeError(changed_text(array, "", version, version[0] - seen))


def version_of_saved(node: Function, origin: int) -> Version | None:
    """The version of a saved input or output; None for what cannot change: a copy, or an array that no tensor shows."""
    if origin == OUTPUT:
        return node.version
    if origin < 0:
        return None
    edge = node.inputs[origin]
    if edge is not NO_EDGE:
        return version_at(edge)
    constants = getattr(node, "constants", ())
    return constants[origin] if constants else None


def is_unneeded(node: Function, origin: int) -> bool:
    """Whether a saved input is used only for gradients that are not needed, such as `x` in `x * 2`."""
    users = node.needed_by.get(origin, ())
    return bool(users) and all(node.inputs[user] is NO_EDGE for user in users)


def version_at(edge: Edge) -> Version | None:
    """The version of the tensor whose gradient goes along `edge`."""
    node = node_of(edge)
    return node.output_versions[number_of(edge)] if node.output_type is SEVERAL else node.version


class Stamp(int):
    """When a recorded operation changed memory, with the name of the node that the owner of the memory got."""

    node_name: str

    def __new__(cls, when: int, node_name: str) -> Stamp:
        stamp = super().__new__(cls, when)
        stamp.node_name = node_name
        return stamp


class Detachment(int):
    """When a tensor was detached in place, with the number of the node that had made the tensor."""

    sequence_nr: int


def note_detachment(version: Version, node: Function) -> None:
    """Note that `detach_` separated a tensor of this memory from its node. No value changes, so it is not counted."""
    latest_change[0] = when = Detachment(next_sequence_nr())
    when.sequence_nr = node.sequence_nr
    version.append(when)


def check_attached(version: Version, edge: Edge) -> None:
    """Raise PyTorch's error if the saved tensor of this edge has been detached in place since."""
    node = node_of(edge)
    if node is not None and any(isinstance(at, Detachment) and at.sequence_nr == node.sequence_nr for at in version):
        raise RuntimeError(DETACHED)


def note_node(version: Version, node: Function) -> None:
    """Add to the latest stamp the name of the node that the change gave to the tensor that owns the memory."""
    version[-1] = Stamp(version[-1], node.name())


def error_name(name: str) -> str:
    """The name of a node in PyTorch's errors about changes: "Mul" for "MulBackward0"."""
    return re.sub(r"Backward(\d*)$", lambda end: end[1].removesuffix("0"), name)


def output_name(edge: Edge, version: Version) -> str:
    """Which output of which node a saved tensor of this edge now is, in PyTorch's words: "0 of Mul"; "" if of none.

    That is the node of the latest change; for a view, the node with which PyTorch repeats the steps to it.
    """
    node, number = node_of(edge), number_of(edge)
    if node is not None and node.shows_memory and version_at(node.inputs[0]) is version:
        return "0 of AsStrided"
    changes = [stamp.node_name for stamp in version[1:] if isinstance(stamp, Stamp)]
    if changes:
        return f"0 of {error_name(changes[-1])}"
    return f"{number} of {error_name(node.name())}" if node is not None and node.inputs else ""


def changed_text(value: Any, output: str, version: Version, changes: int) -> str:
    """PyTorch's error text for a changed saved tensor; `output` is its output number and node ("0 of Mul")."""
    source = f", which is output {output}," if output else ""
    watched = state.mode & WATCHED and any(getattr(watcher, "is_anomaly", False) for watcher in state.watchers)
    hint = (
        "the backtrace further above shows the operation that failed to compute its gradient. The variable in question "
        "was changed in there or anywhere later. Good luck!"
        if watched
        else "enable anomaly detection to find the operation that failed to compute its gradient, with "
        "torch.autograd.set_detect_anomaly(True, check_nan=False)."
    )
    kind = "CPUBoolType" if value.dtype == bool else f"torch.{dtype_name(value.dtype)}Tensor"
    return (
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[{kind} {list(value.shape)}]{source} is at version {version[0]}; expected "
        f"version {version[0] - changes} instead. Hint: {hint}"
    )
