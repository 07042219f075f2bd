"""`torch.autograd.graph`: contexts that handle the saved tensors of a graph. They are defined in graph/hooks.py."""

from mini_autograd.graph.hooks import allow_mutation_on_saved_tensors, save_on_cpu, saved_tensors_hooks

__all__ = ["allow_mutation_on_saved_tensors", "save_on_cpu", "saved_tensors_hooks"]
