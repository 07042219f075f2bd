"""`torch.nn.utils`: gradient clipping; `rnn` pads sequences.

The one idea to know: clipping changes the gradients in place, between `backward()` and `step()`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from mini_autograd.graph.function import tensor_of
from mini_autograd.graph.grad_mode import no_grad
from mini_autograd.nn.utils import rnn
from mini_autograd.numerics.left_out import answers as _answers
from mini_autograd.tensors.tensor import Tensor

__all__ = [
    "clip_grad_norm_",
    "clip_grad_value_",
    "get_total_norm",
    "rnn",
]

__getattr__ = _answers(__name__)


@no_grad()
def clip_grad_norm_(
    parameters: Iterable[Tensor] | Tensor,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
) -> Tensor:
    """Scale all gradients down so that their norm, as one vector, is at most `max_norm`. Returns the norm from before.

    Raises RuntimeError if `error_if_nonfinite` and that norm is not finite.
    """
    grads = gradients(parameters)
    total = get_total_norm(grads, norm_type, error_if_nonfinite)
    with np.errstate(all="ignore"):  # infinite gradients become nan without a warning, as in PyTorch
        scale = tensor_of(np.minimum(float(max_norm) / (total.array + 1e-6), 1.0))  # on a GPU, this does not wait
        for grad in grads:
            grad.mul_(scale)
    return total


def get_total_norm(grads: Iterable[Tensor], norm_type: float = 2.0, error_if_nonfinite: bool = False) -> Tensor:
    """The norm of several tensors as one vector."""
    norm_type = float(norm_type)  # "inf" too
    norms = [sum_of_powers(grad.array, norm_type) for grad in grads]
    total = functools.reduce(np.maximum if norm_type == math.inf else np.add, norms) if norms else np.float32(0.0)
    total = total if norm_type == math.inf else total ** (1.0 / norm_type)
    if error_if_nonfinite and not math.isfinite(total):
        raise RuntimeError(
            f"The total norm of order {float(norm_type)} for gradients from `parameters` is non-finite, so it cannot "
            "be clipped. To disable this error and scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return tensor_of(total)


@no_grad()
def clip_grad_value_(parameters: Iterable[Tensor] | Tensor, clip_value: float) -> None:
    """Clip every element of every gradient to between `-clip_value` and `clip_value`."""
    for grad in gradients(parameters):
        grad.clamp_(-float(clip_value), float(clip_value))


def gradients(parameters: Iterable[Tensor] | Tensor) -> list[Any]:
    """The gradients of the parameters that have one."""
    tensors = [parameters] if isinstance(parameters, Tensor) else parameters
    return [tensor.grad for tensor in tensors if tensor.grad is not None]


def sum_of_powers(x: Any, order: float) -> Any:
    """The sum of |x|^order, from which the norm is computed; for an infinite order, the largest |x|."""
    flat = abs(x).ravel()
    if order == math.inf:
        return flat.max()
    return flat @ flat if order == 2.0 else (flat**order).sum()
