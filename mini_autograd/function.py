"""`Function`: one operation is a `forward` and a `backward`, and one call of it is a node of the graph.

Imports arrays and grad_mode. The one idea to know: the instance that `forward` and `backward` receive as `ctx` *is* the
node that `tensor.grad_fn` shows. It points to the nodes of its inputs and never to its output, so a graph holds no
reference cycle and disappears with the last tensor that needs it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from mini_autograd.grad_mode import state

Value = Any
"""What an operation takes and gives: a Tensor, a Python number or, inside a backward rule, a plain array."""

Edge = tuple["Function | None", int]
"""Where a gradient goes: a node, and which of the node's outputs the gradient belongs to."""

NO_EDGE: Edge = (None, 0)
"""The edge of an input that needs no gradient."""

SECOND_BACKWARD = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
    "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
    "retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors "
    "after calling backward."
)

Tensor: Any = None  # set by tensor.py, which is built on this module; importing it here would be a circle
_sequence = itertools.count()


class Function:
    """One operation. A subclass gives `forward(ctx, *arrays, **options)` and `backward(ctx, grad)`, both static.

    `forward` computes with arrays and Python numbers. What the rule needs later it hands to `ctx.save_for_backward`, if
    it is an input or the output, and otherwise keeps as an attribute of `ctx`.

    `backward` returns one gradient per positional input (None: no gradient), without looking at shapes: where an input
    was broadcast, the gradient is summed back by the backward pass. It gets arrays in an ordinary pass and Tensors when
    the pass is itself recorded (`create_graph=True`), and is written in terms that both understand: operators and the
    package's functions.
    """

    __slots__ = ("hooks", "next_functions", "origins", "outputs", "saved", "sequence_nr")

    next_functions: tuple[Edge, ...]  # per input, where its gradient goes
    outputs: tuple[tuple[tuple[int, ...], np.dtype], ...]  # per output, its shape and dtype
    saved: tuple | None  # what save_for_backward got; None once freed
    origins: tuple[int, ...]  # per saved value, which input it was, or OUTPUT
    sequence_nr: int  # counts the nodes in the order of their creation
    hooks: list[tuple[int, Callable]] | None  # called with the gradient of an output when it is complete

    torch_name: str | None = None  # PyTorch's name of the node
    prepare: Callable[..., Sequence[Any]] | None = (
        None  # turns the arrays into what forward computes with: dtypes, checks
    )
    complain: Callable[..., None] | None = None  # raises PyTorch's error when forward refused these arrays

    @staticmethod
    def forward(ctx: Any, *arrays: Any, **options: Any) -> Any:
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    @classmethod
    def apply(cls, *inputs: Value, **options: Any) -> Value:
        """Compute, and record the call if an input requires grad. Given arrays only, return an array."""
        arrays: Sequence[Any] = [x.array if isinstance(x, Tensor) else x for x in inputs]
        if cls.prepare is not None:
            arrays = cls.prepare(*arrays)
        ctx = cls()
        ctx.saved = ()
        try:
            output = cls.forward(ctx, *arrays, **options)
        except (ValueError, IndexError):
            if cls.complain is not None:
                cls.complain(*arrays, **options)
            raise
        if state.enabled:
            edges = [x.gradient_edge if isinstance(x, Tensor) else NO_EDGE for x in inputs]
            if edges.count(NO_EDGE) < len(edges):
                ctx.record(edges, ((output.shape, output.dtype),))
                ctx.origins = find_origins(ctx.saved, arrays, output)
                return Tensor(output, (ctx, 0))
        return wrap(output, *inputs)

    def record(self, edges: Iterable[Edge], outputs: tuple) -> None:
        """Make this call a node of the graph."""
        self.next_functions = tuple(edges)
        self.outputs = outputs
        self.sequence_nr = next(_sequence)
        self.hooks = None

    def save_for_backward(self, *values: Any) -> None:
        """Keep inputs or the output for `backward`. The backward pass frees them, unless it retains the graph."""
        self.saved = values

    @property
    def saved_tensors(self) -> tuple:
        """What was saved: as arrays here, as Tensors in a pass that is recorded."""
        if self.saved is None:
            raise RuntimeError(SECOND_BACKWARD)
        return self.saved

    @property
    def needs_input_grad(self) -> tuple[bool, ...]:
        """Per input, whether anyone wants its gradient: a rule may return None for the others and save the work."""
        return tuple([node is not None for node, _ in self.next_functions])

    def input_gradients(self, grads: Sequence[Any], create_graph: bool) -> Sequence[Any]:
        """Run the rule on the gradients of the outputs."""
        result = self.backward(Connected(self) if create_graph else self, *grads)
        return result if isinstance(result, tuple) else (result,)

    def release(self) -> None:
        """Free what was saved. A node that saved nothing can be walked again, as in PyTorch."""
        if self.saved:
            self.saved = None

    def name(self) -> str:
        """PyTorch's name of this node."""
        return self.torch_name or f"{type(self).__name__}Backward"

    def __repr__(self) -> str:
        return f"<{self.name()} object at {id(self):#x}>"


def as_array(value: Value) -> Any:
    """The array of a Tensor; anything else as it is, but a NumPy scalar that a user wrote counts as a Python number."""
    if isinstance(value, Tensor):
        return value.array
    return value.item() if isinstance(value, np.generic) else value


def wrap(array: Any, *inputs: Value) -> Value:
    """The result of an operation that is not recorded: a Tensor if one of its inputs is."""
    return Tensor(array) if any(isinstance(x, Tensor) for x in inputs) else array


OUTPUT = -1
CONSTANT = -2


def find_origins(saved: tuple | None, arrays: Sequence[Any], output: Any) -> tuple[int, ...]:
    """For each saved value which input it was, or OUTPUT or CONSTANT.

    Values are recognised by identity: no two tensors share an array object.
    """
    origins = []
    for position, value in enumerate(saved or ()):
        if position < len(arrays) and value is arrays[position]:
            origins.append(position)
        elif value is output:
            origins.append(OUTPUT)
        else:
            origins.append(next((i for i, array in enumerate(arrays) if array is value), CONSTANT))
    return tuple(origins)


class Connected:
    """The `ctx` that a rule sees when the backward pass is itself recorded.

    `saved_tensors` are then Tensors that lead back into the graph: a saved input through the edge of that input, the
    saved output through this node. Other attributes are the node's own.
    """

    __slots__ = ("_node",)

    def __init__(self, node: Function) -> None:
        self._node = node

    @property
    def saved_tensors(self) -> tuple:
        return tuple(map(self._connect, self._node.saved_tensors, self._node.origins))

    def _connect(self, value: Any, origin: int) -> Any:
        if not isinstance(value, np.ndarray | np.generic):
            return value
        if origin == CONSTANT:
            return Tensor(value)
        return Tensor(value, (self._node, 0) if origin == OUTPUT else self._node.next_functions[origin])

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._node, name)
        return Tensor(value) if isinstance(value, np.ndarray) else value


class AccumulateGrad(Function):
    """The end of a path: adds what arrives into the `.grad` of a leaf. There is one per leaf, made when it is first
    needed.

    It holds the leaf; the leaf holds it weakly. The addition itself is `backward.accumulate_leaf`.
    """

    torch_name = "torch::autograd::AccumulateGrad"
    __slots__ = ("__weakref__", "variable")

    def __init__(self, variable: Any) -> None:
        self.variable = variable
        self.saved = ()
        self.record((), ((variable.shape, variable.dtype),))


class GraphRoot(Function):
    """The start of a backward pass: its inputs are the tensors from which the pass starts."""

    torch_name = "GraphRoot"
    __slots__ = ()

    def __init__(self, edges: Iterable[Edge]) -> None:
        self.saved = ()
        self.record(edges, ())
