"""`Function`: one operation is a `forward` and a `backward`, and one call of it is a node of the graph.

Imports arrays and grad_mode. The one idea to know: the instance that `forward` and `backward` receive as `ctx` *is* the
node that `tensor.grad_fn` shows. It points to the nodes of its inputs and never to its output, so a graph holds no
reference cycle and disappears with the last tensor that needs it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
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
next_sequence_nr = itertools.count().__next__


class Slotted(type):
    """Makes operations small and quick to create: a class that declares no `__slots__` has none of its own.

    So an operation that keeps something on `ctx` besides what it saves names it in `__slots__`.
    """

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> Any:
        namespace.setdefault("__slots__", ())
        return super().__new__(cls, name, bases, namespace)


class Function(metaclass=Slotted):
    """One operation. A subclass gives `forward(ctx, *arrays, **options)` and `backward(ctx, grad)`, both static.

    `forward` computes with arrays and Python numbers. What the rule needs later it hands to `ctx.save_for_backward`, if
    it is an input or the output, and otherwise keeps as an attribute of `ctx`.

    `backward` returns one gradient per positional input (None: no gradient), without looking at shapes: where an input
    was broadcast, the gradient is summed back by the backward pass. It gets arrays in an ordinary pass and Tensors when
    the pass is itself recorded (`create_graph=True`), and is written in terms that both understand: operators and the
    package's functions.
    """

    __slots__ = (
        "_metadata",
        "hooks",
        "next_functions",
        "origins",
        "output_dtype",
        "output_shape",
        "saved",
        "sequence_nr",
    )

    next_functions: tuple[Edge, ...]  # per input, where its gradient goes
    output_shape: tuple[int, ...] | None  # of the output; None if there are several
    output_dtype: np.dtype | None
    saved: tuple | None  # what save_for_backward got; None once freed
    origins: tuple[int, ...]  # per saved value, which input it was, or OUTPUT
    sequence_nr: int  # counts the nodes in the order of their creation
    hooks: list[tuple[int, Callable]] | None  # called with the gradient of an output when it is complete

    torch_name: str | None = None  # PyTorch's name of the node
    prepare: Callable[..., Any] | None = None  # turns the arrays into what forward computes with: dtypes, checks
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
        arrays: Any = []
        edges: list[Edge] = []
        recorded = False
        for x in inputs:
            if isinstance(x, Tensor):
                arrays.append(x.array)
                edge = x._edge or x.gradient_edge
                edges.append(edge)
                recorded = recorded or edge is not NO_EDGE
            else:
                arrays.append(x)
                edges.append(NO_EDGE)
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
        if recorded and state.enabled:
            return ctx.record(tuple(edges), arrays, output)
        return wrap(output, *inputs)

    def record(self, edges: tuple[Edge, ...], arrays: Sequence[Any], output: Any) -> Any:
        """Make this call a node of the graph, and give its output."""
        self.next_functions = edges
        self.output_shape, self.output_dtype = output.shape, output.dtype
        self.sequence_nr = next_sequence_nr()
        self.hooks = None
        if self.saved:
            self.origins = find_origins(self.saved, arrays, output)
        return Tensor(output, (self, 0))

    @property
    def outputs(self) -> tuple[tuple[Any, Any], ...]:
        """The shape and dtype of each output."""
        return ((self.output_shape, self.output_dtype),)

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

    @property
    def metadata(self) -> dict[str, Any]:
        """A dict for whatever anybody wants to note at this node, as in PyTorch; made when it is first asked for."""
        try:
            return self._metadata
        except AttributeError:
            self._metadata: dict[str, Any] = {}
            return self._metadata

    def name(self) -> str:
        """PyTorch's name of this node."""
        return self.torch_name or f"{type(self).__name__}Backward"

    def __repr__(self) -> str:
        return f"<{self.name().split('::')[-1]} object at {id(self):#x}>"


def as_array(value: Value) -> Any:
    """The array of a Tensor; anything else as it is, but a NumPy scalar that a user wrote counts as a Python number."""
    if isinstance(value, Tensor):
        return value.array
    return value.item() if isinstance(value, np.generic) else value


def wrap(array: Any, *inputs: Value) -> Value:
    """The result of an operation that is not recorded: a Tensor if one of its inputs is."""
    return Tensor(array) if any(isinstance(x, Tensor) for x in inputs) else array


class Unary(Function):
    """A Function of one input.

    `apply` does what it does for any Function, but spelled out: on small arrays it is most of the cost of an operation,
    and without the loop it takes two thirds of the time.
    """

    @classmethod
    def apply(cls, a: Value) -> Value:  # type: ignore[override]
        """Compute, and record the call if the input requires grad. Given an array, return an array."""
        x, edge = (a.array, a._edge or a.gradient_edge) if isinstance(a, Tensor) else (a, NO_EDGE)
        if cls.prepare is not None:
            (x,) = cls.prepare(x)
        ctx = cls()
        ctx.saved = ()
        output = cls.forward(ctx, x)
        if edge is not NO_EDGE and state.enabled:
            return ctx.record((edge,), (x,), output)
        return wrap(output, a)


class Binary(Function):
    """A Function of two inputs, with an `apply` that is spelled out as that of Unary."""

    @classmethod
    def apply(cls, a: Value, b: Value) -> Value:  # type: ignore[override]
        """Compute, and record the call if an input requires grad. Given arrays, return an array."""
        x, y, x_edge, y_edge = a, b, NO_EDGE, NO_EDGE
        if isinstance(b, Tensor):  # `b` first: if both are new leaves, the node of `a` is the younger, and served first
            y, y_edge = b.array, b._edge or b.gradient_edge
        if isinstance(a, Tensor):
            x, x_edge = a.array, a._edge or a.gradient_edge
        if cls.prepare is not None:
            x, y = cls.prepare(x, y)
        ctx = cls()
        ctx.saved = ()
        try:
            output = cls.forward(ctx, x, y)
        except ValueError:
            if cls.complain is not None:
                cls.complain(x, y)
            raise
        if (x_edge is not NO_EDGE or y_edge is not NO_EDGE) and state.enabled:
            return ctx.record((x_edge, y_edge), (x, y), output)
        return wrap(output, a, b)


OUTPUT = -1
CONSTANT = -2


def find_origins(saved: tuple, arrays: Sequence[Any], output: Any) -> tuple[int, ...]:
    """For each saved value which input it was, or OUTPUT or CONSTANT.

    Values are recognised by identity: no two tensors share an array object.
    """
    if len(saved) == 2 == len(arrays) and saved[0] is arrays[0] and saved[1] is arrays[1]:  # the usual cases, quickly
        return (0, 1)
    if len(saved) == 1 and saved[0] is output:
        return (OUTPUT,)
    origins = []
    for position, value in enumerate(saved):
        if value is output:
            origins.append(OUTPUT)
        elif position < len(arrays) and value is arrays[position]:
            origins.append(position)
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
    """The end of a path: adds what arrives into the `.grad` of a leaf. There is one per leaf, made when first needed.

    It holds the leaf; the leaf holds it weakly. The addition itself is `backward.accumulate_leaf`.
    """

    torch_name = "torch::autograd::AccumulateGrad"
    __slots__ = ("__weakref__", "variable")

    def __init__(self, variable: Any) -> None:
        self.variable = variable
        self.saved = ()
        self.record((), (), variable.array)


class GraphRoot(Function):
    """The start of a backward pass: its inputs are the tensors from which the pass starts."""

    torch_name = "GraphRoot"
    outputs = ()

    def __init__(self, edges: tuple[Edge, ...]) -> None:
        self.saved = ()
        self.next_functions = edges
        self.output_shape = None
        self.sequence_nr = next_sequence_nr()
