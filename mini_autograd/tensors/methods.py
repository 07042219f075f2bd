"""Operations as methods of Tensor: `x.exp()` is `exp(x)`. Operators are in tensor.py itself.

The one idea to know: a function whose first argument is a tensor is already a method, so only the others are here.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from mini_autograd.graph.function import Value, new
from mini_autograd.numerics import arrays
from mini_autograd.numerics.arrays import NUMBER
from mini_autograd.operations.pointwise import comparison, rounding
from mini_autograd.operations.shapes import joining, shape
from mini_autograd.tensors import namespace, on_demand
from mini_autograd.tensors.tensor import Tensor, register_methods


def _is_method(value: Any) -> bool:
    """Whether a function's first argument is a tensor: PyTorch calls it `input`, and `tensor` in `split`."""
    code = getattr(inspect.unwrap(value), "__code__", None)
    return code is not None and code.co_varnames[:1] in (("input",), ("tensor",))


FUNCTIONS = {name: value for name, value in vars(namespace).items() if _is_method(value)}

register_methods(FUNCTIONS)


def _where(self: Value, condition: Value, other: Value) -> Value:
    """`self` where `condition` holds, `other` elsewhere."""
    return comparison.where(condition, self, other)


def _invert(self: Value) -> Value:
    """`~self`, for integers or bools."""
    if self.is_floating_point():
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return comparison.bitwise_not(self)


def _transposed_matrices(self: Value) -> Value:
    """Every matrix of a batch, transposed. Raises RuntimeError for fewer than two axes."""
    if self.ndim < 2:
        raise RuntimeError(f"tensor.mT is only supported on matrices or batches of matrices. Got {self.ndim}-D tensor.")
    return shape.transpose(self, -2, -1)


def _operator(function: Callable[[Value, Value], Value], reflected: bool = False) -> Callable[[Value, Any], Value]:
    """The method behind an operator: an operand that is neither tensor nor number is left to Python."""

    def method(self: Value, other: Any) -> Value:
        if not isinstance(other, (Tensor, *NUMBER)):
            return NotImplemented
        return function(arrays.number(other), self) if reflected else function(self, other)

    return method


_made_for_user = on_demand.called_later("tensors.legacy", "new_tensor")


def _new(cls: type[Tensor], *args: Any, **options: Any) -> Any:
    """What `Tensor(...)` returns: see legacy.py. Subclasses get an empty object, and fill it themselves."""
    return _made_for_user(*args, **options) if cls is Tensor else new(cls)


def _conversion(dtype: np.dtype) -> Callable[[Value], Value]:
    """The method that casts a tensor to a dtype."""

    def method(self: Value) -> Value:
        return self.to(dtype)

    method.__doc__ = f"Cast to {dtype.name}."
    return method


METHODS: dict[str, Any] = {
    "__new__": _new,
    "half": _conversion(arrays.float16),
    "float": _conversion(arrays.float32),
    "double": _conversion(arrays.float64),
    "int": _conversion(arrays.int32),
    "long": _conversion(arrays.int64),
    "bool": _conversion(arrays.bool_),
    "where": _where,
    "mT": property(_transposed_matrices),
    "repeat": joining.repeat,
    "expand_as": shape.expand_as,
    "reshape_as": shape.reshape_as,
    "view_as": shape.view_as,
    "__abs__": rounding.abs,
    "__pos__": rounding.positive,
    "__invert__": _invert,
    "__floordiv__": _operator(rounding.floor_divide),
    "__rfloordiv__": _operator(rounding.floor_divide, reflected=True),
    "__mod__": _operator(rounding.remainder),
    "__rmod__": _operator(rounding.remainder, reflected=True),
}

register_methods(METHODS)
