"""The matrix product in all its cases, `linear`, and the functions composed of products: dot, outer.

The one idea to know: with Y = A B, a change of A changes Y by dA B, so the gradient of A is G transpose(B).
"""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

import numpy as np

from mini_autograd.graph.function import Binary, Function, Value
from mini_autograd.numerics.arrays import c_dtype, dtype_name, sum_of_rows
from mini_autograd.operations.pointwise.elementwise import check_broadcast, multiply
from mini_autograd.operations.pointwise.outputs import into

__all__ = ["bmm", "dot", "matmul", "mm", "mv", "outer"]

Shape = tuple[int, ...]


class MatMul(Binary):
    """Matrix product `a @ b`. d(AB) = dA B + A dB.

    A vector on the left counts as a row, on the right as a column, and loses that axis in the result. Axes before the
    last two are a batch, and broadcast.
    """

    torch_name = "MmBackward0"
    sign = "@"
    __slots__ = ("ndims",)
    needed_by = {0: (1,), 1: (0,)}  # noqa: RUF012
    ndims: tuple[int, int]

    @staticmethod
    def complain(a: Any, b: Any) -> None:
        check_operands(a, b)
        check_shapes(a.shape, b.shape)

    @staticmethod
    def forward(ctx, a, b):
        if a.dtype is not b.dtype:
            check_operands(a, b)
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

    @staticmethod
    def jvp(ctx, a_tangent, b_tangent):
        a, b = ctx.saved_tensors
        left = None if a_tangent is None else a_tangent @ b
        right = None if b_tangent is None else a @ b_tangent
        return right if left is None else left if right is None else left + right

    @property
    def input_names(self) -> tuple[str, ...]:  # type: ignore[override]
        return "self", {(1, 1): "tensor", (2, 1): "vec"}.get(self.ndims, "mat2")

    def name(self) -> str:
        """PyTorch has one node for each case (and for batches a product of reshaped matrices)."""
        return {(1, 1): "DotBackward0", (2, 1): "MvBackward0", (2, 2): "MmBackward0"}.get(self.ndims, "BmmBackward0")


class Linear(Function):
    """y = x transpose(W) + b, for x (..., n), W (m, n) and b (m,). One node instead of three.

    grad_x = G W and grad_W = transpose(G) x, summed over the batch; grad_b is G, summed as for any broadcast.
    """

    torch_name = "AddmmBackward0"
    input_names = ("mat1",)  # what PyTorch calls mat2 is the transpose of the weight
    needed_by = {0: (1,), 1: (0,)}  # noqa: RUF012

    @staticmethod
    def prepare(x: Any, weight: Any, bias: Any) -> tuple[Any, Any, Any]:
        if bias is None:
            check_operands(x, weight)
        else:
            check_dtypes(x.dtype, weight.dtype, bias.dtype)
        return x, weight, bias

    @staticmethod
    def complain(x: Any, weight: Any, bias: Any) -> None:
        check_shapes(x.shape, weight.T.shape)
        if bias is not None and bias.shape[0] not in (1, len(weight)):
            raise RuntimeError(
                f"The expanded size of the tensor ({len(weight)}) must match the existing size ({bias.shape[0]}) at "
                f"non-singleton dimension 1.  Target sizes: {[math.prod(x.shape[:-1]), len(weight)]}.  Tensor sizes: "
                f"{list(bias.shape)}"
            )

    @staticmethod
    def forward(ctx, x, weight, bias):
        ctx.save_for_backward(x, weight)
        output = as_rows(x) @ weight.T  # one product of matrices is a third faster than one per batch
        if bias is not None:
            output += bias
        return output if x.ndim == 2 else output.reshape((*x.shape[:-1], len(weight)))

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        need_x, need_weight, need_bias = ctx.needs_input_grad
        rows = as_rows(grad)
        return (
            (rows @ weight).reshape(x.shape) if need_x else None,
            rows.T @ as_rows(x) if need_weight else None,
            sum_of_rows(rows) if need_bias else None,
        )

    @staticmethod
    def jvp(ctx, x_tangent, weight_tangent, bias_tangent):
        x, weight = ctx.saved_tensors
        parts = [
            None if x_tangent is None else x_tangent @ weight.T,
            None if weight_tangent is None else x @ weight_tangent.T,
            bias_tangent,
        ]
        known = [part for part in parts if part is not None]
        return functools.reduce(operator.add, known)


def as_rows(x: Value) -> Value:
    """`x` as a matrix: all axes but the last merged into one."""
    return x if x.ndim == 2 else x.reshape((math.prod(x.shape[:-1]), x.shape[-1]))


def matmul(input: Value, other: Value, *, out: Any = None) -> Value:
    """`input @ other`, of vectors (n,), matrices (n, k) and batches of matrices (..., n, k).

    Raises RuntimeError for 0-d operands, for shapes that do not fit, and for mixed dtypes.
    """
    return MatMul.apply(input, other) if out is None else into(out, "matmul", matmul, input, other)


def check_operands(a: Any, b: Any) -> None:
    """Raise PyTorch's errors for 0-d operands and for mixed dtypes."""
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
        m1, m2 = c_dtype(a.dtype), c_dtype(b.dtype)
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {m1} != {m2}")
    raise RuntimeError(f"expected scalar type {first} but found {second}")


def check_dtypes(input: np.dtype, weight: np.dtype, bias: np.dtype) -> None:
    """Raise PyTorch's errors for mixed dtypes in a layer with a bias."""
    if input == weight == bias:
        return
    for names, first, second in (("mat1 and mat2", input, weight), ("self and mat2", bias, weight)):
        if first != second:
            raise RuntimeError(
                f"{names} must have the same dtype, but got {dtype_name(first)} and {dtype_name(second)}"
            )


def check_shapes(a: Shape, b: Shape) -> None:
    """Raise PyTorch's errors for shapes that cannot be multiplied."""
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


def mm(input: Value, mat2: Value, *, out: Any = None) -> Value:
    """The product of two matrices, (n, k) and (k, m); no batches, no vectors. Raises RuntimeError for other shapes."""
    if out is not None:
        return into(out, "mm", mm, input, mat2)
    if input.ndim != 2:
        raise RuntimeError("self must be a matrix")
    if mat2.ndim != 2:
        raise RuntimeError("mat2 must be a matrix")
    return matmul(input, mat2)


def bmm(input: Value, mat2: Value) -> Value:
    """The matrix products of two batches of equal size, (b, n, k) and (b, k, m).

    Raises RuntimeError for other shapes.
    """
    for number, x in enumerate((input, mat2), start=1):
        if x.ndim != 3:
            raise RuntimeError(f"batch{number} must be a 3D tensor")
    if input.shape[0] != mat2.shape[0] or input.shape[2] != mat2.shape[1]:
        raise RuntimeError(
            "Expected size for first two dimensions of batch2 tensor to be: "
            f"[{input.shape[0]}, {input.shape[2]}] but got: [{mat2.shape[0]}, {mat2.shape[1]}]."
        )
    return matmul(input, mat2)


def mv(input: Value, vec: Value) -> Value:
    """The product of a matrix (n, k) and a vector (k,). Raises RuntimeError for other shapes."""
    if input.ndim != 2 or vec.ndim != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got 1, {input.ndim}, {vec.ndim}")
    return matmul(input, vec)


def dot(input: Value, tensor: Value) -> Value:
    """The sum of the products of two vectors' elements. Raises RuntimeError for other shapes."""
    if input.ndim != 1 or tensor.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {input.ndim}D and {tensor.ndim}D tensors")
    return matmul(input, tensor)


def outer(input: Value, vec2: Value) -> Value:
    """All products of an element of one vector and an element of the other, (n, m).

    Raises RuntimeError for other shapes.
    """
    for name, x in (("self", input), ("vec2", vec2)):
        if x.ndim != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {x.ndim}-D")
    return multiply(input.reshape((-1, 1)), vec2)


def linear(input: Value, weight: Value, bias: Value = None) -> Value:
    """x transpose(W) + b: inputs (..., n), weight (m, n), bias (m,) or None; the result is (..., m).

    Raises RuntimeError for shapes that do not fit, and for mixed dtypes.
    """
    dims = input.ndim, weight.ndim, 1 if bias is None else bias.ndim
    if dims[0] > 1 and dims[1] == 2 and dims[2] == 1:
        return Linear.apply(input, weight, bias)
    if dims[0] == 0 and dims[1] != 1:
        raise RuntimeError(f"both arguments to linear need to be at least 1D, but they are 0D and {weight.ndim}D")
    if dims[1] > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {dims[1]}D")
    if dims[1] != 1:
        Linear.prepare(input, weight, bias)
    output = matmul(input, weight if dims[1] == 1 else weight.T)
    return output if bias is None else output + bias
