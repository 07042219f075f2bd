"""`torch.autograd.functional`: products with Jacobians and Hessians. They are written in mini_autograd.functional."""

from mini_autograd.functional import hessian, hvp, jacobian, jvp, vhp, vjp

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]
