"""`torch.nn.parallel`: the names that scripts import. A module is trained on one device, by one process."""

from __future__ import annotations

from typing import Any

__all__ = ["DataParallel", "DistributedDataParallel"]


class DistributedDataParallel:
    """Raises RuntimeError: there is one process."""

    def __init__(self, module: Any, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError("mini_autograd trains in one process: use the module itself, without a parallel wrapper")


DataParallel = DistributedDataParallel
