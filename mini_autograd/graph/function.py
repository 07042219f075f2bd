"""`Function`: one operation is a `forward` and a `backward`, and one call of it is a node of the graph.

The one idea to know: the instance that `forward` and `backward` receive as `ctx` *is* the node that `tensor.grad_fn`
shows. It points to the nodes of its inputs and never to its output, so a graph holds no reference cycle and disappears
with the last tensor that needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count, repeat
from operator import is_not
from typing import Any

import numpy as np

from mini_autograd.graph.edges import NO_EDGE, Edge, node_of, number_of, output_edge, unpacked
from mini_autograd.graph.grad_mode import FORWARD, INFERENCE, RECORDING, WATCHED, state
from mini_autograd.graph.removable_handle import RemovableHandle
from mini_autograd.numerics.arrays import check_same_device

Value = Any
"""What an operation takes and returns: a Tensor, a Python number or, inside a backward rule, a plain array."""

SAVED_INFERENCE = (
    "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
    "computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it in "
    "autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`."
)

SECOND_BACKWARD = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
    "freed). Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
    "retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors "
    "after calling backward."
)


class Freed:
    """Takes the place of freed saved tensors: unpacking it raises PyTorch's error."""

    def __iter__(self) -> Any:
        raise RuntimeError(SECOND_BACKWARD)

    __getitem__ = __iter__


FREED: Any = Freed()

UNCHANGED: Any = (0,)
"""The version of an output until it is asked for: `Tensor.version` then puts a list in its place. Most outputs are
never viewed or changed, and on a long chain a list for each would cost Python's garbage collector a third more."""

BEFORE, AFTER = -1, -2
"""Used in place of an output's number for hooks of the node itself, called before or after its rule."""

SEVERAL = object()
new = object.__new__
next_sequence_nr = count().__next__

Tensor: Any = None
"""The type that operations take and return. See `register_tensor_type`."""


def register_tensor_type(tensor_type: type) -> type:
    """Class decorator for the type that operations take and return: it is built on them, so they cannot import it."""
    global Tensor
    Tensor = tensor_type
    return tensor_type


class Slotted(type):
    """Make operations small and quick to create: a class that declares no `__slots__` gets empty ones.

    So an operation that keeps something on `ctx` besides what it saves names it in `__slots__`. The `__name__` of its
    class is PyTorch's name, as `type(y.grad_fn).__name__` shows; `__qualname__` keeps our name.
    """

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> Any:
        namespace.setdefault("__slots__", ())
        made: Any = super().__new__(cls, name, bases, namespace)
        if bases:
            made.__name__ = (made.torch_name or (f"{name}Backward0" if made.takes_arrays else name)).split("::")[-1]
        return made


class Function(metaclass=Slotted):
    """One operation. A subclass gives `forward(ctx, *arrays, **options)` and `backward(ctx, grad)`, both static.

    `forward` computes with arrays and Python numbers. It hands the inputs or output that the rule needs to
    `ctx.save_for_backward`, and keeps anything else as an attribute of `ctx`.

    `backward` returns one gradient per positional input (None: no gradient), and ignores shapes: if an input was
    broadcast, the backward pass sums its gradient back. The rule gets arrays in an ordinary pass and Tensors when the
    pass is itself recorded (`create_graph=True`), so it uses only what works on both: operators and the package's
    functions.
    """

    __slots__ = (
        "_metadata",
        "array_dtype",
        "array_shape",
        "changed_at",
        "constants",
        "edges",
        "hooks",
        "origins",
        "output_type",
        "saved_tensors",
        "sequence_nr",
        "version",
    )

    edges: Any  # `inputs`, packed: see edges.unpacked
    output_type: Any  # the type if the output is a NumPy scalar, None if it is an array, SEVERAL if there are several
    array_shape: tuple[int, ...]  # not set for NumPy's floating scalars, whose type says it all
    array_dtype: np.dtype
    saved_tensors: Any  # what save_for_backward got, as arrays; FREED once they are freed
    origins: tuple[int, ...]  # per saved value, which input it was, or OUTPUT
    sequence_nr: int  # counts the nodes in the order of their creation
    hooks: dict[Any, tuple[int, Callable]] | None  # called with the gradient of an output when it is complete
    version: list[int]  # how often the memory of the output was changed; UNCHANGED until the output is asked for it
    constants: tuple  # per input, its version; only set if an input without a gradient may have been saved
    changed_at: int  # of an in-place operation: when it wrote its output

    input_names: tuple[str, ...] = ("self", "other")  # what PyTorch calls the inputs in `_saved_self`: saved_values.py
    needed_by: Mapping[int, tuple[int, ...]] = {}  # per saved input: the inputs whose gradients need it, if not all
    takes_arrays = True  # whether the rule can be given arrays
    torch_name: str | None = None  # PyTorch's name of the node, if it is not the class's and "Backward0"
    sign: str | None = None  # how students write it, if not by its name: "*"
    exact = False  # whether it only moves, picks, drops or cuts off numbers, so that it adds no rounding
    shows_memory = False  # whether the output may be a view of the first input
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
        if cls.shows_memory and isinstance(arrays[0], np.generic) and isinstance(inputs[0], Tensor):
            arrays[0] = inputs[0].array = np.asarray(arrays[0])  # a NumPy scalar cannot be shared
        if cls.prepare is not None:
            arrays = cls.prepare(*arrays)
        ctx = cls()
        ctx.saved_tensors = ()
        try:
            output = cls.forward(ctx, *arrays, **options)
        except (ValueError, IndexError, TypeError):
            check_same_device(*arrays)
            if cls.complain is not None:
                cls.complain(*arrays, **options)
            raise
        mode = state.mode
        if mode > RECORDING:
            result = ctx.finish(mode, inputs, arrays, tuple(edges), output)
        elif recorded and mode:
            result = ctx.record(inputs, arrays, tuple(edges), output)
        else:
            result = wrap(output, *inputs)
        if getattr(output, "base", None) is not None and result is not output:
            result.note_source(inputs[0], cls, options)  # it may be a view of it
        return result

    def finish(self, mode: int, inputs: Sequence[Any], arrays: Sequence[Any], edges: tuple, output: Any) -> Any:
        """The end of `apply` in the rare modes: inference, forward mode, with watchers (hooks, anomaly detection)."""
        recorded = mode & RECORDING and not mode & INFERENCE and edges.count(NO_EDGE) < len(edges)
        result = self.record(inputs, arrays, edges, output) if recorded else wrap(output, *inputs)
        if mode & WATCHED:
            for watcher in state.watchers:
                if recorded:
                    watcher.node_was_recorded(self)
                if hasattr(watcher, "saw"):  # it watches unrecorded calls too
                    watcher.saw(type(self).__qualname__, inputs, result)
        if mode & FORWARD:
            state.forward_level.push(self, inputs, result, recorded)
        return result

    def record(self, inputs: Sequence[Any], arrays: Sequence[Any], edges: tuple[Edge, ...], output: Any) -> Any:
        """Make this call a node of the graph, and return its output."""
        self.edges = edges
        if self.saved_tensors:
            self.origins = find_origins(self.saved_tensors, arrays, output)
            if NO_EDGE in edges:
                self.watch_constants(inputs)
        return self.connect(output)

    def watch_constants(self, inputs: Sequence[Any]) -> None:
        """Store the versions of inputs that need no gradient; the nodes of the other inputs know theirs."""
        self.constants = versions = tuple([x.version if isinstance(x, Tensor) else None for x in inputs])
        if None in versions and any(i >= 0 and getattr(inputs[i], "version", 0) is None for i in self.origins):
            raise RuntimeError(SAVED_INFERENCE)  # an inference tensor: its changes are not counted

    def connect(self, output: Any) -> Any:
        """Make this call, whose edges are set, a node of the graph, and return its output."""
        kind = type(output)
        if kind in SCALARS:
            self.output_type = kind
        else:
            self.output_type = None
            self.array_shape, self.array_dtype = output.shape, output.dtype
        self.sequence_nr = next_sequence_nr()
        self.hooks = None
        tensor = new(Tensor)
        tensor.array = output
        tensor._edge = self
        tensor._changes = self.version = UNCHANGED
        return tensor

    @property
    def inputs(self) -> tuple[Edge, ...]:
        """Per input, where its gradient goes."""
        return unpacked(self.edges)

    @property
    def next_functions(self) -> tuple[tuple[Function | None, int], ...]:
        """Per input, the node that its gradient goes to, and the number of that node's output, as in PyTorch."""
        return tuple([(node_of(edge), number_of(edge)) for edge in self.inputs])

    @property
    def output_shape(self) -> tuple[int, ...] | None:
        """The shape of the output; None if there are several."""
        return None if self.output_type is SEVERAL else self.outputs[0][0]

    @property
    def output_dtype(self) -> np.dtype | None:
        """The dtype of the output; None if there are several."""
        return None if self.output_type is SEVERAL else self.outputs[0][1]

    @property
    def outputs(self) -> tuple[tuple[Any, Any], ...]:
        """The shape and dtype of each output."""
        if self.output_type is None:
            return ((self.array_shape, self.array_dtype),)
        return (((), np.dtype(self.output_type)),)

    def save_for_backward(self, *values: Any) -> None:
        """Keep inputs or the output for `backward`. The backward pass frees them, unless it retains the graph."""
        self.saved_tensors = values

    @property
    def needs_input_grad(self) -> tuple[bool, ...]:
        """Per input, whether its gradient is wanted: a rule may return None for the others and save the work."""
        return tuple(map(is_not, self.inputs, repeat(NO_EDGE)))

    def input_gradients(self, grads: Sequence[Any], create_graph: bool) -> Sequence[Any]:
        """Run the rule on the gradients of the outputs."""
        result = self.backward(Connected(self) if create_graph else self, *grads)
        return result if type(result) is tuple else (result,)

    def release(self) -> None:
        """Free what was saved. As in PyTorch, a node that saved nothing can be visited by another backward pass."""
        if self.saved_tensors:
            self.saved_tensors = FREED

    def add_hook(self, number: int, hook: Callable, retains: bool = False) -> RemovableHandle:
        """Attach a hook to one of the outputs, or BEFORE or AFTER the rule.

        Hooks that retain the gradient of an output see it after its other hooks.
        """
        if self.hooks is None:
            self.hooks = {}
        return RemovableHandle(self.hooks, (number, hook), ("retains", number) if retains else None)

    def register_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(grad_inputs, grad_outputs)` after the rule; a tuple that it returns replaces grad_inputs."""
        return self.add_hook(AFTER, hook)

    def register_prehook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(grad_outputs)` before the rule; a tuple that it returns replaces grad_outputs."""
        return self.add_hook(BEFORE, hook)

    @property
    def metadata(self) -> dict[str, Any]:
        """A dict for notes of any kind on this node, as in PyTorch; created on first access."""
        try:
            return self._metadata
        except AttributeError:
            self._metadata: dict[str, Any] = {}
            return self._metadata

    def name(self) -> str:
        """PyTorch's name of this node."""
        return self.torch_name or type(self).__name__

    def __repr__(self) -> str:
        return f"<{self.name().split('::')[-1]} object at {id(self):#x}>"


def register_attributes(attributes: Mapping[str, Any]) -> None:
    """Give all nodes more attributes. Modules that are built on this one call it: backward.py and saved_values.py."""
    for name, attribute in attributes.items():
        setattr(Function, name, attribute)


def as_array(value: Value) -> Any:
    """The array of a Tensor, a user's NumPy scalar as a Python number, and anything else as it is."""
    if isinstance(value, Tensor):
        return value.array
    return value.item() if isinstance(value, np.generic) else value


def tensor_of(array: Any, edge: Edge | None = NO_EDGE) -> Any:
    """A tensor that holds this very array. `Tensor(...)` is for users: PyTorch's older form of `tensor(...)`."""
    tensor = new(Tensor)
    tensor.array = array
    tensor._edge = edge
    tensor._changes = None if state.mode & INFERENCE else [0]
    return tensor


def wrap(array: Any, *inputs: Value) -> Value:
    """The result of an operation that is not recorded: a Tensor if one of its inputs is."""
    for x in inputs:
        if isinstance(x, Tensor):
            return tensor_of(array)
    return array


class Unary(Function):
    """A Function of one input.

    `apply` does the same as for any Function, but without the loop, which halves its time: on small arrays, it is most
    of the cost of an operation.
    """

    @classmethod
    def apply(cls, a: Value, **options: Any) -> Value:  # type: ignore[override]
        """Compute, and record the call if the input requires grad. Given an array, return an array."""
        x, edge = (a.array, a._edge or a.gradient_edge) if isinstance(a, Tensor) else (a, NO_EDGE)
        if type(x) not in SCALARS and cls.prepare is not None:
            (x,) = cls.prepare(x)
        ctx = cls()
        ctx.saved_tensors = ()
        output = cls.forward(ctx, x, **options) if options else cls.forward(ctx, x)
        mode = state.mode
        if mode > RECORDING:
            return ctx.finish(mode, (a,), (x,), (edge,), output)
        if edge is not NO_EDGE and mode:
            ctx.edges = edge
            saved = ctx.saved_tensors
            if saved:
                ctx.origins = OF_OUTPUT if saved[0] is output else find_origins(saved, (x,), output)
            return ctx.connect(output)
        return wrap(output, a)


class Binary(Function):
    """A Function of two inputs, whose `apply` has no loop either, as in Unary."""

    @property
    def inputs(self) -> tuple[Edge, ...]:
        """Per input, where its gradient goes."""
        edges = unpacked(self.edges)
        return edges if len(edges) == 2 else (*edges, NO_EDGE)

    @classmethod
    def apply(cls, a: Value, b: Value) -> Value:  # type: ignore[override]
        """Compute, and record the call if an input requires grad. Given arrays, return an array."""
        x, y, x_edge, y_edge = a, b, NO_EDGE, NO_EDGE
        if isinstance(b, Tensor):  # `b` first: if both are new leaves, the node of `a` is newer and visited first
            y, y_edge = b.array, b._edge or b.gradient_edge
        if isinstance(a, Tensor):
            x, x_edge = a.array, a._edge or a.gradient_edge
        kind, other = type(x), type(y)
        if (kind not in SCALARS or (other is not kind and other is not float)) and cls.prepare is not None:
            x, y = cls.prepare(x, y)
        ctx = cls()
        ctx.saved_tensors = ()
        try:
            output = cls.forward(ctx, x, y)
        except (ValueError, TypeError):
            check_same_device(x, y)
            if cls.complain is not None:
                cls.complain(x, y)
            raise
        mode = state.mode
        if mode > RECORDING:
            return ctx.finish(mode, (a, b), (x, y), (x_edge, y_edge), output)
        if (x_edge is not NO_EDGE or y_edge is not NO_EDGE) and mode:
            ctx.edges = x_edge if y_edge is NO_EDGE else (x_edge, y_edge)
            saved = ctx.saved_tensors
            if saved:
                in_order = len(saved) == 2 and saved[0] is x and saved[1] is y
                ctx.origins = IN_ORDER if in_order else find_origins(saved, (x, y), output)
                if (x_edge is NO_EDGE and isinstance(a, Tensor)) or (y_edge is NO_EDGE and isinstance(b, Tensor)):
                    ctx.watch_constants((a, b))
            return ctx.connect(output)
        return wrap(output, a, b)


SCALARS = frozenset({np.float16, np.float32, np.float64})
"""What most 0-d tensors hold. Two of the same type need no preparation, nor does one with a Python float: NumPy's
result then has the dtype that PyTorch computes in."""

OUTPUT, CONSTANT, COPY = -1, -2, -3
OF_OUTPUT, IN_ORDER = (OUTPUT,), (0, 1)  # the usual cases of what is saved: the output; both inputs


def find_origins(saved: tuple, arrays: Sequence[Any], output: Any) -> tuple[int, ...]:
    """For each saved value, which input it was, or OUTPUT or CONSTANT (or COPY - n: a copy of input n).

    Values are recognized by identity: no two tensors share an array object.
    """
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
    """The `ctx` that a rule sees when the backward pass is itself recorded, or carries tangents.

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
        if not hasattr(value, "ndim"):
            return value
        if origin == CONSTANT:
            return tensor_of(value)
        if origin <= COPY:
            origin = COPY - origin
        tensor = tensor_of(value, output_edge(self._node) if origin == OUTPUT else self._node.inputs[origin])
        return tensor if state.forward_level is None else state.forward_level.restore(tensor, self._node, origin)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._node, name)
        return tensor_of(value) if hasattr(value, "ndim") and not isinstance(value, Tensor) else value


class AccumulateGrad(Function):
    """The end of a path: adds what arrives into the `.grad` of a leaf. There is one per leaf, made when first needed.

    It holds the leaf; the leaf holds it weakly. The addition itself is `backward.accumulate_leaf`.
    """

    torch_name = "torch::autograd::AccumulateGrad"
    takes_arrays = False  # it has no rule
    __slots__ = ("__weakref__", "variable")

    def __init__(self, variable: Any) -> None:
        self.variable = variable
        self.saved_tensors = ()
        self.edges = ()
        self.output_type = None
        self.array_shape, self.array_dtype = variable.array.shape, variable.array.dtype
        self.sequence_nr = next_sequence_nr()
        self.hooks = getattr(variable, "_leaf_hooks", None)
        self.version = variable.version


class GraphRoot(Function):
    """The start of a backward pass: its inputs are the tensors from which the pass starts."""

    torch_name = "GraphRoot"
    outputs = ()

    def __init__(self, edges: tuple[Edge, ...]) -> None:
        self.saved_tensors = ()
        self.edges = edges
        self.output_type = SEVERAL
        self.sequence_nr = next_sequence_nr()
        self.hooks = None
