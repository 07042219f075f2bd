"""Modules as functions of their parameters: `functional_call`, and `stack_module_state` for several at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mini_autograd.operations.shapes.joining import stack
from mini_autograd.tensors.tensor import Tensor


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """The result of `module` for these arguments, with other tensors in place of its parameters and buffers.

    The tensors are in a dict by path ("encoder.0.weight"), or in a sequence of such dicts; tensors that are not named
    stay. With `tie_weights`, a parameter that a module has under two names is replaced under both. Raises RuntimeError
    if `strict` and the names differ from the module's, AttributeError for a path that leads nowhere, and ValueError for
    dicts that name a tensor twice.
    """
    given = _in_one_dict(parameter_and_buffer_dicts)
    own = {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }
    if strict and set(given) != set(own):
        _complain_of_keys(module, set(own) - set(given), set(given) - set(own))
    if tie_weights:
        replaced = {id(own[name]): tensor for name, tensor in given.items() if name in own}
        given |= {name: replaced[id(x)] for name, x in own.items() if id(x) in replaced and name not in given}
    before = [_put(module, name, tensor) for name, tensor in given.items()]
    try:
        return module(*(args if isinstance(args, tuple) else () if args is None else (args,)), **(kwargs or {}))
    finally:
        for family, name, tensor in reversed(before):
            family[name] = tensor


def _in_one_dict(dicts: Any) -> dict[str, Tensor]:
    """The tensors of a dict, or of several. Raises ValueError if one is named twice, or for anything else."""
    if isinstance(dicts, dict):
        return dict(dicts)
    if not isinstance(dicts, Sequence) or not all(isinstance(part, dict) for part in dicts):
        raise ValueError(
            f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(dicts)}"
        )
    names = [name for part in dicts for name in part]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"{sorted(twice)} appeared in multiple dictionaries; behavior of functional call is ambiguous")
    return {name: tensor for part in dicts for name, tensor in part.items()}


def _complain_of_keys(module: Any, missing: set[str], unexpected: set[str]) -> None:
    """Raise PyTorch's error for names that are missing or that the module does not have."""
    found = [("Unexpected", unexpected), ("Missing", missing)]
    problems = [
        f"\n\t{what} key(s): {', '.join(repr(name) for name in sorted(names))}." for what, names in found if names
    ]
    raise RuntimeError(f"Error(s) in reparametrizing for {type(module).__name__}:{''.join(problems)}")


def _put(module: Any, path: str, tensor: Tensor) -> tuple[dict, str, Any]:
    """Put a tensor in place of a parameter or buffer; return where it was put, and what was there."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    owner_path, _, name = path.rpartition(".")
    owner = module.get_submodule(owner_path)
    for family in (owner._parameters, owner._buffers):
        if name in family:
            before, family[name] = family[name], tensor
            return family, name, before
    return {name: None}, name, None  # the module has nothing of this name, so nothing is replaced


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The parameters and the buffers of models of one class, each stacked along a new axis 0, for `vmap`.

    The stacked parameters are leaves, which require grad if those of the models do. Raises RuntimeError if there are no
    models, or if they differ in class or training mode.
    """
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({model.training for model in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if len({type(model) for model in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    return _joined_by_name([m.named_parameters() for m in models]), _joined_by_name([m.named_buffers() for m in models])


def _joined_by_name(states: Sequence[Any]) -> dict[str, Tensor]:
    """For every name, the tensors of that name, stacked."""
    known = [dict(state) for state in states]
    return {name: _joined([state[name] for state in known]) for name in known[0]}


def _joined(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors stacked as a new leaf."""
    return stack([tensor.detach() for tensor in tensors]).requires_grad_(tensors[0].requires_grad)
