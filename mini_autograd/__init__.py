"""A small automatic-differentiation engine on NumPy, with PyTorch's names, semantics and error texts.

It is what a finished MiniTensor looks like: `import mini_autograd as ma` in place of `import torch`, within what is
covered here.
"""

from mini_autograd import allocator, autograd
from mini_autograd.arrays import bool_ as bool
from mini_autograd.arrays import float16, float32, float64, int8, int16, int32, int64, uint8
from mini_autograd.autograd import Function
from mini_autograd.creation import arange, from_numpy, full, ones, ones_like, tensor, zeros, zeros_like
from mini_autograd.grad_mode import enable_grad, is_grad_enabled, no_grad, set_grad_enabled
from mini_autograd.operations.elementwise import (
    add,
    clone,
    divide,
    eq,
    exp,
    ge,
    gt,
    le,
    log,
    lt,
    multiply,
    ne,
    negative,
    pow,
    relu,
    subtract,
    tanh,
    where,
)
from mini_autograd.operations.linear_algebra import matmul
from mini_autograd.operations.reduction import mean, sum
from mini_autograd.operations.shape import flatten, permute, reshape, t, transpose
from mini_autograd.tensor import Tensor

mul, sub, div, true_divide, neg, swapaxes = multiply, subtract, divide, divide, negative, transpose
half, float, double, int, long = float16, float32, float64, int32, int64

allocator.keep_freed_memory()  # a setting of the process; the module says why, and how to leave it out

__all__ = [
    "Function",
    "Tensor",
    "add",
    "arange",
    "autograd",
    "bool",
    "clone",
    "div",
    "divide",
    "double",
    "enable_grad",
    "eq",
    "exp",
    "flatten",
    "float",
    "float16",
    "float32",
    "float64",
    "from_numpy",
    "full",
    "ge",
    "gt",
    "half",
    "int",
    "int8",
    "int16",
    "int32",
    "int64",
    "is_grad_enabled",
    "le",
    "log",
    "long",
    "lt",
    "matmul",
    "mean",
    "mul",
    "multiply",
    "ne",
    "neg",
    "negative",
    "no_grad",
    "ones",
    "ones_like",
    "permute",
    "pow",
    "relu",
    "reshape",
    "set_grad_enabled",
    "sub",
    "subtract",
    "sum",
    "swapaxes",
    "t",
    "tanh",
    "tensor",
    "transpose",
    "true_divide",
    "uint8",
    "where",
    "zeros",
    "zeros_like",
]
