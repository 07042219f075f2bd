"""All operations, one family to a file.

An operation is a class with a `forward` and a `backward`. The function that PyTorch has is further down in the same
file, and shows which operations it is made of. `def NAME(` or `NAME =`, searched for in this folder, finds it.

The one idea to know: an operation says everything about itself once, in its file. What other places list is derived:

- `__all__` of a family names its functions that are also in `torch` (for `neural`: in `torch.nn.functional`). They
  become functions of the package, and methods of Tensor if their first argument is a tensor.
- `IN_PLACE` names those of them that PyTorch has in place too: `x.exp_()`.
- Attributes of the class, such as `torch_name`, `sign`, `exact`, `prepare`, are described in graph/function.py.

Four files hold no operation: fused and targets hold what several operations share, windows the geometry of kernels, and
outputs writes results into existing tensors.
"""

import importlib
import pkgutil
from typing import Any

from mini_autograd.graph.function import Function


def __getattr__(name: str) -> Any:
    """Give `ALL`, every operation. The base classes are no operations: they have no forward, apart from Pick."""
    if name != "ALL":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    files = [found.name for found in pkgutil.walk_packages(__path__, f"{__name__}.") if not found.ispkg]
    return tuple(
        operation
        for file in files
        for operation in vars(importlib.import_module(file)).values()
        if isinstance(operation, type)
        and issubclass(operation, Function)
        and operation.__module__ == file
        and operation.forward is not Function.forward
        and operation.__qualname__ != "Pick"
    )
