"""Saving and loading tensors and containers of them, as `safetensors` files, which PyTorch reads and writes too.

The one idea to know: a file holds names, dtypes, shapes, numbers and, for anything but a plain dict of tensors, a
description of the structure in JSON. So loading a file runs no code of its author. PyTorch's own `torch.save` uses
pickle, which does.
"""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from mini_autograd.graph.function import tensor_of
from mini_autograd.tensors.tensor import Tensor

STRUCTURE = "structure"
"""The name of the description in the file's metadata."""

NO_SAFETENSORS = (
    "`load` reads safetensors files, and this is not one. If PyTorch's torch.save wrote it, load it with PyTorch "
    "and write its state_dict() with safetensors.torch.save_file"
)
TENSOR = "tensor"
CONTAINERS: dict[str, Any] = {"dict": dict, "list": list, "tuple": tuple}


def save(obj: Any, f: str | PathLike | BinaryIO) -> None:
    """Write one tensor, a state dict or a checkpoint to a file, which is given by its name or open.

    A checkpoint consists of dicts, lists and tuples of tensors, numbers, strings and None.
    `safetensors.torch.load_file` reads a state dict in PyTorch. Raises TypeError for anything else, such as a whole
    module: save its state_dict().
    """
    from safetensors import numpy as safetensors

    tensors: dict[str, np.ndarray] = {}
    structure = described(obj, "", tensors)
    if isinstance(obj, dict) and all(isinstance(x, Tensor) and isinstance(name, str) for name, x in obj.items()):
        data = safetensors.save({name: on_host(x) for name, x in obj.items()})
    else:
        data = safetensors.save(tensors, {STRUCTURE: json.dumps(structure)})
    if isinstance(f, (str, PathLike)):
        Path(f).write_bytes(data)
    else:
        f.write(data)


def described(value: Any, path: str, tensors: dict[str, np.ndarray]) -> Any:
    """A description of a value in JSON; its tensors are put into `tensors` under the path that leads to them."""
    if isinstance(value, Tensor):
        name = path if path not in tensors else f"{path} {len(tensors)}"
        tensors[name] = on_host(value)
        return {TENSOR: name}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value.item() if isinstance(value, np.generic) else value
    for kind, container in CONTAINERS.items():
        if isinstance(value, container):
            items = value.items() if kind == "dict" else enumerate(value)
            parts = [
                [described(key, "", {}), described(part, f"{path}.{key}".strip("."), tensors)] for key, part in items
            ]
            return {kind: parts if kind == "dict" else [part for _, part in parts]}
    raise TypeError(
        f"cannot save a {type(value).__name__}{f' (at {path})' if path else ''}: only tensors, numbers, strings and "
        "None, and dicts, lists and tuples of them, such as a module's state_dict()"
    )


def load(f: str | PathLike | BinaryIO, map_location: Any = None, weights_only: bool = True) -> Any:
    """Read a file written by `save`, or a dict of tensors written by `safetensors.torch.save_file`.

    Raises ValueError for anything else.
    """
    from safetensors import numpy as safetensors

    data = Path(f).read_bytes() if isinstance(f, (str, PathLike)) else f.read()
    if data[8:9] != b"{":  # its JSON begins there
        raise ValueError(NO_SAFETENSORS)
    tensors = {name: tensor_of(array[()]) for name, array in safetensors.load(data).items()}
    if map_location is not None:
        tensors = {name: tensor.to(map_location) for name, tensor in tensors.items()}
    length = int.from_bytes(data[:8], "little")
    metadata = json.loads(data[8 : 8 + length]).get("__metadata__", {})
    return rebuilt(json.loads(metadata[STRUCTURE]), tensors) if STRUCTURE in metadata else tensors


def rebuilt(structure: Any, tensors: dict[str, Any]) -> Any:
    """The value that `structure` describes, with its tensors."""
    if not isinstance(structure, dict):
        return structure
    ((kind, parts),) = structure.items()
    if kind == TENSOR:
        return tensors[parts]
    if kind == "dict":
        return {rebuilt(key, {}): rebuilt(part, tensors) for key, part in parts}
    return CONTAINERS[kind](rebuilt(part, tensors) for part in parts)


def on_host(tensor: Tensor) -> np.ndarray:
    """The numbers of a tensor as a NumPy array, stored row by row, wherever they are."""
    array = tensor.detach().array
    array = array.get() if hasattr(array, "get") else np.asarray(array)
    return np.ascontiguousarray(array).reshape(tensor.shape)
