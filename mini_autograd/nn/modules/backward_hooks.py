"""A module's hooks for the backward pass: what `register_full_backward_hook` and its pre-hook need.

The one idea to know: the module's inputs and outputs each pass through one node that does nothing, so that all
gradients that enter or leave the module are at one place, where hooks can see them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from mini_autograd.autograd.function import Function
from mini_autograd.tensors.tensor import Tensor

NO_INPUT = (
    "Full backward hook is firing when gradients are computed with respect to module outputs since no inputs require "
    "gradients. See "
    "https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module.register_full_backward_hook for "
    "more details."
)

Hooks = dict[int, Callable]


class Gate(Function):
    """The identity on tensors. Hooks are registered on its node."""

    torch_name = "BackwardHookFunctionBackward"

    @staticmethod
    def forward(ctx, *tensors):
        ctx.mark_non_differentiable(*[x for x in tensors if not x.requires_grad])
        return tensors

    @staticmethod
    def backward(ctx, *grads):
        return grads


class ModuleCall:
    """One call of a module, between a gate for its inputs and a gate for its outputs."""

    def __init__(self, module: Any, pre_hooks: Hooks, hooks: Hooks) -> None:
        self.module, self.pre_hooks, self.hooks = module, pre_hooks, hooks
        self.arrived: tuple | None = None  # the gradients of the outputs, until those of the inputs are known
        self.inputs_are_watched = False

    def inputs(self, args: tuple) -> tuple:
        """The module's arguments, behind a gate if one of them requires grad."""
        through, node = gated(args)
        self.places, self.count = places_of_tensors(args), len(args)
        if node is not None and self.hooks:
            self.inputs_are_watched = True
            node.register_hook(self.at_inputs)
        return through

    def outputs(self, result: Any) -> Any:
        """The module's result behind a gate."""
        parts = result if isinstance(result, tuple) else (result,)
        through, node = gated(parts)
        if node is not None:
            self.total = len(parts), places_of_tensors(parts)
            node.register_prehook(self.at_outputs)
        return through if isinstance(result, tuple) else through[0]

    def at_outputs(self, grads: tuple) -> tuple:
        """The gradients of the outputs have arrived: hooks may replace them before the module sees them."""
        count, places = self.total
        full = spread(grads, places, count)
        for hook in list(self.pre_hooks.values()):
            full = as_tuple(hook(self.module, full), full)
        if self.inputs_are_watched:
            self.arrived = full
        else:
            if self.hooks:
                warnings.warn(NO_INPUT, stacklevel=2)
            for hook in list(self.hooks.values()):
                hook(self.module, (None,) * self.count, full)
        return tuple(full[place] for place in places)

    def at_inputs(self, grads: tuple, _: tuple) -> tuple:
        """The gradients of the inputs are known: hooks may replace them before they are passed on.

        Hooks are skipped if the gradients did not come through the outputs, as in a backward pass of a backward pass.
        """
        if self.arrived is None:
            return grads
        full = spread(grads, self.places, self.count)
        for hook in list(self.hooks.values()):
            full = as_tuple(hook(self.module, full, self.arrived), full)
        self.arrived = None
        return tuple(full[place] for place in self.places)


def places_of_tensors(values: tuple) -> list[int]:
    return [i for i, x in enumerate(values) if isinstance(x, Tensor)]


def gated(values: tuple) -> tuple[tuple, Any]:
    """The values, with their tensors behind a gate, and the gate's node, if a gradient goes through it."""
    places = places_of_tensors(values)
    if not any(values[place].requires_grad for place in places):
        return values, None
    through = dict(zip(places, Gate.apply(*[values[place] for place in places]), strict=True))
    node = next(x.grad_fn for x in through.values() if x.requires_grad)
    return tuple(through.get(i, x) for i, x in enumerate(values)), node


def spread(grads: tuple, places: list[int], count: int) -> tuple:
    """One gradient for every value: None for those that were not behind the gate."""
    found = dict(zip(places, grads, strict=True))
    return tuple(found.get(i) for i in range(count))


def as_tuple(changed: Any, before: tuple) -> tuple:
    """What a hook returned, as a tuple; None changes nothing."""
    return before if changed is None else changed if isinstance(changed, tuple) else (changed,)
