"""What is said when a program asks for a name of PyTorch's that is left out on purpose.

The one idea to know: left_out.json lists PyTorch's public names, also those that are here. It is read at an error.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

PROMISE = (
    "is left out on purpose: this engine has the operations, modules and optimizers that the course uses (see "
    "docs/conformance.md)"
)
IN_PLACE_OF_IT = {
    "torch.bincount": "torch.nn.functional.one_hot(x).sum(0)",
    "torch.complex64": "two tensors, for the real and the imaginary part",
    "torch.cross": "products of x[..., 0], x[..., 1] and x[..., 2], with torch.stack",
    "torch.einsum": "torch.matmul; or broadcast factors, such as (x[:, :, None] * y[None]).sum(1), and their sum",
    "torch.jit": "the function itself: nothing needs to be compiled",
    "torch.log2": "torch.log(x) / math.log(2)",
    "torch.meshgrid": "x[:, None] and y[None, :], which broadcast",
    "torch.nn.ELU": "torch.nn.SiLU, or torch.where(x > 0, x, torch.exp(x) - 1)",
    "torch.nn.GroupNorm": "torch.nn.LayerNorm, of x reshaped to its groups",
    "torch.nn.HuberLoss": "torch.nn.SmoothL1Loss, which is the same for delta = 1",
    "torch.nn.KLDivLoss": "(target * (torch.log(target) - x)).sum()",
    "torch.nn.ReLU6": "x.clamp(0, 6)",
    "torch.optim.Adagrad": "torch.optim.RMSprop or torch.optim.Adadelta",
    "torch.optim.NAdam": "torch.optim.Adam or torch.optim.AdamW",
    "torch.optim.lr_scheduler.CyclicLR": "torch.optim.lr_scheduler.LambdaLR",
    "torch.optim.lr_scheduler.OneCycleLR": "torch.optim.lr_scheduler.LambdaLR",
    "torch.sparse": "dense tensors",
    "torch.tan": "torch.sin(x) / torch.cos(x)",
}
"""What to use in place of the names that scripts ask for most. For all others: PyTorch, or what they are made of."""


def text(owner: str, name: str) -> str:
    """What to add about a name that `owner`, a module such as "torch.nn", lacks here; empty if PyTorch lacks it too."""
    known = importlib.import_module("json").loads(Path(__file__).with_suffix(".json").read_text())
    if name not in known.get(owner, "").split():
        return ""
    full = f"{owner}.{name}"
    instead = IN_PLACE_OF_IT.get(full, "compose it of the operations that are here, or run the script with PyTorch")
    return f". {full} {PROMISE}. In place of it: {instead}"


def answers(module: str) -> Callable[[str], Any]:
    """The `__getattr__` of a module: an AttributeError that says whether the name is PyTorch's."""

    def missing(name: str) -> Any:
        raise AttributeError(
            f"module '{module}' has no attribute '{name}'{text(module.replace('mini_autograd', 'torch'), name)}",
            name=name,
            obj=sys.modules[module],
        )

    return missing
