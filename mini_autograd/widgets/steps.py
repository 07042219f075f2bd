"""The story of a graph, step by step: evaluation from the leaves to the output, then gradients on their way back.

Every step is worked out here, as plain text and numbers ready to show; a front end only has to apply them in order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np

from mini_autograd.drawing.formatting import TIMES, Placed, describe, factor, operation_formula, shape_text, short
from mini_autograd.drawing.graph import COMPUTED, WITHOUT_GRADIENT, Edge, Graph, Node, is_scalar
from mini_autograd.drawing.svg import bytes_text, cell_text, flow_text, replayed, title

Phase = Literal["start", "forward", "backward", "end"]


@dataclass(frozen=True)
class Question:
    """A prediction before a step: the value of the gradient that a node receives, or its shape if it is an array.
    `shares` are the numbers of the edges whose contributions add up to the value."""

    name: str
    value: float | None
    shape: str
    reason: str
    shares: tuple[int, ...] = ()


@dataclass(frozen=True)
class Step:
    """The changes in a step: nodes that appear, gradients that change, edges that carry a number, and what to say."""

    phase: Phase
    node: int | None
    lines: tuple[str, ...]
    appear: tuple[int, ...] = ()
    gradients: tuple[tuple[int, str], ...] = ()
    flows: tuple[tuple[int, str], ...] = ()
    questions: tuple[Question, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def with_places(graph: Graph) -> Graph:
    """The graph with numbers that are written as their places in texts: {v3} and {g3} for the value and the gradient of
    node 3, {d5} and {c5} for the local derivative and the contribution of edge 5."""

    def at(number: Any, table: str, index: int) -> Any:
        return None if number is None else Placed(number, f"{{{table}{index}}}")

    nodes = [
        replace(node, value=at(node.value, "v", node.index), incoming=at(node.incoming, "g", node.index))
        for node in graph.nodes
    ]
    edges = [
        replace(edge, local=at(edge.local, "d", number), contribution=at(edge.contribution, "c", number))
        for number, edge in enumerate(graph.edges)
    ]
    return Graph(tuple(nodes), tuple(edges))


def numbers_of(graph: Graph) -> dict[str, list[Any]]:
    """The nodes of a graph of numbers with their operations and inputs, and what stands at its places (`with_places`).

    Empty if the graph has something else: an array, a number that is unknown or infinite, an operation under `no_grad`.
    """
    tables: dict[str, list[Any]] = {
        "v": [node.value for node in graph.nodes],
        "g": [node.incoming for node in graph.nodes],
        "d": [edge.local for edge in graph.edges],
        "c": [edge.contribution for edge in graph.edges],
    }
    optional = {node.index for node in graph.nodes if node.kind == "constant"}
    numbers = [n for name, table in tables.items() for i, n in enumerate(table) if name != "g" or i not in optional]
    if any(node.kind == "unrecorded" for node in graph.nodes):
        return {}
    if not all(is_scalar(number) and np.isfinite(number) for number in numbers):
        return {}
    nodes = [{"operation": node.operation, "inputs": list(node.inputs)} for node in graph.nodes]
    return {
        "nodes": nodes,
        **{name: [None if n is None else float(n) for n in table] for name, table in tables.items()},
    }


def story(graph: Graph, faults: Mapping[int, str] | None = None) -> list[Step]:
    """All steps, from the leaves alone to the finished picture. `faults`: sentences about wrong edges."""
    return [_start(graph), *_forward(graph), *_Backward(graph, faults or {}).steps(), _end(graph)]


def details(node: Node, graph: Graph) -> dict[str, Any]:
    """The details that a click on a node shows: its name at once, the rest once evaluation or backward reaches it."""
    known = [] if node.value is None else [f"{title(node)}: value {describe(node.value)}."]
    if node.shape:
        known.append(f"Shape {shape_text(node.shape)}.")
    if node.source and node.source != node.operation:
        known.append(f"Recorded as {node.source}.")
    users = dict.fromkeys(graph.nodes[edge.target].name for edge in graph.edges if edge.source == node.index)
    if users:
        known.append(f"Used by {', '.join(users)}.")
    if node.kind == "unrecorded":
        known.append("Computed without recording (no_grad, or detached): backward does not pass through here.")
    elif node.kind == "constant":
        known.append("A constant: no gradient flows here (data, or made under no_grad, or detached).")
    back = []
    for edge in graph.edges_into(node.index):
        source = graph.nodes[edge.source]
        if edge.local is not None:
            back.append(f"Local derivative with respect to {source.name}: {describe(edge.local)}.")
        if edge.contribution is not None and source.kind not in WITHOUT_GRADIENT:
            back.append(f"{source.name} receives {_product(node.incoming, edge)}.")
    return {"name": title(node), "forward": known + _memory(node), "backward": back + disagreement(node)}


def factors(edge: Edge, graph: Graph) -> str:
    """The product along an edge, incoming gradient times local derivative, as text; else the gradient that is sent."""
    incoming = graph.nodes[edge.target].incoming
    if edge.contribution is None or not (is_scalar(incoming) and is_scalar(edge.local)):
        return flow_text(edge.contribution)
    return f"{short(incoming)} {TIMES} {factor(edge.local)}"


def _memory(node: Node) -> list[str]:
    """What the node holds for backward, and its hooks."""
    told = []
    if node.memory.freed:
        told.append("The values it saved for backward have been freed.")
    elif node.memory.saved:
        told.append(f"Saved for backward: {bytes_text(node.memory.saved)}.")
    if node.memory.hooks:
        told.append(f"{node.memory.hooks} hook{'s' if node.memory.hooks > 1 else ''} registered here.")
    return told


def _start(graph: Graph) -> Step:
    leaves = [node for node in graph.nodes if node.kind not in COMPUTED]
    known = [node for node in leaves if node.name == title(node) and not node.shape and node.value is not None]
    named = [f"{node.name} = {describe(node.value)}" for node in known]
    among = ":" if len(named) == len(leaves) else ", among them"
    first = "The graph starts with its leaves" + (f"{among} {', '.join(named)}." if named else ".")
    lines = (first, "Step forward to evaluate one operation after another.")
    return Step("start", None, lines, appear=tuple(node.index for node in leaves))


def _forward(graph: Graph) -> list[Step]:
    steps = []
    for node in graph.nodes:
        if node.kind in COMPUTED:
            sources = [graph.nodes[source] for source in node.inputs]
            result = f"a result of shape {shape_text(node.shape or ())}" if node.value is None else describe(node.value)
            if all(is_scalar(item.value) for item in (node, *sources)):
                result = f"{operation_formula(node.operation, [_as_operand(source) for source in sources])} = {result}"
            told = ["Nothing is recorded here, so backward will not pass through."] if node.kind == "unrecorded" else []
            steps.append(Step("forward", node.index, (f"{title(node)} = {result}", *told), appear=(node.index,)))
    return steps


def _as_operand(node: Node) -> str:
    return short(node.value) if is_scalar(node.value) else node.name


class _Backward:
    """Walks the operations in reverse and keeps the sum that has arrived at each node so far."""

    def __init__(self, graph: Graph, faults: Mapping[int, str]) -> None:
        self.graph, self.faults = graph, faults
        self.sums: dict[int, Any] = {}
        self.number = {id(edge): number for number, edge in enumerate(graph.edges)}
        self.uses = {node.index: 0 for node in graph.nodes}
        for edge in graph.edges:
            self.uses[edge.source] += graph.nodes[edge.target].kind != "unrecorded"

    def steps(self) -> list[Step]:
        output = self.graph.output
        if output.kind in WITHOUT_GRADIENT or output.incoming is None:
            return []
        self.sums[output.index] = output.incoming
        line = f"Backward starts at the output with the gradient {describe(output.incoming)}"
        if is_scalar(output.incoming) and output.incoming == 1:
            line += f", the gradient of {output.name} with respect to itself"
        shown = cell_text(output.incoming, norm=True)
        seed = Step("backward", output.index, (f"{line}.",), gradients=((output.index, shown),))
        return [seed, *(self._step(node) for node in self._reached())]

    def _reached(self) -> list[Node]:
        """The operations that backward reaches, in its order: none that only an unrecorded operation leads to."""
        arrives, found = {self.graph.output.index}, []
        for node in reversed(self.graph.nodes):
            if node.index in arrives and node.kind == "operation":
                arrives.update(node.inputs)
                found.append(node)
        return found

    def _step(self, node: Node) -> Step:
        lines = [f"Backward through {title(node)}. Incoming gradient: {describe(node.incoming)}."]
        flows, gradients = [], {}
        for edge in self.graph.edges_into(node.index):
            source = self.graph.nodes[edge.source]
            if source.kind in WITHOUT_GRADIENT:
                continue
            if edge.contribution is None:
                lines.append(f"The gradient that {source.name} receives here is unknown: no rule could compute it.")
                continue
            total: Any = edge.contribution
            if source.index in self.sums:
                total = self.sums[source.index] + total
            if isinstance(edge.contribution, Placed):
                total = Placed(total, edge.contribution.place.replace("c", "s"))
            self.sums[source.index] = total
            lines.append(self._receives(node, edge, source))
            flows.append((self.number[id(edge)], flow_text(edge.contribution)))
            gradients[source.index] = cell_text(self.sums[source.index], norm=True)
        wrong = [self.faults.get(self.number[id(edge)], "") for edge in self.graph.edges_into(node.index)]
        return Step(
            "backward",
            node.index,
            (*lines, *filter(None, dict.fromkeys(wrong))),
            gradients=tuple(gradients.items()),
            flows=tuple(flows),
            questions=questions(node, self.graph),
        )

    def _receives(self, node: Node, edge: Edge, source: Node) -> str:
        line = f"{source.name} receives {_product(node.incoming, edge)}"
        if self.uses[source.index] > 1:
            line += f", sum so far {describe(self.sums[source.index])}"
        return line + "."


def questions(node: Node, graph: Graph) -> tuple[Question, ...]:
    """The questions about a backward step. A number is not asked for if the rule itself sends a wrong one."""
    asked = []
    edges = [edge for edge in graph.edges_into(node.index) if edge.contribution is not None]
    for source in dict.fromkeys(edge.source for edge in edges):
        receiver, sent = graph.nodes[source], [edge for edge in edges if edge.source == source]
        if receiver.kind in WITHOUT_GRADIENT:
            continue
        if receiver.shape:
            asked.append(Question(receiver.name, None, shape_text(receiver.shape), "a gradient has its tensor's shape"))
        elif is_scalar(node.incoming) and all(_follows(node.incoming, edge) for edge in sent):
            total = float(sum(edge.contribution for edge in sent))  # type: ignore[misc]
            products = " and ".join(_product(node.incoming, edge) for edge in sent)
            reason = f"the incoming gradient times the local slope is {products}"
            shares = tuple(graph.edges.index(edge) for edge in sent)
            asked.append(Question(receiver.name, total, "", reason, shares))
    return tuple(asked) if all(one.value is None or np.isfinite(one.value) for one in asked) else ()


def _follows(incoming: Any, edge: Edge) -> bool:
    """Whether the gradient sent along an edge is the incoming gradient times the local derivative."""
    if not (is_scalar(edge.contribution) and is_scalar(edge.local)):
        return False
    return bool(np.allclose(incoming * edge.local, edge.contribution, rtol=1e-6, atol=1e-12))  # type: ignore[operator, arg-type]


def _product(incoming: Any, edge: Edge) -> str:
    """Incoming gradient times local derivative, as text; if the rule returned something else, both are given."""
    local, sent = edge.local, edge.contribution
    if not (is_scalar(sent) and is_scalar(local) and is_scalar(incoming)):
        return describe(sent)
    expected = incoming * local  # type: ignore[operator]
    factors = f"{short(incoming)} {TIMES} {factor(local)}"
    if np.allclose(expected, sent, rtol=1e-6, atol=1e-12, equal_nan=True):  # type: ignore[arg-type]
        return f"{factors} = {short(sent)}"
    return f"{short(sent)} (incoming gradient {TIMES} local derivative would be {factors} = {short(expected)})"


def _end(graph: Graph) -> Step:
    leaves = [node for node in graph.nodes if node.kind == "leaf"]
    named = [node for node in leaves if replayed(node) is not None and title(node) == node.name]
    shown = ", ".join(f"{node.name}: {describe(replayed(node))}" for node in named[:12]) + ", ..." * (len(named) > 12)
    lines = [f"Finished. Gradients of the leaves: {shown}." if shown else "Finished."]
    if leaves and all(_is_zero(node.stored) for node in leaves) and any(not _is_zero(node.incoming) for node in leaves):
        lines.append("The tensors' own .grad is still 0: backward() has not been called.")
    else:
        lines += [line for node in graph.nodes for line in disagreement(node)][:6]
    if silent := [node.name for node in graph.nodes if node.kind == "unrecorded"]:
        lines.append(f"No gradient came through {', '.join(silent)}: computed without recording.")
    reached = [node for node in graph.nodes if node.kind not in WITHOUT_GRADIENT]
    gradients = [(node.index, cell_text(replayed(node), norm=True)) for node in reached]
    return Step("end", None, tuple(lines), gradients=tuple(gradients))


def _is_zero(value: Any) -> bool:
    return value is not None and not np.any(value)


def disagreement(node: Node) -> list[str]:
    """A sentence if the stored gradient differs from what arrived in the replay."""
    if node.stored is None or node.incoming is None or _is_zero(node.stored):
        return []
    if np.shape(node.stored) == np.shape(node.incoming) and np.allclose(
        node.stored, node.incoming, rtol=1e-5, atol=1e-8
    ):
        return []
    return [
        f"{node.name}: the contributions add up to {describe(node.incoming)}, but .grad holds {describe(node.stored)}. "
        "Either .grad was not zero before, a contribution is missing, or the nodes ran in another order."
    ]
