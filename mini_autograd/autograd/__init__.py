"""`torch.autograd`: gradients on demand, custom functions, forward mode, functional derivatives, numerical checks.

A function or a graph comes in, and derivatives come out. Modules that only some programs use are imported on demand.
"""

import importlib
from typing import TYPE_CHECKING, Any

from mini_autograd.autograd.function import Function, once_differentiable
from mini_autograd.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck
from mini_autograd.graph.anomaly import detect_anomaly, set_detect_anomaly
from mini_autograd.graph.grad_mode import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled
from mini_autograd.numerics.left_out import answers
from mini_autograd.tensors.gradients import backward, grad

if TYPE_CHECKING:
    from mini_autograd.autograd import forward_ad, functional, graph
    from mini_autograd.tensors.legacy import Variable

__all__ = [
    "Function",
    "GradcheckError",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "forward_ad",
    "function",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_grad_enabled",
    "no_grad",
    "once_differentiable",
    "set_detect_anomaly",
    "set_grad_enabled",
]

MODULES = ("forward_ad", "functional", "graph")
ON_DEMAND = dict.fromkeys(MODULES, "autograd")
ON_DEMAND["Variable"] = "tensors.legacy"
"""name -> the package or module that it is imported from when it is first used"""


def __getattr__(name: str) -> Any:
    if name in MODULES:
        return importlib.import_module(f"mini_autograd.autograd.{name}")
    if name in ON_DEMAND:
        return getattr(importlib.import_module(f"mini_autograd.{ON_DEMAND[name]}"), name)
    return answers("mini_autograd.autograd")(name)


def __dir__() -> list[str]:
    return sorted({*globals(), *ON_DEMAND})
