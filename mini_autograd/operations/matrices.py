"""Square matrices: inverse, determinant, powers, and the solution of linear systems. Each works on batches too.

Imports arrays, function, return_types, elementwise, joining and linear_algebra. The one idea to know: a change dA of A
changes A^-1 by -A^-1 dA A^-1, and det A by the sum of the products of dA with the cofactors of A.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mini_autograd import return_types
from mini_autograd.arrays import dtype_name, float16, holds, is_floating
from mini_autograd.function import Function, Value, as_array, wrap
from mini_autograd.operations.elementwise import check_broadcast, module_of, where
from mini_autograd.operations.joining import stack
from mini_autograd.operations.linear_algebra import matmul


class LinAlgError(RuntimeError):
    """A matrix is singular, so that what was asked for does not exist."""


class Inverse(Function):
    """B = A^-1. dB = -B dA B."""

    torch_name = "LinalgInvExBackward0"

    @staticmethod
    def complain(x: Any) -> None:
        raise LinAlgError("linalg.inv: The inversion could not be completed because the input matrix is singular.")

    @staticmethod
    def forward(ctx, x):
        output = np.linalg.inv(x)
        ctx.save_for_backward(output)
        return output

    @staticmethod
    def backward(ctx, grad):
        (inverse,) = ctx.saved_tensors
        return -(inverse.mT @ grad @ inverse.mT)

    @staticmethod
    def jvp(ctx, tangent):
        (inverse,) = ctx.saved_tensors
        return -(inverse @ tangent @ inverse)


class Solve(Function):
    """X = A^-1 B. dX = A^-1 (dB - dA X)."""

    torch_name = "LinalgSolveExBackward0"

    @staticmethod
    def complain(a: Any, b: Any) -> None:
        check_broadcast(b.shape[:-2], a.shape[:-2])
        raise LinAlgError("torch.linalg.solve: The solver failed because the input matrix is singular.")

    @staticmethod
    def forward(ctx, a, b):
        output = np.linalg.solve(a, b)
        ctx.save_for_backward(a, output)
        return output

    @staticmethod
    def backward(ctx, grad):
        a, x = ctx.saved_tensors
        grad_b = Solve.apply(a.mT, grad)
        return -(grad_b @ x.mT), grad_b

    @staticmethod
    def jvp(ctx, a_tangent, b_tangent):
        a, x = ctx.saved_tensors
        moved = 0.0 if b_tangent is None else b_tangent
        return Solve.apply(a, moved if a_tangent is None else moved - a_tangent @ x)


class Determinant(Function):
    """det A. Its derivative with respect to an element is that element's cofactor (Jacobi's formula)."""

    torch_name = "LinalgDetBackward0"

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return np.linalg.det(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad[..., None, None] * cofactors(x)

    @staticmethod
    def jvp(ctx, tangent):
        (x,) = ctx.saved_tensors
        return (cofactors(x) * tangent).sum((-2, -1))


class LogAbsDeterminant(Function):
    """log |det A|. d log |det A| = trace(A^-1 dA)."""

    torch_name = "LinalgSlogdetBackward0"

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return np.linalg.slogdet(x)[1]

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad[..., None, None] * Inverse.apply(x).mT

    @staticmethod
    def jvp(ctx, tangent):
        (x,) = ctx.saved_tensors
        return (Inverse.apply(x).mT * tangent).sum((-2, -1))


def cofactors(x: Value) -> Value:
    """The cofactor of every element: det A transpose(A^-1), and where a determinant is 0, from the minors."""
    determinant = Determinant.apply(x)
    if holds(np.all(as_array(determinant) != 0)):
        return determinant[..., None, None] * Inverse.apply(x).mT
    numbers = module_of(as_array(x)).arange(x.shape[-1])
    others = [numbers[numbers != i] for i in range(len(numbers))]  # per row or column, which are left without it
    columns = np.stack(others)[:, None, :]
    minors = [Determinant.apply(x[..., row[:, None], columns]) for row in others]
    signs = 1.0 - 2.0 * ((numbers[:, None] + numbers) % 2)
    return stack(minors, -2) * wrap(signs.astype(x.dtype), x)


def check_square(name: str, x: Value, family: str = "linalg.") -> None:
    """Raise PyTorch's error unless `x` holds square matrices of a floating dtype."""
    name = family + name
    if x.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    rows, columns = x.shape[-2:]
    if rows != columns:
        raise RuntimeError(f"{name}: A must be batches of square matrices, but they are {rows} by {columns} matrices")
    if not is_floating(x.dtype):
        got = dtype_name(x.dtype)
        raise RuntimeError(f"{name}: Expected a floating point or complex tensor as input. Got {got}")
    if x.dtype == float16:
        raise RuntimeError(f"{name}: Low precision dtypes not supported. Got Half")


def inv(A: Value) -> Value:  # noqa: N803  (PyTorch's name)
    """The inverse of square matrices (..., n, n). Raises LinAlgError if one is singular."""
    check_square("inv", A)
    return Inverse.apply(A)


inverse = inv


def det(A: Value) -> Value:  # noqa: N803  (PyTorch's name)
    """The determinants of square matrices (..., n, n).

    The gradient is the cofactors also of singular matrices, as finite differences say. PyTorch gives that in a recorded
    pass; in an ordinary one it gives 0 for them.
    """
    check_square("det", A)
    return Determinant.apply(A)


def slogdet(A: Value) -> return_types.SignAndLogarithm:  # noqa: N803  (PyTorch's name)
    """Sign and logarithm of the determinants, which themselves may be too large or small for a float.

    Of a singular matrix they are 0 and -inf, and the backward pass raises LinAlgError.
    """
    check_square("slogdet", A)
    return return_types.slogdet(wrap(np.linalg.slogdet(as_array(A))[0], A), LogAbsDeterminant.apply(A))


def logdet(A: Value) -> Value:  # noqa: N803  (PyTorch's name)
    """The logarithms of the determinants; nan where one is negative."""
    check_square("logdet", A, "")
    sign, logarithm = slogdet(A)
    return where(sign < 0, float("nan"), logarithm)


def matrix_power(A: Value, n: int) -> Value:  # noqa: N803  (PyTorch's name)
    """The product of n times the matrix; for a negative n, of its inverse."""
    check_square("matrix_power", A.double() if A.dtype.kind in "iu" else A)
    if n < 0:
        return matrix_power(inv(A), -n)
    if n < 2:
        identity = wrap(module_of(A).eye(A.shape[-1], dtype=A.dtype), A)
        return A.clone() if n else where(wrap(module_of(A).ones(A.shape, bool), A), identity, A)
    half = matrix_power(A, n // 2)
    return matmul(matmul(half, half), A) if n % 2 else matmul(half, half)


def solve(A: Value, B: Value, *, left: bool = True) -> Value:  # noqa: N803  (PyTorch's names)
    """X with A X = B, for A (..., n, n) and B (n,), (..., n) or (..., n, k); with `left=False`, X A = B.

    Raises LinAlgError if A is singular.
    """
    check_square("solve", A)
    if A.dtype != B.dtype:
        first, second = dtype_name(A.dtype), dtype_name(B.dtype)
        raise RuntimeError(
            f"linalg.solve: Expected A and B to have the same dtype, but found A of type {first} and B of type "
            f"{second} instead"
        )
    if not left:
        return solve(A.mT, B.mT).mT
    vector = B.ndim == 1 or B.shape == A.shape[:-1]
    columns = B[..., None] if vector else B
    n = A.shape[-1]
    if columns.shape[-2] != n:
        raise RuntimeError(
            f"linalg.solve: Incompatible shapes of A and B for the equation AX = B ({n}x{n} and "
            f"{columns.shape[-2]}x{columns.shape[-1]})"
        )
    solution = Solve.apply(A, columns)
    return solution[..., 0] if vector else solution
