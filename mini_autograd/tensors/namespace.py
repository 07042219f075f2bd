"""The functions that `torch` has too, one import per family. The package takes them all from here.

Functions that only `torch.nn.functional` has are in nn/functional.py.
"""

# ruff: noqa: F401

from mini_autograd.numerics import numpy_names as _numpy_names
from mini_autograd.operations.neural.activations import sigmoid
from mini_autograd.operations.pointwise.comparison import (
    all,
    allclose,
    any,
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    count_nonzero,
    eq,
    equal,
    ge,
    gt,
    is_floating_point,
    isclose,
    isfinite,
    isinf,
    isnan,
    le,
    logical_and,
    logical_not,
    logical_or,
    lt,
    ne,
    nonzero,
    where,
)
from mini_autograd.operations.pointwise.elementwise import (
    add,
    clone,
    divide,
    exp,
    lerp,
    log,
    multiply,
    negative,
    pow,
    relu,
    subtract,
    tanh,
)
from mini_autograd.operations.pointwise.mathematical import cos, erf, log1p, reciprocal, rsqrt, sin, sqrt, square
from mini_autograd.operations.pointwise.rounding import (
    abs,
    ceil,
    div,
    floor,
    floor_divide,
    positive,
    remainder,
    round,
    sign,
    trunc,
)
from mini_autograd.operations.products.linear_algebra import bmm, dot, matmul, mm, mv, outer
from mini_autograd.operations.reductions.cumulative import cumsum
from mini_autograd.operations.reductions.diagonals import diag, diag_embed, diagonal, trace, tril, triu
from mini_autograd.operations.reductions.extremes import amax, amin, clamp, maximum, minimum
from mini_autograd.operations.reductions.norms import norm
from mini_autograd.operations.reductions.reduction import logsumexp, mean, prod, std, sum, var
from mini_autograd.operations.reductions.softmax import log_softmax, softmax
from mini_autograd.operations.reductions.sorting import aminmax, argmax, argmin, argsort, max, median, min, sort, topk
from mini_autograd.operations.shapes.gathering import (
    gather,
    index_select,
    masked_fill,
    masked_select,
    scatter,
    scatter_add,
)
from mini_autograd.operations.shapes.joining import cat, chunk, narrow, select, split, stack, unbind
from mini_autograd.operations.shapes.shape import (
    broadcast_to,
    flatten,
    flip,
    permute,
    ravel,
    reshape,
    roll,
    squeeze,
    t,
    transpose,
    unsqueeze,
)

_numpy_names.accept(globals())

absolute = abs
mul, sub, true_divide, neg, swapaxes = multiply, subtract, divide, negative, transpose
clip = clamp
greater, greater_equal, less, less_equal, not_equal = gt, ge, lt, le, ne
