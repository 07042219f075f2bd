"""`load_state_dict`: from a dict of tensors back into a module, with PyTorch's report of what does not fit.

The one idea to know: everything that fits is copied first, and then one error reports everything else.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Mapping
from typing import Any

from mini_autograd.nn.parameter import Parameter, overwrite
from mini_autograd.tensors.tensor import Tensor


class IncompatibleKeys(namedtuple("_IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What `load_state_dict` found: keys that only the module has, and keys that only the state has."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not any(self):
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


def load(module: Any, state: Mapping[str, Any], strict: bool, assign: bool = False) -> IncompatibleKeys:
    """Copy `state` into the tensors of `module`, or with `assign`, replace them with the tensors of `state`."""
    if not isinstance(state, Mapping):
        raise TypeError(f"Expected state_dict to be dict-like, got {type(state)}.")
    own = module.state_dict(keep_vars=True)
    missing = [key for key in own if key not in state]
    unexpected = [key for key in state if key not in own]
    errors = []
    if strict and missing:
        errors.append(f"Missing key(s) in state_dict: {quoted(missing)}. ")
    if strict and unexpected:
        errors.append(f"Unexpected key(s) in state_dict: {quoted(unexpected)}. ")
    for key, tensor in own.items():
        if key in state:
            wrong = problems(key, tensor, state[key])
            errors += wrong
            if not wrong and assign:
                put(module, key, state[key])
            elif not wrong:
                overwrite(tensor, state[key].detach().array)
    if errors:
        text = "\n\t".join(errors)
        raise RuntimeError(f"Error(s) in loading state_dict for {type(module).__name__}:\n\t{text}")
    return IncompatibleKeys(missing, unexpected)


def problems(key: str, tensor: Tensor, value: Any) -> list[str]:
    """What is wrong with one value: an empty list, or one error text."""
    if not isinstance(value, Tensor):
        return [
            f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from checkpoint '
            f"but received {type(value)}"
        ]
    if value.shape != tensor.shape:
        return [
            f"size mismatch for {key}: copying a param with shape torch.Size({list(value.shape)}) from checkpoint, the "
            f"shape in current model is torch.Size({list(tensor.shape)})."
        ]
    return []


def put(module: Any, key: str, value: Tensor) -> None:
    """Make `value` the parameter or buffer at a path; a plain tensor keeps the old parameter's `requires_grad`."""
    path, _, name = key.rpartition(".")
    owner = module.get_submodule(path)
    before = getattr(owner, name)
    if isinstance(before, Parameter) and not isinstance(value, Parameter):
        value = Parameter(value, before.requires_grad)
    setattr(owner, name, value)


def quoted(keys: list[str]) -> str:
    return ", ".join(f'"{key}"' for key in keys)
