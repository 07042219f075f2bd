"""How other courses check a gradient, as functions: each says whether it would notice that an engine is wrong.

All of them get the same engines, expressions and shapes as our checks, one draw of each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from autograder.runs.engines import TORCH
from autograder.runs.inputs import Array, cases_of
from autograder.runs.methods import torch_tensor

Expression = Callable[..., Any]
SMALL = 1e-6


def existence_and_shape(engine: Any, expression: Expression, inputs: Sequence[Array]) -> bool:
    """Is there a gradient, of the right shape?"""
    leaves, _ = differentiated(engine, expression, inputs)
    return any(np.shape(leaf.grad) != array.shape for leaf, array in zip(leaves, inputs, strict=True))


def sum_in_float32(engine: Any, expression: Expression, inputs: Sequence[Array]) -> bool:
    """The gradients of the sum of the output, beside PyTorch's, in float32 and with the tolerance that this needs."""
    arrays: list[Any] = [array.astype(np.float32) for array in inputs]
    leaves, _ = differentiated(engine, expression, arrays)
    return not _agree(leaves, _torch_gradients(expression, arrays), 1e-4, 1e-5)


def one_random_index(engine: Any, expression: Expression, inputs: Sequence[Array]) -> bool:
    """A central difference of the student's own function at one random element of each input, to 1e-2."""
    generator = np.random.default_rng(0)
    leaves, _ = differentiated(engine, expression, inputs)
    for number, (leaf, array) in enumerate(zip(leaves, inputs, strict=True)):
        index = tuple(int(generator.integers(size)) for size in array.shape)
        values = []
        for step in (SMALL, -SMALL):
            moved = [np.array(other) for other in inputs]
            moved[number][index] += step
            values.append(float(np.sum(expression(*(engine(other) for other in moved)).data)))
        if not np.isclose(np.asarray(leaf.grad)[index], (values[0] - values[1]) / (2 * SMALL), 1e-2, 1e-2):
            return True
    return False


def all_ones(engine: Any, expression: Expression, inputs: Sequence[Array]) -> bool:
    """All gradients beside PyTorch's in float64, with an incoming gradient of ones."""
    leaves, _ = differentiated(engine, expression, inputs, ones=True)
    return not _agree(leaves, _torch_gradients(expression, inputs), 1e-7, 1e-9)


STYLES: dict[str, Callable[[Any, Expression, Sequence[Array]], bool]] = {
    "existence and shape": existence_and_shape,
    "sum, float32": sum_in_float32,
    "one index, 1e-2": one_random_index,
    "ones, float64": all_ones,
}


def notices(style: str, engine: Any, expressions: Sequence[Expression], inputs: Sequence[Any]) -> bool:
    """Whether that way of checking fails an engine on one of the expressions; an exception is also a failure."""
    for case in cases_of(inputs):
        generator = np.random.default_rng(1)
        arrays = [spec.draw(generator) for spec in case]
        for expression in expressions:
            given = arrays[: expression.__code__.co_argcount]
            try:
                if STYLES[style](engine, expression, given):
                    return True
            except Exception:
                return True
    return False


def differentiated(engine: Any, expression: Expression, inputs: Sequence[Array], ones: bool = False) -> Any:
    """The leaves after a backward pass, and the output."""
    leaves = [leaf(engine, np.array(array)) for array in inputs]
    output = expression(*leaves)
    if ones:
        output.backward(np.ones(np.shape(output.data)))
    else:
        output.sum().backward()
    return leaves, output


def leaf(engine: Any, array: Array) -> Any:
    """A leaf that requires a gradient, also in engines that have no `requires_grad`."""
    try:
        return engine(array, requires_grad=True)
    except TypeError:
        return engine(array)


def _torch_gradients(expression: Expression, inputs: Sequence[Array]) -> list[Array]:
    kind = type(TORCH)(torch_tensor())
    leaves = [kind(array, requires_grad=True) for array in inputs]
    expression(*leaves).sum().backward()
    return [np.asarray(tensor.grad) for tensor in leaves]


def _agree(leaves: Sequence[Any], right: Sequence[Array], relative: float, absolute: float) -> bool:
    pairs = [(np.asarray(one.grad, dtype=np.float64), other) for one, other in zip(leaves, right, strict=True)]
    return all(got.shape == other.shape and np.allclose(got, other, relative, absolute) for got, other in pairs)
