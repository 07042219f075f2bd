"""`StrictArray` stands in for an array on a GPU: it does what a CuPy array does, and raises an error if data would be
copied to the host implicitly, if it is mixed with a NumPy array, or if CuPy lacks a function, a method or a parameter.

Its numbers are in a NumPy array that only this module reads. `StrictArray.__module__` names a module of its own, in
which `mini_autograd.numerics.arrays.array_module` finds the functions that create arrays.
"""

from __future__ import annotations

import sys
import types
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from mini_autograd.graph.views import owner
from tests.mini_autograd.cupy_signatures import check

ON_THE_HOST = {"ix_", "apply_along_axis", "apply_over_axes", "piecewise", "array_split"}
"""Functions of CuPy that return a host array or need one."""

UNASKED = "Implicit conversion to a NumPy array is not allowed. Use `.get()` to ask for a copy on the host."


class Flags:
    """The flags that CuPy's `array.flags` has."""

    def __init__(self, flags: Any) -> None:
        self.c_contiguous, self.f_contiguous, self.owndata = flags.c_contiguous, flags.f_contiguous, flags.owndata


class StrictArray(NDArrayOperatorsMixin):
    """An array that never becomes a NumPy array by itself."""

    __array_priority__ = 100

    def __init__(self, host: Any, base: StrictArray | None = None) -> None:
        self._host = np.asarray(host)
        self.base = base

    def get(self) -> np.ndarray:
        """A copy on the host, requested explicitly."""
        return self._host.copy()

    def __array__(self, *args: Any, **kwargs: Any) -> np.ndarray:
        raise TypeError(UNASKED)

    def _unasked(self, *args: Any) -> Any:
        raise TypeError(UNASKED)

    __float__ = __int__ = __bool__ = __index__ = __complex__ = _unasked

    shape = property(lambda self: self._host.shape)
    ndim = property(lambda self: self._host.ndim)
    size = property(lambda self: self._host.size)
    dtype = property(lambda self: self._host.dtype)
    itemsize = property(lambda self: self._host.itemsize)
    nbytes = property(lambda self: self._host.nbytes)
    strides = property(lambda self: self._host.strides)
    flags = property(lambda self: Flags(self._host.flags))

    @property
    def T(self) -> StrictArray:  # noqa: N802
        return self._made(self._host.T)

    mT = property(lambda self: self._made(self._host.mT))  # noqa: N815

    @property
    def data(self) -> Any:
        """The part of CuPy's `array.data` that we use: the address on the device."""
        return types.SimpleNamespace(ptr=self._host.ctypes.data)

    def item(self, *args: Any) -> Any:
        """One number, requested explicitly."""
        return self._host.item(*args)

    def tolist(self) -> Any:
        return self._host.tolist()

    def _made(self, host: Any) -> StrictArray:
        shares = isinstance(host, np.ndarray) and owner(host) is owner(self._host)
        return StrictArray(host, self if shares else None)

    def __len__(self) -> int:
        return len(self._host)

    def __iter__(self) -> Any:
        return (self[row] for row in range(len(self)))

    def __getitem__(self, index: Any) -> StrictArray:
        picked = self._host[on_host(index)]
        if isinstance(picked, np.generic):  # on a device an element is a view of 0 axes
            parts = index if isinstance(index, tuple) else (index,)
            picked = self._host[on_host((*parts, ...))] if not any(part is ... for part in parts) else picked
        return self._made(picked)

    def __setitem__(self, index: Any, value: Any) -> None:
        self._host[on_host(index)] = on_host(value)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        if method != "__call__":  # NumPy does not find the methods of CuPy's ufuncs, such as `cupy.add.at`
            return NotImplemented
        check("functions", ufunc.__name__, (), {})
        out = options.pop("out", None)
        inputs, options = on_host(inputs), on_host(options)
        if out is not None:
            options["out"] = tuple(None if array is None else on_host(array) for array in out)
        result = ufunc(*inputs, **options)
        if out is not None and out[0] is not None:
            return out[0] if len(out) == 1 else out
        return on_device(result)

    def __array_function__(self, function: Any, kinds: Any, args: Any, kwargs: Any) -> Any:
        if function.__name__ in ON_THE_HOST:
            raise NotImplementedError(f"CuPy's {function.__name__} works on the host")
        if function is np.asarray:  # with `like`: an explicit request for an array on the device
            return module.asarray(*args, **kwargs)  # type: ignore[attr-defined]
        check("functions", function.__name__, args, kwargs)
        result = function(*on_host(args), **on_host(kwargs))
        if function in (np.shape, np.ndim, np.size, np.result_type, np.can_cast):
            return result
        out = kwargs.get("out")
        return out if isinstance(out, StrictArray) else on_device(result, args[0] if args else None)


METHODS = """
astype reshape sum mean max min prod argmax argmin argsort sort copy transpose swapaxes take cumsum cumprod any all clip
fill flatten ravel squeeze round repeat nonzero var std dot diagonal trace conj view partition
"""


def _method(name: str) -> Any:
    def method(self: StrictArray, *args: Any, **kwargs: Any) -> Any:
        check("methods", name, args, kwargs)
        result = getattr(self._host, name)(*on_host(args), **on_host(kwargs))
        return None if result is None else on_device(result, self)

    return method


for _name in METHODS.split():
    setattr(StrictArray, _name, _method(_name))


def on_host(value: Any) -> Any:
    """The arguments of a function with host arrays in place of strict ones. A NumPy array among them is an error."""
    if isinstance(value, StrictArray):
        return value._host
    if isinstance(value, np.ndarray):
        raise TypeError(f"Unsupported type {np.ndarray}: an array on the host beside one on the device")
    if type(value) in (tuple, list):
        return type(value)(map(on_host, value))
    return {key: on_host(part) for key, part in value.items()} if type(value) is dict else value


def on_device(value: Any, like: Any = None) -> Any:
    """The result of a function with strict arrays in place of host arrays and NumPy's scalars."""
    if isinstance(value, np.ndarray | np.generic):
        return like._made(value) if isinstance(like, StrictArray) else StrictArray(value)
    if type(value) in (tuple, list):
        return type(value)(on_device(part, like) for part in value)
    if isinstance(value, tuple):  # a named tuple
        return type(value)(*(on_device(part, like) for part in value))
    return value


def _maker(name: str) -> Any:
    """A function that creates arrays, as the device's module has it."""

    def make(*args: Any, **kwargs: Any) -> Any:
        check("functions", name, args, kwargs)
        return on_device(getattr(np, name)(*on_host(args), **on_host(kwargs)))

    return make


module = types.ModuleType("strict_arrays")
module.ndarray = StrictArray  # type: ignore[attr-defined]
MAKERS = ("arange", "zeros", "ones", "full", "empty", "eye", "tri", "linspace", "zeros_like", "ones_like", "full_like")
for _name in MAKERS:
    setattr(module, _name, _maker(_name))


def asarray(array: Any, dtype: Any = None) -> StrictArray:
    """An array on the device from an array of the host, requested explicitly."""
    if isinstance(array, StrictArray):
        return array if dtype is None else array.astype(dtype)
    return StrictArray(np.array(array, dtype))


def add_at(output: StrictArray, index: Any, x: StrictArray) -> None:
    """`cupy.add.at`, for the dtypes for which CuPy has it."""
    if output.dtype.name not in ("int32", "uint32", "uint64", "float16", "float32", "float64"):
        raise TypeError(f"CuPy's add.at does not support {output.dtype}")
    np.add.at(output._host, on_host(index), on_host(x))


module.asarray = asarray  # type: ignore[attr-defined]
module.add = types.SimpleNamespace(at=add_at)  # type: ignore[attr-defined]
StrictArray.__module__ = module.__name__
sys.modules[module.__name__] = module


class OnlyDevice:
    """`cupy.cuda.Device`: the only device."""

    def __init__(self, index: int) -> None:
        self.index = index

    def __enter__(self) -> None:
        if self.index:
            raise RuntimeError("there is one device only")

    def __exit__(self, *error: object) -> None:
        pass


module.cuda = types.SimpleNamespace(  # type: ignore[attr-defined]
    Device=OnlyDevice, runtime=types.SimpleNamespace(getDeviceCount=lambda: 1)
)
