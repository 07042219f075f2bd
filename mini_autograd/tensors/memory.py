"""A tensor's memory and its device; copies of a tensor; new tensors like it.

The one idea to know: strides count elements, as in PyTorch, and bytes are counted for the elements that a tensor shows,
whether or not it owns the memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mini_autograd.graph.views import forget_source, memory_of
from mini_autograd.numerics import arrays, dtypes
from mini_autograd.operations.pointwise import elementwise
from mini_autograd.operations.pointwise.elementwise import clone
from mini_autograd.tensors import creation
from mini_autograd.tensors.methods import Tensor
from mini_autograd.tensors.tensor import register_methods

NO_DEEPCOPY = (
    "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  If you "
    "were attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage, see "
    "https://github.com/pytorch/pytorch/pull/103001"
)


def stride(self: Tensor, dim: int | None = None) -> Any:
    """The distance in elements between two neighbors along each axis, or along one."""
    strides = tuple(step // self.dtype.itemsize for step in memory_of(self).strides)
    return strides if dim is None else strides[arrays.normalize_dim(dim, self.ndim)]


def is_contiguous(self: Tensor) -> bool:
    """Whether the elements are stored one after another, row by row."""
    return memory_of(self).flags.c_contiguous


def contiguous(self: Tensor) -> Tensor:
    """The tensor itself if it is contiguous, else a copy that is."""
    return self if is_contiguous(self) else clone(self)


def element_size(self: Tensor) -> int:
    """Bytes per element."""
    return self.dtype.itemsize


def data_ptr(self: Tensor) -> int:
    """The address of the first element: views with the same start have the same address."""
    return arrays.address(memory_of(self))


def to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Cast or move the tensor: `to(dtype)`, `to(device)`, `to(device, dtype)`, `to(other)`.

    Returns the tensor itself if nothing changes, unless `copy=True`. `non_blocking` is ignored.

    Raises TypeError for any other argument.
    """
    result = self
    for target in [*args, kwargs.pop("device", None), kwargs.pop("dtype", None)]:
        if isinstance(target, Tensor):
            result = elementwise.cast(elementwise.move(result, target.device), target.dtype)
        elif isinstance(target, (np.dtype, dtypes.dtype)) or target in (float, int, bool):
            result = elementwise.cast(result, np.dtype(target))
        elif target is not None and not isinstance(target, bool):
            result = elementwise.move(result, target)
    copy = kwargs.pop("copy", False)
    kwargs.pop("non_blocking", None)
    if kwargs:
        raise TypeError(f"to() received an invalid argument: {', '.join(kwargs)}")
    return clone(result) if copy and result is self else result


def cpu(self: Tensor) -> Tensor:
    """The tensor in the host's memory: itself if it is already there."""
    return elementwise.move(self, "cpu")


def cuda(self: Tensor, device: Any = None) -> Tensor:
    """The tensor on a GPU. Raises AssertionError if there is none."""
    return elementwise.move(self, "cuda" if device is None else device)


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """The tensor in the dtype of `other`, and on its device."""
    return to(self, other)


def type_(self: Tensor, dtype: Any = None) -> Any:
    """The tensor in another dtype, given as such, as an old type such as `LongTensor`, or as the name of one. Without
    `dtype`, the name of its own old type.
    """
    if isinstance(dtype, str):
        dtype = arrays.dtype_named(dtype)
    return f"torch.{arrays.dtype_name(self.dtype)}Tensor" if dtype is None else to(self, getattr(dtype, "dtype", dtype))


def storage_offset(self: Tensor) -> int:
    """How many elements there are in memory before the first of this tensor."""
    memory = memory_of(self)
    owner = memory
    while isinstance(owner.base, type(memory)):
        owner = owner.base
    return (arrays.address(memory) - arrays.address(owner)) // self.dtype.itemsize


def new_tensor(self: Tensor, data: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """A new leaf with a copy of `data`, in the dtype of this tensor."""
    return creation.tensor(data, dtype or self.dtype, requires_grad, self.device)


def new_zeros(self: Tensor, *size: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Zeros of that size in the dtype of this tensor."""
    return creation.zeros(*size, dtype=dtype or self.dtype, requires_grad=requires_grad, device=self.device)


def new_ones(self: Tensor, *size: Any, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Ones of that size in the dtype of this tensor."""
    return creation.ones(*size, dtype=dtype or self.dtype, requires_grad=requires_grad, device=self.device)


def new_full(
    self: Tensor, size: Sequence[int], fill_value: float, dtype: Any = None, requires_grad: bool = False
) -> Tensor:
    """A tensor filled with a number, in the dtype of this tensor."""
    return creation.full(size, fill_value, dtype=dtype or self.dtype, requires_grad=requires_grad, device=self.device)


def sum_to_size(self: Tensor, *size: Any) -> Tensor:
    """Sum the tensor to a shape from which it could have been broadcast. Raises RuntimeError for any other shape."""
    wanted = tuple(size[0]) if len(size) == 1 and isinstance(size[0], Sequence) else size
    if not arrays.broadcasts_to(wanted, self.shape):
        raise RuntimeError(f"size {{{list(wanted)}}} is not expandable to size {{{list(self.shape)}}}.")
    if wanted == self.shape:
        return self
    result = arrays.sum_to(self, wanted)
    if len(wanted) == self.ndim:
        forget_source(result)  # as in PyTorch, it is a view of the sum only if axes were removed
    return result


def deepcopy(self: Tensor, memo: dict[int, Any]) -> Tensor:
    """A leaf with the same numbers and `.grad`, for `copy.deepcopy`. Raises RuntimeError if this is not a leaf."""
    if id(self) in memo:
        return memo[id(self)]
    if not self.is_leaf:
        raise RuntimeError(NO_DEEPCOPY)
    result = self.detach().clone().requires_grad_(self.requires_grad)
    if self.grad is not None:
        result.grad = deepcopy(self.grad, memo)
    memo[id(self)] = result
    return result


def shallow_copy(self: Tensor) -> Tensor:
    """A leaf that shows the same memory, for `copy.copy`."""
    return self.detach().requires_grad_(self.requires_grad)


def reduced(self: Tensor, protocol: Any) -> tuple:
    """How `pickle` makes this tensor again: as a leaf, without its history."""
    return creation.tensor, (arrays.on_device(self.array, "cpu"), None, self.requires_grad, str(self.device))


METHODS: dict[str, Any] = {
    "to": to,
    "cpu": cpu,
    "cuda": cuda,
    "device": property(lambda self: arrays.device_of(self.array), doc="The device that holds the numbers."),
    "is_cuda": property(lambda self: self.device.type == "cuda", doc="Whether the numbers are on a GPU."),
    "stride": stride,
    "is_contiguous": is_contiguous,
    "contiguous": contiguous,
    "element_size": element_size,
    "nelement": Tensor.numel,
    "data_ptr": data_ptr,
    "itemsize": property(element_size),
    "nbytes": property(lambda self: self.numel() * self.dtype.itemsize, doc="The number of bytes of its elements."),
    "type_as": type_as,
    "type": type_,
    "storage_offset": storage_offset,
    "short": lambda self: to(self, arrays.int16),
    "char": lambda self: to(self, arrays.int8),
    "byte": lambda self: to(self, arrays.uint8),
    "ndimension": Tensor.dim,
    "is_complex": lambda self: False,
    "new_tensor": new_tensor,
    "new_zeros": new_zeros,
    "new_ones": new_ones,
    "new_full": new_full,
    "new_empty": new_zeros,
    "sum_to_size": sum_to_size,
    "__copy__": shallow_copy,
    "__deepcopy__": deepcopy,
    "__reduce_ex__": reduced,
}

register_methods(METHODS)
