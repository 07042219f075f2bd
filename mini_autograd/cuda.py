"""`torch.cuda`: whether there is a GPU for CuPy to work on, and how to wait for it."""

from __future__ import annotations

import importlib
from typing import Any

from mini_autograd.numerics.arrays import cuda_device_count
from mini_autograd.numerics.left_out import answers

__all__ = [
    "current_device",
    "device_count",
    "empty_cache",
    "is_available",
    "is_bf16_supported",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "memory_allocated",
    "synchronize",
]


def is_available() -> bool:
    """Whether tensors can go to a GPU: CuPy is installed and finds one."""
    return cuda_device_count() > 0


def device_count() -> int:
    """How many GPUs there are."""
    return cuda_device_count()


def synchronize() -> None:
    """Wait until everything that was started on the GPU is done. Without a GPU there is nothing to wait for."""
    if is_available():
        importlib.import_module("cupy").cuda.get_current_stream().synchronize()


def memory_allocated() -> int:
    """Bytes of the arrays that live on the GPU."""
    return importlib.import_module("cupy").get_default_memory_pool().used_bytes() if is_available() else 0


def max_memory_allocated() -> int:
    """Bytes that CuPy holds for arrays: at least their peak use, because CuPy returns no memory by itself."""
    return importlib.import_module("cupy").get_default_memory_pool().total_bytes() if is_available() else 0


def empty_cache() -> None:
    """Return memory that no array uses to the GPU."""
    if is_available():
        importlib.import_module("cupy").get_default_memory_pool().free_all_blocks()


def current_device() -> int:
    """The number of the GPU that new arrays go to. Raises RuntimeError without a GPU."""
    if not is_available():
        raise RuntimeError("CuPy finds no GPU")
    return importlib.import_module("cupy").cuda.Device().id


def is_bf16_supported() -> bool:
    """Neither NumPy nor CuPy has bfloat16."""
    return False


def manual_seed(seed: int) -> None:
    """Does nothing: random numbers are drawn on the CPU, with the seed of `mini_autograd.manual_seed`."""


def manual_seed_all(seed: int) -> None:
    """Does nothing, like `manual_seed`."""


def __getattr__(name: str) -> Any:
    if name != "amp":
        return answers("mini_autograd.cuda")(name)
    return importlib.import_module("mini_autograd.amp")
