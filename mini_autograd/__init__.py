"""A small automatic-differentiation engine on NumPy, with PyTorch's names, semantics and error texts.

This is what a finished MiniTensor looks like. `import mini_autograd as ma` replaces `import torch`, for the parts of
PyTorch that are covered here.
"""

# ruff: noqa: F401  (everything imported here is meant for users)

import importlib
from math import e, inf, nan, pi
from typing import Any

import numpy as np

from mini_autograd import autograd, system
from mini_autograd.autograd import Function
from mini_autograd.graph import saved_values
from mini_autograd.graph.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from mini_autograd.numerics import arrays, dtypes, left_out, return_types
from mini_autograd.numerics.arrays import bfloat16, get_default_dtype, set_default_dtype
from mini_autograd.numerics.dtypes import bool_ as bool
from mini_autograd.numerics.dtypes import dtype, float16, float32, float64, int8, int16, int32, int64, uint8
from mini_autograd.numerics.size import Size
from mini_autograd.tensors import in_place, memory, on_demand, random_in_place
from mini_autograd.tensors.creation import (
    arange,
    as_tensor,
    empty,
    empty_like,
    eye,
    from_numpy,
    full,
    full_like,
    is_inference,
    is_tensor,
    linspace,
    numel,
    ones,
    ones_like,
    tensor,
    zeros,
    zeros_like,
)
from mini_autograd.tensors.methods import Tensor
from mini_autograd.tensors.namespace import *  # noqa: F403
from mini_autograd.tensors.random import (
    Generator,
    bernoulli,
    get_rng_state,
    initial_seed,
    manual_seed,
    multinomial,
    normal,
    rand,
    rand_like,
    randint,
    randn,
    randn_like,
    randperm,
    seed,
    set_rng_state,
)

device, finfo, iinfo, newaxis = arrays.Device, np.finfo, np.iinfo, None
preserve_format, contiguous_format = "torch.preserve_format", "torch.contiguous_format"  # accepted, and ignored
half, float, double, int, long = float16, float32, float64, int32, int64

arrays.keep_numpy_quiet()
if system.IN_BROWSER:
    system.guard_stack()


def set_num_threads(int: Any) -> None:
    """Accepted, and ignored: NumPy decides how many threads its matrix products use."""


def set_warn_always(b: Any) -> None:
    """Accepted, and ignored: every warning is given each time, and Python's filters decide which are shown."""


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """The dtype that can hold the values of both."""
    return dtypes.of(arrays.promote_types(type1.dtype, type2.dtype))


globals().update(on_demand.by_name(on_demand.FUNCTIONS))

ON_DEMAND = {"compile": "fusion", "vmap": "func", "autocast": "amp"}
ON_DEMAND |= {"FloatTensor": "tensors.legacy", "LongTensor": "tensors.legacy"}
MODULES = "accelerator allocator amp backends cuda distributed func linalg nn optim utils"
ON_DEMAND |= {name: name for name in MODULES.split()}
"""name -> the module that it is in, imported when it is first used, so that the engine starts as quickly as NumPy"""


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return importlib.import_module("importlib.metadata").version("mini-autograd-course")
    if name not in ON_DEMAND:
        return left_out.answers("mini_autograd")(name)
    module = importlib.import_module(f"mini_autograd.{ON_DEMAND[name]}")
    return module if ON_DEMAND[name] == name else getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *ON_DEMAND})
