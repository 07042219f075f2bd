"""`Function`: custom operations, as with `torch.autograd.Function`.

The one idea to know: unlike the built-in operations, these work on Tensors. `forward` is not recorded; `backward` is
recorded under `create_graph`.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mini_autograd.graph import function as graph
from mini_autograd.graph.edges import NO_EDGE, OutputOf
from mini_autograd.graph.function import FREED, SECOND_BACKWARD
from mini_autograd.graph.grad_mode import FORWARD, INFERENCE, RECORDING, WATCHED, no_grad, state, without_forward_mode
from mini_autograd.graph.versions import (
    changed_text,
    error_name,
    note_change,
    output_name,
)
from mini_autograd.graph.views import note_custom_view
from mini_autograd.tensors.in_place import rebase

__all__ = ["Function", "once_differentiable"]

NOT_AN_INPUT = (
    "ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been mutated should be "
    "passed to ctx.mark_dirty()."
)


class Function(graph.Function):
    """A custom operation: a subclass gives `forward(ctx, *args)` and `backward(ctx, *grads)`, both static.

    With a static `setup_context(ctx, inputs, output)`, `forward` has no `ctx`. A static `jvp(ctx, *tangents)` is the
    rule of forward mode. For several outputs, `forward` returns a tuple, and `backward` gets as many gradients. `vjp`
    is another name for `backward`.
    """

    __slots__ = ("__dict__", "__weakref__")  # anything may be kept on ctx
    takes_arrays = False
    needs_input_grad: tuple[bool, ...] = ()
    materialize_grads = True
    non_differentiable: tuple = ()
    dirty: tuple = ()
    generate_vmap_rule = False

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Compute, and record the call if a Tensor among `args` requires grad."""
        ctx = cls._node_type()
        ctx.kept = ()
        mode = state.mode
        recording = mode & RECORDING and not mode & INFERENCE
        edges = tuple(
            [
                x.gradient_edge if recording and isinstance(x, graph.Tensor) and x.requires_grad else NO_EDGE
                for x in args
            ]
        )
        ctx.needs_input_grad = tuple([isinstance(x, graph.Tensor) and x.requires_grad for x in args])
        level = state.forward_level
        with no_grad(), without_forward_mode():
            if "setup_context" in dir(cls):
                result = cls.forward(*args, **kwargs)
                cls.setup_context(ctx, with_defaults(cls.forward, args), result)  # type: ignore[attr-defined]
            else:
                result = cls.forward(ctx, *args, **kwargs)
        outputs = result if isinstance(result, tuple) else (result,)
        ctx.check_dirty(args, outputs)
        recorded = edges.count(NO_EDGE) < len(edges)
        if recorded:
            outputs = ctx.record_outputs(edges, args, outputs)
        elif not ctx.dirty:
            outputs = tuple([constant_alias(x, args) for x in outputs])
        if mode & FORWARD:
            level.push_custom(ctx, args, outputs, recorded)
        return outputs if isinstance(result, tuple) else outputs[0]

    def record_outputs(self, edges: tuple, args: Sequence[Any], outputs: tuple) -> tuple:
        """Make this call a node of the graph, and return its outputs."""
        self.edges = edges
        self.tensor_args = [isinstance(x, graph.Tensor) for x in args]
        self.output_type = graph.SEVERAL
        self.output_metadata = tuple((x.shape, x.dtype) if isinstance(x, graph.Tensor) else ((), None) for x in outputs)
        self.hooks = None
        self.sequence_nr = graph.next_sequence_nr()
        self.keep_saved(args, outputs)
        alone = sum(map(self.is_differentiable, outputs)) == 1
        made = [self.connect_output(x, number, args, alone) for number, x in enumerate(outputs)]
        last = {id(x): number for number, x in enumerate(outputs) if all(x is not given for given in args)}
        connected = tuple([made[last.get(id(x), number)] for number, x in enumerate(outputs)])
        self.output_versions = [x.version if isinstance(x, graph.Tensor) else None for x in connected]
        if state.mode & WATCHED:
            for watcher in state.watchers:
                watcher.node_was_recorded(self)
        return connected

    @classmethod
    def _node_type(cls) -> Any:
        """A new node, of a class with the name that it has in PyTorch: `MyFnBackward`."""
        made: Any = cls.__dict__.get("_made_node_type") or type(f"{cls.__name__}Backward", (cls,), {})
        cls._made_node_type = made  # type: ignore[attr-defined]
        return made()

    @property
    def outputs(self) -> tuple:
        """The shape and dtype of each output."""
        return self.output_metadata

    def check_dirty(self, args: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Count a change of each input that `forward` changed in place, all of which it has to return.

        Raises RuntimeError otherwise; warns about tensors that were not inputs.
        """
        for number, tensor in enumerate(self.dirty):
            if not isinstance(tensor, graph.Tensor):
                kind = type(tensor).__name__
                raise RuntimeError(f"mark_dirty can only accept variables, but argument {number} is of type {kind}")
            if all(output is not tensor for output in outputs):
                raise RuntimeError(
                    "Some elements marked as dirty during the forward method were not returned as output. The inputs "
                    "that are modified inplace must all be outputs of the Function."
                )
            if all(x is not tensor for x in args):
                warnings.warn(NOT_AN_INPUT, UserWarning, stacklevel=3)
            if tensor.version is not None:
                note_change(tensor.version)

    def is_differentiable(self, output: Any) -> bool:
        """Whether an output gets a gradient."""
        constant = not isinstance(output, graph.Tensor) or any(output is x for x in self.non_differentiable)
        return not constant and output.dtype.kind == "f"

    def connect_output(self, output: Any, number: int, args: Sequence[Any], alone: bool) -> Any:
        """The output as a tensor made by this node; an input changed in place stays the same object.

        Raises RuntimeError if such an input is a leaf that requires grad, or a view of one.
        """
        if not self.is_differentiable(output):
            return constant_alias(output, args)
        if any(output is x for x in self.dirty):
            if output.requires_grad and output.is_leaf:
                raise RuntimeError("a leaf Variable that requires grad has been used in an in-place operation.")
            if output.requires_grad and output.view_info is not None and output.view_info.base.is_leaf:
                raise RuntimeError(
                    "a view of a leaf Variable that requires grad is being used in an in-place operation."
                )
            rebase(output, graph.tensor_of(output.array, OutputOf(self, number)), output.version[-1])
            return output
        result = graph.tensor_of(output.array if output._is_fresh() else output.array[...], OutputOf(self, number))
        result.version = output.version
        if output.view_info is not None or any(output is x for x in args):
            note_custom_view(result, output, alone)
        return result

    def save_for_backward(self, *values: Any) -> None:
        """Keep tensors (or None) for `backward`. The backward pass frees them, unless it retains the graph.

        Raises TypeError for anything else.
        """
        for number, value in enumerate(values):
            if value is not None and not isinstance(value, graph.Tensor):
                kind = type(value).__name__
                raise TypeError(f"save_for_backward can only save variables, but argument {number} is of type {kind}")
        self.kept = values

    def save_for_forward(self, *values: Any) -> None:
        """Keep tensors for `jvp`, as `save_for_backward` does for `backward`."""
        self.kept_for_forward = values

    def mark_dirty(self, *inputs: Any) -> None:
        """Say in `forward` which inputs it changes in place."""
        self.dirty = inputs

    def mark_non_differentiable(self, *outputs: Any) -> None:
        """Say in `forward` which outputs have no gradient."""
        self.non_differentiable = outputs

    def set_materialize_grads(self, value: bool) -> None:
        """Whether `backward` gets zeros for an output that nobody used (the default), or None."""
        self.materialize_grads = value

    def keep_saved(self, args: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Keep what `forward` saved; of an output, only its values and number, as it would hold the node that holds it.

        Raises RuntimeError for an inference tensor.
        """
        saved = getattr(self, "kept", ())
        numbers = [next((n for n, output in enumerate(outputs) if output is x), None) for x in saved]
        self.saved_numbers = numbers
        self.saved_edges = [x.gradient_edge if x is not None and x.requires_grad else NO_EDGE for x in saved]
        if any(x is not None and x.version is None for x in saved):
            raise RuntimeError(graph.SAVED_INFERENCE)
        self.kept = tuple([x if x is None or n is None else x.detach() for x, n in zip(saved, numbers, strict=True)])
        self.origins = tuple([graph.CONSTANT] * len(saved))
        self.expected = [None if x is None else x.version[0] for x in saved]
        self.saved_versions = [None if x is None else x.version for x in saved]

    @property
    def saved_tensors(self) -> Any:  # type: ignore[override]
        """The tensors that `forward` passed to `save_for_backward`, connected to the graph.

        Raises RuntimeError if they were freed, or changed in place since.
        """
        values = self.kept
        if values is FREED:
            raise RuntimeError(SECOND_BACKWARD)
        if not hasattr(self, "saved_numbers"):
            return values or self.__dict__.get("kept_for_forward", ())
        self.check_changed(values)
        return tuple(map(self.reconnect, values, self.saved_numbers, self.saved_edges))

    @saved_tensors.setter
    def saved_tensors(self, values: Any) -> None:
        self.kept = values

    def reconnect(self, value: Any, number: int | None, edge: Any) -> Any:
        """A saved value as rules get it: an output leads back to this node, what hooks unpacked to its own history."""
        if value is None or (number is None and isinstance(value, graph.Tensor)):
            return value
        array = value.array if isinstance(value, graph.Tensor) else value
        if number is None:
            return graph.tensor_of(array, edge)
        output = graph.tensor_of(array, OutputOf(self, number))
        return output if state.forward_level is None else state.forward_level.restore(output, self, number)

    def check_changed(self, values: Any) -> None:
        """Raise PyTorch's error if a saved tensor has been changed since."""
        if not isinstance(values, tuple):
            return
        saved = zip(values, self.saved_versions, self.expected, self.saved_numbers, strict=True)
        for value, version, expected, number in saved:
            if version is not None and version[0] != expected:
                edge = value._history or NO_EDGE
                output = output_name(edge, version) if number is None else f"{number} of {error_name(self.name())}"
                raise RuntimeError(changed_text(value, output, version, version[0] - expected))

    def release(self) -> None:
        """Free what was saved."""
        if self.saved_numbers:
            self.kept = FREED

    def input_gradients(self, grads: Sequence[Any], create_graph: bool) -> Sequence[Any]:
        """Run the rule on Tensors, in the grad mode of the pass.

        Raises RuntimeError if it returns too few or too many gradients, or one for an input that is not a Tensor, and
        TypeError if a gradient is not a Tensor.
        """
        given = [self.as_tensor(grad, number) for number, grad in enumerate(grads)]
        result = rule_of(self)(self, *given)
        result = result if isinstance(result, tuple) else (result,)
        expected = len(self.inputs)
        if len(result) < expected or any(grad is not None for grad in result[expected:]):
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected {expected}, got "
                f"{len(result)})"
            )
        for position, (grad, is_tensor) in enumerate(zip(result, self.tensor_args, strict=False), 1):
            if grad is not None and not is_tensor:
                raise RuntimeError(
                    f"function {self.name()} returned a gradient different than None at position {position}, but the "
                    "corresponding forward input was not a Variable"
                )
            if grad is not None and not isinstance(grad, graph.Tensor):
                raise TypeError(f"expected Variable or None (got {type(grad).__name__})")
        return result if create_graph else tuple([None if grad is None else grad.array for grad in result])

    def as_tensor(self, grad: Any, number: int) -> Any:
        """A gradient that arrived, as a Tensor; if none did, zeros, or None without `materialize_grads`."""
        if grad is None:
            shape, dtype = self.outputs[number]
            return graph.tensor_of(np.zeros(shape, dtype)) if self.materialize_grads and dtype is not None else None
        return grad if isinstance(grad, graph.Tensor) else graph.tensor_of(grad)


def rule_of(node: Any) -> Callable:
    """The node's `backward`, or its `vjp` if it has that instead. Raises RuntimeError if it has both."""
    if not hasattr(node, "vjp"):
        return node.backward
    if type(node).backward is not graph.Function.backward:
        raise RuntimeError(
            "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement "
            "one of them."
        )
    return node.vjp


def constant_alias(output: Any, args: Sequence[Any]) -> Any:
    """An output without history: of an input, an alias, detached if the input requires grad, which stays as it is."""
    if not isinstance(output, graph.Tensor) or all(output is not x for x in args):
        return output
    return output.detach() if output.requires_grad else output.view_as_itself()


def with_defaults(forward: Any, args: tuple) -> tuple:
    """The arguments of a call, completed with the defaults of `forward`."""
    missing = forward.__code__.co_argcount - inspect.ismethod(forward) - len(args)
    defaults = forward.__defaults__ or ()
    return args + defaults[-missing:] if 0 < missing <= len(defaults) else args


def once_differentiable(backward: Callable) -> Callable:
    """Decorator for a `backward` that cannot be differentiated itself: trying to do so raises RuntimeError."""

    @functools.wraps(backward)
    def method(ctx: Any, *grads: Any) -> Any:
        with no_grad():
            result = backward(ctx, *grads)
        recorded = state.mode & RECORDING and any(isinstance(x, graph.Tensor) and x.requires_grad for x in grads)
        if not recorded:
            return result
        results = result if isinstance(result, tuple) else (result,)
        failing = tuple([x if x is None else NotTwice.apply(x.detach().requires_grad_()) for x in results])
        return failing if isinstance(result, tuple) else failing[0]

    return method


class NotTwice(Function):
    """Wraps what a `once_differentiable` backward returned: differentiating it raises."""

    torch_name = "torch::autograd::Error"

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")
