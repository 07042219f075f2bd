"""`torch.backends`: settings that scripts write for cuDNN, for matrix products on a GPU and for Apple's GPUs.

There is nothing here to be set, for NumPy and CuPy calculate: what is written is kept and changes nothing.
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
