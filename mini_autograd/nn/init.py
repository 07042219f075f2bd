"""Initializers: fill a tensor with first values, in place.

The one idea to know: the variance of what is drawn is chosen so that a layer keeps the size of signals that pass
forward through it (or of gradients that pass backward). The same seed gives PyTorch's numbers.
"""

from __future__ import annotations

import math

from mini_autograd.nn.parameter import overwrite
from mini_autograd.numerics import arrays
from mini_autograd.numerics.generator import Generator, default_generator
from mini_autograd.numerics.left_out import answers as _answers
from mini_autograd.tensors.tensor import Tensor


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Uniform between `a` and `b`."""
    drawn = (generator or default_generator).uniform(tensor.shape, tensor.dtype)
    low, high = (float(tensor.dtype.type(end)) for end in (a, b))
    width = float(tensor.dtype.type(high - low))
    return overwrite(tensor, drawn.astype(arrays.float64, copy=False) * width + low)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Normal with that mean and standard deviation."""
    return overwrite(tensor, (generator or default_generator).normal(tensor.shape, tensor.dtype) * std + mean)


def constant_(tensor: Tensor, val: float) -> Tensor:
    """One number everywhere."""
    return overwrite(tensor, val)


def ones_(tensor: Tensor) -> Tensor:
    """Ones."""
    return overwrite(tensor, 1)


def zeros_(tensor: Tensor) -> Tensor:
    """Zeros."""
    return overwrite(tensor, 0)


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Uniform with variance gain^2 2 / (fan_in + fan_out) (Glorot and Bengio 2010)."""
    bound = math.sqrt(3.0) * gain * math.sqrt(2.0 / sum(fans(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Normal with variance gain^2 2 / (fan_in + fan_out)."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(fans(tensor))), generator)


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Uniform with variance gain^2 / fan, where the gain makes up for the nonlinearity (He et al. 2015)."""
    if 0 in tensor.shape:
        return tensor
    bound = math.sqrt(3.0) * calculate_gain(nonlinearity, a) / math.sqrt(fan(tensor, mode))
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Normal with variance gain^2 / fan."""
    if 0 in tensor.shape:
        return tensor
    return normal_(tensor, 0.0, calculate_gain(nonlinearity, a) / math.sqrt(fan(tensor, mode)), generator)


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor by which to scale a layer before this nonlinearity. Raises ValueError for an unknown name."""
    if nonlinearity == "leaky_relu":
        return math.sqrt(2.0 / (1 + (0.01 if param is None else param) ** 2))
    gains: dict[str, float] = {"sigmoid": 1, "tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4}
    gains |= dict.fromkeys(("linear", "conv1d", "conv2d", "conv_transpose1d", "conv_transpose2d"), 1)
    if nonlinearity not in gains:
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    return gains[nonlinearity]


def fan(tensor: Tensor, mode: str) -> int:
    """The fan-in or the fan-out, as `mode` says."""
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return fans(tensor)[mode == "fan_out"]


def fans(tensor: Tensor) -> tuple[int, int]:
    """How many inputs each output of a layer with this weight sums up, and how many outputs each input goes into."""
    if tensor.ndim < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    outputs, inputs, *kernel = tensor.shape
    return inputs * math.prod(kernel), outputs * math.prod(kernel)


_calculate_fan_in_and_fan_out = fans


__getattr__ = _answers(__name__)
