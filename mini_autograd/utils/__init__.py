"""`torch.utils`: what it has that the engine has too, under PyTorch's names."""

from mini_autograd import checkpoint, data

__all__ = ["checkpoint", "data"]
