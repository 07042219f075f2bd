"""What the reader of `grad_fn` graphs asks of a node: one interface for PyTorch's nodes, ours and students'.

PyTorch is not imported. Its nodes are callable and have `_saved_...` attributes; ours are a `Function` that keeps
`saved_tensors` with their origins, and a student's are one that keeps no origins. Freed or overwritten values count as
unknown.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from mini_autograd.drawing.graph import Memory
from mini_autograd.numerics.arrays import sum_to

SAVED_INPUTS: dict[str, tuple[str, ...]] = {
    "MmBackward": ("_saved_self", "_saved_mat2"),
    "BmmBackward": ("_saved_self", "_saved_mat2"),
    "MvBackward": ("_saved_self", "_saved_vec"),
    "DotBackward": ("_saved_self", "_saved_tensor"),
    "AddmmBackward": ("", "_saved_mat1", "_saved_mat2"),
    "LinearBackward": ("_saved_input", "_saved_weight"),
}


class Access(Protocol):
    """What can be asked of a node; `number` says which result, for an operation that has several."""

    def shapes(self, node: Any) -> list[tuple[int, ...]]:
        """The shapes of the node's results."""

    def input_shape(self, node: Any, position: int) -> tuple[int, ...] | None:
        """The shape of the input at this position, if the node knows it."""

    def saved_input(self, node: Any, position: int) -> Any:
        """The input at this position, if the node saved it."""

    def saved_result(self, node: Any) -> Any:
        """The node's own result, if it saved it."""

    def option(self, node: Any, name: str) -> Any:
        """A setting of the operation, such as the exponent of a power."""

    def memory(self, node: Any) -> Memory:
        """What the node keeps for backward."""

    def send(self, node: Any, number: int, gradient: Any) -> Sequence[Any]:
        """What the node sends to each of its inputs when `gradient` arrives at its result `number`."""


class TorchAccess:
    """PyTorch's nodes. `like` is a tensor of the graph, from which gradients are made."""

    def __init__(self, like: Any) -> None:
        self.like = like.detach() if hasattr(like, "detach") else like

    def shapes(self, node: Any) -> list[tuple[int, ...]]:
        return [tuple(int(size) for size in entry.shape) for entry in getattr(node, "_input_metadata", ())]

    def input_shape(self, node: Any, position: int) -> tuple[int, ...] | None:
        return None

    def saved_input(self, node: Any, position: int) -> Any:
        attributes = SAVED_INPUTS.get(node.name().rstrip("0123456789"), ("_saved_self", "_saved_other"))
        return self._saved(node, attributes[position]) if position < len(attributes) else None

    def saved_result(self, node: Any) -> Any:
        return self._saved(node, "_saved_result")

    def option(self, node: Any, name: str) -> Any:
        return self._saved(node, f"_saved_{name}")

    def send(self, node: Any, number: int, gradient: Any) -> Sequence[Any]:
        metadata = getattr(node, "_input_metadata", None)
        gradients: list[Any] = [None] * max(len(metadata or ()), 1)
        kind = {"dtype": metadata[number].dtype, "device": metadata[number].device} if metadata else {}
        gradients[number] = self.like.new_tensor(gradient, **kind)
        return _as_tuple(node(*gradients))

    def memory(self, node: Any) -> Memory:
        """PyTorch shows saved tensors and numbers alike as attributes of a node; reading a freed one raises."""
        tensors: dict[int, int] = {}
        for attribute in [name for name in dir(node) if name.startswith("_saved_")]:
            try:
                saved = getattr(node, attribute)
            except RuntimeError:
                return Memory(freed=True)
            for item in saved if isinstance(saved, (tuple, list)) else (saved,):
                if hasattr(item, "element_size"):
                    tensors[item.data_ptr()] = item.element_size() * item.numel()
        return Memory(sum(tensors.values()))

    def _saved(self, node: Any, attribute: str) -> Any:
        try:
            return getattr(node, attribute, None) if attribute else None
        except RuntimeError:
            return None


class OwnAccess:
    """The nodes of mini_autograd: the context of an operation is the node."""

    def shapes(self, node: Any) -> list[tuple[int, ...]]:
        return [tuple(shape) for shape, _ in node.outputs]

    def input_shape(self, node: Any, position: int) -> tuple[int, ...] | None:
        return None

    def saved_input(self, node: Any, position: int) -> Any:
        return self._of_origin(node, position)

    def saved_result(self, node: Any) -> Any:
        return self._of_origin(node, -1)

    def option(self, node: Any, name: str) -> Any:
        return getattr(node, name, None)

    def memory(self, node: Any) -> Memory:
        hooks = len(node.hooks or ())
        try:
            return Memory(_bytes_of(node.saved_tensors), False, hooks)
        except RuntimeError:
            return Memory(0, True, hooks)

    def send(self, node: Any, number: int, gradient: Any) -> Sequence[Any]:
        gradients: list[Any] = [None] * len(node.outputs)
        gradients[number] = np.asarray(gradient, dtype=node.outputs[number][1])
        return _as_tuple(node.input_gradients(gradients, False))

    def _of_origin(self, node: Any, origin: int) -> Any:
        try:
            return next(
                (v for v, found in zip(node.saved_tensors, node.origins, strict=False) if found == origin), None
            )
        except (AttributeError, RuntimeError):
            return None


class StudentAccess:
    """The nodes of a student's engine, from lesson 05 on: `backward(node, grad)` works on arrays and ignores shapes."""

    def shapes(self, node: Any) -> list[tuple[int, ...]]:
        return []

    def input_shape(self, node: Any, position: int) -> tuple[int, ...] | None:
        shapes = getattr(node, "input_shapes", ())
        shape = shapes[position] if position < len(shapes) else None
        return None if shape is None else tuple(shape)

    def saved_input(self, node: Any, position: int) -> Any:
        """The input at this position, found by the order of the saved arrays: nodes do not note their origins.

        An operation with two inputs saves both or none. One with more may save the first few of them: it is taken to
        have done so if a leaf's own array is in its place.
        """
        try:
            saved = node.saved_tensors
        except (AttributeError, RuntimeError):
            return None
        if len(saved) == len(node.next_functions) == 2:
            return saved[position]
        leaves = [getattr(source, "variable", None) for source, _ in node.next_functions]
        in_order = any(leaf is not None and leaf.data is array for leaf, array in zip(leaves, saved, strict=False))
        fits = position < len(saved) and np.shape(saved[position]) == self.input_shape(node, position)
        return saved[position] if in_order and fits else None

    def saved_result(self, node: Any) -> Any:
        return None

    def option(self, node: Any, name: str) -> Any:
        return getattr(node, name, None)

    def memory(self, node: Any) -> Memory:
        hooks = getattr(node, "hooks", None)
        count = len(hooks) if isinstance(hooks, (list, tuple, dict)) else 0
        try:
            saved = node.saved_tensors
        except AttributeError:
            return Memory(hooks=count)
        except RuntimeError:
            return Memory(0, True, count)
        return Memory(_bytes_of(saved or ()), saved is None, count)

    def send(self, node: Any, number: int, gradient: Any) -> Sequence[Any]:
        sent = _as_tuple(node.backward(node, np.asarray(gradient, dtype=np.float64)))
        shapes = getattr(node, "input_shapes", (None,) * len(sent))
        return [
            share if share is None or shape is None else sum_to(share, shape)
            for share, shape in zip(sent, shapes, strict=True)
        ]


def access_to(output: Any) -> Access:
    """The access for the engine that made `output`."""
    if hasattr(output.grad_fn, "input_gradients"):
        return OwnAccess()
    return StudentAccess() if isinstance(getattr(output, "data", None), np.ndarray) else TorchAccess(output)


def _as_tuple(sent: Any) -> tuple[Any, ...]:
    return tuple(sent) if isinstance(sent, (tuple, list)) else (sent,)


def _bytes_of(saved: Any) -> int:
    """The bytes of saved arrays, each counted once."""
    return sum({id(item): getattr(item, "nbytes", 0) for item in saved}.values())
