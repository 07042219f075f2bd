"""`torch.autograd.forward_ad`: dual numbers. They are written in forward_mode."""

from mini_autograd.forward_mode import UnpackedDualTensor, dual_level, make_dual, unpack_dual

__all__ = ["UnpackedDualTensor", "dual_level", "make_dual", "unpack_dual"]
