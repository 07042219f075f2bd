"""Reads the graph of an engine that uses PyTorch's names: `grad_fn`, `next_functions`, `AccumulateGrad`.

Backward is replayed by passing a gradient to one node after another. This runs no hook and changes no `.grad`, whereas
`torch.autograd.grad` would fill the `.grad` of tensors with `retain_grad()`. Values of intermediate results come from
the named tensors, from what the operations saved, or are computed from their inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from mini_autograd.drawing.formatting import OPERATORS, numpy_function, symbol
from mini_autograd.drawing.graph import (
    Draft,
    Graph,
    Memory,
    Rule,
    Value,
    assemble,
    check_size,
    evaluation_order,
    plain,
)
from mini_autograd.drawing.node_access import access_to
from mini_autograd.drawing.unrecorded import Call, CallTrace

COMPUTE: dict[str, Callable[..., Any]] = {**OPERATORS, "relu": lambda a: np.maximum(a, 0.0)}
"""What NumPy's functions of single numbers, such as exp, do not cover: they go by the names of PyTorch's operations."""

INVERT: dict[str, Callable[[Any], Any]] = {"exp": np.log, "tanh": np.arctanh, "neg": lambda out: -out}
SOLVE_FOR_CONSTANT: dict[str, Callable[[Any, Any, int], Any]] = {
    "+": lambda out, known, position: out - known,
    "-": lambda out, known, position: known - out if position else out + known,
}
HOOKS = ("_backward_hooks", "_post_accumulate_grad_hooks", "_leaf_hooks", "_post_hooks")
TWO_SIDED = {"+", "-", "*", "/", "@", "addmm", "linear"}


class _Spot:
    """A node, or one of several results of an operation such as `unbind`; each is drawn separately."""

    def __init__(self, node: Any, number: int) -> None:
        self.node, self.number = node, number
        self.leaf = getattr(node, "variable", None)
        self.source = _name(node)
        self.sign = symbol(self.source)
        self.inputs: list[_Spot] = []
        self.positions: list[int] = []
        self.value: Any = None
        self.shape: tuple[int, ...] | None = None  # as reported by the operation that it is an input of
        self.call: Call | None = None  # of an operation that was not recorded
        self.label = ""


def is_autograd_tensor(candidate: Any) -> bool:
    """Whether the object has the attributes through which PyTorch's tensors lead to a graph."""
    return hasattr(candidate, "grad_fn") and hasattr(candidate, "requires_grad")


def read_autograd(
    output: Any, names: Mapping[str, Any], limit: int | None, gradient: Any, trace: CallTrace | None = None
) -> Graph:
    """The graph behind a PyTorch tensor, or one of ours; `gradient` seeds backward (ones if it is not given)."""
    seed = np.ones(_shape(output))[()] if gradient is None else plain(gradient)
    if output.grad_fn is not None:
        return assemble(_Reader(output, names, limit, trace or CallTrace()).drafts(), seed)
    label = next((label for label, item in names.items() if item is output), "")
    leaf = Draft("constant", name=label, shape=_shape(output), value=plain(output))
    if output.requires_grad:
        leaf.kind, leaf.stored = "leaf", plain(output.grad)
    return assemble([leaf], seed)


class _Reader:
    """Walks the nodes once, then finds values and rules."""

    def __init__(self, output: Any, names: Mapping[str, Any], limit: int | None, trace: CallTrace) -> None:
        self.access, self.trace = access_to(output), trace
        self.known: dict[tuple[int, int], _Spot] = {}
        self.names = names
        self.leaf_names = {id(tensor): label for label, tensor in names.items()}
        root = self._spot_of(output)
        self.spots: list[_Spot] = evaluation_order(root, self._connect)
        check_size(len(self.spots), limit)
        self.index = {id(spot): position for position, spot in enumerate(self.spots)}
        self.named = {
            id(self._spot_of(tensor)): label for label, tensor in names.items() if _node_of(tensor) is not None
        }
        # PyTorch's nodes do not show their hooks, but the tensors on which they were registered do.
        self.hooks = {
            id(self._spot_of(tensor)): _hooks_of(tensor)
            for tensor in (output, *names.values())
            if _node_of(tensor) is not None
        }
        for tensor in names.values():
            if _node_of(tensor) is not None:
                self._spot_of(tensor).value = plain(tensor)
        root.value = plain(output)

    def drafts(self) -> list[Draft]:
        self._find_values()
        return [self._draft(spot) for spot in self.spots]

    def _spot_of(self, tensor: Any) -> _Spot:
        return self._spot(tensor.grad_fn, getattr(tensor, "output_nr", 0))

    def _spot(self, node: Any, number: int) -> _Spot:
        """The one spot for a node (and result number); it keeps the node alive, so that its identity stays valid."""
        return self.known.setdefault((id(node), number), _Spot(node, number))

    def _connect(self, spot: _Spot) -> list[_Spot]:
        """Find the inputs of a spot; in a two-sided operation, a constant stands in for an input without a node."""
        if spot.call is not None and not spot.inputs:
            spot.inputs = self._inputs_of_call(spot.call)
        if spot.positions or not spot.node:
            return spot.inputs
        for position, (node, number) in enumerate(getattr(spot.node, "next_functions", ())):
            if node is not None:
                entry = self._spot(node, number)
            elif (tensor := self.trace.input_of(spot.node, position)) is not None:
                entry = self._spot_without_node(tensor)
            elif spot.sign in TWO_SIDED or self.access.saved_input(spot.node, position) is not None:
                entry = _Spot(None, 0)
            else:
                continue
            entry.shape = entry.shape or self.access.input_shape(spot.node, position)
            spot.inputs.append(entry)
            spot.positions.append(position)
        return spot.inputs

    def _inputs_of_call(self, call: Call) -> list[_Spot]:
        """The tensors that an unrecorded call was given, and the numbers if it is a two-sided operation."""
        spots = []
        for given in call.inputs:
            if is_autograd_tensor(given):
                spots.append(self._spot_without_node(given))
            elif symbol(call.name) in {*TWO_SIDED, "**"} and isinstance(given, (int, float)):
                spots.append(_Spot(None, 0))
                spots[-1].value = float(given)
        return spots

    def _spot_without_node(self, tensor: Any) -> _Spot:
        """The spot of a tensor that a call was given, recorded or not: a tensor has a node only if it requires grad."""
        if tensor.requires_grad:
            return self._spot_of(tensor) if tensor.grad_fn is not None else self._spot(_accumulator(tensor), 0)
        spot = self.known.setdefault((id(tensor), -1), _Spot(None, 0))
        spot.call, spot.value = self.trace.maker_of(tensor), plain(tensor)
        spot.label = self.leaf_names.get(id(tensor), "")
        return spot

    def _find_values(self) -> None:
        for spot in reversed(self.spots):
            if spot.leaf is not None:
                spot.value = plain(spot.leaf)
            elif spot.node is not None:
                if spot.value is None:
                    spot.value = plain(self.access.saved_result(spot.node))
                self._values_saved_by(spot)
        for spot in self.spots:
            if spot.value is None and spot.inputs:
                spot.value = self._computed(spot)
            self._solve_for_constant(spot)

    def _values_saved_by(self, spot: _Spot) -> None:
        for entry, position in zip(spot.inputs, spot.positions, strict=True):
            saved = self.access.saved_input(spot.node, position)
            if entry.value is None:
                value = plain(saved)
                entry.value = value if value is not None else _inverted(spot)
            if entry.node is None and saved is not None:
                entry.label = entry.label or self._name_of_saved(saved)

    def _name_of_saved(self, saved: Any) -> str:
        """The name of the tensor whose array was saved: a graph has no reference to a tensor without a node."""
        return next(
            (name for name, tensor in self.names.items() if any(item is saved for item in _held_by(tensor))), ""
        )

    def _computed(self, spot: _Spot) -> Value | None:
        inputs = [entry.value for entry in spot.inputs]
        if spot.sign == "**" and len(inputs) == 1:
            inputs.append(plain(self.access.option(spot.node, "exponent")))
        compute = COMPUTE.get(spot.sign) or numpy_function(spot.sign)
        if compute is None or self._scaled(spot) or any(item is None for item in inputs):
            return None
        try:
            with np.errstate(all="ignore"):
                value = plain(compute(*inputs))
        except (TypeError, ValueError):
            return None
        return value if value is not None and self._result_shape(spot) in (None, np.shape(value)) else None

    def _solve_for_constant(self, spot: _Spot) -> None:
        """Find a constant that was not saved: x + 3 minus x is 3 (for arrays, if it is one number everywhere)."""
        solve = SOLVE_FOR_CONSTANT.get(spot.sign)
        if solve is None or len(spot.inputs) != 2 or spot.value is None or self._scaled(spot):
            return
        for position, entry in enumerate(spot.inputs):
            other = spot.inputs[1 - position].value
            if entry.node is None and entry.value is None and other is not None:
                entry.value = _one_number(solve(spot.value, other, position), spot.value)

    def _scaled(self, spot: _Spot) -> bool:
        """True for `torch.add(a, b, alpha=2)`, which is not a plain sum."""
        return self.access.option(spot.node, "alpha") not in (None, 1)

    def _result_shape(self, spot: _Spot) -> tuple[int, ...] | None:
        if spot.leaf is not None:
            return _shape(spot.leaf)
        shapes = self.access.shapes(spot.node) if spot.node is not None else []
        return shapes[spot.number] if spot.number < len(shapes) else spot.shape

    def _draft(self, spot: _Spot) -> Draft:
        shape = self._result_shape(spot) if spot.value is None else np.shape(spot.value)
        if spot.call is not None:
            sign, inputs = symbol(spot.call.name), tuple(self.index[id(entry)] for entry in spot.inputs)
            return Draft("unrecorded", inputs, spot.label, sign, spot.call.name, shape, spot.value)
        if spot.node is None:
            return Draft("constant", name=spot.label, value=spot.value, shape=shape)
        if spot.leaf is not None:
            label, stored = self.leaf_names.get(id(spot.leaf), ""), plain(spot.leaf.grad)
            memory = Memory(hooks=_hooks_of(spot.leaf))
            return Draft("leaf", name=label, shape=shape, value=spot.value, stored=stored, memory=memory)
        return Draft(
            "operation",
            inputs=tuple(self.index[id(entry)] for entry in spot.inputs),
            name=self.named.get(id(spot), ""),
            operation=self._sign(spot),
            source=spot.source,
            shape=shape,
            value=spot.value,
            rule=self._rule(spot),
            memory=self._memory(spot),
        )

    def _memory(self, spot: _Spot) -> Memory:
        memory = self.access.memory(spot.node)
        return replace(memory, hooks=memory.hooks + self.hooks.get(id(spot), 0))

    def _sign(self, spot: _Spot) -> str:
        """The sign to show; a power of one input gets its exponent when the node kept one."""
        exponent = plain(self.access.option(spot.node, "exponent"))
        plain_power = spot.sign == "**" and len(spot.inputs) == 1 and isinstance(exponent, (int, float))
        return f"**{exponent:g}" if plain_power else spot.sign

    def _rule(self, spot: _Spot) -> Rule:
        shapes = [self._result_shape(entry) for entry in spot.inputs]

        def rule(gradient: Any) -> list[Value | None]:
            sent = self.access.send(spot.node, spot.number, gradient)
            picked = [sent[position] if position < len(sent) else None for position in spot.positions]
            return [_sum_to(plain(item), shape) for item, shape in zip(picked, shapes, strict=True)]

        return rule


def _name(node: Any) -> str:
    """The name of a node: a method in PyTorch; a student's node may keep it as a string, or have none."""
    name = getattr(node, "name", type(node).__name__ if node is not None else "")
    return str(name() if callable(name) else name)


def _accumulator(leaf: Any) -> Any:
    """The node at which a leaf's gradients arrive: our leaves know it, PyTorch's is found behind a view of the leaf."""
    edge = getattr(leaf, "gradient_edge", None)
    return leaf.view_as(leaf).grad_fn.next_functions[0][0] if edge is None else edge


def _node_of(tensor: Any) -> Any:
    return getattr(tensor, "grad_fn", None)


def _shape(tensor: Any) -> tuple[int, ...]:
    return tuple(int(size) for size in tensor.shape)


def _held_by(tensor: Any) -> tuple[Any, ...]:
    """What a node may have saved for a tensor: the tensor in PyTorch, its array in our engine and in students'."""
    return tensor, getattr(tensor, "array", None), getattr(tensor, "data", None)


def _hooks_of(tensor: Any) -> int:
    """How many hooks were registered on a tensor, under PyTorch's attribute names or ours."""
    found = [getattr(tensor, name, None) for name in HOOKS]
    return sum(len(hooks) for hooks in found if isinstance(hooks, (dict, list, tuple)))


def _inverted(spot: _Spot) -> Value | None:
    """The input of an operation that saved only its result, if it can be computed from the result."""
    invert = INVERT.get(spot.sign)
    if invert is None or spot.value is None:
        return None
    with np.errstate(all="ignore"):
        found = plain(invert(spot.value))
    return found if found is not None and bool(np.all(np.isfinite(found))) else None


def _one_number(found: Any, result: Any) -> float | None:
    """The number that all elements of `found` have, up to rounding in `result`, from which it was subtracted."""
    array = np.asarray(found, dtype=float)
    if array.size == 0 or not np.all(np.isfinite(array)):
        return None
    rounding = 1e-5 * max(1.0, float(np.abs(result).max()))
    return round(float(array.mean()), 6) if np.ptp(array) <= rounding else None


def _sum_to(value: Value | None, shape: tuple[int, ...] | None) -> Value | None:
    """Undo a broadcast, as the engine does with what a node returns."""
    if value is None or shape is None or np.shape(value) == shape:
        return value
    array = np.asarray(value)
    extra = array.ndim - len(shape)
    stretched = tuple(axis + extra for axis, size in enumerate(shape) if size == 1 and array.shape[axis + extra] != 1)
    total = array.sum(axis=(*range(extra), *stretched), keepdims=True)
    return total.reshape(shape) if math.prod(shape) != 1 or shape else float(total.reshape(()))
