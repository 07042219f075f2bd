"""The part of `torch.linalg` that is covered: norms.

The one idea to know: without `dim` and `ord`, `norm` takes all elements as one vector.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mini_autograd.graph.function import Value
from mini_autograd.numerics.left_out import answers as _answers
from mini_autograd.operations.reductions.norms import vector_norm
from mini_autograd.operations.reductions.reduction import Dims

__all__ = ["matrix_norm", "norm", "vector_norm"]

__getattr__ = _answers(__name__)


def matrix_norm(
    A: Value,  # noqa: N803  (PyTorch's name)
    ord: Any = "fro",
    dim: tuple[int, int] = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: np.dtype | None = None,
) -> Value:
    """The Frobenius norm of matrices: the square root of the sum of squares.

    Raises NotImplementedError for any other norm.
    """
    if ord != "fro":
        raise NotImplementedError(f"linalg.matrix_norm: only ord='fro' is supported, got {ord!r}")
    return vector_norm(A, 2, dim, keepdim, dtype=dtype)


def norm(
    A: Value,  # noqa: N803  (PyTorch's name)
    ord: Any = None,
    dim: Dims = None,
    keepdim: bool = False,
    *,
    dtype: np.dtype | None = None,
) -> Value:
    """The norm of a vector, or of all elements; with two axes and `ord`, of matrices ("fro" only).

    Raises RuntimeError for `ord` without `dim` and more than two axes.
    """
    axes = 1 if isinstance(dim, int) else A.ndim if dim is None else len(dim)
    if ord is None or (axes == 1 and ord != "fro"):
        return vector_norm(A, 2 if ord is None else ord, dim, keepdim, dtype=dtype)
    if axes != 2:
        raise RuntimeError(
            f"linalg.norm: If ord is specified but dim is not, the input must be 1D or 2D. Got {A.ndim}D."
        )
    first, second = (-2, -1) if dim is None else tuple(dim)  # type: ignore[arg-type]
    return matrix_norm(A, ord, (first, second), keepdim, dtype=dtype)
