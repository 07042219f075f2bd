"""Making tensors: from numbers, lists and arrays, or filled.

The one idea to know: Python floats become float32 and Python ints int64, while NumPy arrays keep their dtype.
"""

from __future__ import annotations

import functools
import math
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mini_autograd.graph.edges import NO_EDGE
from mini_autograd.graph.function import tensor_of
from mini_autograd.numerics import arrays
from mini_autograd.tensors.tensor import Tensor

COPY_CONSTRUCTED = (
    "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
    "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor)."
)


def tensor(data: Any, dtype: Any = None, requires_grad: bool = False, device: Any = None) -> Tensor:
    """A new leaf with a copy of `data`: a number, nested lists, an array or a tensor.

    Raises ValueError for ragged lists and RuntimeError if `requires_grad` is set for an integer tensor.
    """
    if isinstance(data, Tensor):
        warnings.warn(COPY_CONSTRUCTED, UserWarning, stacklevel=2)
        device = data.device if device is None else device
        data = arrays.on_device(data.array, "cpu")
    dtype = dtype if dtype is None else np.dtype(dtype)
    array = np.array(as_nested_numbers(data))
    if not keeps_dtype(data):
        check_numbers(array, dtype)
        if dtype is None:
            dtype = arrays.default_dtype if array.dtype.kind == "f" or array.size == 0 else array.dtype
            dtype = arrays.int64 if dtype.kind == "i" else dtype  # NumPy's own are shorter in a browser
    elif dtype is None:
        dtype = functools.reduce(arrays.promote_types, dtypes_in(data))
    if (dtype or array.dtype).kind not in "fiub":
        raise TypeError(f"can't convert np.ndarray of type {array.dtype}")
    array = array.astype(dtype or array.dtype, copy=False)
    if requires_grad and not arrays.is_floating(array.dtype):
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    return tensor_of(
        array[()] if device is None else arrays.on_device(array, device)[()], None if requires_grad else NO_EDGE
    )


def as_nested_numbers(data: Any, dim: int = 0) -> Any:
    """Nested lists, with the tensors in them as numbers. Raises PyTorch's errors for non-numbers and ragged lists."""
    if isinstance(data, str | bytes):
        kind = type(data).__name__
        raise ValueError(f"too many dimensions '{kind}'") if dim else TypeError(f"new(): invalid data type '{kind}'")
    if data is None or isinstance(data, dict | set | Iterator):
        raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")
    if isinstance(data, Tensor):
        return data.dtype.type(data._only_element())
    if isinstance(data, np.ndarray) or not isinstance(data, Sequence):
        return data
    rows = [as_nested_numbers(row, dim + 1) for row in data]
    lengths = [len(row) if isinstance(row, list | np.ndarray) and np.ndim(row) else None for row in rows]
    for length in lengths:
        if length != lengths[0]:
            if length is None or lengths[0] is None:
                raise TypeError("not a sequence" if length is None else "must be real number, not list")
            raise ValueError(f"expected sequence of length {lengths[0]} at dim {dim + 1} (got {length})")
    return rows


def check_numbers(numbers: np.ndarray, dtype: np.dtype | None) -> None:
    """Raise PyTorch's errors for Python numbers that are too large for int64, or for the integer dtype asked for."""
    too_large = numbers.dtype == np.uint64 or (numbers.dtype == object and isinstance(numbers.flat[0], int))
    if too_large and (dtype is None or dtype.kind in "iu"):
        raise ValueError("Overflow when unpacking long long")
    if dtype is not None and dtype.kind in "iu":
        for number in (numbers.min(), numbers.max()) if numbers.size else ():
            arrays.check_fits(number.item(), dtype, suffix="")


def keeps_dtype(data: Any) -> bool:
    """Whether the dtype comes from NumPy (or a tensor), and not from Python numbers."""
    while isinstance(data, list | tuple) and data:
        data = data[0]
    return isinstance(data, np.ndarray | np.generic | Tensor)


def dtypes_in(data: Any) -> set[np.dtype]:
    """The dtypes of nested lists of tensors, arrays and Python numbers."""
    if isinstance(data, list | tuple):
        return set().union(*map(dtypes_in, data))
    return {data.dtype if hasattr(data, "dtype") else arrays.result_type(data)}


def from_numpy(array: np.ndarray) -> Tensor:
    """A tensor that shares the memory of `array`.

    Raises TypeError for anything but a NumPy array, and for a dtype that tensors do not have.
    """
    if not isinstance(array, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(array).__name__})")
    if array.dtype.kind not in "fiub":
        raise TypeError(f"can't convert np.ndarray of type {array.dtype.type.__module__}.{array.dtype.type.__name__}.")
    return tensor_of(array[...])


def full(
    size: Sequence[int], fill_value: float, *, dtype: Any = None, requires_grad: bool = False, device: Any = None
) -> Tensor:
    """A tensor of that size filled with a number."""
    fill_value = fill_value.item() if isinstance(fill_value, (Tensor, np.generic)) else fill_value
    if dtype is not None:
        arrays.check_fits(fill_value, dtype)
    value = tensor(fill_value, dtype)
    arrays.check_fits(fill_value, value.dtype)
    return tensor(np.full(tuple(size), value.array), requires_grad=requires_grad, device=device)


def zeros(*sizes: Any, size: Any = None, dtype: Any = None, requires_grad: bool = False, device: Any = None) -> Tensor:
    """Zeros: `zeros(2, 3)` or `zeros((2, 3))`."""
    numbers = np.zeros(size_given(sizes, size, "zeros"), dtype or arrays.default_dtype)
    return tensor(numbers, requires_grad=requires_grad, device=device)


def ones(*sizes: Any, size: Any = None, dtype: Any = None, requires_grad: bool = False, device: Any = None) -> Tensor:
    """Ones: `ones(2, 3)` or `ones((2, 3))`."""
    numbers = np.ones(size_given(sizes, size, "ones"), dtype or arrays.default_dtype)
    return tensor(numbers, requires_grad=requires_grad, device=device)


def zeros_like(
    input: Tensor, *, dtype: Any = None, requires_grad: bool = False, device: Any = None, memory_format: Any = None
) -> Tensor:
    """Zeros in the shape and dtype of `input`. Here and below, `memory_format` is ignored: there is only one."""
    return zeros(input.shape, dtype=dtype or input.dtype, requires_grad=requires_grad, device=device or input.device)


def ones_like(
    input: Tensor, *, dtype: Any = None, requires_grad: bool = False, device: Any = None, memory_format: Any = None
) -> Tensor:
    """Ones in the shape and dtype of `input`."""
    return ones(input.shape, dtype=dtype or input.dtype, requires_grad=requires_grad, device=device or input.device)


def arange(
    start: Any = 0,
    end: Any = None,
    step: Any = 1,
    *,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
) -> Tensor:
    """Numbers from `start` to `end`, excluding `end`; `arange(n)` starts at 0. They are floating if any of these is.

    Raises RuntimeError if `step` is 0 or leads away from `end`.
    """
    given = (0, start, step) if end is None else (start, end, step)
    first, last, step = [number.item() if hasattr(number, "item") else number for number in given]
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if not (math.isfinite(first) and math.isfinite(last)):
        raise RuntimeError(f"unsupported range: {first} -> {last}")
    if (last - first) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    integers = all(isinstance(number, int) for number in (first, last, step))
    numbers = np.arange(first, last, step).astype(dtype or (arrays.int64 if integers else arrays.default_dtype))
    return tensor(numbers, requires_grad=requires_grad, device=device)


def empty(*sizes: Any, size: Any = None, dtype: Any = None, requires_grad: bool = False, device: Any = None) -> Tensor:
    """A tensor with unspecified numbers: here zeros."""
    return zeros(*sizes, size=size, dtype=dtype, requires_grad=requires_grad, device=device)


def empty_like(
    input: Tensor, *, dtype: Any = None, requires_grad: bool = False, device: Any = None, memory_format: Any = None
) -> Tensor:
    """Like `empty`, in the shape and dtype of `input`."""
    return zeros_like(input, dtype=dtype, requires_grad=requires_grad, device=device)


def full_like(
    input: Tensor,
    fill_value: float,
    *,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
    memory_format: Any = None,
) -> Tensor:
    """A tensor filled with a number, in the shape and dtype of `input`."""
    return full(
        input.shape, fill_value, dtype=dtype or input.dtype, requires_grad=requires_grad, device=device or input.device
    )


def as_tensor(data: Any, dtype: np.dtype | None = None, device: Any = None) -> Tensor:
    """`data` as a tensor. If device and dtype allow, a tensor is returned as it is, and an array is not copied."""
    if isinstance(data, Tensor):
        return data.to(device, dtype)
    if isinstance(data, np.ndarray) and (dtype is None or data.dtype == dtype):
        return from_numpy(data).to(device)
    return tensor(data, dtype, device=device)


def eye(n: int, m: int | None = None, *, dtype: Any = None, requires_grad: bool = False, device: Any = None) -> Tensor:
    """A matrix with ones on the diagonal. Raises RuntimeError for a negative size."""
    for name, size in (("n", n), ("m", m)):
        if size is not None and size < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {size}")
    return tensor(np.eye(n, m, dtype=dtype or arrays.default_dtype), requires_grad=requires_grad, device=device)


def linspace(
    start: float, end: float, steps: int, *, dtype: Any = None, requires_grad: bool = False, device: Any = None
) -> Tensor:
    """`steps` evenly spaced numbers from `start` to `end`, both included.

    Raises RuntimeError if `steps` is negative.
    """
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    numbers = np.linspace(float(start), float(end), steps)
    return tensor(numbers.astype(dtype or arrays.default_dtype), requires_grad=requires_grad, device=device)


def is_inference(input: Tensor) -> bool:
    """Whether a tensor was made in inference mode."""
    return input.is_inference()


def is_tensor(obj: Any) -> bool:
    """Whether this is a Tensor."""
    return isinstance(obj, Tensor)


def numel(input: Tensor) -> int:
    """The number of elements."""
    return input.numel()


def size_given(sizes: tuple, named: Any, name: str) -> tuple[int, ...]:
    """The size that the function `name` was given: numbers, one sequence, or `size=`. Raises TypeError for others."""
    if not sizes and named is None:
        raise TypeError(f'{name}() missing 1 required positional arguments: "size"')
    sizes = sizes if named is None else (named,)
    size = tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], Sequence) else sizes
    for place, length in enumerate(size):
        kind = type(length).__name__
        if not hasattr(length, "__index__") and place == 0:
            raise TypeError(f"{name}(): argument 'size' (position 1) must be tuple of ints, not {kind}")
        if not hasattr(length, "__index__"):
            raise TypeError(
                f"{name}(): argument 'size' failed to unpack the object at pos {place + 1} with error "
                f'"type must be tuple of ints,but got {kind}"'
            )
        if length < 0:
            raise RuntimeError(f"{name}: Dimension size must be non-negative.")
    return size
