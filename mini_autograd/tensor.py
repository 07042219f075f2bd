"""`Tensor`: an array, whether it requires grad, its gradient, and where it came from; operators that call operations.

Imports operations, function, arrays, autograd and printing. The one idea to know: where a tensor's gradient goes is one
attribute, `_edge`: to the node that made the tensor; nowhere (`NO_EDGE`); or, for a leaf that requires grad (`None`),
into its own `.grad`.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from mini_autograd import arrays, autograd, function, printing
from mini_autograd.function import NO_EDGE, AccumulateGrad, Edge, Function
from mini_autograd.operations import comparison, elementwise, indexing, linear_algebra, reduction
from mini_autograd.operations import shape as shapes

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
        if not isinstance(other, Tensor):
            if not isinstance(other, arrays.NUMBER):
                return NotImplemented
            other = function.as_array(other)
        return apply(other, self) if reflected else apply(self, other)

    return method


def _comparison(compare: Callable) -> Callable[[Tensor, Any], Tensor]:
    def method(self: Tensor, other: Any) -> Tensor:
        return compare(self, other) if isinstance(other, (Tensor, *arrays.NUMBER)) else NotImplemented

    return method


class Tensor:
    """An array that remembers how it was computed. Make one with `mini_autograd.tensor`.

    As `torch.Tensor`, except that `shape` is a plain tuple and `dtype` a NumPy dtype. `array` is the NumPy array behind
    it (or NumPy scalar, if 0-d): the engine computes with it, and everybody else uses `numpy()`.
    """

    __slots__ = ("__weakref__", "_accumulator", "_edge", "_grad", "array", "retains_grad")
    __array_ufunc__ = None  # NumPy leaves `array * tensor` to us
    __hash__ = object.__hash__

    def __init__(self, array: Any, edge: Edge | None = NO_EDGE) -> None:
        self.array = array
        self._edge = edge
        self._grad: Tensor | None = None
        self._accumulator: weakref.ref | None = None
        self.retains_grad = False

    # the graph

    @property
    def gradient_edge(self) -> Edge:
        """Where the gradient of this tensor goes."""
        if self._edge is not None:
            return self._edge
        node = None if self._accumulator is None else self._accumulator()
        if node is None:
            node = AccumulateGrad(self)
            self._accumulator = weakref.ref(node)
        return node, 0

    @property
    def requires_grad(self) -> bool:
        """Whether operations on this tensor are recorded."""
        return self._edge is not NO_EDGE

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
        else:
            self._edge = None if value else NO_EDGE

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Set `requires_grad` and return the tensor."""
        if requires_grad and not arrays.is_floating(self.dtype):
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        self.requires_grad = requires_grad
        return self

    @property
    def grad_fn(self) -> Function | None:
        """The node that made this tensor; None for a leaf."""
        return self._edge[0] if self._edge else None

    @property
    def output_nr(self) -> int:
        """Which output of `grad_fn` this tensor is."""
        return self._edge[1] if self._edge else 0

    @property
    def is_leaf(self) -> bool:
        """Whether this tensor was not computed from a tensor that requires grad."""
        return self._edge is None or self._edge is NO_EDGE

    @property
    def grad(self) -> Tensor | None:
        """The gradients that backward passes have added up here; None if there was none yet."""
        if self._grad is None and not self.is_leaf and not self.retains_grad:
            warnings.warn(NONLEAF_GRAD, UserWarning, stacklevel=2)
        return self._grad

    @grad.setter
    def grad(self, grad: Tensor | None) -> None:
        if grad is not None:
            self._check_grad(grad)
        self._grad = grad

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

    def retain_grad(self) -> None:
        """Keep the gradient of this tensor in `.grad` too, though it is no leaf."""
        if not self.requires_grad:
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
        if self.is_leaf or self.retains_grad:
            return
        self.retains_grad = True
        node, number = self.gradient_edge
        tensor = weakref.ref(self)  # the tensor holds the node already

        def keep(grad: Any) -> None:
            if (owner := tensor()) is not None:
                grad = grad if isinstance(grad, Tensor) else Tensor(grad.copy())
                owner._grad = grad if owner._grad is None else owner._grad + grad

        node.hooks = [*(node.hooks or ()), (number, keep)]  # type: ignore[union-attr]

    def backward(
        self,
        gradient: Tensor | None = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Sequence[Tensor] | Tensor | None = None,
    ) -> None:
        """Add the gradient of this tensor into the `.grad` of the leaves it was computed from (or of `inputs`)."""
        autograd.backward(self, gradient, retain_graph, create_graph, inputs=inputs)

    def detach(self) -> Tensor:
        """The same memory, without the history."""
        return Tensor(self.array[...])

    @property
    def data(self) -> Tensor:
        """The same memory, without the history."""
        return self.detach()

    @data.setter
    def data(self, new: Tensor) -> None:
        self.array = new.array

    # looking at it

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def dtype(self) -> np.dtype:
        return self.array.dtype

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

    def numpy(self) -> np.ndarray:
        """The array itself: a change of one is a change of the other."""
        if self.requires_grad:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        self.array = np.asarray(self.array)
        return self.array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    def item(self) -> float | int | bool:
        """The only element, as a Python number."""
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
        return iter([self[row] for row in range(len(self))])

    def __contains__(self, element: Any) -> bool:
        return bool((self == element).array.any())

    def __repr__(self) -> str:
        name = self.grad_fn.name() if self.grad_fn else None
        return printing.tensor_text(np.asarray(self.array), self.requires_grad, name)

    def __format__(self, spec: str) -> str:
        return format(self.item() if self.ndim == 0 else repr(self), spec)

    # operators and operations

    __add__ = __radd__ = _operator(elementwise.Add)
    __sub__, __rsub__ = _operator(elementwise.Subtract), _operator(elementwise.Subtract, reflected=True)
    __mul__ = __rmul__ = _operator(elementwise.Multiply)
    __truediv__, __rtruediv__ = _operator(elementwise.Divide), _operator(elementwise.Divide, reflected=True)
    __rpow__ = _operator(elementwise.PowerOfTensors, reflected=True)
    __neg__ = elementwise.negative
    __getitem__ = indexing.getitem
    __eq__, __ne__ = _comparison(comparison.eq), _comparison(comparison.ne)  # type: ignore[assignment]
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

    def __pos__(self) -> Tensor:
        return self

    def __invert__(self) -> Tensor:
        return Tensor(~self.array)

    add, sub, subtract = elementwise.add, elementwise.subtract, elementwise.subtract
    mul, multiply = elementwise.multiply, elementwise.multiply
    div, divide, true_divide = elementwise.divide, elementwise.divide, elementwise.divide
    neg, negative, pow = elementwise.negative, elementwise.negative, elementwise.pow
    exp, log, tanh, relu = elementwise.exp, elementwise.log, elementwise.tanh, elementwise.relu
    eq, ne, lt, le, gt, ge = (
        comparison.eq,
        comparison.ne,
        comparison.lt,
        comparison.le,
        comparison.gt,
        comparison.ge,
    )
    clone = elementwise.clone
    sum, mean = reduction.sum, reduction.mean
    matmul = linear_algebra.matmul
    reshape, view, flatten, expand = shapes.reshape, shapes.view, shapes.flatten, shapes.expand
    transpose, permute, t, swapaxes = shapes.transpose, shapes.permute, shapes.t, shapes.transpose

    @property
    def T(self) -> Tensor:  # noqa: N802  (PyTorch's name)
        """All axes in reverse order."""
        return shapes.permute(self, tuple(reversed(range(self.ndim))))

    @property
    def mT(self) -> Tensor:  # noqa: N802  (PyTorch's name)
        """Every matrix of a batch transposed."""
        if self.ndim < 2:
            raise RuntimeError(
                f"tensor.mT is only supported on matrices or batches of matrices. Got {self.ndim}-D tensor."
            )
        return shapes.transpose(self, -2, -1)

    def to(self, dtype: np.dtype) -> Tensor:
        """In another dtype."""
        return elementwise.cast(self, dtype)

    def half(self) -> Tensor:
        return self.to(arrays.float16)

    def float(self) -> Tensor:
        return self.to(arrays.float32)

    def double(self) -> Tensor:
        return self.to(arrays.float64)

    def int(self) -> Tensor:
        return self.to(arrays.int32)

    def long(self) -> Tensor:
        return self.to(arrays.int64)

    def bool(self) -> Tensor:
        return self.to(arrays.bool_)


function.Tensor = Tensor
