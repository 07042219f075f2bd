"""`torch.autograd.graph`: what looks at a recorded graph and its saved tensors. It is written in hooks."""

from mini_autograd.graph.hooks import save_on_cpu, saved_tensors_hooks

__all__ = ["save_on_cpu", "saved_tensors_hooks"]
