"""`torch.autograd.graph`: what looks at a recorded graph and its saved tensors. It is written in hooks."""

from mini_autograd.graph.hooks import allow_mutation_on_saved_tensors, save_on_cpu, saved_tensors_hooks

__all__ = ["allow_mutation_on_saved_tensors", "save_on_cpu", "saved_tensors_hooks"]
