"""Starting a backward pass: `backward` and `grad`.

The one idea to know: a backward pass starts with a gradient for each output, which is given or, for a scalar, 1.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from mini_autograd.graph import backward as engine
from mini_autograd.graph import function as graph
from mini_autograd.graph.edges import Edge
from mini_autograd.graph.grad_mode import enable_grad, no_grad, state
from mini_autograd.graph.views import is_cut_off
from mini_autograd.numerics.arrays import array_module
from mini_autograd.operations.shapes.joining import stack

Tensors = Any
"""A Tensor or a sequence of Tensors."""

CREATE_GRAPH_CYCLE = (
    "Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient "
    "which can cause a memory leak. We recommend using autograd.grad when creating the graph to avoid this. If you "
    "have to use this function, make sure to reset the .grad fields of your parameters to None after use to break the "
    "cycle and avoid the leak."
)

ONLY_INPUTS = (
    "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for other parts "
    "of the graph, please use torch.autograd.backward."
)


def backward(
    tensors: Tensors,
    grad_tensors: Tensors | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensors | None = None,
) -> None:
    """Add the gradients of `tensors` into the `.grad` of the leaves they were computed from, or of `inputs` only.

    `grad_tensors` are the gradients of `tensors` to start from; for a tensor with one element, the default is 1.

    A gradient has the shape of its tensor. With `create_graph` the pass is itself recorded, so the gradients can be
    differentiated; `retain_graph` (by default `create_graph`) keeps what the graph saved for another pass.

    Raises RuntimeError if a tensor does not require grad, if a gradient is missing or has the wrong shape, if `inputs`
    is empty or holds a tensor that does not require grad, and if the graph was freed by an earlier pass.
    """
    outputs = as_sequence(tensors)
    edges, grads = seeds(outputs, as_sequence(grad_tensors), create_graph)
    if create_graph:
        warnings.warn(CREATE_GRAPH_CYCLE, UserWarning, stacklevel=3)
    retain_graph = create_graph if retain_graph is None else retain_graph
    if inputs is None:
        engine.run_backward(edges, grads, retain_graph, create_graph)
        return
    leaves = as_sequence(inputs)
    if not leaves:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    wanted = wanted_edges(leaves)
    for tensor in leaves:
        tensor.retain_grad()  # as PyTorch does: an input that is not a leaf keeps its gradient from now on
    nodes = [tensor.grad_fn for tensor in leaves if not tensor.is_leaf]  # PyTorch runs them, though for nothing
    arrived = run_to(wanted, edges, grads, retain_graph, create_graph, nodes)
    with enable_grad() if create_graph else no_grad():
        for tensor, edge in zip(leaves, wanted, strict=True):
            if tensor.is_leaf and arrived[edge] is not None:
                engine.end_at_leaf(edge, engine.own(arrived, edge))


def grad(
    outputs: Tensors,
    inputs: Tensors,
    grad_outputs: Tensors | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple:
    """The gradients of `outputs` with respect to `inputs`, as a tuple; no `.grad` is touched.

    Each has the shape and dtype of its input. The other arguments are as for `backward`. An input that was not used
    raises RuntimeError, unless `allow_unused` (its gradient is then None) or `materialize_grads` (then zeros).
    With `is_grads_batched`, each of `grad_outputs` holds a batch of gradients along axis 0, and so does each result:
    there is one pass per gradient. `only_inputs` has no effect, as in PyTorch.
    """
    if not only_inputs:
        warnings.warn(ONLY_INPUTS, FutureWarning, stacklevel=2)
    if is_grads_batched:
        options = {"allow_unused": allow_unused, "materialize_grads": materialize_grads, "create_graph": create_graph}
        return batched_grad(outputs, inputs, as_sequence(grad_outputs), retain_graph, options)
    outputs, inputs = as_sequence(outputs), as_sequence(inputs)
    if not inputs:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    if allow_unused is False and materialize_grads:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    edges, grads = seeds(outputs, as_sequence(grad_outputs), create_graph)
    retain_graph = create_graph if retain_graph is None else retain_graph
    wanted = wanted_edges(inputs)
    arrived = run_to(wanted, edges, grads, retain_graph, create_graph)
    return tuple(
        [
            result_for(x, number, edge, arrived, materialize_grads, bool(allow_unused))
            for number, (x, edge) in enumerate(zip(inputs, wanted, strict=True))
        ]
    )


def result_for(x: Any, number: int, edge: Edge, arrived: Any, materialize: bool, allow_unused: bool) -> Any:
    """The gradient that arrived for one input, as a Tensor; for an unused input, zeros, None or PyTorch's error."""
    result = None if arrived[edge] is None else engine.own(arrived, edge)
    if result is None and materialize:
        result = array_module(x.array).zeros(x.shape, x.dtype)
    if result is None and not allow_unused:
        raise RuntimeError(
            f"The differentiated Tensor at index {number} appears to not have been used in the graph. "
            "Set allow_unused=True if this is the desired behavior."
        )
    return result if result is None or isinstance(result, graph.Tensor) else graph.tensor_of(result)


def batched_grad(
    outputs: Tensors, inputs: Tensors, batches: Sequence[Any], retain_graph: bool | None, options: dict[str, Any]
) -> tuple:
    """`grad` for each of several gradients, with the results stacked."""
    rows = []
    for number in range(last := len(batches[0])):
        retained = True if number + 1 < last else retain_graph
        rows.append(grad(outputs, inputs, [batch[number] for batch in batches], retained, **options))
    return tuple(None if parts[0] is None else stack(parts) for parts in zip(*rows, strict=True))


def run_to(
    wanted: Sequence[Edge],
    edges: tuple,
    grads: Sequence[Any],
    retain_graph: bool,
    create_graph: bool,
    visited: Sequence[Any] = (),
) -> engine.Pending:
    """Run a backward pass that ends at the `wanted` edges, and runs the nodes in `visited` too.

    Meanwhile `state.only_some_wanted` is set, for rules that cannot work in such a pass.
    """
    before, state.only_some_wanted = state.only_some_wanted, True
    try:
        return engine.run_backward(edges, grads, retain_graph, create_graph, wanted, visited)
    finally:
        state.only_some_wanted = before


def as_sequence(tensors: Tensors | None) -> Sequence[Any]:
    """One tensor or several, as a sequence."""
    if tensors is None:
        return ()
    return (tensors,) if isinstance(tensors, graph.Tensor) else tuple(tensors)


def wanted_edges(inputs: Sequence[Any]) -> list[Edge]:
    """Where the gradients of `inputs` arrive. Raises RuntimeError if one does not require grad."""
    for tensor in inputs:
        if not tensor.requires_grad:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
    return [tensor.gradient_edge for tensor in inputs]


def carries_tangent(x: Any) -> bool:
    """Whether a tensor (or None) has a tangent in forward mode."""
    return state.forward_level is not None and x is not None and state.forward_level.tangent_of(x) is not None


def seeds(outputs: Sequence[Any], grads: Sequence[Any], create_graph: bool) -> tuple[tuple[Edge, ...], list[Any]]:
    """The edges from which a pass starts, and the gradients it starts with: arrays, or Tensors if `create_graph`, or if
    something carries a tangent, which forward mode then takes through the pass.

    Raises RuntimeError if a gradient is missing or has another shape, or if an output does not require grad.
    """
    of_tensors = create_graph or any(map(carries_tangent, (*outputs, *grads)))
    if len(grads) not in (0, len(outputs)):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(grads)} gradients")
    grads = grads or [None] * len(outputs)
    started = []
    for index, (output, grad) in enumerate(zip(outputs, grads, strict=False)):
        if grad is None and output.requires_grad and output.numel() != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        if grad is not None and grad.shape != output.shape:
            raise RuntimeError(
                f"Mismatch in shape: grad_output[{index}] has a shape of torch.Size({list(grad.shape)}) and "
                f"output[{index}] has a shape of torch.Size({list(output.shape)})."
            )
        if not output.requires_grad or is_cut_off(output):
            raise RuntimeError(f"element {index} of tensors does not require grad and does not have a grad_fn")
        grad = graph.tensor_of(one_as(output.array)) if grad is None else grad
        started.append(grad if of_tensors else grad.array)
    return tuple([output.gradient_edge for output in outputs]), started


def one_as(array: Any) -> Any:
    """1, in the shape and dtype of an array with one element."""
    return type(array)(1) if isinstance(array, np.generic) else array_module(array).ones(array.shape, array.dtype)
