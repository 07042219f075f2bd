"""`torch.cuda`: whether there is a GPU, which CuPy then works on, and how to wait for it."""

from __future__ import annotations

import importlib

from mini_autograd.numerics.arrays import cuda_device_count

__all__ = ["device_count", "is_available", "memory_allocated", "synchronize"]


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
