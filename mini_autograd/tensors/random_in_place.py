"""Random numbers written into a tensor: `uniform_` and `normal_`.

The one idea to know: the new numbers do not depend on the old ones, so no gradient passes to those.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mini_autograd.numerics import arrays
from mini_autograd.numerics.generator import Generator, default_generator
from mini_autograd.tensors import random
from mini_autograd.tensors.in_place import Fill, in_place
from mini_autograd.tensors.tensor import Tensor, register_methods


class Draw(Fill):
    """New numbers in place of the old ones."""

    @staticmethod
    def forward(ctx, x, numbers):
        return np.asarray(numbers, dtype=x.dtype, like=x)


class Uniform(Draw):
    """Uniform numbers."""

    torch_name = "UniformBackward0"


class Normal(Draw):
    """Normal numbers."""

    torch_name = "NormalBackward0"


def written(operation: type[Draw], tensor: Tensor, numbers: Any) -> Tensor:
    """Replace the numbers of a tensor in place, and return it."""
    return in_place(lambda x: operation.apply(x, numbers=numbers))(tensor)


def uniform_(self: Tensor, a: float = 0.0, b: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Uniform numbers between `a` and `b`, in place."""
    check_range(self.dtype, a, b)
    drawn = (generator or default_generator).uniform(self.shape, self.dtype)
    return written(Uniform, self, (drawn.astype(arrays.float64, copy=False) * (b - a) + a).astype(self.dtype))


def check_range(dtype: np.dtype, a: float, b: float) -> None:
    """Raise PyTorch's error unless numbers of this dtype can be drawn between `a` and `b`."""
    random.check_floating(dtype, "check_uniform_bounds")
    largest = float(np.finfo(dtype).max)
    for name, bound in (("from", a), ("to", b)):
        if not -largest <= bound <= largest:
            raise RuntimeError(f"{name} is out of bounds for {arrays.c_dtype(dtype)}")
    if a > b:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={a:g} > to={b:g}")
    if b - a > largest:
        raise RuntimeError(
            f"uniform_ expects to-from <= std::numeric_limits<{arrays.dtype_name(dtype)}>::max(), but found to={b:g} "
            f"and from={a:g} which result in to-from to exceed the limit"
        )


def normal_(self: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None) -> Tensor:
    """Normal numbers with that mean and standard deviation, in place."""
    if not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    random.check_floating(self.dtype, "normal_kernel_cpu")
    drawn = (generator or default_generator).normal(self.shape, self.dtype)
    return written(Normal, self, (drawn * std + mean).astype(self.dtype))


register_methods({_method.__name__: _method for _method in (uniform_, normal_)})
register_methods({"bernoulli": random.bernoulli, "multinomial": random.multinomial})
