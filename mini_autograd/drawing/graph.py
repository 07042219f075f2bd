"""A computation graph as plain frozen data, whichever engine it came from: the start of every drawing.

The readers fill in `Draft`s, one per node in evaluation order; `assemble` names the nodes, runs the backward pass once,
step by step (`replay`), and freezes the result. Nothing here knows PyTorch, our own engine, or pictures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from mini_autograd.drawing.formatting import operation_formula, short
from mini_autograd.numerics.arrays import broadcasts_to, sum_to

Value = np.ndarray | float
Kind = Literal["leaf", "constant", "operation", "unrecorded"]
"""An unrecorded node is an operation that ran under `no_grad`: it has inputs, but no gradient passes through it."""

WITHOUT_GRADIENT = ("constant", "unrecorded")
COMPUTED = ("operation", "unrecorded")
Rule = Callable[[Any], Sequence[Any] | None]

DRAWING_LIMIT = 1000


class GraphTooLargeError(ValueError):
    """The graph has more nodes than a picture can show."""


@dataclass(frozen=True)
class Memory:
    """What a node holds besides its value: bytes saved for backward, whether they were freed, and how many hooks."""

    saved: int = 0
    freed: bool = False
    hooks: int = 0


@dataclass(frozen=True)
class Node:
    """One value in the graph: a leaf, a constant, or the result of an operation.

    `incoming` is the gradient that the replayed backward pass brings to the node; `stored` is what the engine's own
    object holds in `.grad`, which may differ when backward has not run, has run twice, or is wrong.
    """

    index: int
    kind: Kind
    name: str
    operation: str
    formula: str
    source: str
    shape: tuple[int, ...] | None
    value: Value | None
    incoming: Value | None
    stored: Value | None
    inputs: tuple[int, ...]
    memory: Memory = Memory()

    @property
    def gradient(self) -> Value | None:
        """The gradient to show in a still picture: the stored one, or the replayed one if none is stored."""
        return self.incoming if self.stored is None else self.stored


@dataclass(frozen=True)
class Edge:
    """An input of an operation: `contribution` is what backward sends along it, `local` the derivative that it uses."""

    source: int
    target: int
    position: int
    local: Value | None
    contribution: Value | None


@dataclass(frozen=True)
class Graph:
    """Nodes in evaluation order (every node after its inputs; the output last) and the edges between them."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]

    @property
    def output(self) -> Node:
        return self.nodes[-1]

    def edges_into(self, index: int) -> tuple[Edge, ...]:
        return tuple(edge for edge in self.edges if edge.target == index)


@dataclass
class Draft:
    """A node as a reader found it, without a generated name and without a replayed gradient."""

    kind: Kind
    inputs: tuple[int, ...] = ()
    name: str = ""
    operation: str = ""
    source: str = ""
    shape: tuple[int, ...] | None = None
    value: Value | None = None
    stored: Value | None = None
    rule: Rule | None = None
    memory: Memory = Memory()


def evaluation_order(root: Any, inputs_of: Callable[[Any], Iterable[Any]]) -> list[Any]:
    """Every object reachable from `root` once, inputs before users, without recursion.

    Raises ValueError for a graph in which a node is its own ancestor.
    """
    order: list[Any] = []
    done: set[int] = set()
    open_nodes = {id(root)}
    stack = [(root, iter(inputs_of(root)))]
    while stack:
        node, remaining = stack[-1]
        for item in remaining:
            if id(item) in open_nodes:
                raise ValueError("This graph has a cycle: through its inputs, a node depends on itself.")
            if id(item) not in done:
                open_nodes.add(id(item))
                stack.append((item, iter(inputs_of(item))))
                break
        else:
            stack.pop()
            open_nodes.discard(id(node))
            done.add(id(node))
            order.append(node)
    return order


def check_size(count: int, limit: int | None) -> None:
    """Raise GraphTooLargeError when `count` nodes are more than `limit` (None: no limit)."""
    if limit is not None and count > limit:
        raise GraphTooLargeError(
            f"This graph has {count:,} nodes; a drawing shows at most {limit:,}. "
            "Draw a smaller example, or an intermediate result closer to the inputs."
        )


def assemble(drafts: Sequence[Draft], seed: Any) -> Graph:
    """Name the drafts, replay the backward pass from the last one with `seed`, and freeze everything."""
    incoming, contributions = replay(drafts, seed)
    names = _names(drafts)
    nodes, edges = [], []
    for index, draft in enumerate(drafts):
        formula = operation_formula(draft.operation, [names[source] for source in draft.inputs])
        nodes.append(
            Node(
                index=index,
                kind=draft.kind,
                name=names[index],
                operation=draft.operation,
                formula=formula if draft.kind in COMPUTED else "",
                source=draft.source or draft.operation,
                shape=draft.shape,
                value=draft.value,
                incoming=incoming[index],
                stored=draft.stored,
                inputs=draft.inputs,
                memory=draft.memory,
            )
        )
        locals_ = _local_derivatives(draft)
        for position, source in enumerate(draft.inputs):
            edges.append(Edge(source, index, position, locals_[position], contributions[index][position]))
    return Graph(tuple(nodes), tuple(edges))


def replay(drafts: Sequence[Draft], seed: Any) -> tuple[list[Value | None], list[tuple[Value | None, ...]]]:
    """The gradient arriving at each node, and what each node sends to each of its inputs; None where it is unknown.

    If a rule is missing, the nodes behind it use the gradients that their own objects store.
    """
    incoming: list[Value | None] = [None] * len(drafts)
    unknown = [False] * len(drafts)
    contributions: list[tuple[Value | None, ...]] = [()] * len(drafts)
    if drafts and drafts[-1].kind not in WITHOUT_GRADIENT:
        incoming[-1] = seed
    for index in reversed(range(len(drafts))):
        draft = drafts[index]
        if draft.kind == "unrecorded":
            incoming[index], contributions[index] = None, (None,) * len(draft.inputs)
            continue
        if unknown[index]:
            incoming[index] = draft.stored
        shapes = [drafts[source].shape for source in draft.inputs]
        sent = tuple(map(_summed_back, _send(draft, incoming[index]), shapes))
        contributions[index] = sent
        for source, gradient in zip(draft.inputs, sent, strict=True):
            if gradient is None:
                unknown[source] = unknown[source] or drafts[source].kind not in WITHOUT_GRADIENT
            else:
                previous = incoming[source]
                incoming[source] = gradient if previous is None else previous + gradient
    return incoming, contributions


def _send(draft: Draft, gradient: Any) -> tuple[Value | None, ...]:
    nothing = (None,) * len(draft.inputs)
    if draft.rule is None or gradient is None or not draft.inputs:
        return nothing
    try:
        # a copy: a rule with a mistake may write into what it is given, which belongs to the caller
        sent = draft.rule(gradient.copy() if isinstance(gradient, np.ndarray) else gradient)
        values = None if sent is None else tuple(None if item is None else plain(item) for item in sent)
    except Exception:  # a student's rule may fail in any way; the picture then leaves these numbers out
        return nothing
    return values if values is not None and len(values) == len(draft.inputs) else nothing


def _summed_back(sent: Value | None, shape: tuple[int, ...] | None) -> Value | None:
    """What a rule sent, in the shape of the input: many engines undo broadcasts outside their rules."""
    if sent is None or shape is None or np.shape(sent) == shape or not broadcasts_to(shape, np.shape(sent)):
        return sent
    return plain(sum_to(np.asarray(sent), shape))


def _local_derivatives(draft: Draft) -> tuple[Value | None, ...]:
    """For a scalar operation, its derivatives with respect to each input: what its rule returns for a gradient of 1."""
    if draft.shape not in ((), None) or not draft.inputs:
        return (None,) * len(draft.inputs)
    return tuple(item if is_scalar(item) else None for item in _send(draft, 1.0))


def _names(drafts: Sequence[Draft]) -> list[str]:
    """All names: given names stay, unnamed scalar leaves are named by value, the rest by a prefix and a number."""
    taken = {draft.name for draft in drafts}
    counters = {"operation": 0, "leaf": 0, "constant": 0, "unrecorded": 0}
    letters = {"operation": "v", "leaf": "leaf", "constant": "const", "unrecorded": "u"}
    names = []
    for draft in drafts:
        name = draft.name
        if not name and draft.kind not in COMPUTED and is_scalar(draft.value):
            name = short(draft.value)
        while not name:
            counters[draft.kind] += 1
            candidate = f"{letters[draft.kind]}{counters[draft.kind]}"
            name = "" if candidate in taken else candidate
        names.append(name)
    return names


def is_scalar(value: Any) -> bool:
    """True for a single number."""
    return isinstance(value, (int, float)) or (isinstance(value, np.ndarray) and value.ndim == 0)


def plain(value: Any) -> Value | None:
    """A number, array or tensor (PyTorch's, ours, a student's) as a number or NumPy array; None for anything else."""
    if value is None or isinstance(value, (str, bytes)):
        return None
    try:
        array = _on_host(value)
    except Exception:  # an array without numbers (PyTorch's meta device, a tracer's) raises an error of its own
        return None
    if array.dtype.kind not in "biufc":
        return None
    return array.item() if array.ndim == 0 else array


def _on_host(value: Any) -> np.ndarray:
    """The numbers of an array or tensor as a NumPy array."""
    for step in ("detach", "cpu", "get"):  # `get` brings a CuPy array to the host
        if hasattr(value, step) and not isinstance(value, (dict, np.ndarray)):
            value = getattr(value, step)()
    if isinstance(getattr(value, "data", None), np.ndarray):
        value = value.data  # a tensor of a student's engine
    try:
        return np.asarray(value.numpy() if hasattr(value, "numpy") else value)
    except TypeError:  # bfloat16 and other types that NumPy lacks
        return np.asarray(value.float().numpy())
