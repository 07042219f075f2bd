"""`torch.utils`: data sets and loaders, and checkpoints that save memory.

Samples come in and batches come out; a function comes in, and one comes out that keeps less for its backward pass.
"""

from mini_autograd.utils import checkpoint, data

__all__ = ["checkpoint", "data"]
