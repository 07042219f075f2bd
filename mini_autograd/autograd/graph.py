"""`torch.autograd.graph`: contexts that handle the saved tensors of a graph. They are defined in graph/hooks.py."""

from mini_autograd.graph.hooks import allow_mutation_on_saved_tensors, save_on_cpu, saved_tensors_hooks
from mini_autograd.numerics.left_out import answers as _answers

__all__ = ["allow_mutation_on_saved_tensors", "save_on_cpu", "saved_tensors_hooks"]

__getattr__ = _answers(__name__)
