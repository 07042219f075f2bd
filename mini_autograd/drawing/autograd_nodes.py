"""Reads the graph of an engine that has PyTorch's words: `grad_fn`, `next_functions`, `AccumulateGrad`.

PyTorch is never imported: its nodes are callable objects, and calling one with a gradient gives what it sends to its
inputs. That runs no hook and touches no `.grad`, not even that of tensors with `retain_grad()`, which
`torch.autograd.grad` would. Values of intermediate results come from the given names, from what the
operations saved, or are computed from their inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mini_autograd.drawing.formatting import symbol
from mini_autograd.drawing.graph import Draft, Graph, Rule, Value, assemble, check_size, evaluation_order, plain

COMPUTE: dict[str, Callable[..., Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "@": lambda a, b: a @ b,
    "neg": lambda a: -a,
    "exp": np.exp,
    "log": np.log,
    "tanh": np.tanh,
    "relu": lambda a: np.maximum(a, 0.0),
}
INVERT: dict[str, Callable[[Any], Any]] = {"exp": np.log, "tanh": np.arctanh, "neg": lambda out: -out}
SOLVE_FOR_CONSTANT: dict[str, Callable[[Any, Any, int], Any]] = {
    "+": lambda out, known, position: out - known,
    "-": lambda out, known, position: known - out if position else out + known,
}
SAVED_INPUTS: dict[str, tuple[str, ...]] = {
    "MmBackward": ("_saved_self", "_saved_mat2"),
    "BmmBackward": ("_saved_self", "_saved_mat2"),
    "MvBackward": ("_saved_self", "_saved_vec"),
    "DotBackward": ("_saved_self", "_saved_tensor"),
    "AddmmBackward": ("", "_saved_mat1", "_saved_mat2"),
    "LinearBackward": ("_saved_input", "_saved_weight"),
}
ARITHMETIC = {"+", "-", "*", "/", "@", "addmm", "linear"}


class _Constant:
    """An input that needs no gradient, so the engine's graph holds nothing for it."""

    next_functions = ()


class _Output:
    """One of several results of an operation such as `unbind`; each is drawn as a node of its own."""

    def __init__(self, node: Any, number: int) -> None:
        self.node, self.number = node, number
        self.next_functions = node.next_functions
        self._input_metadata = (node._input_metadata[number],)

    def name(self) -> str:
        return self.node.name()

    def __call__(self, gradient: Any) -> Any:
        gradients = [None] * len(self.node._input_metadata)
        gradients[self.number] = gradient
        return self.node(*gradients)


def is_autograd_tensor(candidate: Any) -> bool:
    """Does the object have the attributes of a PyTorch tensor that a graph hangs on?"""
    return hasattr(candidate, "grad_fn") and hasattr(candidate, "requires_grad")


def read_autograd(output: Any, names: Mapping[str, Any], limit: int | None, gradient: Any) -> Graph:
    """The graph behind a PyTorch tensor, or one of ours; `gradient` seeds backward (ones when it is not given)."""
    root = output.grad_fn
    if root is None:
        kind = "leaf" if output.requires_grad else "constant"
        label = next((label for label, item in names.items() if item is output), "")
        leaf = Draft(kind, name=label, shape=_shape(output), value=plain(output), stored=plain(output.grad))  # type: ignore[arg-type]
        return assemble([leaf], plain(gradient) if gradient is not None else np.ones(_shape(output))[()])
    reader = _Reader(output, names)
    check_size(len(reader.nodes), limit)
    seed = np.ones(_shape(output))[()] if gradient is None else plain(gradient)
    return assemble(reader.drafts(), seed)


class _Reader:
    """Walks the nodes once, then finds values. Holds the node objects, so that their identity stays valid."""

    def __init__(self, output: Any, names: Mapping[str, Any]) -> None:
        self.output = output
        self.constants: dict[int, dict[int, _Constant]] = {}
        self.outputs: dict[tuple[int, int], _Output] = {}
        self.root = self._spot(output.grad_fn, getattr(output, "output_nr", 0))
        self.nodes = evaluation_order(self.root, self.inputs_of)
        self.index = {id(node): position for position, node in enumerate(self.nodes)}
        self.named: dict[int, tuple[str, Any]] = {}
        for label, tensor in names.items():
            node = getattr(tensor, "grad_fn", None)
            if node is not None:
                spot = self._spot(node, getattr(tensor, "output_nr", 0))
                self.named[id(spot)] = (label, tensor)
        self.leaf_names = {id(tensor): label for label, tensor in names.items()}

    def inputs_of(self, node: Any) -> list[Any]:
        """The input nodes of a node; a constant stands in where an operation of two sides has an input without one."""
        entries = [self._spot(*entry) for entry in node.next_functions]
        own = self.constants.setdefault(id(node), {})
        for position, entry in enumerate(entries):
            if entry is None and (_name(node) in ARITHMETIC or _saved_input(node, position) is not None):
                own.setdefault(position, _Constant())
        return [own.get(position) if entry is None else entry for position, entry in _present(entries, own)]

    def _spot(self, node: Any, number: int) -> Any:
        """The node, or for an operation of several results the one of that number."""
        if len(getattr(node, "_input_metadata", ())) < 2:
            return node
        return self.outputs.setdefault((id(node), number), _Output(node, number))

    def positions(self, node: Any) -> list[int]:
        """Which of the operation's inputs the entries of `inputs_of` are."""
        entries = [entry[0] for entry in node.next_functions]
        return [position for position, _ in _present(entries, self.constants[id(node)])]

    def drafts(self) -> list[Draft]:
        values: list[Any] = [self._direct_value(node) for node in self.nodes]
        values[-1] = plain(self.output)
        for node in reversed(self.nodes):
            self._values_saved_by(node, values)
        for position, node in enumerate(self.nodes):
            if values[position] is None:
                values[position] = self._computed(node, values)
            self._solve_for_constant(node, values[position], values)
        return [self._draft(node, value) for node, value in zip(self.nodes, values, strict=True)]

    def _direct_value(self, node: Any) -> Value | None:
        if hasattr(node, "variable"):
            return plain(node.variable)
        if id(node) in self.named:
            return plain(self.named[id(node)][1])
        return plain(_saved(node, "_saved_result"))

    def _values_saved_by(self, node: Any, values: list[Any]) -> None:
        for item, position in zip(self.inputs_of(node), self.positions(node), strict=True):
            slot = self.index[id(item)]
            if values[slot] is None:
                saved = _saved_input(node, position)
                values[slot] = plain(saved) if saved is not None else _inverted(node, values[self.index[id(node)]])

    def _computed(self, node: Any, values: list[Any]) -> Any:
        compute = COMPUTE.get(_name(node))
        inputs = [values[self.index[id(item)]] for item in self.inputs_of(node)]
        if (
            compute is None
            or not inputs
            or any(item is None for item in inputs)
            or _saved(node, "_saved_alpha") not in (None, 1)
        ):
            return None
        try:
            with np.errstate(all="ignore"):
                value = plain(compute(*inputs))
        except (TypeError, ValueError):
            return None
        shape = _metadata_shape(node)
        return value if value is not None and shape in (None, np.shape(value)) else None

    def _solve_for_constant(self, node: Any, value: Any, values: list[Any]) -> None:
        """x + 3 saves nothing, but the 3 is the result less x (only for numbers: a broadcast one stays unknown)."""
        solve = SOLVE_FOR_CONSTANT.get(_name(node))
        inputs = self.inputs_of(node)
        if (
            solve is None
            or len(inputs) != 2
            or value is None
            or np.ndim(value)
            or _saved(node, "_saved_alpha") not in (None, 1)
        ):
            return
        for position, item in enumerate(inputs):
            known = values[self.index[id(inputs[1 - position])]]
            slot = self.index[id(item)]
            if isinstance(item, _Constant) and values[slot] is None and known is not None:
                values[slot] = round(float(solve(value, known, position)), 6)

    def _draft(self, node: Any, value: Any) -> Draft:
        shape = _metadata_shape(node) if value is None else np.shape(value)
        if isinstance(node, _Constant):
            return Draft("constant", value=value, shape=shape)
        if hasattr(node, "variable"):
            leaf = node.variable
            return Draft(
                "leaf", name=self.leaf_names.get(id(leaf), ""), shape=_shape(leaf), value=value, stored=plain(leaf.grad)
            )
        inputs = tuple(self.index[id(item)] for item in self.inputs_of(node))
        label = self.named[id(node)][0] if id(node) in self.named else ""
        return Draft("operation", inputs, label, _sign(node), node.name(), shape, value, None, self._rule(node))

    def _rule(self, node: Any) -> Rule:
        positions, inputs = self.positions(node), self.inputs_of(node)
        shapes = [_shape(item.variable) if hasattr(item, "variable") else _metadata_shape(item) for item in inputs]

        def rule(gradient: Any) -> list[Value | None]:
            sent = _call(node, gradient, self.output)
            picked = [sent[position] if position < len(sent) else None for position in positions]
            return [_sum_to(plain(item), shape) for item, shape in zip(picked, shapes, strict=True)]

        return rule


def _present(entries: list[Any], constants: Mapping[int, Any]) -> list[tuple[int, Any]]:
    return [(position, entry) for position, entry in enumerate(entries) if entry is not None or position in constants]


def _name(node: Any) -> str:
    return symbol(node.name()) if hasattr(node, "name") else ""


def _sign(node: Any) -> str:
    """The sign to show; a power gets its exponent when the node saved one."""
    name = _name(node)
    exponent = plain(_saved(node, "_saved_exponent"))
    if name == "**" and isinstance(exponent, (int, float)):
        return f"**{exponent:g}"
    return name


def _saved(node: Any, attribute: str) -> Any:
    """A saved tensor; None where there is none, where it was freed, or was overwritten in place since."""
    try:
        return getattr(node, attribute, None) if attribute else None
    except RuntimeError:
        return None


def _saved_input(node: Any, position: int) -> Any:
    base = node.name().rstrip("0123456789") if hasattr(node, "name") else ""
    attributes = SAVED_INPUTS.get(base, ("_saved_self", "_saved_other"))
    return _saved(node, attributes[position]) if position < len(attributes) else None


def _shape(tensor: Any) -> tuple[int, ...]:
    return tuple(int(size) for size in tensor.shape)


def _metadata_shape(node: Any) -> tuple[int, ...] | None:
    """The shape of a node's result, which the engine keeps to check gradients against."""
    metadata = getattr(node, "_input_metadata", ())
    return _shape(metadata[0]) if metadata else None


def _inverted(node: Any, value: Any) -> Value | None:
    """The input of an operation that saved only its result, where the result tells it."""
    invert = INVERT.get(_name(node))
    if invert is None or value is None:
        return None
    with np.errstate(all="ignore"):
        found = plain(invert(value))
    return found if np.all(np.isfinite(found)) else None  # type: ignore[arg-type]


def _call(node: Any, gradient: Any, like: Any) -> tuple[Any, ...]:
    """What the node makes of a gradient. PyTorch's nodes are callable; one of ours is its operation's context."""
    if callable(node):
        metadata = getattr(node, "_input_metadata", None)
        kind = {"dtype": metadata[0].dtype, "device": metadata[0].device} if metadata else {}
        sent = node(like.detach().new_tensor(gradient, **kind))
    else:
        sent = type(node).backward(node, np.asarray(gradient))
    return tuple(sent) if isinstance(sent, (tuple, list)) else (sent,)


def _sum_to(value: Value | None, shape: tuple[int, ...] | None) -> Value | None:
    """Undo a broadcast, as the engine does with what a node returns."""
    if value is None or shape is None or np.shape(value) == shape:
        return value
    array = np.asarray(value)
    extra = array.ndim - len(shape)
    stretched = tuple(axis + extra for axis, size in enumerate(shape) if size == 1 and array.shape[axis + extra] != 1)
    total = array.sum(axis=(*range(extra), *stretched), keepdims=True)
    return total.reshape(shape) if math.prod(shape) != 1 or shape else float(total.reshape(()))
