"""Functions of functions, as in `torch.func`, and calls of modules with parameters other than their own.

The one idea to know: most of them return a function, so they can be nested: `vmap(grad(f))` gives the gradient of each
example separately.
"""

from mini_autograd.func.batches import vmap
from mini_autograd.func.derivatives import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp
from mini_autograd.func.modules import functional_call, stack_module_state
from mini_autograd.numerics.left_out import answers as _answers

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "stack_module_state",
    "vjp",
    "vmap",
]

__getattr__ = _answers(__name__)
