"""`torch.distributed`: the names that scripts import. There is one process here, so nothing is distributed."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = [
    "destroy_process_group",
    "get_rank",
    "get_world_size",
    "init_process_group",
    "is_available",
    "is_initialized",
]

ONE_PROCESS = "mini_autograd trains in one process: run the script without torchrun, and use the module itself"


def is_available() -> bool:
    return False


def is_initialized() -> bool:
    return False


def get_rank(group: Any = None) -> int:
    return 0


def get_world_size(group: Any = None) -> int:
    return 1


def init_process_group(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises RuntimeError."""
    raise RuntimeError(ONE_PROCESS)


def destroy_process_group(group: Any = None) -> NoReturn:
    """Raises RuntimeError."""
    raise RuntimeError(ONE_PROCESS)
