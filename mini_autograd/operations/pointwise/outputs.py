"""`out=`: writing a result into an existing tensor.

The one idea to know: a tensor written this way has no history, so PyTorch allows it only if nothing is recorded.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from mini_autograd.graph import function as graph
from mini_autograd.graph.grad_mode import RECORDING, state
from mini_autograd.numerics import arrays

RESIZED = (
    "An output with one or more elements was resized since it had shape {}, which does not match the required output "
    "shape {}. This behavior is deprecated, and in a future PyTorch release outputs will not be resized unless they "
    "have zero elements. You can explicitly reuse an out tensor t by resizing it, inplace, to zero elements with "
    "t.resize_(0)."
)


def into(out: Any, name: str, function: Callable[..., Any], *inputs: Any, **options: Any) -> Any:
    """Write the result of `function` into `out`, which takes its shape but keeps its own dtype, and return `out`.

    Raises RuntimeError if a gradient would be lost, or if the result is floating and `out` is not.
    """
    tensors = [x for x in (out, *inputs) if isinstance(x, graph.Tensor)]
    if state.mode & RECORDING and any(x.requires_grad for x in tensors):
        raise RuntimeError(
            f"{name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad."
        )
    result = function(*inputs, **options)
    if arrays.is_floating(result.dtype) and not arrays.is_floating(out.dtype):
        got, wanted = arrays.dtype_name(result.dtype), arrays.dtype_name(out.dtype)
        raise RuntimeError(f"result type {got} can't be cast to the desired output type {wanted}")
    if out.shape == result.shape:
        return out.copy_(result)
    if out.numel():
        warnings.warn(RESIZED.format(list(out.shape), list(result.shape)), UserWarning, stacklevel=3)
    out.data = result.to(out.dtype)
    return out
