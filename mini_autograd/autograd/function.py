"""`torch.autograd.function`: operations that a user writes. They are written in custom."""

from mini_autograd.custom import Function, once_differentiable

__all__ = ["Function", "once_differentiable"]
