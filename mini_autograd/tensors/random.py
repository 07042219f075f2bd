"""Random tensors, as `torch.rand` and its relatives make them: the same seed gives the same numbers.

The one idea to know: a function without a `generator` draws from the default one, which `manual_seed` restarts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mini_autograd.graph.function import tensor_of
from mini_autograd.graph.grad_mode import no_grad
from mini_autograd.numerics import arrays
from mini_autograd.numerics.generator import Generator, default_generator
from mini_autograd.tensors.creation import size_given, tensor
from mini_autograd.tensors.tensor import Tensor


def manual_seed(seed: int) -> Generator:
    """Restart the default generator from `seed`."""
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Restart the default generator from an unpredictable seed, and return the seed."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed of the default generator."""
    return default_generator.initial_seed()


def get_rng_state() -> Any:
    """The state of the default generator, with which `set_rng_state` makes it draw the same numbers again."""
    return default_generator.get_state()


def set_rng_state(state: Any) -> None:
    """Give the default generator a state that `get_rng_state` returned."""
    default_generator.set_state(state)


def rand(
    *sizes: Any,
    size: Any = None,
    generator: Generator | None = None,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
) -> Tensor:
    """Uniform numbers between 0 and 1: `rand(2, 3)` or `rand((2, 3))`."""
    kind = _floating(dtype, "check_uniform_bounds")
    numbers = (generator or default_generator).uniform(size_given(sizes, size, "rand"), kind)
    return _made(numbers, device, requires_grad)


def randn(
    *sizes: Any,
    size: Any = None,
    generator: Generator | None = None,
    dtype: Any = None,
    requires_grad: bool = False,
    device: Any = None,
) -> Tensor:
    """Normal numbers of mean 0 and variance 1."""
    kind = _floating(dtype, "normal_kernel_cpu")
    numbers = (generator or default_generator).normal(size_given(sizes, size, "randn"), kind)
    return _made(numbers, device, requires_grad)


def rand_like(input: Tensor, *, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Uniform numbers in the shape and dtype of `input`, on its device."""
    return rand(input.shape, dtype=dtype or input.dtype, requires_grad=requires_grad, device=input.device)


def randn_like(input: Tensor, *, dtype: Any = None, requires_grad: bool = False) -> Tensor:
    """Normal numbers in the shape and dtype of `input`, on its device."""
    return randn(input.shape, dtype=dtype or input.dtype, requires_grad=requires_grad, device=input.device)


def randint(
    low: int = 0,
    high: Any = None,
    size: Any = None,
    *,
    generator: Generator | None = None,
    dtype: Any = arrays.int64,
    device: Any = None,
) -> Tensor:
    """Whole numbers from `low` to `high - 1`: `randint(3, 10, (2, 2))`, or `randint(10, (2, 2))` from 0.

    Raises RuntimeError unless `low` is below `high`.
    """
    if isinstance(high, Sequence):
        high, size = None, high
    if high is None:
        low, high = 0, low
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    return _made((generator or default_generator).integers(low, high, tuple(size)).astype(dtype), device, False)


def randperm(n: int, *, generator: Generator | None = None, dtype: Any = arrays.int64, device: Any = None) -> Tensor:
    """The numbers from 0 to `n - 1` in random order. Raises RuntimeError if `n` is negative."""
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    return _made((generator or default_generator).permutation(n).astype(dtype), device, False)


def normal(mean: Any, std: Any = 1.0, size: Any = None, *, generator: Generator | None = None) -> Tensor:
    """Normal numbers with a mean and a standard deviation that are numbers (with a `size`) or tensors.

    Raises RuntimeError if `std` is negative.
    """
    if size is None:
        size = np.broadcast_shapes(*[x.shape for x in (mean, std) if isinstance(x, Tensor)])
    if not isinstance(std, Tensor) and std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    device = next((x.device for x in (mean, std) if isinstance(x, Tensor)), None)
    with no_grad():
        return randn(tuple(size), generator=generator, device=device) * std + mean


def bernoulli(input: Tensor, *, generator: Generator | None = None) -> Tensor:
    """1 with the probability that `input` gives for each element, else 0.

    Raises RuntimeError if an element is not a probability.
    """
    check_floating(input.dtype, "bernoulli_tensor_cpu_p_")
    probabilities = arrays.on_host(input.detach().array)
    if not ((probabilities >= 0) & (probabilities <= 1)).all():
        raise RuntimeError("bernoulli: every element of input must be a probability, between 0 and 1")
    drawn = (generator or default_generator).uniform(input.shape, input.dtype)
    return tensor_of(arrays.on_device((drawn < probabilities).astype(input.dtype), input.device))


def multinomial(
    input: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None
) -> Tensor:
    """Indices drawn with the probabilities (or weights) in `input`, of shape (n,) or (rows, n): one row of draws each.

    For a single draw, or without replacement, each weight is divided by an exponential draw, and the `num_samples`
    largest quotients win. Otherwise each uniform draw picks a place among the running sums of the weights.

    Raises RuntimeError for other shapes, for weights that are negative, not finite, or all 0, and, without
    `replacement`, for more draws than there are weights.
    """
    if input.ndim not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if not input.is_floating_point():
        kind = arrays.dtype_name(input.dtype)
        raise RuntimeError(f"multinomial only supports floating-point dtypes for input, got: {kind}")
    weights = np.atleast_2d(arrays.on_host(input.detach().array))
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if (weights.sum(-1) <= 0).any():
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    if not replacement and num_samples > weights.shape[-1]:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    source = generator or default_generator
    if replacement and num_samples > 1:
        sums = np.cumsum(weights, axis=-1)
        draws = source.uniform((len(weights), num_samples), arrays.float64)
        rows = [np.searchsorted(row / row[-1], drawn) for row, drawn in zip(sums, draws, strict=True)]
        indices = np.stack(rows)
    else:
        exponential = -np.log1p(-source.uniform(weights.shape, arrays.float64))
        with np.errstate(divide="ignore", invalid="ignore"):
            order = np.argsort(-(weights / exponential.astype(weights.dtype)), axis=-1, kind="stable")
        indices = order[:, :num_samples]
    return tensor_of(arrays.on_device(indices.reshape((*input.shape[:-1], num_samples)), input.device))


def _floating(dtype: Any, kernel: str) -> np.dtype:
    """The dtype to draw in, or PyTorch's error if it is an integer dtype."""
    wanted = arrays.default_dtype if dtype is None else np.dtype(dtype)
    check_floating(wanted, kernel)
    return wanted


def check_floating(dtype: np.dtype, kernel: str) -> None:
    """Raise PyTorch's error for numbers that cannot be drawn as integers."""
    if not arrays.is_floating(dtype):
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{arrays.dtype_name(dtype)}'")


def _made(numbers: np.ndarray, device: Any, requires_grad: bool) -> Tensor:
    if device is None:
        return tensor(numbers, requires_grad=requires_grad)
    return tensor_of(arrays.on_device(numbers, device), None).requires_grad_(requires_grad)  # moved first: a leaf
