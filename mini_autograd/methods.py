"""Operations as methods of Tensor: `x.exp()` is `exp(x)`. Those of the first lessons stand in tensor.py itself.

The one idea to know: a function whose first argument is a tensor is a method already, so here are only names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mini_autograd import arrays, namespace, on_demand
from mini_autograd.arrays import NUMBER
from mini_autograd.function import Value, new
from mini_autograd.operations import comparison, joining, rounding, shape
from mini_autograd.tensor import Tensor, register_methods

FUNCTIONS = """
absolute abs sign sgn sqrt rsqrt reciprocal square log1p log2 log10 expm1 exp2 sin cos tan asin acos atan sinh cosh
asinh acosh atanh arccos arcsin arctan arccosh arcsinh arctanh erf deg2rad rad2deg sigmoid logit floor ceil trunc fix
round frac remainder fmod copysign floor_divide div nan_to_num positive atan2 arctan2 hypot logaddexp logaddexp2 xlogy
lerp addcmul addcdiv float_power ldexp heaviside
isnan isinf isfinite isposinf isneginf isreal isclose allclose equal signbit any all count_nonzero nonzero argwhere
logical_and logical_or logical_xor logical_not bitwise_and bitwise_or bitwise_xor bitwise_not
bitwise_left_shift bitwise_right_shift is_floating_point isin
greater greater_equal less less_equal not_equal
maximum minimum fmax fmin clamp clip clamp_min clamp_max amax amin aminmax max min argmax argmin sort argsort msort topk
kthvalue median cummax cummin
prod var std logsumexp nansum nanmean cumsum cumprod logcumsumexp diff softmax log_softmax norm dist
mm bmm mv dot vdot outer ger inner kron addmm addmv addr addbmm baddbmm
squeeze unsqueeze ravel unflatten movedim moveaxis swapdims broadcast_to flip fliplr flipud roll rot90 split
split_with_sizes narrow select chunk tensor_split hsplit vsplit dsplit unbind tile repeat_interleave tril triu diag
diag_embed diagflat diagonal trace
gather scatter scatter_add index_select index_add index_copy index_fill index_put masked_fill masked_select
masked_scatter take take_along_dim
"""

register_methods({_name: getattr(namespace, _name) for _name in FUNCTIONS.split()})


def _where(self: Value, condition: Value, other: Value) -> Value:
    """`self` where `condition` holds, `other` elsewhere."""
    return comparison.where(condition, self, other)


def _invert(self: Value) -> Value:
    """`~self`, of integers or bools."""
    if self.is_floating_point():
        raise TypeError("~ (operator.invert) is only implemented on integer and Boolean-type tensors")
    return comparison.bitwise_not(self)


def _operator(function: Callable[[Value, Value], Value], reflected: bool = False) -> Callable[[Value, Any], Value]:
    """The method behind an operator: what is neither tensor nor number is left to Python."""

    def method(self: Value, other: Any) -> Value:
        if not isinstance(other, (Tensor, *NUMBER)):
            return NotImplemented
        return function(other, self) if reflected else function(self, other)

    return method


_made_for_user = on_demand.called_later("legacy", "new_tensor")


def _new(cls: type[Tensor], *args: Any, **options: Any) -> Any:
    """What `Tensor(...)` gives: see legacy.py. Subclasses fill what they get by themselves."""
    return _made_for_user(*args, **options) if cls is Tensor else new(cls)


def _conversion(dtype: np.dtype) -> Callable[[Value], Value]:
    """The method that gives a tensor in a dtype."""

    def method(self: Value) -> Value:
        return self.to(dtype)

    method.__doc__ = f"As {dtype.name}."
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
    "__lshift__": _operator(comparison.bitwise_left_shift),
    "__rlshift__": _operator(comparison.bitwise_left_shift, reflected=True),
    "__rshift__": _operator(comparison.bitwise_right_shift),
    "__rrshift__": _operator(comparison.bitwise_right_shift, reflected=True),
}

register_methods(METHODS | on_demand.by_name(on_demand.METHODS))
