"""Questions about numbers, answered with bool tensors: comparisons, logic, `isnan` and the like, `any` and `all`.

The one idea to know: an answer does not change when the question's numbers change a little, so none of these is
recorded, and no gradient flows through them. Only a comparison in place, such as `x.eq_(y)`, is recorded: the numbers
that it replaces had a history, which must end.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from mini_autograd.graph.function import Function, Value, as_array, wrap
from mini_autograd.numerics.arrays import (
    bool_,
    dtype_name,
    holds,
    int64,
    is_floating,
    normalize_dims,
    number,
    promoted,
    result_type,
    uint8,
)
from mini_autograd.operations.pointwise.elementwise import check_broadcast, no_slope
from mini_autograd.operations.pointwise.elementwise import where as choose

__all__ = [
    "all", "allclose", "any", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "count_nonzero", "eq",
    "equal", "ge", "greater", "greater_equal", "gt", "is_floating_point", "isclose", "isfinite", "isinf", "isnan",
    "le", "less", "less_equal", "logical_and", "logical_not", "logical_or", "lt", "ne", "nonzero", "not_equal",
    "where",
]  # fmt: skip
IN_PLACE = [name for name in __all__ if not name.startswith(("al", "any", "count", "equal", "is", "nonzero", "where"))]

Question = Callable[[Value], Value]
Comparison = Callable[[Value, Value], Value]


def _named(function: Callable[..., Value], name: str, meaning: str | None) -> Callable[..., Value]:
    """The function with what `help` shows of it."""
    function.__name__, function.__qualname__, function.__doc__ = name, name, meaning
    return function


def _comparison(compare: Callable[[Any, Any], Any], meaning: str) -> Comparison:
    def function(input: Value, other: Value) -> Value:
        a, b = promoted(as_array(input), as_array(other))
        try:
            return wrap(compare(a, b), input, other)
        except ValueError:
            check_broadcast(np.shape(a), np.shape(b))
            raise

    return _named(function, compare.__name__, f"{meaning}, element by element.")


def _of_bits(combine: Callable[[Any, Any], Any], kernel: str, meaning: str) -> Comparison:
    compute = _comparison(combine, meaning)

    def function(input: Value, other: Value) -> Value:
        common = result_type(as_array(input), as_array(other))
        if is_floating(common) or (common == bool_ and "shift" in kernel):
            raise NotImplementedError(f"\"{kernel}\" not implemented for '{dtype_name(common)}'")
        return compute(input, other)

    return _named(function, kernel.removesuffix("_cpu"), compute.__doc__)


eq, ne = _comparison(operator.eq, "`input == other`"), _comparison(operator.ne, "`input != other`")
lt, le = _comparison(operator.lt, "`input < other`"), _comparison(operator.le, "`input <= other`")
gt, ge = _comparison(operator.gt, "`input > other`"), _comparison(operator.ge, "`input >= other`")
greater, greater_equal, less, less_equal, not_equal = gt, ge, lt, le, ne
bitwise_and = _of_bits(operator.and_, "bitwise_and_cpu", "`input & other`")
bitwise_or = _of_bits(operator.or_, "bitwise_or_cpu", "`input | other`")
bitwise_xor = _of_bits(operator.xor, "bitwise_xor_cpu", "`input ^ other`")
logical_and = _comparison(np.logical_and, "Whether both are non-zero")
logical_or = _comparison(np.logical_or, "Whether at least one is non-zero")


class Answer(Function):
    """The answers to a comparison, as numbers in the dtype of the first input. No gradient flows through them."""

    exact = True
    __slots__ = ("called",)
    called: str

    @staticmethod
    def forward(ctx, x, other, compare, title):
        ctx.called = f"{title}Backward{int(hasattr(other, 'ndim'))}"
        return compare(x, other).astype(x.dtype)

    @staticmethod
    def backward(ctx, grad):
        return no_slope(grad), no_slope(grad)

    @staticmethod
    def jvp(ctx, tangent, other_tangent):
        return None

    def name(self) -> str:
        """PyTorch has a node for each comparison."""
        return self.called


def _recorded(compare: Comparison) -> Comparison:
    def function(input: Value, other: Value) -> Value:
        return Answer.apply(input, other, compare=compare, title=compare.__name__.title())

    return _named(function, compare.__name__, compare.__doc__)


RECORDED = {compare: _recorded(compare) for compare in (eq, ne, lt, le, gt, ge)}
"""The comparisons as they work in place: the answers replace numbers that had a history."""


def _question(ask: Callable[[Any], Any], meaning: str) -> Question:
    def function(input: Value) -> Value:
        return wrap(ask(as_array(input)), input)

    return _named(function, ask.__name__, f"Whether each element is {meaning}.")


isnan, isinf = _question(np.isnan, "nan"), _question(np.isinf, "inf or -inf")
isfinite = _question(np.isfinite, "neither nan nor infinite")
logical_not = _question(np.logical_not, "zero")


def bitwise_not(input: Value) -> Value:
    """`~input`, for integers or bools. Raises NotImplementedError for floats."""
    array = as_array(input)
    if is_floating(array.dtype):
        raise NotImplementedError(f"\"bitwise_not_cpu\" not implemented for '{dtype_name(array.dtype)}'")
    return wrap(~array, input)


def isclose(input: Value, other: Value, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> Value:
    """Whether |input - other| <= atol + rtol |other|, element by element.

    Raises RuntimeError for different dtypes and for a negative tolerance.
    """
    a, b = as_array(input), as_array(other)
    if a.dtype != b.dtype:
        raise RuntimeError(f"{dtype_name(a.dtype)} did not match {dtype_name(b.dtype)}")
    for name, value in (("rtol", rtol), ("atol", atol)):
        if value < 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {value}")
    check_broadcast(a.shape, b.shape)
    return wrap(np.isclose(a, b, rtol, atol, equal_nan), input, other)


def allclose(input: Value, other: Value, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether all elements are close, as a Python bool."""
    return holds(as_array(isclose(input, other, rtol, atol, equal_nan)).all())


def equal(input: Value, other: Value) -> bool:
    """Whether two tensors have the same shape and elements, as a Python bool."""
    return holds(np.array_equal(as_array(input), as_array(other)))


def any(input: Value, dim: Any = None, keepdim: bool = False) -> Value:
    """Whether any element is non-zero, along `dim` (an axis, several, or None: all; for (), each element by itself)."""
    array = as_array(input)
    result = array.any(axis=_axes(dim, array.ndim), keepdims=keepdim)
    return wrap(_byte_stays(array, result), input)


def all(input: Value, dim: Any = None, keepdim: bool = False) -> Value:
    """Whether all elements are non-zero, along `dim` (an axis, several, or None: all; for (), each by itself)."""
    array = as_array(input)
    result = array.all(axis=_axes(dim, array.ndim), keepdims=keepdim)
    return wrap(_byte_stays(array, result), input)


def _axes(dim: Any, ndim: int) -> tuple[int, ...] | None:
    """The axes of `any` and `all`: for them, an empty sequence stands for none, not for all as in other reductions."""
    return () if dim == () or dim == [] else normalize_dims(dim, ndim)


def _byte_stays(array: Any, result: Any) -> Any:
    return result.astype(array.dtype) if array.dtype == np.uint8 else result  # as in PyTorch, for old masks


def count_nonzero(input: Value, dim: Any = None) -> Value:
    """How many elements are not zero, along `dim` (an axis, several, or None: all)."""
    array = as_array(input)
    return wrap((array != 0).sum(axis=normalize_dims(dim, array.ndim), dtype=int64), input)


def nonzero(input: Value, *, as_tuple: bool = False) -> Any:
    """The indices of all elements that are not zero: one row each, or with `as_tuple` one tensor per axis."""
    array = as_array(input)
    if as_tuple:
        return tuple(wrap(index, input) for index in np.nonzero(array if array.ndim else array.reshape(1)))
    return wrap(np.argwhere(array), input)


def where(condition: Value, input: Value = None, other: Value = None) -> Any:
    """`input` where the bool tensor `condition` holds, and `other` elsewhere.

    Given the condition alone, the indices of all elements that are not zero: one tensor per axis. Raises TypeError if
    one of the two is missing.
    """
    if input is None and other is None:
        return nonzero(condition, as_tuple=True)
    if input is None or other is None:
        raise TypeError("where() received an invalid combination of arguments: give `input` and `other`, or neither")
    if not hasattr(condition, "dtype"):
        raise TypeError(f"where(): argument 'condition' (position 1) must be Tensor, not {type(condition).__name__}")
    if condition.dtype not in (bool_, uint8):
        raise RuntimeError(
            "where expected condition to be a boolean tensor, but got a tensor with dtype "
            f"{dtype_name(condition.dtype)}"
        )
    return choose(condition, number(input), number(other))


def is_floating_point(input: Value) -> bool:
    """Whether the dtype is floating, so that it can carry a gradient."""
    return is_floating(input.dtype)
