"""Operations as methods of Tensor: `x.exp()` is `exp(x)`. Those of the first lessons stand in tensor.py itself.

Imports tensor, the operations and the namespace. The one idea to know: a function whose first argument is a tensor is a
method already, so here are only names.
"""

from __future__ import annotations

from typing import Any

from mini_autograd import namespace
from mini_autograd.function import Value
from mini_autograd.operations import comparison, joining, rounding, shape
from mini_autograd.operations.elementwise import where
from mini_autograd.tensor import Tensor

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

for _name in FUNCTIONS.split():
    setattr(Tensor, _name, getattr(namespace, _name))


def _where(self: Value, condition: Value, other: Value) -> Value:
    """`self` where `condition` holds, `other` elsewhere."""
    return where(condition, self, other)


def _floor_divided(self: Value, other: Any) -> Value:
    return rounding.floor_divide(other, self)


def _remainder(self: Value, other: Any) -> Value:
    return rounding.remainder(other, self)


METHODS: dict[str, Any] = {
    "where": _where,
    "repeat": joining.repeat,
    "expand_as": shape.expand_as,
    "reshape_as": shape.reshape_as,
    "view_as": shape.view_as,
    "__abs__": rounding.abs,
    "__floordiv__": rounding.floor_divide,
    "__rfloordiv__": _floor_divided,
    "__mod__": rounding.remainder,
    "__lshift__": comparison.bitwise_left_shift,
    "__rshift__": comparison.bitwise_right_shift,
    "__rmod__": _remainder,
}

for _name, _method in METHODS.items():
    setattr(Tensor, _name, _method)
