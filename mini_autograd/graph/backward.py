"""The backward pass: from the outputs to the leaves, visiting every node once, when its gradient is complete.

The one idea to know: gradients in transit wait in a dict, `pending`, keyed by edge; only leaves (and tensors that ask
for it) ever have a `.grad`. Nothing here recurses, so a graph may be a million operations deep.

The functions of this module and `arrays.sum_to` are looked up when they are called, so a test or a lesson can replace
one temporarily.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from mini_autograd.graph import anomaly, hooks
from mini_autograd.graph import function as graph
from mini_autograd.graph.edges import NO_EDGE, Edge, OutputOf, node_of, number_of
from mini_autograd.graph.function import SEVERAL, AccumulateGrad, Function, GraphRoot, register_attributes
from mini_autograd.graph.grad_mode import RECORDING, enable_grad, no_grad, state
from mini_autograd.graph.versions import check_saved, latest_change, note_change
from mini_autograd.numerics import arrays

Pending = dict[Edge, Any]
"""The waiting gradients: for each edge, the sum of what has arrived there so far."""

LARGE = 10_000
"""For arrays with more elements than this, it pays to check whether they may be overwritten."""


def run_backward(
    edges: tuple[Edge, ...],
    grads: Sequence[Any],
    retain_graph: bool,
    create_graph: bool,
    wanted: Iterable[Edge] | None = None,
    visited: Iterable[Function] = (),
) -> Pending:
    """Propagate `grads`, the gradients of the outputs `edges`, backward: arrays, or Tensors if `create_graph`, or if
    they carry tangents, so that rules get Tensors.

    Without `wanted`, gradients end in the `.grad` of the leaves. With it, they end at those edges: nothing else is
    computed, no `.grad` is touched, and the result maps each edge to the gradient that arrived there, or None. The
    rules of the nodes in `visited` run in any case. Raises RuntimeError if a rule gives a gradient of the wrong shape,
    or needs a saved tensor that was freed or changed.
    """
    root = GraphRoot(edges)
    pending: Pending = {}
    order = topological_order(root)
    ends = None if wanted is None else dict.fromkeys(wanted)
    with enable_grad() if create_graph else no_grad(), np.errstate(all="ignore"):
        send(pending, root, grads)
        needed = set() if ends is None else nodes_leading_to(ends, order).union(visited)
        visit_all(order, pending, (ends, needed), retain_graph, any(isinstance(grad, graph.Tensor) for grad in grads))
    return ends or {}


def visit_all(
    order: Sequence[Function],
    pending: Pending,
    goal: tuple[Pending | None, set[Function]],
    retain_graph: bool,
    of_tensors: bool,
) -> None:
    """Visit the nodes in this order, each with the gradients that wait for it, and send on what its rule returns.

    Most nodes have one output and no hooks, and get an array. They need only their rule, so it is called right here,
    without `visit`. `goal` holds the edges where gradients are wanted, each mapped to the gradient that arrives there,
    and the nodes that must run for them.
    """
    ends, needed = goal
    plain = not (of_tensors or (state.watchers and anomaly.active()))
    for node in order:
        grad = pending.pop(node, None)
        if (
            (plain and grad is not None)
            and (ends is None or (node in needed and node not in ends))
            and (node.takes_arrays and not node.hooks and latest_change[0] <= node.sequence_nr)
        ):
            sent = node.backward(node, grad)
        elif type(node) is AccumulateGrad and grad is not None and ends is None and not node.hooks:
            held, grad = [grad], None  # now only the list holds it, so the leaf need not copy it
            reach_leaf(node.variable, held)
            continue
        else:
            arrived, grad = collect(pending, node, grad), None
            sent = None if arrived is None else visit(node, arrived, ends, needed, of_tensors)
            if sent is None:
                continue
        send(pending, node, sent if type(sent) is tuple else (sent,))
        del sent  # so that only `pending` holds these gradients, and a leaf can keep one without copying it
        if not retain_graph:
            node.release()


def visit(
    node: Function, arrived: list[Any], ends: Pending | None, needed: set[Function], create_graph: bool
) -> tuple | None:
    """Visit a node that needs more than its rule: a leaf, hooks, wanted gradients, changed memory, recording, ...

    Returns the gradients of its inputs, or None if the pass ends here.
    """
    if ends is not None and node not in needed and not is_end(node, ends):
        return None  # nothing needs this node, so its hooks do not run either
    if ends is not None and node in needed:  # wanted here and further on: kept before the hooks run, as in PyTorch
        keep(ends, node, arrived)
    if node.hooks:
        hooks.run(node, arrived)
    if ends is not None and node not in needed:
        keep(ends, node, arrived)
        return None
    watched = bool(node.hooks)
    if watched:
        arrived = hooks.run_before(node, arrived)
    sent = run_rule(node, arrived, create_graph)
    grads = sent if type(sent) is tuple else (sent,)
    if not watched:
        return grads
    return hooks.run_after(node, only_wanted(node, grads, ends, needed), arrived, fitted)


def only_wanted(node: Function, grads: tuple, ends: Pending | None, needed: set[Function]) -> tuple:
    """The gradients of a node's inputs as its hooks see them: None for an input whose gradient is not wanted.

    PyTorch's built-in nodes do not compute such gradients. Both engines show the gradients of a custom Function as they
    are.
    """
    if not node.takes_arrays:
        return grads
    wanted = [
        below is not None and (ends is None or below in needed or is_end(below, ends))
        for below in map(node_of, node.inputs)
    ]
    return tuple([grad if asked else None for grad, asked in zip(grads, wanted, strict=True)])


def is_end(node: Function, ends: Pending) -> bool:
    """Whether a gradient of one of the node's outputs is wanted."""
    if node.output_type is not SEVERAL:
        return node in ends
    return any(OutputOf(node, number) in ends for number in range(len(node.outputs)))


def run_rule(node: Function, arrived: list[Any], create_graph: bool) -> Any:
    """Run a node's rule. At the node of a leaf, hand the gradient to the leaf and return no gradients."""
    if type(node) is AccumulateGrad:
        reach_leaf(node.variable, arrived)
        return ()
    changed = latest_change[0] > node.sequence_nr
    watcher = state.watchers and anomaly.active()
    if watcher:
        return anomaly.watched_gradients(node, arrived, create_graph, watcher.check_nan, changed)
    if changed:
        check_saved(node)
    return node.input_gradients(arrived, create_graph)


def reach_leaf(leaf: Any, arrived: list[Any]) -> None:
    """Add the gradient that arrived into a leaf's `.grad`, and run the leaf's post-accumulate hooks."""
    if not leaf.requires_grad:  # it has been switched off since
        return
    accumulate_leaf(leaf, own(arrived, 0) if getattr(leaf, "_grad", None) is None else arrived[0])
    if getattr(leaf, "_post_hooks", None):
        run_post_hooks(leaf)


def end_at_leaf(node: AccumulateGrad, grad: Any) -> None:
    """Give a leaf the gradient of a pass that ended at its node, running the node's hooks before and after."""
    arrived = hooks.run_before(node, [grad]) if node.hooks else [grad]
    reach_leaf(node.variable, arrived)
    if node.hooks:
        hooks.run_after(node, (), arrived, fitted)


def own(held: Any, key: Any) -> Any:
    """The gradient `held[key]`, safe to keep: copied if anything else holds it. A Tensor is returned as it is."""
    if isinstance(held[key], graph.Tensor) or arrays.is_unshared(held, key):
        return held[key]
    return held[key].copy()


def collect(pending: Pending, node: Function, grad: Any) -> list[Any] | None:
    """The gradients of a node's outputs: `grad` if there is one output, else those waiting. None if none arrived."""
    if node.output_type is not SEVERAL:
        return None if grad is None else [grad]
    grads = [pending.pop(OutputOf(node, number), None) for number in range(len(node.outputs))]
    return None if all(grad is None for grad in grads) else grads


def send(pending: Pending, node: Function, grads: Sequence[Any]) -> None:
    """Pass on the gradients of a node's inputs, each along its edge, in the shape and dtype of the input."""
    edges = node.edges
    # `unpacked` is inlined here, because this runs for each node.
    for edge, grad in zip(edges if type(edges) is tuple else (edges,), grads):  # noqa: B905  (`strict` costs as much)
        if grad is None or edge is NO_EDGE:
            continue
        if type(grad) is not edge.output_type and (
            edge.output_type is not None or grad.shape != edge.array_shape or grad.dtype is not edge.array_dtype
        ):
            grad = fitted(grad, node, edge)
        accumulate(pending, edge, grad)


def fitted(grad: Any, node: Function, edge: Edge) -> Any:
    """A gradient that `node` computed, in the shape and dtype of its input: this is where broadcasting is undone.

    Raises RuntimeError if the input could not have been broadcast to the gradient's shape.
    """
    shape, dtype = node_of(edge).outputs[number_of(edge)]
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
    """Add a gradient to the sum that waits at `node` (or at one of its outputs, if it has several).

    A tensor that was used twice gets two gradients and needs their sum. The sum may overwrite the first array only if
    that array waits nowhere else: an addition hands the same array to both of its inputs.
    """
    if node not in pending:
        pending[node] = grad
    elif type(grad) is np.ndarray and grad.size > LARGE and arrays.is_unshared(pending, node):
        pending[node] += grad
    else:
        pending[node] = pending[node] + grad


def accumulate_leaf(tensor: Any, grad: Any) -> None:
    """Add a gradient into `tensor.grad`. An array is kept as it is, so it must share memory with nothing else.

    As in PyTorch, an existing gradient is added to in place, unless the pass is recorded.
    """
    known = getattr(tensor, "_grad", None)
    if isinstance(grad, graph.Tensor):
        tensor.grad = grad.clone() if known is None else known + grad
    elif known is None:
        tensor._grad = graph.tensor_of(grad)  # no need to check it: it already has the leaf's shape and dtype
    else:
        known.array += grad
        if known.version is not None:
            note_change(known.version)


def topological_order(root: Function) -> list[Function]:
    """All nodes that `root` leads to, every node before the nodes of its inputs.

    A node is created after the nodes of its inputs, so the reverse order of creation is a topological order. PyTorch
    uses the same order, which decides when hooks run: a leaf's node is created at the leaf's first use, so it comes
    right after that use.
    """
    return sorted(reachable(root), key=attrgetter("sequence_nr"), reverse=True)


def reachable(root: Function) -> set[Function]:
    """`root` and all nodes below it."""
    found, stack = {root}, [root]
    while stack:
        edges = stack.pop().edges
        for edge in edges if type(edges) is tuple else (edges,):  # `unpacked` and `node_of`, inlined
            node = edge.node if type(edge) is OutputOf else edge
            if node is not None and node not in found:
                found.add(node)
                stack.append(node)
    return found


def nodes_leading_to(ends: Iterable[Edge], order: Sequence[Function]) -> set[Function]:
    """The nodes that must run for a gradient to reach one of `ends`."""
    targets = set(map(node_of, ends))
    needed: set[Function] = set()
    for node in reversed(order):
        edges = node.edges
        for edge in edges if type(edges) is tuple else (edges,):  # as in `reachable`
            below = edge.node if type(edge) is OutputOf else edge
            if below in targets or below in needed:
                needed.add(node)
                break
    return needed


def run_post_hooks(tensor: Any) -> None:
    """Call the post-accumulate hooks of a leaf, whose gradient has been added."""
    for hook in list(tensor._post_hooks.values()):
        if hook(tensor) is not None:
            raise RuntimeError("Tensor post accumulate grad hooks should return None.")


def keep(ends: Pending, node: Function, arrived: Sequence[Any]) -> None:
    """Store the gradients that arrived at edges where they are wanted."""
    for number, grad in enumerate(arrived):
        edge = node if node.output_type is not SEVERAL else OutputOf(node, number)
        if edge in ends:
            ends[edge] = grad


def called(node: Function, *grads: Any) -> Any:
    """The gradients of a node's inputs, given those of its outputs: only its rule runs, and nothing is sent on.

    In grad mode, they are recorded. Raises TypeError for a wrong number of gradients, for one that is not a tensor,
    and, as in PyTorch, for the node of a custom Function.
    """
    if not node.takes_arrays and type(node) is not AccumulateGrad:
        raise TypeError(f"'{type(node).__name__}' object is not callable")
    if len(grads) != len(node.outputs):
        raise TypeError(f"expected {len(node.outputs)} arguments, got {len(grads)} instead")
    for number, grad in enumerate(grads):
        if grad is not None and not isinstance(grad, graph.Tensor):
            raise TypeError(f"argument {number} is not a Variable")
    recorded = bool(state.mode & RECORDING)
    arrived = [grad if grad is None or recorded else grad.array for grad in grads]
    nothing = all(grad is None for grad in grads)
    with np.errstate(all="ignore"):
        sent = (None,) * len(node.inputs) if nothing else run_rule(node, arrived, recorded)
    results = tuple(map(hooks.shown, only_wanted(node, sent if type(sent) is tuple else (sent,), None, set())))
    return results[0] if len(results) == 1 else results


register_attributes({"__call__": called})
