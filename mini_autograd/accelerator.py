"""`torch.accelerator`: whether there is something faster than the CPU; here, only a GPU with CuPy."""

from __future__ import annotations

from mini_autograd import cuda
from mini_autograd.numerics.arrays import Device

__all__ = ["current_accelerator", "device_count", "is_available"]


def is_available() -> bool:
    """Whether there is a GPU."""
    return cuda.is_available()


def device_count() -> int:
    """How many GPUs there are."""
    return cuda.device_count()


def current_accelerator(check_available: bool = False) -> Device | None:
    """The device `cuda`, or None without a GPU. PyTorch built for CUDA names it even then, unless `check_available`."""
    return Device("cuda") if cuda.is_available() else None
