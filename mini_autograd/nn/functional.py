"""`torch.nn.functional`: what layers compute, as functions of tensors.

The one idea to know: operations with a rule of their own are defined in operations/; below is only what is composed of
them.
"""

# ruff: noqa: F403

from __future__ import annotations

import warnings
from typing import Any

from mini_autograd.graph.function import Value, as_array, wrap
from mini_autograd.numerics.arrays import array_module, holds, int64, long
from mini_autograd.numerics.left_out import answers as _answers
from mini_autograd.operations import neural as _neural
from mini_autograd.operations.neural.activations import *
from mini_autograd.operations.neural.attention import *
from mini_autograd.operations.neural.convolution import *
from mini_autograd.operations.neural.dropout import *
from mini_autograd.operations.neural.losses import *
from mini_autograd.operations.neural.normalization import *
from mini_autograd.operations.neural.pooling import *
from mini_autograd.operations.neural.windows import one_per_axis
from mini_autograd.operations.pointwise.elementwise import relu as _relu
from mini_autograd.operations.pointwise.elementwise import where
from mini_autograd.operations.pointwise.mathematical import sigmoid, tanh
from mini_autograd.operations.products.linear_algebra import linear
from mini_autograd.operations.reductions import softmax as probabilities
from mini_autograd.operations.reductions.norms import normalize
from mini_autograd.operations.shapes.gathering import embedding as rows_of_table
from mini_autograd.operations.shapes.joining import pad, stack

__all__ = [
    "adaptive_avg_pool2d", "embedding", "linear", "log_softmax", "normalize", "one_hot", "pad", "relu", "sigmoid",
    "softmax", "tanh",
]  # fmt: skip
__all__ += _neural.activations.__all__ + _neural.attention.__all__ + _neural.convolution.__all__
__all__ += _neural.dropout.__all__ + _neural.losses.__all__ + _neural.normalization.__all__ + _neural.pooling.__all__


def relu(input: Value, inplace: bool = False) -> Value:
    """Each element, or 0 where it is negative; `inplace` is ignored."""
    return _relu(input)


def softmax(input: Value, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Value:
    """Probabilities along `dim`: e^x divided by its sum."""
    return probabilities.softmax(input, chosen_dim("softmax", input, dim, _stacklevel), dtype)


def log_softmax(input: Value, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Value:
    """The logarithms of the softmax probabilities along `dim`, without the loss of digits of `log(softmax(x))`."""
    return probabilities.log_softmax(input, chosen_dim("log_softmax", input, dim, _stacklevel), dtype)


def chosen_dim(name: str, input: Value, dim: int | None, stacklevel: int) -> int:
    """The axis to normalize along; without `dim`, PyTorch's choice and its warning."""
    if dim is not None:
        return dim
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if input.ndim in (0, 1, 3) else 1


def embedding(
    input: Value,
    weight: Value,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
) -> Value:
    """Rows of the table `weight` (n, d), one for each index in `input` (...). The row `padding_idx` gets no gradient.

    With `max_norm`, longer rows among those looked up are first shortened to that norm, in `weight` itself.
    """
    if max_norm is not None:
        shorten_rows(weight.detach(), input.reshape(-1), max_norm, norm_type)
    return rows_of_table(input, weight, padding_idx, scale_grad_by_freq)


def shorten_rows(table: Value, places: Value, max_norm: float, norm_type: float) -> None:
    """Scale the rows at `places` that are longer than `max_norm` down to it, in place."""
    rows = table[places]
    lengths = rows.norm(norm_type, 1, keepdim=True)
    table[places] = where(lengths > max_norm, rows * (max_norm / (lengths + 1e-7)), rows)


def adaptive_avg_pool2d(input: Value, output_size: Any) -> Value:
    """Means of `output_size` parts of `input` (..., H, W), as equal as possible; parts may overlap."""
    if input.ndim < 3:
        raise ValueError("Input dimension should be at least 3")
    if not isinstance(output_size, int) and len(output_size) != 2:
        raise RuntimeError("adaptive_avg_pool2d: output_size must be 2")
    sizes = one_per_axis(output_size, 2)
    if any(size is not None and size < 0 for size in sizes):
        raise RuntimeError(
            "adaptive_avg_pool2d: elements of output_size must be greater than or equal to 0 but received "
            f"{{{sizes[0]}, {sizes[1]}}}"
        )
    rows, columns = (parts(n, count or n) for n, count in zip(input.shape[-2:], sizes, strict=True))
    return stack([stack([input[..., row, column].mean((-2, -1)) for column in columns], -1) for row in rows], -2)


def parts(length: int, count: int) -> list[slice]:
    """Part i of `count` goes from floor(i length / count) to ceil((i + 1) length / count)."""
    return [slice(i * length // count, -(-(i + 1) * length // count)) for i in range(count)]


def one_hot(tensor: Value, num_classes: int = -1) -> Value:
    """Class numbers (...) as rows (..., num_classes) of zeros with a 1."""
    labels = as_array(tensor)
    if labels.dtype not in long:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if labels.size == 0 and num_classes <= 0:
        raise RuntimeError("Can not infer total number of classes from empty tensor.")
    if labels.size and holds(labels.min() < 0):
        raise RuntimeError("Class values must be non-negative.")
    count = int(labels.max().item()) + 1 if num_classes == -1 else num_classes
    if labels.size and holds(labels.max() >= count):
        raise RuntimeError("Class values must be smaller than num_classes.")
    classes = array_module(labels).arange(count)
    return wrap((labels[..., None] == classes).astype(int64), tensor)


__getattr__ = _answers(__name__)
