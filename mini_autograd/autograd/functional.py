"""Derivatives of functions: `torch.autograd.functional` with `vjp`, `jvp`, `jacobian`, `hessian`, `vhp`, `hvp`.

The one idea to know: reverse mode gives one row of a Jacobian per pass; the product of the Jacobian with a vector on
the right takes reverse mode twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mini_autograd.graph.function import tensor_of
from mini_autograd.graph.grad_mode import enable_grad
from mini_autograd.numerics.arrays import unit
from mini_autograd.numerics.left_out import answers as _answers
from mini_autograd.operations.shapes.joining import stack
from mini_autograd.tensors.gradients import carries_tangent, grad
from mini_autograd.tensors.tensor import Tensor

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

__getattr__ = _answers(__name__)

TANGENT_LOST = (
    "the functions of autograd.functional would lose the tangent of a tensor in forward mode. Those of torch.func, such"
    " as torch.func.jacrev, keep it."
)
SCALAR = "The Tensor returned by the function given to {name} should contain a single element"


def vjp(function: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """The value of `function(*inputs)`, and the product of `v` (of the outputs' shapes) with its Jacobian.

    The product has the shapes of the inputs. `v` can be left out if there is one output with one element. With
    `create_graph`, the results can be differentiated. Here and below, an input that has no influence gives zeros, or
    raises RuntimeError with `strict`; an input or output that is not a Tensor raises TypeError.
    """
    with enable_grad():
        xs = prepared(inputs, create_graph, "vjp")
        outputs, many = evaluated(function, xs, "vjp")
        vs = directions(v, outputs, many, "vjp", "user-provided function")
        grads = pulled(outputs, xs, vs, create_graph, strict, "vjp")
    return finished(outputs, many, create_graph), finished(grads, isinstance(inputs, tuple), create_graph)


def jvp(function: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """The value of `function(*inputs)`, and the product of its Jacobian with `v` (of the inputs' shapes).

    The product has the shapes of the outputs. `v` can be left out if there is one input with one element.
    """
    with enable_grad():
        xs = prepared(inputs, create_graph, "jvp")
        vs = directions(v, xs, isinstance(inputs, tuple), "jvp", "input")
        outputs, many = evaluated(function, xs, "jvp")
        products = pushed(outputs, xs, vs, create_graph, strict, "jvp")
    return finished(outputs, many, create_graph), finished(products, many, create_graph)


def jacobian(
    function: Callable, inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False
) -> Any:
    """The Jacobian: for every output and input, a tensor of shape (*output.shape, *input.shape)."""
    with enable_grad():
        xs = prepared(inputs, create_graph, "jacobian")
        outputs, many = evaluated(function, xs, "jacobian")
        blocks = [jacobian_of(output, xs, create_graph, strict) for output in outputs]
    single = not isinstance(inputs, tuple)
    rows = [finished(block, not single, create_graph) for block in blocks]
    return tuple(rows) if many else rows[0]


def jacobian_of(output: Tensor, xs: Sequence[Tensor], create_graph: bool, strict: bool) -> list[Tensor]:
    """One block of the Jacobian per input, row by row."""
    rows: list[list[Tensor]] = [[] for _ in xs]
    for position in range(output.numel()):
        one = tensor_of(unit(output.array, position))
        pulled_back = pulled([output], xs, [one], create_graph, strict, "jacobian")
        for block, row in zip(rows, pulled_back, strict=True):
            block.append(row)
    shapes = [(*output.shape, *x.shape) for x in xs]
    return [
        stack(block).reshape(shape) if block else tensor_of(np.zeros_like(x.array, shape=shape))
        for block, shape, x in zip(rows, shapes, xs, strict=True)
    ]


def hessian(
    function: Callable, inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False
) -> Any:
    """The Hessian of a function with one number as output: for each pair of inputs, their mixed second derivatives.

    For inputs x and y, these have the shape (*x.shape, *y.shape). Raises RuntimeError for an output of several
    elements.
    """

    def slopes(*xs: Tensor) -> Any:
        output = checked_scalar(function(*xs), "hessian")
        gradients = pulled([output], xs, [None], True, strict, "hessian")
        return tuple(gradients) if isinstance(inputs, tuple) else gradients[0]

    return jacobian(slopes, inputs, create_graph=create_graph, strict=strict)


def vhp(function: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """The value, and the product of `v` (of the inputs' shapes) with the Hessian, by two passes of reverse mode."""
    return _second_order(function, inputs, v, create_graph, strict, "vhp", left=True)


def hvp(function: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """The value, and the product of the Hessian with `v` (of the inputs' shapes): the same numbers as `vhp` gives."""
    return _second_order(function, inputs, v, create_graph, strict, "hvp", left=False)


def _second_order(
    function: Callable, inputs: Any, v: Any, create_graph: bool, strict: bool, name: str, left: bool
) -> Any:
    many = isinstance(inputs, tuple)
    with enable_grad():
        xs = prepared(inputs, create_graph, name)
        vs = directions(v, xs, many, name, "input")
        output = checked_scalar(function(*xs), name)
        slopes = pulled([output], xs, [None], True, strict, name)
        if left:
            products = pulled(slopes, xs, vs, create_graph, strict, name)
        else:
            products = pushed(slopes, xs, vs, create_graph, strict, name)
    return finished([output], False, create_graph), finished(products, many, create_graph)


def pulled(
    outputs: Sequence[Tensor], xs: Sequence[Tensor], vs: Sequence[Any], create_graph: bool, strict: bool, name: str
) -> list[Tensor]:
    """Gradients of the outputs; zeros (or an error, if `strict`) for an input that was not used."""
    pairs = [(output, v) for output, v in zip(outputs, vs, strict=True) if output.requires_grad]
    grads: Sequence[Any] = [None] * len(xs)
    if pairs:
        used, cotangents = zip(*pairs, strict=True)
        grads = grad(used, xs, cotangents, retain_graph=True, create_graph=create_graph, allow_unused=True)
    if strict and any(one is None for one in grads):
        number = next(i for i, one in enumerate(grads) if one is None)
        raise RuntimeError(
            f"Output 0 of the user-provided function is independent of input {number}. This is not allowed in strict "
            "mode."
        )
    return [tensor_of(np.zeros_like(x.array)) if one is None else one for one, x in zip(grads, xs, strict=True)]


def pushed(
    outputs: Sequence[Tensor], xs: Sequence[Tensor], vs: Sequence[Tensor], create_graph: bool, strict: bool, name: str
) -> list[Tensor]:
    """The Jacobian times `vs`: the pullback is linear in its cotangent, so its own pullback is the pushforward.

    (Townsend 2017, "A new trick for calculating Jacobian vector products".)
    """
    dummies = [tensor_of(np.zeros_like(output.array), None) for output in outputs]
    back = pulled(outputs, xs, dummies, True, strict, name)
    pairs = [(one, v) for one, v in zip(back, vs, strict=True) if one.requires_grad]
    if not pairs:
        return [tensor_of(np.zeros_like(output.array)) for output in outputs]
    return pulled([one for one, _ in pairs], dummies, [v for _, v in pairs], create_graph, False, name)


def prepared(inputs: Any, create_graph: bool, name: str) -> list[Tensor]:
    """The inputs as tensors that require grad, connected to what they came from if a graph is wanted.

    Raises TypeError for anything else, and RuntimeError for a tensor that carries a tangent.
    """
    xs = list(inputs) if isinstance(inputs, tuple) else [inputs]
    for number, x in enumerate(xs):
        if not isinstance(x, Tensor):
            what = f"The inputs given to {name} must be either a Tensor or a tuple of Tensors but the given inputs "
            if isinstance(inputs, tuple):
                raise TypeError(f"{what[:-7]}value at index {number} has type {type(x)}.")
            raise TypeError(f"{what}has type {type(x)}.")
    if any(map(carries_tangent, xs)):
        raise RuntimeError(TANGENT_LOST)
    return [x.view_as_itself() if create_graph and x.requires_grad else x.detach().requires_grad_() for x in xs]


def evaluated(function: Callable, xs: Sequence[Tensor], name: str) -> tuple[list[Tensor], bool]:
    """The outputs of the function, and whether it returned several. Raises TypeError if one is not a Tensor."""
    result = function(*xs)
    many = isinstance(result, tuple)
    outputs = list(result) if many else [result]
    has = "have" if many else "has"
    for output in outputs:
        if not isinstance(output, Tensor):
            raise TypeError(
                f"The outputs of the user-provided function given to {name} must be either a Tensor or a tuple of "
                f"Tensors but the given outputs of the user-provided function {has} type {type(output)}."
            )
    return outputs, many


def checked_scalar(output: Any, name: str) -> Tensor:
    """The output, which has to be one number. Raises RuntimeError otherwise."""
    if not isinstance(output, Tensor):
        raise RuntimeError(f"The function given to {name} should return a single Tensor")
    if output.numel() != 1:
        raise RuntimeError(SCALAR.format(name=name))
    return output


def directions(v: Any, like: Sequence[Tensor], many: bool, name: str, what: str) -> list[Tensor]:
    """The given vectors, or a 1 if none is given and there is a single number.

    Raises RuntimeError if there are too few or too many, or if a shape differs.
    """
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            only = (
                "the input to the user-provided function is"
                if what == "input"
                else "the user-provided function returns"
            )
            raise RuntimeError(f"The vector v can only be None if {only} a single Tensor with a single element.")
        return [tensor_of(np.ones_like(x.array)) for x in like]
    vs = list(v) if isinstance(v, tuple) else [v]
    if len(vs) != len(like):
        raise RuntimeError(f"v is a tuple of invalid length: should be {len(like)} but got {len(vs)}.")
    for number, (one, x) in enumerate(zip(vs, like, strict=True)):
        if one.shape != x.shape:
            prefix = f"Entry {number} in " if many else ""
            raise RuntimeError(
                f"{prefix}v has invalid size: should be torch.Size({list(x.shape)}) but got "
                f"torch.Size({list(one.shape)})."
            )
    return vs


def finished(values: Sequence[Tensor], many: bool, create_graph: bool) -> Any:
    """One tensor or a tuple, detached from the graph unless `create_graph`."""
    results = tuple([value if create_graph else value.detach() for value in values])
    return results if many else results[0]
