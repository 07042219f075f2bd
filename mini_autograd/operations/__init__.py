"""All operations by family, and the file that holds the rule of each.

An operation is a class with a `forward` and a `backward`. The function that PyTorch has is further down in the same
file, and shows which operations it is made of.

pointwise.elementwise: add, subtract, multiply, divide, pow, exp, log, tanh, relu, where, lerp, clone, cast
pointwise.mathematical: sqrt, rsqrt, reciprocal, square, log1p, sin, cos, erf
pointwise.rounding: abs, sign, floor, ceil, round, trunc, remainder, floor_divide
pointwise.comparison: eq, lt, isnan, logical_and, isclose, any, all, nonzero: none has a gradient
shapes.shape: reshape, view, transpose, permute, expand, squeeze, unsqueeze, flip, roll
shapes.joining: cat, stack, split, chunk, unbind, narrow, select, repeat, pad
shapes.indexing: getitem (x[...]), put, assign
shapes.gathering: gather, scatter, scatter_add, index_select, masked_fill, embedding
reductions.softmax: softmax, log_softmax
reductions.extremes: maximum, minimum, clamp, amax, amin
reductions.sorting: max, min, argmax, sort, topk, median
reductions.reduction: sum, mean, prod, var, std, logsumexp
reductions.norms: norm, vector_norm, normalize
reductions.cumulative: cumsum
reductions.diagonals: diagonal, diag, tril, triu, trace
products.linear_algebra: matmul, dot, linear, outer
neural.activations: sigmoid, softplus, gelu, silu, leaky_relu
neural.convolution: conv1d, conv2d, conv_transpose2d
neural.pooling: max_pool2d, avg_pool2d
neural.normalization: layer_norm, batch_norm
neural.dropout: dropout
neural.attention: scaled_dot_product_attention
neural.losses: mse_loss, l1_loss, smooth_l1_loss, nll_loss, cross_entropy, binary_cross_entropy

Four files hold no operation: fused and targets hold what several operations share, windows the geometry of kernels, and
outputs writes results into existing tensors.
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
    *(extremes.Extreme, sorting.Pick, indexing.Indexed),
    *(joining.Several, joining.Split, joining.SplitWithSizes, joining.Unbind),
)
"""Base classes of operations, and nodes that each replace several Index nodes: none is an operation by itself."""

NEURAL = ("convolution", "pooling", "normalization", "dropout", "attention", "losses")
"""Families that are imported with `nn`, or when they are first used, so that the engine alone starts quickly."""


def __getattr__(name: str) -> Any:
    """Give `ALL`, a tuple of every operation."""
    if name != "ALL":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    families = (*FAMILIES, *(importlib.import_module(f"{__name__}.neural.{family}") for family in NEURAL))
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
