"""`torch.backends`: settings that scripts make for cuDNN, for matrix products on a GPU and for Apple's GPUs.

They have no effect, because NumPy and CuPy do the computing: values that are set are only kept.
"""

from __future__ import annotations

from types import SimpleNamespace

__all__ = ["cuda", "cudnn", "mps"]


def _never() -> bool:
    return False


cudnn = SimpleNamespace(
    enabled=False, benchmark=False, deterministic=False, allow_tf32=False, is_available=_never, version=lambda: None
)
cuda = SimpleNamespace(is_built=_never, matmul=SimpleNamespace(allow_tf32=False))
mps = SimpleNamespace(is_available=_never, is_built=_never)
