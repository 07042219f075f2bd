"""Forward mode, as PyTorch's `autograd.forward_ad`: tensors carry tangents, and operations pass them on.

The one idea to know: an operation's rule, `jvp(ctx, *tangents)`, stands next to its `backward`, and is called right
after `forward` with the same ctx, so tangents travel along with the values. If the operation itself is recorded, the
rule gets Tensors and is recorded too, and the level keeps the tangents, for a backward pass through the operation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mini_autograd.graph.function import CONSTANT, Connected, Function, tensor_of
from mini_autograd.graph.grad_mode import FORWARD, state, without_forward_mode
from mini_autograd.graph.views import Step, follow
from mini_autograd.numerics.left_out import answers as _answers
from mini_autograd.operations.shapes.indexing import assign
from mini_autograd.tensors.tensor import Tensor

NO_LEVEL = "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
MISSING = (
    "Trying to use forward AD with {name} that does not support it because it has not been implemented yet.\nPlease "
    "file an issue to PyTorch at https://github.com/pytorch/pytorch/issues/new?template=feature-request.yml so that we "
    "can prioritize its implementation or submit a PR adding the implementation to derivatives.yaml"
)
NOT_IN_PLACE = (
    "An inplace custom Function is not modifying the forward mode gradients inplace. If the forward is modifying an "
    "input inplace, then the jvp function must modify the corresponding gradient inplace."
)
NO_VIEW = "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view."
NO_JVP = "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."


class UnpackedDualTensor(NamedTuple):
    """The two parts of a dual number; `tangent` is None for an ordinary tensor."""

    primal: Tensor
    tangent: Tensor | None


class Level:
    """The tangents of a level of dual numbers, which last as long as the level."""

    def __init__(self) -> None:
        self.carriers: list[Tensor] = []
        self.duals: dict[Tensor, Tensor] = {}  # by the tensor whose memory they show
        self.of_nodes: dict[Function, Sequence[Tensor | None]] = {}  # the tangents of what a node may have saved
        self.changed: set[Tensor] = set()  # whose memory was changed in place: their views carry parts of their tangent
        self.plain: set[Tensor] = set()  # show the memory of a dual number, but carry no tangent

    def tangent_of(self, tensor: Tensor) -> Tensor | None:
        """The tangent that a tensor carries; for a view whose memory was changed, its part of the base's tangent."""
        if tensor in self.plain:
            return None
        view = tensor.view_info
        if view is None or view.base not in self.changed:
            return getattr(tensor, "_tangent", None)
        with without_forward_mode():
            return follow(view.steps, view.base._tangent)

    def replace(self, tensor: Tensor, before: Tensor | None, result: Tensor) -> None:
        """Update tangents when `tensor`, which carried `before`, takes the values and tangent of `result` in place."""
        new = getattr(result, "_tangent", None)
        if new is None and before is None:
            return
        self.plain.discard(tensor)
        with without_forward_mode():
            part = as_tangent(np.zeros_like(tensor.array) if new is None else new, tensor)
            view = tensor.view_info
            base = tensor if view is None else view.base
            if view is not None:
                part = with_part(self.tangent_of_memory(base), base, view.steps, part)
            self.give(base, part)
        self.changed.add(base)

    def tangent_of_memory(self, base: Tensor) -> Tensor | None:
        """The tangent of a base, which the dual number made from it may carry instead."""
        dual = self.duals.get(base)
        if base in self.changed or dual is None:
            return getattr(base, "_tangent", None)
        return with_part(None, base, dual.view_info.steps, dual._tangent)

    def give(self, tensor: Tensor, tangent: Tensor) -> None:
        """Let `tensor` carry `tangent` as long as the level lasts."""
        tensor._tangent = tangent  # type: ignore[attr-defined]
        self.carriers.append(tensor)

    def restore(self, saved: Tensor, node: Function, place: int) -> Tensor:
        """The value, which `node` saved and a backward pass needs, with the tangent that it had."""
        known = self.of_nodes.get(node)
        if known is not None and known[place] is not None:
            self.give(saved, as_tangent(known[place], saved))
        return saved

    def push(self, ctx: Function, inputs: Sequence[Any], output: Any, recorded: bool) -> None:
        """Give an operation's output its tangent, computed from the tangents of the inputs.

        Raises NotImplementedError if the operation has no rule for it.
        """
        tangents = [tangent_of(x) for x in inputs]
        if all(tangent is None for tangent in tangents) or not isinstance(output, Tensor) or output.dtype.kind != "f":
            return
        rule = getattr(type(ctx), "jvp", None)
        if rule is None:
            raise NotImplementedError(MISSING.format(name=name_of(ctx)))
        if not recorded:
            ctx.origins = (CONSTANT,) * len(ctx.saved_tensors)
        with without_forward_mode(), np.errstate(all="ignore"):
            if recorded or any(tangent is not None and tangent.requires_grad for tangent in tangents):
                result = rule(Connected(ctx), *tangents)
            else:
                result = rule(ctx, *[None if tangent is None else tangent.array for tangent in tangents])
            if result is not None:
                self.give(output, as_tangent(result, output))
        if recorded:
            self.of_nodes[ctx] = (*tangents, tangent_of(output))  # in the order of `ctx.origins`: OUTPUT is -1

    def push_custom(self, ctx: Any, inputs: Sequence[Any], outputs: Sequence[Any], recorded: bool) -> None:
        """Give a custom Function's outputs their tangents. Its `jvp` gets Tensors.

        An input without a tangent gets zeros if it is a floating tensor and gradients are materialized, and otherwise
        None. Raises NotImplementedError if there is no `jvp`.
        """
        tangents = [tangent_of(x) for x in inputs]
        if all(tangent is None for tangent in tangents):
            return
        if not hasattr(type(ctx), "jvp"):
            raise NotImplementedError(NO_JVP)
        if ctx.materialize_grads:
            tangents = [
                tensor_of(np.zeros_like(x.array)) if t is None and isinstance(x, Tensor) and x.dtype.kind == "f" else t
                for t, x in zip(tangents, inputs, strict=True)
            ]
        with without_forward_mode():
            results = ctx.jvp(ctx, *tangents)
        results = results if isinstance(results, tuple) else (results,)
        if len(results) != len(outputs):
            raise RuntimeError(
                f"Function's jvp returned an invalid number of forward gradients (expected {len(outputs)} but got "
                f"{len(results)})"
            )
        for number, (output, tangent) in enumerate(zip(outputs, results, strict=True)):
            if tangent is not None:
                check_tangent(tangent, number, output)
                check_memory(tangent, output, ctx.dirty, inputs, tangents)
                self.give(output, tangent)
        if recorded:
            self.of_nodes[ctx] = results


def check_tangent(tangent: Any, number: int, output: Any) -> None:
    """Raise PyTorch's error if a `jvp` returned something that cannot be the tangent of this output."""
    if not isinstance(tangent, Tensor):
        raise RuntimeError(f"expected Variable or None (got {type(tangent).__name__}) for grad output {number}.")
    if not isinstance(output, Tensor) or output.dtype.kind != "f":
        raise RuntimeError(
            f"Function's jvp returned a gradient at position {number}, but  the corresponding forward output is not a "
            "differentiable Tensor.You should return None at that position instead."
        )
    check_size(output, tangent)


def check_memory(
    tangent: Tensor, output: Tensor, dirty: Sequence[Any], inputs: Sequence[Any], tangents: Sequence[Any]
) -> None:
    """Raise PyTorch's error if a `jvp` does not treat memory as `forward` does.

    For an input that was changed in place, it must return the tangent of that input; for a view of an input, a view.
    """
    if any(output is x for x in dirty):
        if all(tangent is not given for x, given in zip(inputs, tangents, strict=True) if x is output):
            raise RuntimeError(NOT_IN_PLACE)
    elif output._is_view() and not tangent._is_view():
        bases = [x if x._base is None else x._base for x in inputs if isinstance(x, Tensor)]
        if any(output._base is base for base in bases):
            raise RuntimeError(NO_VIEW)


def check_size(tensor: Tensor, tangent: Tensor) -> None:
    """Raise PyTorch's error if a tangent does not have the shape of its tensor."""
    if tensor.shape != tangent.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {list(tensor.shape)} while the given forward gradient is of size "
            f"{list(tangent.shape)}."
        )


def with_part(tangent: Tensor | None, base: Tensor, steps: tuple[Step, ...], part: Tensor) -> Tensor:
    """The tangent of `base` (None: zeros), with `part` in place of the part that a view shows."""
    whole = tensor_of(np.zeros_like(base.array)) if tangent is None else tangent
    numbers = follow(steps, np.arange(base.numel(), like=base.array).reshape(base.shape))
    return assign(whole.reshape(-1), part.reshape(-1), numbers.reshape(-1)).reshape(base.shape)


def as_tangent(value: Any, output: Tensor) -> Tensor:
    """The result of a rule, in the shape and dtype of the output (a rule need not broadcast)."""
    tangent = value if isinstance(value, Tensor) else tensor_of(value)
    if tangent.shape != output.shape:
        tangent = tangent.expand(output.shape)
    return tangent if tangent.dtype == output.dtype else tangent.to(output.dtype)


class dual_level:  # noqa: N801  (PyTorch's name)
    """The context in which dual numbers live: `with dual_level(): x = make_dual(x, tangent); ...`."""

    def __enter__(self) -> int:
        if state.forward_level is not None:
            raise RuntimeError("Nested forward mode AD is not supported at the moment")
        state.forward_level = Level()
        state.mode |= FORWARD
        return 0

    def __exit__(self, *error: object) -> None:
        for tensor in state.forward_level.carriers:
            tensor._tangent = None
        state.forward_level = None
        state.mode &= ~FORWARD


def tangent_of(value: Any) -> Tensor | None:
    """The tangent that a tensor carries."""
    return state.forward_level.tangent_of(value) if isinstance(value, Tensor) and state.forward_level else None


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A tensor with the values of `tensor` that carries `tangent`.

    Shapes must agree, and both dtypes must be floating.

    Raises RuntimeError outside of `dual_level` and if the shapes differ, ValueError for any other dtype.
    """
    if state.forward_level is None:
        raise RuntimeError(NO_LEVEL)
    if tensor.dtype.kind != "f":
        raise ValueError(f"Expected primal to be floating point or complex, but got: {tensor.dtype}")
    if tangent.dtype.kind != "f":
        raise ValueError(f"Expected tangent to be floating point or complex, but got: {tangent.dtype}")
    check_size(tensor, tangent)
    if tangent_of(tensor) is None:
        state.forward_level.plain.add(tensor)
    with without_forward_mode():
        dual = tensor.view_as_itself()
    state.forward_level.give(dual, tangent)
    if dual.view_info is not None:
        state.forward_level.duals[dual.view_info.base] = dual
    return dual


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The values and the tangent of a dual number."""
    if state.forward_level is None:
        return UnpackedDualTensor(tensor, None)
    with without_forward_mode():
        primal = tensor.view_as_itself()
        state.forward_level.plain.add(primal)
        return UnpackedDualTensor(primal, tangent_of(tensor))


def name_of(ctx: Function) -> str:
    """PyTorch's name of an operation, such as `mul`, derived from our name of its node."""
    return ctx.name().rstrip("0123456789").removesuffix("Backward").lower()


__all__ = ["UnpackedDualTensor", "dual_level", "make_dual", "unpack_dual"]

__getattr__ = _answers(__name__)
