"""`Parameter`: a tensor that a module trains.

The one idea to know: a module recognizes what it has to train by this type alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mini_autograd.graph.edges import NO_EDGE
from mini_autograd.graph.grad_mode import INFERENCE, state
from mini_autograd.graph.versions import note_change
from mini_autograd.graph.views import memory_of
from mini_autograd.numerics import arrays
from mini_autograd.tensors.creation import zeros
from mini_autograd.tensors.tensor import Tensor


class Parameter(Tensor):
    """A leaf that requires grad. As an attribute of a module it is one of the module's parameters.

    It shares memory with `data`. Raises RuntimeError for `requires_grad` if `data` is not floating.
    """

    def __init__(self, data: Tensor | None = None, requires_grad: bool = True) -> None:
        self.array = zeros(0).array if data is None else data.detach().array
        self._edge, self.version = NO_EDGE, None if state.mode & INFERENCE else [0]
        if requires_grad and not arrays.is_floating(self.dtype):
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        self.requires_grad = requires_grad

    def __deepcopy__(self, memo: dict[int, Any]) -> Parameter:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.detach().clone(), self.requires_grad)
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self), (self.detach(), self.requires_grad)

    def __repr__(self) -> str:
        return f"Parameter containing:\n{super().__repr__()}"


def empty_parameter(*shape: int, dtype: Any = None, device: Any = None) -> Parameter:
    """A parameter of that shape, for an initializer to fill."""
    data = zeros(*shape, dtype=dtype or arrays.default_dtype)
    return Parameter(data if device is None else data.to(device))


def overwrite(tensor: Tensor, values: Any) -> Tensor:
    """Put numbers or an array into a tensor, in place and unrecorded."""
    memory = memory_of(tensor)
    memory[...] = np.asarray(values, dtype=memory.dtype, like=memory) if isinstance(values, np.ndarray) else values
    if tensor.version is not None:
        note_change(tensor.version)
    return tensor
