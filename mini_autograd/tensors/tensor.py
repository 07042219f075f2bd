"""`Tensor`: an array, whether it requires grad, its gradient, and where it came from; operators that call operations.

The one idea to know: one attribute, `_edge`, says where a tensor's gradient goes: to the node that made the tensor;
nowhere (`NO_EDGE`); or, for a leaf that requires grad (`None`), into its own `.grad`.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mini_autograd.graph import function
from mini_autograd.graph.edges import NO_EDGE, Edge, node_of, number_of
from mini_autograd.graph.function import UNCHANGED, AccumulateGrad, Function, register_tensor_type, tensor_of
from mini_autograd.graph.grad_mode import INFERENCE, RECORDING, state
from mini_autograd.graph.removable_handle import RemovableHandle
from mini_autograd.graph.views import is_cut_off, link_view, memory_of
from mini_autograd.numerics import arrays
from mini_autograd.numerics.dtypes import KNOWN as DTYPES
from mini_autograd.numerics.size import Size, size_of
from mini_autograd.operations.pointwise import comparison, elementwise, mathematical, rounding
from mini_autograd.operations.products import linear_algebra
from mini_autograd.operations.reductions import reduction
from mini_autograd.operations.shapes import indexing
from mini_autograd.operations.shapes import shape as shapes
from mini_autograd.tensors import gradients

NONLEAF_GRAD = (
    "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be "
    "populated during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf Tensor, "
    "use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure you access the "
    "leaf Tensor instead. See github.com/pytorch/pytorch/pull/30531 for more information."
)


def _operator(operation: type[Function], reflected: bool = False) -> Callable[[Tensor, Any], Tensor]:
    """The method behind an operator: applies the operation to tensors and numbers, and leaves the rest to Python."""

    apply = operation.apply

    def method(self: Tensor, other: Any) -> Tensor:
        if not isinstance(other, Tensor) and type(other) is not float:
            if not isinstance(other, arrays.NUMBER):
                return NotImplemented
            other = function.as_array(other)
        return apply(self, other)

    def reflected_method(self: Tensor, other: Any) -> Tensor:
        if not isinstance(other, (Tensor, *arrays.NUMBER)):
            return NotImplemented
        return apply(other if isinstance(other, Tensor) else function.as_array(other), self)

    return reflected_method if reflected else method


def _comparison(compare: Callable) -> Callable[[Tensor, Any], Tensor]:
    def method(self: Tensor, other: Any) -> Tensor:
        return compare(self, other) if isinstance(other, (Tensor, *arrays.NUMBER)) else NotImplemented

    return method


def _equals(self: Tensor, other: Any) -> Tensor:
    """`self == other`. As in PyTorch, it is the one comparison that takes a NumPy array of numbers, too."""
    comparable = isinstance(other, (Tensor, *arrays.NUMBER)) or getattr(other, "dtype", np.dtype("O")).kind in "biuf"
    return comparison.eq(self, other) if comparable else NotImplemented


def no_accumulator() -> None:
    """Stand in for the reference to an AccumulateGrad that does not exist yet."""


@register_tensor_type
class Tensor:
    """An array that remembers how it was computed. Users make one with `mini_autograd.tensor`, the engine with
    `tensor_of(array, edge)`; `Tensor(...)` works as in PyTorch: see legacy.py.

    Behaves like `torch.Tensor`. `array` is the NumPy array behind it (or NumPy scalar, if 0-d): the engine computes
    with it, and users call `numpy()`.
    """

    __slots__ = (
        *("__weakref__", "array", "_changes", "_edge"),
        *("_accumulator", "_grad", "_leaf_hooks", "_post_hooks", "_retains_grad", "_tangent", "_view"),  # mostly unset
    )
    __array_priority__ = 1000  # NumPy leaves `array * tensor` to us, and hands us the result of `np.exp(tensor)`
    __hash__ = object.__hash__

    if TYPE_CHECKING:  # many methods are registered elsewhere: see `register_methods`

        def __init__(self, *data: Any, size: Any = None, device: Any = None) -> None: ...

        array: Any
        _edge: Edge | None
        _changes: Any

        def __getattr__(self, name: str) -> Any: ...

    # the graph

    @property
    def gradient_edge(self) -> Edge:
        """Where the gradient of this tensor goes."""
        try:
            return self._edge or self._accumulator() or self._new_accumulator()  # the usual cases, quickly
        except AttributeError:  # a view, or a leaf that is used for the first time
            return self._history or self._new_accumulator()

    def _new_accumulator(self) -> AccumulateGrad:
        if self.view_info is not None and is_cut_off(self):
            return AccumulateGrad(self.detach())
        node = AccumulateGrad(self)
        self._accumulator: Any = weakref.ref(node)
        return node

    @property
    def _history(self) -> Edge | None:
        """`_edge`, but for views too: None for a leaf that requires grad."""
        view = getattr(self, "_view", None) if self._edge is None else None
        return self._edge if view is None else view.current_edge(self)

    @property
    def view_info(self) -> Any:
        """For a view, its base and the steps from there to it."""
        return getattr(self, "_view", None)

    @property
    def _base(self) -> Tensor | None:
        """For a view, the tensor that owns the memory."""
        view = self.view_info
        return None if view is None else view.base

    def _is_view(self) -> bool:
        return self.view_info is not None

    def note_source(self, source: Any, operation: type[Function], options: dict[str, Any]) -> None:
        """Note that this tensor is a view, if it shows the memory of `source`, from which `operation` made it."""
        link_view(self, source, operation, options)

    @property
    def version(self) -> Any:
        """The list shared by all tensors of this memory and the node that made it: see versions.py. None for tensors
        made in inference mode.
        """
        if self._changes is UNCHANGED:
            self._changes = [0]
            self._edge.version = self._changes  # type: ignore[union-attr]  # a node made this tensor
        return self._changes

    @version.setter
    def version(self, shared: list[int] | None) -> None:
        self._changes = shared

    @property
    def _version(self) -> int:
        """How often the memory was changed in place."""
        if self.version is None:
            raise RuntimeError("Inference tensors do not track version counter.")
        return self.version[0]

    def is_inference(self) -> bool:
        """Whether the tensor was made in inference mode."""
        return self.version is None

    @property
    def requires_grad(self) -> bool:
        """Whether operations on this tensor are recorded."""
        view = self.view_info if self._edge is None else None
        return self._edge is not NO_EDGE if view is None else view.requires_grad

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if not self.is_leaf:
            if not value:
                raise RuntimeError(
                    "you can only change requires_grad flags of leaf variables. If you want to use a computed variable "
                    "in a subgraph that doesn't require differentiation use var_no_grad = var.detach()."
                )
        elif value and not arrays.is_floating(self.dtype):
            raise RuntimeError("only Tensors of floating point and complex dtype can require gradients")
        elif value and self.version is None and not state.mode & INFERENCE:
            raise RuntimeError("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.")
        elif self.view_info is None:
            self._edge, self._accumulator = None if value else NO_EDGE, no_accumulator
        else:
            self.view_info.edge = None if value else NO_EDGE
            if hasattr(self, "_accumulator"):
                del self._accumulator  # so that `gradient_edge` asks the view

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Set `requires_grad` and return the tensor. Raises RuntimeError for a dtype that is not floating."""
        if requires_grad and not arrays.is_floating(self.dtype):
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        self.requires_grad = requires_grad
        return self

    @property
    def grad_fn(self) -> Function | None:
        """The node that made this tensor; None for a leaf."""
        return node_of(self._history)

    @property
    def output_nr(self) -> int:
        """Which output of `grad_fn` this tensor is."""
        return number_of(self._history)

    @property
    def is_leaf(self) -> bool:
        """Whether this tensor was not computed from a tensor that requires grad."""
        edge = self._history
        return edge is None or edge is NO_EDGE

    @property
    def grad(self) -> Tensor | None:
        """The sum of the gradients that backward passes have added here; None if there was none yet."""
        grad = getattr(self, "_grad", None)
        if grad is None and not self.is_leaf and not self.retains_grad:
            warnings.warn(NONLEAF_GRAD, UserWarning, stacklevel=2)
        return grad

    @grad.setter
    def grad(self, grad: Tensor | None) -> None:
        if grad is not None:
            self._check_grad(grad)
        self._grad = grad

    @grad.deleter
    def grad(self) -> None:
        self._grad = None

    def _check_grad(self, grad: Tensor) -> None:
        if not isinstance(grad, Tensor):
            raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {type(grad).__name__}")
        if grad is self:
            raise RuntimeError("can't assign Variable as its own grad")
        if grad.shape != self.shape:
            raise RuntimeError(
                f"attempting to assign a gradient of size '{list(grad.shape)}' to a tensor of size "
                f"'{list(self.shape)}'. Please ensure that the gradient and the tensor are the same size"
            )
        if grad.dtype != self.dtype:
            got, own = arrays.dtype_name(grad.dtype).lower(), arrays.dtype_name(self.dtype)
            raise RuntimeError(
                f"attempting to assign a gradient with dtype '{got}' to a tensor with grad_dtype '{own}'. The gradient "
                "must match the tensor's grad_dtype (defaults to the tensor's dtype). You can set the tensor's "
                "grad_dtype attribute with a specific dtype, or None to allow any dtype. Set grad_dtype with caution. "
                "Diverging the dtypes of a tensor and its gradient may break downstream systems that assume they match."
            )

    @property
    def retains_grad(self) -> bool:
        """Whether this is not a leaf and still keeps its gradient."""
        return getattr(self, "_retains_grad", False)

    def retain_grad(self) -> None:
        """Keep the gradient in `.grad` even if this is not a leaf. Raises RuntimeError if the tensor gets none."""
        if not self.requires_grad:
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
        if self.is_leaf or self.retains_grad:
            return
        self._retains_grad = True
        tensor = weakref.ref(self)  # the tensor holds the node already

        def keep(grad: Any) -> None:
            if (owner := tensor()) is not None:
                known = getattr(owner, "_grad", None)
                owner._grad = grad.clone() if known is None else known + grad

        self.grad_fn.add_hook(self.output_nr, keep, retains=True)  # type: ignore[union-attr]  # it is not a leaf

    def change_edge(self, edge: Edge) -> None:
        """Give the tensor another edge after a change of its memory. A gradient that it retains is retained there."""
        owner, name = (self, "_edge") if self.view_info is None else (self.view_info, "edge")
        before = getattr(owner, name)
        setattr(owner, name, edge)
        if self.retains_grad:
            node_of(before).hooks.pop(("retains", number_of(before)), None)
            self._retains_grad = False
            self.retain_grad()

    def register_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(grad)` whenever the gradient of this tensor is complete; what it returns replaces the gradient."""
        if not self.requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if self.is_leaf:
            if getattr(self, "_leaf_hooks", None) is None:
                self._leaf_hooks: dict = self.gradient_edge.hooks or {}  # which its AccumulateGrad runs
            self.gradient_edge.hooks = self._leaf_hooks
        node: Any = self.gradient_edge if self.is_leaf else self.grad_fn
        return node.add_hook(self.output_nr, hook)

    def register_post_accumulate_grad_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(tensor)` after each addition to this leaf's `.grad`. Raises RuntimeError if it is not a leaf."""
        if not self.requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if not self.is_leaf:
            raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
        if getattr(self, "_post_hooks", None) is None:
            self._post_hooks: dict = {}
        return RemovableHandle(self._post_hooks, hook)

    def backward(
        self,
        gradient: Tensor | None = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Sequence[Tensor] | Tensor | None = None,
    ) -> None:
        """Add the gradient of this tensor into the `.grad` of the leaves it was computed from (or of `inputs`)."""
        gradients.backward(self, gradient, retain_graph, create_graph, inputs=inputs)

    def detach(self) -> Tensor:
        """The same memory, without the history."""
        result = tensor_of(memory_of(self)[...])
        result.version = self.version
        return result

    def view_as_itself(self) -> Tensor:
        """Another tensor of the same memory and history."""
        return shapes.reshape(self, self.shape)

    def _is_fresh(self) -> bool:
        """Whether nothing else can share this tensor's memory: it was just computed, and is not a view."""
        return self._edge is NO_EDGE and self.view_info is None and self.array.base is None

    @property
    def data(self) -> Tensor:
        """The same memory, without the history, and with a version of its own: in-place changes of it go unnoticed."""
        result = tensor_of(memory_of(self)[...])
        result.version = None if self.version is None else [0]
        return result

    @data.setter
    def data(self, new: Tensor) -> None:
        if not isinstance(new, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(new).__name__}")
        if self.requires_grad and not arrays.is_floating(new.dtype):
            raise RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype")
        self.array = new.array

    # looking at it

    @property
    def shape(self) -> Size:
        """The length of every axis."""
        return size_of(self.array.shape)

    @property
    def dtype(self) -> Any:
        """The type of the elements."""
        return DTYPES[self.array.dtype]

    @property
    def ndim(self) -> int:
        return self.array.ndim

    def size(self, dim: int | None = None) -> Any:
        """The shape, or the length of one axis."""
        return self.shape if dim is None else self.shape[arrays.normalize_dim(dim, self.ndim)]

    def dim(self) -> int:
        """The number of axes."""
        return self.ndim

    def numel(self) -> int:
        """The number of elements."""
        return self.array.size

    def numpy(self, *, force: bool = False) -> np.ndarray:
        """The array itself, shared. Raises RuntimeError if the tensor requires grad and operations are recorded,
        TypeError if it is on a GPU; with `force`, it is detached and copied to the CPU instead.
        """
        if force:
            return self.detach().cpu().numpy()
        if self.requires_grad and state.mode & RECORDING:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        if (device := arrays.device_of(self.array)).type != "cpu":
            raise TypeError(
                f"can't convert {device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
                "memory first."
            )
        self.array = np.asarray(self.array)
        return self.array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Tensor:
        """The result of a NumPy function for this tensor, as a tensor without history."""
        return tensor_of(np.asarray(array))

    def item(self) -> float | int | bool:
        """The only element, as a Python number. Raises RuntimeError if there are several."""
        if self.array.size != 1:
            raise RuntimeError(f"a Tensor with {self.array.size} elements cannot be converted to Scalar")
        return self.array.item()

    def tolist(self) -> Any:
        """Nested lists of Python numbers; of a 0-d tensor, the number."""
        return self.array.tolist()

    def _only_element(self) -> Any:
        if self.array.size != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        return self.array.item()

    def __float__(self) -> float:
        return float(self._only_element())

    def __int__(self) -> int:
        return int(self._only_element())

    def __index__(self) -> int:
        if self.array.size != 1 or self.dtype.kind == "f":
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.array.item())

    def __bool__(self) -> bool:
        if self.array.size != 1:
            amount = "no values" if self.array.size == 0 else "more than one value"
            raise RuntimeError(f"Boolean value of Tensor with {amount} is ambiguous")
        return bool(self.array.item())

    def __len__(self) -> int:
        if self.ndim == 0:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if self.ndim == 0:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind())

    def __contains__(self, element: Any) -> bool:
        return arrays.holds((self == element).array.any())

    def __repr__(self) -> str:
        from mini_autograd.tensors import printing  # only now: it would be a tenth of the engine's import time

        tangent = state.forward_level.tangent_of(self) if state.forward_level else None
        return printing.tensor_text(self, arrays.on_device(self.array, "cpu"), tangent)

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if self.ndim == 0 else object.__format__(self, spec)

    # operators, and for editors the usual operations: methods.py adds all that there are

    __add__ = __radd__ = _operator(elementwise.Add)
    __sub__, __rsub__ = _operator(elementwise.Subtract), _operator(elementwise.Subtract, reflected=True)
    __mul__ = __rmul__ = _operator(elementwise.Multiply)
    __truediv__, __rtruediv__ = _operator(elementwise.Divide), _operator(elementwise.Divide, reflected=True)
    __rpow__ = _operator(elementwise.PowerOfTensors, reflected=True)
    __neg__ = elementwise.negative
    __getitem__ = indexing.getitem
    __eq__, __ne__ = _equals, _comparison(comparison.ne)  # type: ignore[assignment]
    __lt__, __le__ = _comparison(comparison.lt), _comparison(comparison.le)
    __gt__, __ge__ = _comparison(comparison.gt), _comparison(comparison.ge)
    __and__ = __rand__ = _comparison(comparison.bitwise_and)
    __or__ = __ror__ = _comparison(comparison.bitwise_or)
    __xor__ = __rxor__ = _comparison(comparison.bitwise_xor)

    def __matmul__(self, other: Any) -> Tensor:
        return linear_algebra.matmul(self, other) if isinstance(other, Tensor) else NotImplemented

    def __pow__(self, exponent: Any) -> Tensor:
        if not isinstance(exponent, (Tensor, *arrays.NUMBER)):
            return NotImplemented
        return elementwise.pow(self, function.as_array(exponent) if not isinstance(exponent, Tensor) else exponent)

    add, sub, subtract = elementwise.add, elementwise.subtract, elementwise.subtract
    mul, multiply = elementwise.multiply, elementwise.multiply
    div, divide, true_divide = rounding.div, elementwise.divide, elementwise.divide
    neg, negative, pow = elementwise.negative, elementwise.negative, elementwise.pow
    exp, log, tanh, relu = elementwise.exp, elementwise.log, mathematical.tanh, elementwise.relu
    eq, ne, lt = comparison.eq, comparison.ne, comparison.lt
    le, gt, ge = comparison.le, comparison.gt, comparison.ge
    clone = elementwise.clone
    sum, mean = reduction.sum, reduction.mean
    matmul = linear_algebra.matmul
    reshape, view, flatten, expand = shapes.reshape, shapes.view, shapes.flatten, shapes.expand
    transpose, permute, t, swapaxes = shapes.transpose, shapes.permute, shapes.t, shapes.transpose

    @property
    def T(self) -> Tensor:  # noqa: N802  (PyTorch's name)
        """All axes in reverse order."""
        return shapes.permute(self, tuple(reversed(range(self.ndim))))


def register_methods(methods: Mapping[str, Any]) -> None:
    """Give Tensor further methods and properties, by name.

    Modules that are built on this one call it when they are imported: methods.py for most operations, in_place.py and
    random_in_place.py for names that end in `_`, and memory.py.
    """
    for name, method in methods.items():
        setattr(Tensor, name, method)
