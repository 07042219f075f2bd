"""`torch.amp`: the names for training in mixed precision. Here every operation keeps the dtype of its inputs.

So a script runs in float32, more precisely than in mixed precision, and needs no loss scaling.
"""

from __future__ import annotations

from contextlib import ContextDecorator
from typing import Any

__all__ = ["GradScaler", "autocast"]


class autocast(ContextDecorator):  # noqa: N801  (PyTorch's name)
    """A context, or a decorator, that changes nothing. `device_type`, `dtype` and the rest are accepted."""

    def __init__(self, device_type: str = "cpu", dtype: Any = None, enabled: bool = True, cache_enabled: Any = None):
        self.device_type, self.dtype = device_type, dtype

    def __enter__(self) -> autocast:
        return self

    def __exit__(self, *exception: object) -> None:
        return None


class GradScaler:
    """Scales nothing: gradients in float32 do not vanish, so `step` is just the optimizer's `step`."""

    def __init__(self, device: str = "cuda", enabled: bool = True, **options: Any) -> None:
        self.device = device

    def is_enabled(self) -> bool:
        return False

    def get_scale(self) -> float:
        return 1.0

    def scale(self, outputs: Any) -> Any:
        """The loss, unchanged."""
        return outputs

    def unscale_(self, optimizer: Any) -> None:
        """Nothing was scaled."""

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """What `optimizer.step` returns."""
        return optimizer.step(*args, **kwargs)

    def update(self, new_scale: Any = None) -> None:
        """There is no scale."""

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """There is no state."""
