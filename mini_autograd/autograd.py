"""The public look-alike of `torch.autograd`: everything that it offers, from the modules where it is written.

Imports gradients, custom, grad_mode, hooks, anomaly and the modules built on them; what only some programs use is
imported when they ask for it.
"""

import importlib
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from mini_autograd import forward_mode as forward_ad
from mini_autograd.anomaly import detect_anomaly, set_detect_anomaly
from mini_autograd.custom import Function, once_differentiable
from mini_autograd.grad_mode import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled
from mini_autograd.gradients import backward, grad
from mini_autograd.hooks import save_on_cpu, saved_tensors_hooks

if TYPE_CHECKING:
    from mini_autograd import functional
    from mini_autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck

function = SimpleNamespace(Function=Function, once_differentiable=once_differentiable)
graph = SimpleNamespace(save_on_cpu=save_on_cpu, saved_tensors_hooks=saved_tensors_hooks)

__all__ = [
    "Function",
    "GradcheckError",
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

ON_DEMAND = {"functional": "functional"} | dict.fromkeys(("GradcheckError", "gradcheck", "gradgradcheck"), "gradcheck")
"""name -> the module that it is imported from when it is first used"""


def __getattr__(name: str) -> Any:
    if name not in ON_DEMAND:
        raise AttributeError(f"module 'mini_autograd.autograd' has no attribute '{name}'")
    module = importlib.import_module(f"mini_autograd.{ON_DEMAND[name]}")
    return module if name == "functional" else getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *ON_DEMAND})
