"""The matrix product, in all its cases.

Imports function. The one idea to know: with Y = A B, a change of A changes Y by dA B, so the gradient of A is G
transpose(B).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mini_autograd.arrays import dtype_name
from mini_autograd.function import Binary, Value
from mini_autograd.operations.elementwise import check_broadcast

Shape = tuple[int, ...]


class MatMul(Binary):
    """Matrix product `a @ b`. d(AB) = dA B + A dB.

    A vector on the left counts as a row, on the right as a column, and loses that axis in the result. Axes before the
    last two are a batch, and broadcast.
    """

    __slots__ = ("ndims",)
    ndims: tuple[int, int]

    @staticmethod
    def prepare(a: Any, b: Any) -> Sequence[Any]:
        check_operands(a, b)
        return a, b

    @staticmethod
    def complain(a: Any, b: Any) -> None:
        check_shapes(a.shape, b.shape)

    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        ctx.ndims = a.ndim, b.ndim
        return a @ b

    @staticmethod
    def backward(ctx, grad):
        a, b = ctx.saved_tensors
        need_a, need_b = ctx.needs_input_grad
        row, column = a.ndim == 1, b.ndim == 1
        if column:
            b, grad = b[:, None], grad[..., None]
        if row:
            a, grad = a[None], grad[..., None, :]
        grad_a = grad @ b.mT if need_a else None
        grad_b = a.mT @ grad if need_b else None
        return grad_a, grad_b[..., 0] if column and grad_b is not None else grad_b

    def name(self) -> str:
        """PyTorch has one node for each case (and for batches a product of reshaped matrices)."""
        return {(1, 1): "DotBackward0", (2, 1): "MvBackward0", (2, 2): "MmBackward0"}.get(self.ndims, "BmmBackward0")


def matmul(input: Value, other: Value) -> Value:
    """`input @ other`, of vectors (n,), matrices (n, k) and batches of matrices (..., n, k)."""
    return MatMul.apply(input, other)


def check_operands(a: Any, b: Any) -> None:
    """PyTorch's errors for numbers and for mixed dtypes."""
    if a.ndim == 0 or b.ndim == 0:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {a.ndim}D and {b.ndim}D")
    if a.dtype is b.dtype or a.dtype == b.dtype:
        return
    first, second = dtype_name(a.dtype), dtype_name(b.dtype)
    if a.ndim == b.ndim == 1:
        raise RuntimeError(f"dot : expected both vectors to have same dtype, but found {first} and {second}")
    if b.ndim == 1:
        raise RuntimeError(f"addmv input tensors must have the same dtype, but got {second}, {first}, and {second}")
    if b.ndim == 2:
        names = {"int64": "long int", "int32": "int", "float32": "float", "float64": "double"}
        m1, m2 = (names.get(x.dtype.name, x.dtype.name) for x in (a, b))
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {m1} != {m2}")
    raise RuntimeError(f"expected scalar type {first} but found {second}")


def check_shapes(a: Shape, b: Shape) -> None:
    """PyTorch's errors for shapes that cannot be multiplied."""
    if len(a) == len(b) == 1:
        if a != b:
            raise RuntimeError(
                f"inconsistent tensor size, expected tensor [{a[0]}] and src [{b[0]}] to have the same number of "
                f"elements, but got {a[0]} and {b[0]} elements respectively"
            )
        return
    rows = math.prod(a[:-1])
    if len(b) == 1:
        if a[-1] != b[0]:
            raise RuntimeError(f"size mismatch, got input ({rows}), mat ({rows}x{a[-1]}), vec ({b[0]})")
    elif len(b) == 2:
        if a[-1] != b[0]:
            raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({rows}x{a[-1]} and {b[0]}x{b[1]})")
    else:
        check_broadcast(a[:-2], b[:-2])
        if a[-1] != b[-2]:
            batch = math.prod(np.broadcast_shapes(a[:-2], b[:-2]))
            raise RuntimeError(
                f"Expected size for first two dimensions of batch2 tensor to be: [{batch}, {a[-1]}] but got: [{batch}, "
                f"{b[-2]}]."
            )
