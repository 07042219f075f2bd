"""Saving and loading dicts of tensors, as `safetensors` files, which PyTorch reads and writes too.

Imports tensor, and safetensors when first used. The one idea to know: a file holds names, dtypes, shapes and numbers
and nothing else, so that loading one runs no code of whoever made it. PyTorch's own `torch.save` is pickle, which does.
"""

from __future__ import annotations

from os import PathLike
from typing import Any, BinaryIO

import numpy as np

from mini_autograd.function import tensor_of
from mini_autograd.tensor import Tensor


def save(obj: dict[str, Tensor], f: str | PathLike | BinaryIO) -> None:
    """Write a state dict to a file, given by its name or open. In PyTorch, `safetensors.torch.load_file` reads it.

    Raises TypeError for anything that is not a dict of tensors.
    """
    if not isinstance(obj, dict) or not all(isinstance(value, Tensor) for value in obj.values()):
        raise TypeError("only a dict of names and tensors can be saved, such as a module's state_dict()")
    from safetensors import numpy as safetensors

    arrays = {name: np.ascontiguousarray(on_host(value)).reshape(value.shape) for name, value in obj.items()}
    if isinstance(f, (str, PathLike)):
        safetensors.save_file(arrays, f)
    else:
        f.write(safetensors.save(arrays))


def load(f: str | PathLike | BinaryIO, map_location: Any = None, weights_only: bool = True) -> dict[str, Tensor]:
    """Read a dict of tensors, written by `save` or by `safetensors.torch.save_file`."""
    from safetensors import numpy as safetensors

    arrays = safetensors.load_file(f) if isinstance(f, (str, PathLike)) else safetensors.load(f.read())
    state = {name: tensor_of(array[()]) for name, array in arrays.items()}
    return state if map_location is None else {name: value.to(map_location) for name, value in state.items()}


def on_host(tensor: Tensor) -> np.ndarray:
    """The numbers of a tensor in NumPy's memory, wherever they are."""
    array = tensor.detach().array
    return array.get() if hasattr(array, "get") else np.asarray(array)
