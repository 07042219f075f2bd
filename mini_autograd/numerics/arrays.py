"""What the engine needs from arrays: dtypes as PyTorch promotes them, and `sum_to`, which undoes a broadcast.

The one idea to know: inside the engine a 0-d array is mostly a NumPy *scalar* (that is what `a * b` of two 0-d arrays
returns, and it is several times faster); only `Tensor.numpy` makes it an array.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import math
import sys
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from mini_autograd.numerics import dtypes

float16, float32, float64 = np.dtype("float16"), np.dtype("float32"), np.dtype("float64")
uint8, int8, int16, int32, int64 = (np.dtype(name) for name in ("uint8", "int8", "int16", "int32", "int64"))
bool_ = np.dtype("bool")
long = (int64, np.dtype(np.intp))
"""What PyTorch calls Long, and NumPy's own integers, which have 32 bits in a browser."""


class BFloat16:
    """The name `bfloat16`, which scripts keep in a table of dtypes. NumPy lacks it: using it raises TypeError."""

    def __repr__(self) -> str:
        return "torch.bfloat16"

    @property
    def dtype(self) -> np.dtype:  # what NumPy asks for
        raise TypeError("NumPy has no bfloat16: use float32 or float16")


bfloat16 = BFloat16()

default_dtype = float32
"""The dtype of Python floats, as in PyTorch. See `set_default_dtype`."""

NUMBER = (int, float, np.generic)
"""The plain numbers that may stand beside a tensor in an expression."""


def array_module(array: Any) -> Any:
    """The module that makes arrays of the same kind: NumPy, or CuPy for an array on a GPU.

    Most NumPy functions find CuPy's by themselves, from the arrays they are given; those that make an array out of
    nothing (`arange`, `full`) must be called in the right module.
    """
    module = sys.modules[type(array).__module__.partition(".")[0]]
    return module if hasattr(module, "ndarray") else np


def holds(flag: Any) -> bool:
    """A 0-d array as a Python bool. For an array on a GPU this waits for it, and copies the one number."""
    return bool(flag.item() if hasattr(flag, "item") else flag)


def count(mask: Any) -> int:
    """The number of elements that are True. For an array on a GPU this waits for it, and copies one number."""
    found: Any = np.count_nonzero(mask)
    return found.item() if hasattr(found, "item") else found


def beside(array: Any, other: Any) -> Any:
    """An array from the host (indices or a mask), on the device of `other`."""
    module = array_module(other)
    return array if module is array_module(array) else module.asarray(array)


class Device:
    """Where arrays are: `device("cpu")`, `device("cuda")`, `device("cuda", 1)`, `device("cuda:1")`, as in PyTorch."""

    def __init__(self, type: Any, index: int | None = None) -> None:
        name, _, number = f"cuda:{type}" if isinstance(type, int) else str(type), "", ""
        name, _, number = name.partition(":")
        if name not in ("cpu", "cuda") or (number and not number.isdigit()):
            raise RuntimeError(f"Expected one of cpu, cuda device type at start of device string: {type}")
        self.type, self.index = name, int(number) if number else index

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"device(type={self.type!r}{index})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"


def cuda_device_count() -> int:
    """How many GPUs CuPy can use; 0 if CuPy is not installed or finds no driver."""
    try:
        return importlib.import_module("cupy").cuda.runtime.getDeviceCount()
    except Exception:  # ImportError, or one of the errors of CUDA's runtime
        return 0


def device_of(array: Any) -> Device:
    """The device that an array is on."""
    if array_module(array) is np:
        return Device("cpu")
    return Device("cuda", getattr(getattr(array, "device", None), "id", 0))


def on_device(array: Any, device: Any) -> Any:
    """The array on the given device: itself if it is there, else a copy. Raises AssertionError if there is no GPU."""
    wanted, here = Device(device), device_of(array)
    if wanted.type == "cpu":
        return array if here.type == "cpu" else array.get()
    if cuda_device_count() == 0:
        raise AssertionError("Torch not compiled with CUDA enabled")
    if here.type == "cuda" and wanted.index in (None, here.index):
        return array
    cupy = importlib.import_module("cupy")
    with cupy.cuda.Device(wanted.index or 0):
        return cupy.asarray(array)


def on_host(array: Any) -> np.ndarray:
    """The numbers of an array as a NumPy array, wherever they are; a NumPy scalar becomes a 0-d array."""
    if isinstance(array, (np.ndarray, np.generic)):  # the usual case, and faster to check than the module
        return np.asarray(array)
    return np.asarray(array if array_module(array) is np else array.get())


def unit(array: Any, position: int) -> Any:
    """Zeros in the shape, dtype and device of an array, with a 1 at a position in the flattened array."""
    one = np.zeros_like(array, order="C", shape=array.shape)
    one.reshape(-1)[position] = 1
    return one


def address(array: Any) -> int:
    """The address of the first element in memory, the host's or a GPU's."""
    return int(array.ctypes.data if isinstance(array, np.ndarray) else array.data.ptr)


def keep_numpy_quiet() -> None:
    """Turn off warnings of an overflow or an invalid value in this package: PyTorch gives inf and nan silently.

    This sets the warning filter of the process, but only for this package; `np.errstate` around every operation would
    cost more than the operation.
    """
    warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"mini_autograd\.")


def check_same_device(*operands: Any) -> None:
    """Raise PyTorch's error if arrays of an operation are on different devices. 0-d arrays on the host may be mixed."""
    found = {str(device_of(x)): x for x in operands if hasattr(x, "ndim") and (x.ndim or array_module(x) is not np)}
    if len(found) > 1:
        first, second = sorted(found, reverse=True)[:2]
        raise RuntimeError(
            f"Expected all tensors to be on the same device, but found at least two devices, {first} and {second}!"
        )


def references(held: Any, key: Any) -> int:
    """How many references there are to `held[key]`."""
    return sys.getrefcount(held[key])


HELD_ONCE = references([object()], 0)


def is_unshared(held: Any, key: Any) -> bool:
    """Whether only the list or dict `held` holds `held[key]`, and that is a NumPy array with its own contiguous memory.

    Such an array can be changed, or kept, without side effects. PyTorch counts references for the same purpose.
    """
    if references(held, key) != HELD_ONCE or type(held[key]) is not np.ndarray:
        return False
    flags = held[key].flags
    return flags.owndata and flags.c_contiguous


def sum_to(grad: Any, shape: tuple[int, ...]) -> Any:
    """Sum `grad` down to `shape`, the shape that a tensor had before it was broadcast.

    Broadcasting repeats an array along axes; the transpose of repeating is summing. Works on arrays and on tensors.
    """
    added = grad.ndim - len(shape)
    stretched = [axis for axis, size in enumerate(shape, start=added) if size == 1 and grad.shape[axis] != 1]
    if added and shape and not stretched and is_compact(grad):
        return sum_of_rows(grad.reshape(-1, math.prod(shape))).reshape(shape)
    return grad.sum(axis=(*range(added), *stretched), keepdims=True).reshape(shape)


def sum_of_rows(matrix: Any) -> Any:
    """The sum along axis 0. For a NumPy matrix it is a product with ones, which takes a third of the time of `sum`."""
    if is_compact(matrix) and matrix.shape[1] > 1:
        return np.ones(len(matrix), matrix.dtype) @ matrix
    return matrix.sum(0)


def is_compact(x: Any) -> bool:
    """Whether `x` is a non-empty NumPy array, stored row by row, of a dtype that BLAS supports."""
    return type(x) is np.ndarray and x.dtype.char in "fd" and x.flags.c_contiguous and x.size > 0


def broadcasts_to(shape: tuple[int, ...], wider: tuple[int, ...]) -> bool:
    """Whether an array of `shape` can be broadcast to exactly the shape `wider`."""
    tail = wider[len(wider) - len(shape) :]
    return len(shape) <= len(wider) and all(a in (1, b) for a, b in zip(shape, tail, strict=True))


def set_default_dtype(d: dtypes.dtype) -> None:
    """Set the dtype of Python floats from now on. Raises TypeError for a dtype that is not floating."""
    global default_dtype
    if not isinstance(d, (np.dtype, dtypes.dtype)) or not is_floating(d):
        raise TypeError("only floating-point types are supported as the default type")
    default_dtype = np.dtype(d)


def get_default_dtype() -> dtypes.dtype:
    """The dtype of Python floats."""
    return dtypes.of(default_dtype)


def is_floating(dtype: np.dtype | dtypes.dtype) -> bool:
    """Whether the dtype can carry a gradient."""
    return dtype.kind == "f"


def promote_types(a: np.dtype, b: np.dtype) -> np.dtype:
    """PyTorch's `promote_types`: like NumPy's, but an integer beside a float does not widen the float."""
    if is_floating(a) != is_floating(b):
        return a if is_floating(a) else b
    return np.promote_types(a, b)


def result_type(*operands: Any) -> np.dtype:
    """The dtype in which PyTorch computes: arrays with axes decide, then 0-d arrays, then Python numbers.

    A lower rank of these counts only if it is of a higher kind (bool < integer < float).
    """
    ranks: list[np.dtype | None] = [None, None, None]
    for operand in operands:
        dtype = getattr(operand, "dtype", None)
        if dtype is None:
            rank, dtype = 2, bool_ if operand is True or operand is False else int64
            if isinstance(operand, float):
                dtype = default_dtype
        else:
            rank = 0 if operand.ndim else 1
        known = ranks[rank]
        ranks[rank] = dtype if known is None else promote_types(known, dtype)
    with_axes, without_axes, numbers = ranks
    return _combine(with_axes, _combine(without_axes, numbers))  # type: ignore[return-value]  # there was an operand


def _combine(higher: np.dtype | None, lower: np.dtype | None) -> np.dtype | None:
    if higher is None or lower is None:
        return lower if higher is None else higher
    higher_decides = is_floating(higher) or (higher.kind != "b" and not is_floating(lower))
    return higher if higher_decides else promote_types(higher, lower)


def promoted(a: Any, b: Any) -> tuple[Any, Any]:
    """Two operands in a common dtype. Python numbers stay what they are: NumPy treats them as PyTorch does."""
    kind = type(a)
    if kind is type(b) and (kind is not np.ndarray or a.dtype is b.dtype):  # the usual case, quickly
        return a, b
    first: Any = getattr(a, "dtype", None)
    second: Any = getattr(b, "dtype", None)
    if first is second or (second is None and is_floating(first)) or (first is None and is_floating(second)):
        return a, b
    common = result_type(a, b)
    return cast(wrapped(a, common), common), cast(wrapped(b, common), common)


def wrapped(operand: Any, dtype: np.dtype) -> Any:
    """A Python integer that an integer dtype cannot hold, wrapped around as in C: 255 for -1 as uint8."""
    if type(operand) is not int or dtype.kind not in "iu":
        return operand
    limits = np.iinfo(dtype)
    return operand if limits.min <= operand <= limits.max else int(np.int64(operand).astype(dtype))


def promoted_to_floating(a: Any, b: Any) -> tuple[Any, Any]:
    """Like `promoted`, but in the default dtype if that gives integers."""
    a, b = promoted(float(a) if type(a) is int else a, float(b) if type(b) is int else b)
    return floating(a)[0], floating(b)[0]


def zeroed(x: Any, mask: Any) -> Any:
    """`x`, of a floating dtype, with 0 where `mask` holds, even for infinity, for which a product would give nan.

    It works on the bits of the numbers, as NumPy's `where` takes up to ten times as long on random signs.
    """
    if type(x) is not np.ndarray:
        return np.where(mask, 0.0, x).astype(x.dtype, copy=False)[()]
    bits = mask.astype(f"i{x.itemsize}")
    bits -= 1  # now 0 where the mask holds, and elsewhere -1, which has all bits set
    bits &= x.view(bits.dtype)
    return bits.view(x.dtype)


def check_fits(value: Any, dtype: np.dtype, suffix: str = "_t") -> None:
    """Raise PyTorch's error for a Python number that a dtype cannot hold; negative numbers may wrap to unsigned."""
    if not isinstance(value, int | float) or dtype == bool_ or (is_floating(dtype) and not math.isfinite(value)):
        return
    limits: Any = np.finfo(dtype) if is_floating(dtype) else np.iinfo(dtype)
    lowest = -limits.max if dtype.kind == "u" else limits.min
    if not int(lowest) <= value <= int(limits.max):
        name = {"float16": "c10::Half", "float32": "float", "float64": "double"}.get(
            dtype.name, f"{dtype.name}{suffix}"
        )
        raise RuntimeError(f"value cannot be converted to type {name} without overflow")


def check_alpha(alpha: float, *operands: Any) -> np.dtype:
    """The dtype of the sum of the operands, or PyTorch's error for a factor of a higher kind than that."""
    common = result_type(*operands)
    if isinstance(alpha, float) and not is_floating(common):
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    if isinstance(alpha, bool) and common != bool_:
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    return common


def are_integers(a: Any, b: Any) -> bool:
    """Whether a power of them is an integer, so that NumPy refuses negative exponents."""
    return all(isinstance(x, int) or getattr(x, "dtype", float64).kind in "iu" for x in (a, b))


def integer_power(a: Any, b: Any) -> Any:
    """a^b in integers. As in C++, a negative exponent gives 1 or -1 if a is 1 or -1, and 0 otherwise."""
    negative = b < 0
    sign = np.where(b % 2 == 0, 1, a)
    power = np.where(negative, np.where((a == 1) | (a == -1), sign, 0), a ** np.where(negative, 0, b))
    return power.astype(result_type(a, b))


def floating(x: Any) -> tuple[Any]:
    """An operand, unchanged if it is floating or a number, else in the default dtype."""
    return (x,) if getattr(x, "dtype", default_dtype).kind == "f" else (x.astype(default_dtype),)


def check_floating(x: Any, kernel: str) -> None:
    """Raise PyTorch's error for an operation that it supports for floating tensors only."""
    if not is_floating(x.dtype):
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{dtype_name(x.dtype)}'")


def cast(operand: Any, dtype: np.dtype) -> Any:
    """The array in the given dtype, itself if it already has it; a Python number is returned unchanged."""
    known = getattr(operand, "dtype", dtype)
    return operand if known is dtype else operand.astype(dtype)


def number(value: Any) -> Any:
    """Turn a NumPy scalar into a Python number: beside a tensor it counts as one, as in PyTorch."""
    return value.item() if isinstance(value, np.generic) else value


DTYPE_NAMES = {
    "float16": "Half", "float32": "Float", "float64": "Double", "int8": "Char", "uint8": "Byte", "int16": "Short",
    "int32": "Int", "int64": "Long", "bool": "Bool",
}  # fmt: skip


def dtype_name(dtype: np.dtype) -> str:
    """PyTorch's name of a scalar type, as used in its errors: Float, Double, Long, ..."""
    return DTYPE_NAMES[dtype.name]


def dtype_named(name: str) -> np.dtype:
    """The dtype of an old type such as "torch.LongTensor". Raises ValueError for any other text."""
    found = [kind for kind, old in DTYPE_NAMES.items() if name == f"torch.{old}Tensor"]
    if not found:
        raise ValueError(f"invalid type: '{name}'")
    return np.dtype(found[0])


def c_dtype(dtype: np.dtype) -> str:
    """The name of a scalar type in C++, as used in some of PyTorch's errors: float, double, long int, ..."""
    names = {"int64": "long int", "int32": "int", "int16": "short int", "float32": "float", "float64": "double"}
    return (names | {"float16": "c10::Half", "uint8": "unsigned char", "int8": "signed char"}).get(
        dtype.name, dtype.name
    )


def normalize_dim(dim: int, ndim: int) -> int:
    """An axis counted from the front. A 0-d tensor counts as having an axis 0. Raises IndexError if out of range."""
    size = ndim or 1
    if not -size <= dim < size:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-size}, {size - 1}], but got {dim})")
    return dim % size


def normalize_dims(dim: int | Sequence[int] | None, ndim: int) -> tuple[int, ...] | None:
    """The axes of a reduction, sorted; None stands for all, and so does an empty sequence, as in PyTorch.

    A 0-d array has no axis to name, so axis 0 (or -1) of it gives ().
    """
    if dim is None or dim == () or dim == []:
        return None
    return normalized_axes((dim,) if isinstance(dim, int) else tuple(dim), ndim)


@functools.lru_cache(maxsize=256)
def normalized_axes(dims: tuple[int, ...], ndim: int) -> tuple[int, ...]:
    """`normalize_dim` for several axes, sorted. Results are cached: on a small tensor this takes as long as a sum.

    Raises RuntimeError if an axis is named twice.
    """
    axes = sorted([normalize_dim(axis, ndim) for axis in dims])
    for axis, following in itertools.pairwise(axes):
        if axis == following:
            raise RuntimeError(f"dim {axis} appears multiple times in the list of dims")
    return tuple(axes) if ndim else ()
