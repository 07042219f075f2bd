"""Where a graph goes wrong: the edges along which a rule sends a wrong gradient.

Our own engine computes each operation again, from the values that it really had and the gradient that really arrived.
So a mistake is found where it is made, and not in everything that follows from it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mini_autograd.drawing.formatting import describe
from mini_autograd.drawing.graph import WITHOUT_GRADIENT, Graph, Node
from mini_autograd.operations.pointwise.rounding import Flat
from mini_autograd.tensors.creation import tensor
from mini_autograd.widgets.rerun import operation_of
from mini_autograd.widgets.steps import disagreement


def faults_of(graph: Graph) -> dict[int, str]:
    """The wrong edges by number, each with a sentence. Operations that cannot be computed again are left out."""
    found: dict[int, str] = {}
    for node in graph.nodes:
        if node.kind == "operation" and node.incoming is not None:
            found |= _wrong_shares(node, graph)
    return found or _wrong_sums(graph)


def _wrong_shares(node: Node, graph: Graph) -> dict[int, str]:
    """The edges along which the rule of a node sends a wrong gradient."""
    try:
        right = _right_shares(node, [graph.nodes[source] for source in node.inputs])
    except Exception:  # the operation is unknown, or our engine refuses these values
        return {}
    return {
        number: f"This is where it goes wrong: {graph.nodes[edge.source].name} needs {describe(right[edge.position])}."
        for number, edge in enumerate(graph.edges)
        if edge.target == node.index
        and graph.nodes[edge.source].kind not in WITHOUT_GRADIENT
        and not _equal(edge.contribution, right[edge.position])
    }


def _wrong_sums(graph: Graph) -> dict[int, str]:
    """The edges that send to a node with a wrong `.grad`, if every node that sends to it has a right one."""
    differs = {node.index for node in graph.nodes if disagreement(node)}
    users = {index: {edge.target for edge in graph.edges if edge.source == index} for index in differs}
    first = {index for index in differs if not users[index] & differs}
    sources = {edge.source for edge in graph.edges}
    known = {node.index for node in graph.nodes if node.stored is not None or node.index not in sources}
    return {
        number: _wrong_sum(graph.nodes[edge.source], users[edge.source] <= known)
        for number, edge in enumerate(graph.edges)
        if edge.source in first
    }


def _wrong_sum(node: Node, certain: bool) -> str:
    """`certain`: the gradients of all nodes that send to it are known and right."""
    where = "This is where it goes wrong" if certain else "It goes wrong here or in a step before"
    return f"{where}: {node.name}.grad holds {describe(node.stored)}, but {describe(node.incoming)} is right."


def _right_shares(node: Node, sources: list[Node]) -> list[Any]:
    """The right gradient for each input of an operation. An input that is used twice counts as two."""
    leaves = [tensor(np.asarray(source.value, dtype=np.float64), requires_grad=True) for source in sources]
    with np.errstate(all="ignore"):
        output = operation_of(node, leaves)
        if isinstance(output.grad_fn, Flat):
            raise ValueError("what is sent back through a step is sent on purpose: a straight-through estimator")
        if not np.allclose(output.detach().numpy(), np.asarray(node.value), rtol=1e-5, atol=1e-8, equal_nan=True):
            raise ValueError("the value itself is another one, so it is another operation")
        output.backward(tensor(np.broadcast_to(np.asarray(node.incoming, dtype=np.float64), output.shape).copy()))
    return [np.asarray(leaf.grad) for leaf in leaves]


def _equal(sent: Any, right: Any) -> bool:
    return sent is not None and np.shape(sent) == np.shape(right) and np.allclose(sent, right, rtol=1e-5, atol=1e-8)
