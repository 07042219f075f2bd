"""The backward pass: from the outputs to the leaves, every node once, when its gradient is complete.

Imports arrays, function and grad_mode. The one idea to know: gradients on their way wait in a dict, `pending`, keyed by
edge; only leaves (and tensors that ask for it) ever have a `.grad`. Nothing here recurses, so a graph may be a million
operations deep.

The functions of this module and `arrays.sum_to` are looked up when they are called: a test or a lesson may replace one
for a while.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from mini_autograd import anomaly, arrays, hooks
from mini_autograd import function as graph
from mini_autograd.function import NO_EDGE, SEVERAL, AccumulateGrad, Edge, Function, GraphRoot
from mini_autograd.grad_mode import enable_grad, no_grad
from mini_autograd.versions import check_saved, latest_change, note_change

Pending = dict[Edge, Any]


def run_backward(
    edges: tuple[Edge, ...],
    grads: Sequence[Any],
    retain_graph: bool,
    create_graph: bool,
    wanted: Iterable[Edge] | None = None,
) -> Pending:
    """Carry the gradients `grads` of the outputs `edges` backwards.

    Without `wanted`, gradients end in the `.grad` of the leaves. With it, they end at those edges: nothing else is
    computed, no `.grad` is touched, and the gradients that arrived there are returned. Gradients are arrays, or Tensors
    if `create_graph`.
    """
    root = GraphRoot(edges)
    pending: Pending = {}
    order = topological_order(root)
    ends = None if wanted is None else dict.fromkeys(wanted)
    needed = None if ends is None else nodes_leading_to(ends, order)
    plain = anomaly.active() is None and not create_graph
    with enable_grad() if create_graph else no_grad(), np.errstate(all="ignore"):
        send(pending, root, grads)
        for node in order:
            grad = pending.pop(node, None)  # as most nodes have one output, this is all that most nodes need
            arrived = [grad] if grad is not None else collect(pending, node)
            if arrived is None:
                continue
            if watched := node.hooks:
                hooks.run(node, arrived)
            if ends is not None:
                keep(ends, node, arrived)
                if needed is not None and node not in needed:
                    continue
            if watched:
                arrived = hooks.run_before(node, arrived)
            if type(node) is AccumulateGrad:
                grads = reach_leaf(node.variable, arrived[0])
            elif plain and node.takes_arrays and latest_change[0] <= node.sequence_nr:
                grads = node.backward(node, arrived[0])
            else:
                grads = gradients_of_inputs(node, arrived, create_graph)
            grads = grads if type(grads) is tuple else (grads,)
            if watched:
                grads = hooks.run_after(node, grads, arrived, fitted)
            send(pending, node, grads)
            if not retain_graph:
                node.release()
    return ends or {}


def gradients_of_inputs(node: Function, arrived: list[Any], create_graph: bool) -> Sequence[Any]:
    """Run a node's rule where there is more to see to: changed memory, recording, anomalies, several outputs."""
    if latest_change[0] > node.sequence_nr:
        check_saved(node)
    watcher = anomaly.active()
    if watcher is None:
        return node.input_gradients(arrived, create_graph)
    return anomaly.watched_gradients(node, arrived, create_graph, watcher.check_nan)


def reach_leaf(leaf: Any, grad: Any) -> tuple:
    """The end of a path: a leaf keeps the gradient, and tells those who wait for it. Nothing goes further."""
    if leaf.requires_grad:  # it may have been switched off since
        accumulate_leaf(leaf, grad)
        run_post_hooks(leaf)
    return ()


def collect(pending: Pending, node: Function) -> list[Any] | None:
    """Take the gradients of a node's several outputs out of `pending`; None if there is none at all."""
    if node.output_type is not SEVERAL:
        return None
    grads = [pending.pop((node, number), None) for number in range(len(node.outputs))]
    return None if all(grad is None for grad in grads) else grads


def send(pending: Pending, node: Function, grads: Sequence[Any]) -> None:
    """Hand the gradients of a node's inputs on, each along its edge, in the shape and dtype that the input has."""
    for edge, grad in zip(node.inputs, grads):  # noqa: B905  (`strict` would cost as much as the zip)
        if grad is None:
            continue
        if type(edge) is tuple:
            if edge is NO_EDGE:
                continue
            grad = fitted(grad, node, edge)
        elif type(grad) is not edge.output_type and (
            edge.output_type is not None or grad.shape != edge.array_shape or grad.dtype is not edge.array_dtype
        ):
            grad = fitted(grad, node, edge)
        accumulate(pending, edge, grad)


def fitted(grad: Any, node: Function, edge: Edge) -> Any:
    """A gradient that `node` computed, brought to the shape and dtype of its input: here broadcasting is undone."""
    target, number = edge if type(edge) is tuple else (edge, 0)
    shape, dtype = target.outputs[number]
    if grad.shape != shape:
        if not arrays.broadcasts_to(shape, grad.shape):
            raise RuntimeError(
                f"Function {node.name()} returned an invalid gradient at index {node.inputs.index(edge)} - got "
                f"{list(grad.shape)} but expected shape compatible with {list(shape)}"
            )
        grad = arrays.sum_to(grad, shape)
    if grad.dtype == dtype:
        return grad
    return grad.to(dtype) if isinstance(grad, graph.Tensor) else grad.astype(dtype)


def accumulate(pending: Pending, node: Edge, grad: Any) -> None:
    """Add a gradient to those that wait at `node` (or at one of its outputs, if it has several).

    A tensor that was used twice gets two gradients, and needs their sum. The sum is a new array: the first gradient may
    still be in use elsewhere (an addition hands the same array to both of its inputs).
    """
    pending[node] = pending[node] + grad if node in pending else grad


def accumulate_leaf(tensor: Any, grad: Any) -> None:
    """Add a gradient into `tensor.grad`, which shares memory with nothing else.

    As in PyTorch a gradient that is there already is added to in place, unless the pass is recorded.
    """
    if isinstance(grad, graph.Tensor):
        tensor.grad = grad.clone() if tensor.grad is None else tensor.grad + grad
    elif tensor.grad is None:
        tensor.grad = graph.Tensor(grad.copy())
    else:
        tensor.grad.array += grad
        if tensor.grad.version is not None:
            note_change(tensor.grad.version)


def topological_order(root: Function) -> list[Function]:
    """All nodes that `root` leads to, every node before the nodes of its inputs.

    A node is created after the nodes of its inputs, so the order of creation, reversed, is one. It is PyTorch's order
    too and decides in which order hooks run: a leaf, whose node is created when it is first used, comes right after
    that use.
    """
    return sorted(reachable(root), key=attrgetter("sequence_nr"), reverse=True)


def reachable(root: Function) -> set[Function]:
    """`root` and all nodes below it."""
    found, stack = {root}, [root]
    while stack:
        for edge in stack.pop().inputs:
            node = edge[0] if type(edge) is tuple else edge
            if node is not None and node not in found:
                found.add(node)
                stack.append(node)
    return found


def nodes_leading_to(ends: Iterable[Edge], order: Sequence[Function]) -> set[Function]:
    """The nodes that must run for a gradient to reach one of `ends`."""
    targets = {edge[0] if type(edge) is tuple else edge for edge in ends}
    needed: set[Function] = set()
    for node in reversed(order):
        if any(below in targets or below in needed for below, _ in node.next_functions if below is not None):
            needed.add(node)
    return needed


def run_post_hooks(tensor: Any) -> None:
    """Show a leaf to those who asked to see it when its gradient has been added."""
    for hook in list(getattr(tensor, "_post_hooks", {}).values()):
        hook(tensor)


def keep(ends: Pending, node: Function, arrived: Sequence[Any]) -> None:
    """Note the gradients that have arrived where they were wanted."""
    for number, grad in enumerate(arrived):
        edge = node if node.output_type is not SEVERAL else (node, number)
        if edge in ends:
            ends[edge] = grad
