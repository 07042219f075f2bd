"""`Optimizer`: parameters in groups with their options, and the state that an algorithm keeps for each.

The one idea to know: an algorithm is one method, `update`, which changes one parameter in place. It works on arrays, so
nothing is recorded, and uses one scratch array for all parameters, so a step allocates nothing.
"""

from __future__ import annotations

import copy
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from mini_autograd.graph.function import tensor_of
from mini_autograd.graph.grad_mode import enable_grad
from mini_autograd.graph.versions import note_change
from mini_autograd.graph.views import memory_of
from mini_autograd.numerics.arrays import dtype_name, on_device
from mini_autograd.tensors.tensor import Tensor

Group = dict[str, Any]
State = dict[str, Any]

IGNORED = {"foreach": None, "capturable": False, "differentiable": False, "fused": None}
"""Options that choose between PyTorch's implementations: accepted, kept, and without effect."""


DUPLICATES = (
    "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; see "
    "github.com/pytorch/pytorch/issues/40967 for more information"
)


class Optimizer:
    """The base of all optimizers. `params` are tensors, or dicts with "params" and options of their own."""

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                f"torch.{dtype_name(params.dtype)}Tensor"
            )
        self.defaults = defaults
        self.param_groups: list[Group] = []
        self.state: dict[Tensor, State] = defaultdict(dict)
        self._scratch: Any = None
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def add_param_group(self, param_group: Group) -> None:
        """Train more parameters, with their own options."""
        group = {**self.defaults, **param_group}
        params = group["params"]
        if isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
                "will change between runs. Please use a list instead."
            )
        group["params"] = [params] if isinstance(params, Tensor) else named_or_not(params)
        known = {param for other in self.param_groups for param in other["params"]}
        for param in group["params"]:
            if not isinstance(param, Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {type(param).__name__}")
            if not param.is_leaf:
                raise ValueError("can't optimize a non-leaf Tensor")
        if len(set(group["params"])) < len(group["params"]):
            warnings.warn(DUPLICATES, stacklevel=3)
        if not known.isdisjoint(group["params"]):
            raise ValueError("some parameters appear in more than one parameter group")
        self.param_groups.append({"params": group.pop("params"), **group})

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget all gradients, or set them to zero in place."""
        for group in self.param_groups:
            for param in group["params"]:
                if set_to_none:
                    param.grad = None
                elif param.grad is not None:
                    param.grad.detach().zero_()

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient. A closure recomputes the loss first; its value is returned."""
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        for group in self.param_groups:
            for param in group["params"]:
                grad = param.grad
                if grad is not None:
                    self.step_one(param, grad.array, group)
        return loss

    def step_one(self, param: Tensor, gradient: Any, group: Group) -> None:
        """Update one parameter: apply weight decay as the options say, then the algorithm."""
        state = self.state[param]
        values = memory_of(param)
        if group["maximize"]:
            gradient = -gradient
        decay = group["weight_decay"]
        if decay and group.get("decoupled_weight_decay"):
            values *= 1 - group["lr"] * decay
        elif decay:
            gradient = gradient + values * decay
        self.update(values, changeable(gradient), state, group)
        version = param.version
        if version is not None:
            note_change(version)

    def update(self, values: Any, gradient: Any, state: State, group: Group) -> None:
        """Update the array `values` in place from the array `gradient` and the state."""
        raise NotImplementedError

    @property
    def keeps_arrays(self) -> bool:
        """Whether the state holds arrays, as `update` needs; an algorithm with its own `step` may keep anything."""
        return type(self).update is not Optimizer.update

    def scratch(self, like: Any) -> Any:
        """An array like `like` for intermediate results; the memory is always the same."""
        if self._scratch is None or self._scratch.dtype != like.dtype or self._scratch.size < like.size:
            self._scratch = np.empty_like(like, shape=like.size)
        return self._scratch[: like.size].reshape(like.shape)

    def state_dict(self) -> dict[str, Any]:
        """Options and state, with parameters as numbers: the same layout as PyTorch's."""
        params = [param for group in self.param_groups for param in group["params"]]
        numbers = {param: number for number, param in enumerate(params)}
        groups = [
            {
                **{name: value for name, value in group.items() if name != "params"},
                "params": [numbers[param] for param in group["params"]],
            }
            for group in self.param_groups
        ]
        shown = as_tensor if self.keeps_arrays else as_it_is
        state = {numbers[p]: {k: shown(v) for k, v in kept.items()} for p, kept in self.state.items() if kept}
        return {"state": state, "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load options and state."""
        groups = state_dict["param_groups"]
        if len(groups) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        for own, other in zip(self.param_groups, groups, strict=True):
            if len(own["params"]) != len(other["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
                )
            own.update({name: value for name, value in other.items() if name != "params"})
        pairs = [
            (number, param)
            for own, other in zip(self.param_groups, groups, strict=True)
            for number, param in zip(other["params"], own["params"], strict=True)
        ]
        kept = state_dict["state"]
        taken = from_tensor if self.keeps_arrays else copy_of
        self.state.clear()
        for number, param in pairs:
            if number in kept:
                state = {name: taken(value, name) for name, value in kept[number].items()}
                self.state[param] = {name: beside_param(value, name, param) for name, value in state.items()}

    def __repr__(self) -> str:
        text = f"{type(self).__name__} ("
        for number, group in enumerate(self.param_groups):
            options = "".join(f"    {name}: {group[name]}\n" for name in sorted(group) if name != "params")
            text += f"\nParameter Group {number}\n{options}"
        return text + ")"


def named_or_not(params: Iterable[Any]) -> list[Any]:
    """A list of parameters, also from (name, parameter) pairs."""
    return [entry[1] if isinstance(entry, tuple) else entry for entry in params]


def as_tensor(value: Any) -> Any:
    """A part of the state as users see it: arrays as tensors that share their memory, the step as a float32 tensor."""
    if isinstance(value, int) and not isinstance(value, bool):
        return tensor_of(np.float32(value))
    return tensor_of(value) if hasattr(value, "ndim") and not isinstance(value, np.generic) else value


def from_tensor(value: Any, name: str) -> Any:
    """The reverse of `as_tensor`, with memory of its own."""
    if name == "step":
        return int(value.item()) if isinstance(value, Tensor) else int(value)
    return changeable(value.array.copy()) if isinstance(value, Tensor) else value


def beside_param(value: Any, name: str, param: Tensor) -> Any:
    """A part of the state on the device of its parameter; a count of steps stays on the host, as in PyTorch."""
    if name == "step" or param.device.type == "cpu":
        return value
    if isinstance(value, Tensor):
        return value.to(param.device)
    return on_device(value, param.device) if hasattr(value, "ndim") else value


def as_it_is(value: Any) -> Any:
    """A part of the state of a custom algorithm, unchanged."""
    return value


def copy_of(value: Any, name: str) -> Any:
    """The reverse of `as_it_is`, with memory of its own."""
    return copy.deepcopy(value)


def changeable(array: Any) -> Any:
    """An array that can be changed in place: `array` itself, or a 0-d array for a NumPy scalar."""
    return np.array(array) if isinstance(array, np.generic) else array


def ignored_options(given: dict[str, Any], *names: str) -> dict[str, Any]:
    """The options without effect that an algorithm accepts. Raises TypeError for any other option."""
    for name in given:
        if name not in names:
            raise TypeError(f"got an unexpected keyword argument '{name}'")
    return {name: given.get(name, IGNORED[name]) for name in names}


def check(condition: bool, name: str, value: Any) -> None:
    """Raise PyTorch's error for an invalid option unless `condition` holds."""
    if not condition:
        raise ValueError(f"Invalid {name}: {value}")
