"""The public look-alike of `torch.autograd`: `backward`, `grad`, and `Function` for operations of your own.

Imports backward, function, grad_mode. The one idea to know: a backward pass starts with a gradient for each output, and
here is where it comes from: given, or 1 for a scalar.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from mini_autograd import backward as engine
from mini_autograd import function as graph
from mini_autograd.function import NO_EDGE
from mini_autograd.grad_mode import enable_grad, is_grad_enabled, no_grad, set_grad_enabled

__all__ = ["Function", "backward", "enable_grad", "grad", "is_grad_enabled", "no_grad", "set_grad_enabled"]

Tensors = Any
"""A Tensor or a sequence of Tensors."""

CREATE_GRAPH_CYCLE = (
    "Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient "
    "which can cause a memory leak. We recommend using autograd.grad when creating the graph to avoid this. If you "
    "have to use this function, make sure to reset the .grad fields of your parameters to None after use to break the "
    "cycle and avoid the leak."
)


def backward(
    tensors: Tensors,
    grad_tensors: Tensors | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Tensors | None = None,
) -> None:
    """Add the gradients of `tensors` into the `.grad` of the leaves they were computed from, or of `inputs` only.

    `grad_tensors` are the gradients of `tensors` to start from; a tensor with one element may do without (1 is meant).
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
        tensor.retain_grad()  # as PyTorch does: an input that is no leaf keeps its gradient from now on
    arrived = engine.run_backward(edges, grads, retain_graph, create_graph, wanted)
    for tensor in leaves:
        grad = arrived[tensor.gradient_edge]
        if tensor.is_leaf and grad is not None:
            engine.accumulate_leaf(tensor, grad)


def grad(
    outputs: Tensors,
    inputs: Tensors,
    grad_outputs: Tensors | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    allow_unused: bool | None = None,
    materialize_grads: bool = False,
) -> tuple:
    """The gradients of `outputs` with respect to `inputs`, as a tuple; no `.grad` is touched.

    An input that was not used raises, unless `allow_unused` (its gradient is then None) or `materialize_grads` (then
    zeros).
    """
    outputs, inputs = as_sequence(outputs), as_sequence(inputs)
    if not inputs:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    if allow_unused is False and materialize_grads:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    edges, grads = seeds(outputs, as_sequence(grad_outputs), create_graph)
    retain_graph = create_graph if retain_graph is None else retain_graph
    arrived = engine.run_backward(edges, grads, retain_graph, create_graph, wanted_edges(inputs))
    results = []
    for index, tensor in enumerate(inputs):
        result = arrived[tensor.gradient_edge]
        if result is None and materialize_grads:
            result = np.zeros(tensor.shape, tensor.dtype)
        if result is None and not allow_unused:
            raise RuntimeError(
                f"The differentiated Tensor at index {index} appears to not have been used in the graph. "
                "Set allow_unused=True if this is the desired behavior."
            )
        if result is not None and not isinstance(result, graph.Tensor):
            result = graph.Tensor(result.copy())
        results.append(result)
    return tuple(results)


def as_sequence(tensors: Tensors | None) -> Sequence[Any]:
    """One tensor or several, as a sequence."""
    if tensors is None:
        return ()
    return (tensors,) if isinstance(tensors, graph.Tensor) else tuple(tensors)


def wanted_edges(inputs: Sequence[Any]) -> list[graph.Edge]:
    """Where the gradients of `inputs` arrive."""
    for tensor in inputs:
        if not tensor.requires_grad:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
    return [tensor.gradient_edge for tensor in inputs]


def seeds(outputs: Sequence[Any], grads: Sequence[Any], create_graph: bool) -> tuple[tuple[graph.Edge, ...], list[Any]]:
    """The edges from which a pass starts, and the gradients it starts with: arrays, or Tensors if `create_graph`."""
    grads = [*grads, *[None] * (len(outputs) - len(grads))]
    started = []
    for index, (output, grad) in enumerate(zip(outputs, grads, strict=False)):
        if grad is None and output.requires_grad and output.numel() != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        if grad is not None and grad.shape != output.shape:
            raise RuntimeError(
                f"Mismatch in shape: grad_output[{index}] has a shape of torch.Size({list(grad.shape)}) and "
                f"output[{index}] has a shape of torch.Size({list(output.shape)})."
            )
        if not output.requires_grad:
            raise RuntimeError(f"element {index} of tensors does not require grad and does not have a grad_fn")
        grad = graph.Tensor(np.ones(output.shape, output.dtype)) if grad is None else grad
        started.append(grad if create_graph else grad.array)
    return tuple([output.gradient_edge for output in outputs]), started


class Function(graph.Function):
    """An operation of your own, as `torch.autograd.Function`: static `forward(ctx, *args)` and `backward(ctx, *grads)`.

    Different from the built-in operations it works with Tensors: `forward` gets what `apply` got and is not recorded;
    `backward` gets Tensors and is recorded under `create_graph`. There may be several outputs: return a tuple, and get
    as many gradients. With a static `setup_context(ctx, inputs, output)`, `forward` has no `ctx`.
    """

    __slots__ = ("__dict__", "__weakref__")  # anything may be kept on ctx
    needs_input_grad: tuple[bool, ...] = ()
    materialize_grads = True
    non_differentiable: tuple = ()

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Compute, and record the call if a Tensor among `args` requires grad."""
        ctx = cls()
        ctx.saved = ()
        is_tensor = [isinstance(arg, graph.Tensor) for arg in args]
        edges = [arg.gradient_edge if is_tensor[i] and is_grad_enabled() else NO_EDGE for i, arg in enumerate(args)]
        ctx.needs_input_grad = tuple(isinstance(arg, graph.Tensor) and arg.requires_grad for arg in args)
        with no_grad():
            if "setup_context" in dir(cls):
                result = cls.forward(*args)
                cls.setup_context(ctx, args, result)  # type: ignore[attr-defined]
            else:
                result = cls.forward(ctx, *args)
        outputs = result if isinstance(result, tuple) else (result,)
        if edges.count(NO_EDGE) < len(edges):
            outputs = ctx.record_outputs(tuple(edges), outputs)
        return outputs if isinstance(result, tuple) else outputs[0]

    def record_outputs(self, edges: tuple[graph.Edge, ...], outputs: tuple) -> tuple:
        """Make this call a node of the graph, and give its outputs."""
        self.next_functions = edges
        self.output_shape = self.output_dtype = None
        self.output_metadata = tuple((x.shape, x.dtype) if isinstance(x, graph.Tensor) else ((), None) for x in outputs)
        self.sequence_nr = graph.next_sequence_nr()
        self.hooks = None
        self.keep_saved(outputs)
        return tuple(self.connect_output(output, number) for number, output in enumerate(outputs))

    @property
    def outputs(self) -> tuple:
        """The shape and dtype of each output."""
        return self.output_metadata

    def connect_output(self, output: Any, number: int) -> Any:
        """The output as a tensor that came from this node."""
        constant = not isinstance(output, graph.Tensor) or any(output is x for x in self.non_differentiable)
        return output if constant or output.dtype.kind != "f" else graph.Tensor(output.array[...], (self, number))

    def mark_non_differentiable(self, *outputs: Any) -> None:
        """Say in `forward` which outputs have no gradient."""
        self.non_differentiable = outputs

    def set_materialize_grads(self, value: bool) -> None:
        """Whether `backward` gets zeros for an output that nobody used (the default), or None."""
        self.materialize_grads = value

    def keep_saved(self, outputs: Sequence[Any]) -> None:
        """A saved output must not hold its node, which holds it: keep its values, and which output it was."""
        numbers = [
            next((number for number, output in enumerate(outputs) if output is value), None)
            for value in self.saved or ()
        ]
        self.saved = tuple(x if n is None else x.detach() for x, n in zip(self.saved or (), numbers, strict=True))
        self.saved_outputs = numbers

    @property
    def saved_tensors(self) -> tuple:
        """What `forward` gave to `save_for_backward`, connected to the graph."""
        values = super().saved_tensors
        if not hasattr(self, "saved_outputs"):
            return values
        return tuple(
            value if number is None else graph.Tensor(value.array, (self, number))
            for value, number in zip(values, self.saved_outputs, strict=True)
        )

    def input_gradients(self, grads: Sequence[Any], create_graph: bool) -> Sequence[Any]:
        """Run the rule on Tensors, in the grad mode of the pass."""
        given = [self.as_tensor(grad, number) for number, grad in enumerate(grads)]
        result = self.backward(self, *given)
        result = result if isinstance(result, tuple) else (result,)
        expected = len(self.next_functions)
        if len(result) < expected or any(grad is not None for grad in result[expected:]):
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected {expected}, got "
                f"{len(result)})"
            )
        return result if create_graph else [None if grad is None else grad.array for grad in result]

    def as_tensor(self, grad: Any, number: int) -> Any:
        """A gradient that arrived, as a Tensor; zeros if none did."""
        if grad is None:
            shape, dtype = self.outputs[number]
            return graph.Tensor(np.zeros(shape, dtype)) if self.materialize_grads and dtype is not None else None
        return grad if isinstance(grad, graph.Tensor) else graph.Tensor(grad)
