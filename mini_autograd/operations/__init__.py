"""All operations by family: which file holds the rule of what.

An operation is a class with a `forward` and a `backward`; the function that PyTorch has stands further down in the same
file, and says which operations it is made of.

elementwise: add, subtract, multiply, divide, pow, exp, log, tanh, relu, where, lerp, clone, cast
mathematical: sqrt, rsqrt, reciprocal, square, log1p, sin, cos, erf
rounding: abs, sign, floor, round, remainder, floor_divide
activations: sigmoid, softplus, gelu, silu, leaky_relu
softmax: softmax, log_softmax
comparison: eq, lt, isnan, logical_and, isclose, any, all, nonzero: none has a gradient
extremes: maximum, minimum, clamp, amax, amin
sorting: max, min, argmax, sort, topk, median
reduction: sum, mean, prod, var, std, logsumexp
norms: norm, vector_norm, normalize
cumulative: cumsum
linear_algebra: matmul, dot, linear, outer
shape: reshape, view, transpose, permute, expand, squeeze, flip, roll
joining: cat, stack, split, chunk, unbind, narrow, select, repeat, pad
diagonals: diagonal, diag, tril, triu, trace
indexing: getitem (x[...]), put, assign
gathering: gather, scatter, scatter_add, index_select, masked_fill, embedding
convolution: conv1d, conv2d, conv_transpose2d
pooling: max_pool2d, avg_pool2d
normalization: layer_norm, batch_norm
dropout: dropout
attention: scaled_dot_product_attention
losses: mse_loss, l1_loss, nll_loss, cross_entropy, binary_cross_entropy

Four files hold no operation: fused and targets, what several of them share; windows, the geometry of kernels; and
outputs, which writes results into tensors that are there.
"""

import importlib
from typing import Any

from mini_autograd.graph.function import Function
from mini_autograd.operations.neural import activations
from mini_autograd.operations.pointwise import elementwise, mathematical, rounding
from mini_autograd.operations.pointwise.elementwise import (
    Add,
    Cast,
    Clone,
    Divide,
    Exp,
    Log,
    Multiply,
    Negate,
    Power,
    PowerOfTensors,
    Relu,
    Subtract,
    Tanh,
    Where,
)
from mini_autograd.operations.products import linear_algebra
from mini_autograd.operations.products.linear_algebra import MatMul
from mini_autograd.operations.reductions import cumulative, diagonals, extremes, norms, reduction, softmax, sorting
from mini_autograd.operations.reductions.reduction import Mean, Sum
from mini_autograd.operations.shapes import gathering, indexing, joining, shape
from mini_autograd.operations.shapes.indexing import Index, Put
from mini_autograd.operations.shapes.shape import Expand, Permute, Reshape, Transpose

FAMILIES = (
    *(elementwise, mathematical, rounding, activations, extremes, sorting, reduction, norms, cumulative),
    *(softmax, linear_algebra, shape, joining, diagonals, indexing, gathering),
)

ONLY_SHARED = (
    *(elementwise.Elementwise, elementwise.Arithmetic, mathematical.OfFloats, rounding.Flat),
    *(extremes.Extreme, sorting.Pick),
)
"""What several operations have in common, and no operation by itself."""

NEURAL = ("convolution", "pooling", "normalization", "dropout", "attention", "losses")
"""Families that are imported with `nn`, or when they are first used, so that the engine alone starts quickly."""


def __getattr__(name: str) -> Any:
    """`ALL`: every operation, for those who want to walk through them."""
    if name != "ALL":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    families = (*FAMILIES, *(importlib.import_module(f"{__name__}.{family}") for family in NEURAL))
    return tuple(
        operation
        for family in families
        for operation in vars(family).values()
        if isinstance(operation, type)
        and issubclass(operation, Function)
        and operation.__module__ == family.__name__
        and operation not in ONLY_SHARED
    )


__all__ = [
    "Add",
    "Cast",
    "Clone",
    "Divide",
    "Exp",
    "Expand",
    "Index",
    "Log",
    "MatMul",
    "Mean",
    "Multiply",
    "Negate",
    "Permute",
    "Power",
    "PowerOfTensors",
    "Put",
    "Relu",
    "Reshape",
    "Subtract",
    "Sum",
    "Tanh",
    "Transpose",
    "Where",
]
