"""The functions that `torch` has too, one line per family: `from mini_autograd.namespace import *` gives them all.

Imports the operations and numpy_names. The functions of `torch.nn.functional` only are in nn/functional.py.
"""

# ruff: noqa: F401

from mini_autograd import numpy_names as _numpy_names
from mini_autograd.operations.activations import celu, hardshrink, logit, prelu, selu, sigmoid
from mini_autograd.operations.binary import (
    addcdiv,
    addcmul,
    atan2,
    float_power,
    heaviside,
    hypot,
    ldexp,
    lerp,
    logaddexp,
    logaddexp2,
    xlogy,
)
from mini_autograd.operations.comparison import (
    all,
    allclose,
    any,
    argwhere,
    bitwise_and,
    bitwise_left_shift,
    bitwise_not,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    count_nonzero,
    eq,
    equal,
    ge,
    gt,
    is_floating_point,
    isclose,
    isfinite,
    isin,
    isinf,
    isnan,
    isneginf,
    isposinf,
    isreal,
    le,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    lt,
    ne,
    nonzero,
    signbit,
    where,
)
from mini_autograd.operations.cumulative import cumprod, cumsum, diff, logcumsumexp
from mini_autograd.operations.diagonals import diag, diag_embed, diagflat, diagonal, trace, tril, triu
from mini_autograd.operations.einstein import einsum
from mini_autograd.operations.elementwise import (
    add,
    clone,
    divide,
    exp,
    log,
    multiply,
    negative,
    pow,
    relu,
    subtract,
    tanh,
)
from mini_autograd.operations.extremes import amax, amin, clamp, clamp_max, clamp_min, fmax, fmin, maximum, minimum
from mini_autograd.operations.gathering import (
    gather,
    index_add,
    index_copy,
    index_fill,
    index_put,
    index_select,
    masked_fill,
    masked_scatter,
    masked_select,
    scatter,
    scatter_add,
    take,
    take_along_dim,
)
from mini_autograd.operations.joining import (
    atleast_1d,
    atleast_2d,
    atleast_3d,
    block_diag,
    cat,
    chunk,
    column_stack,
    concat,
    concatenate,
    dsplit,
    dstack,
    hsplit,
    hstack,
    meshgrid,
    narrow,
    repeat_interleave,
    select,
    split,
    split_with_sizes,
    stack,
    tensor_split,
    tile,
    unbind,
    vsplit,
    vstack,
)
from mini_autograd.operations.linear_algebra import (
    addbmm,
    addmm,
    addmv,
    addr,
    baddbmm,
    bmm,
    dot,
    ger,
    inner,
    kron,
    matmul,
    mm,
    mv,
    outer,
    tensordot,
    vdot,
    vecdot,
)
from mini_autograd.operations.mathematical import (
    acos,
    acosh,
    asin,
    asinh,
    atan,
    atanh,
    cos,
    cosh,
    deg2rad,
    erf,
    exp2,
    expm1,
    log1p,
    log2,
    log10,
    rad2deg,
    reciprocal,
    rsqrt,
    sin,
    sinh,
    sqrt,
    square,
    tan,
)
from mini_autograd.operations.norms import cosine_similarity, dist, norm
from mini_autograd.operations.reduction import logsumexp, mean, nanmean, nansum, prod, std, std_mean, sum, var, var_mean
from mini_autograd.operations.rounding import (
    abs,
    ceil,
    copysign,
    div,
    floor,
    floor_divide,
    fmod,
    frac,
    nan_to_num,
    positive,
    remainder,
    round,
    sign,
    trunc,
)
from mini_autograd.operations.shape import (
    broadcast_tensors,
    broadcast_to,
    flatten,
    flip,
    fliplr,
    flipud,
    moveaxis,
    movedim,
    permute,
    ravel,
    reshape,
    roll,
    rot90,
    squeeze,
    t,
    transpose,
    unflatten,
    unsqueeze,
)
from mini_autograd.operations.softmax import log_softmax, softmax
from mini_autograd.operations.sorting import (
    aminmax,
    argmax,
    argmin,
    argsort,
    cummax,
    cummin,
    kthvalue,
    max,
    median,
    min,
    msort,
    sort,
    topk,
)

_numpy_names.accept(globals())

absolute = abs
mul, sub, true_divide, neg, swapaxes, swapdims = multiply, subtract, divide, negative, transpose, transpose
clip, arccos, arcsin, arctan, arctan2, arccosh, arcsinh, arctanh = clamp, acos, asin, atan, atan2, acosh, asinh, atanh
greater, greater_equal, less, less_equal, not_equal = gt, ge, lt, le, ne
fix, sgn = trunc, sign
