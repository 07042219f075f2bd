"""`torch.nn.functional`: what layers compute, as functions of tensors.

Imports arrays, function, creation and the operations. The one idea to know: everything here is defined with its rule in
operations/; only what is put together from these stands below.
"""

from __future__ import annotations

import warnings
from typing import Any

from numpy import finfo

from mini_autograd.arrays import check_floating, int64
from mini_autograd.creation import zeros_like
from mini_autograd.function import Value, as_array, wrap
from mini_autograd.operations import softmax as probabilities
from mini_autograd.operations.activations import (
    celu,
    elu,
    gelu,
    glu,
    hardshrink,
    hardsigmoid,
    hardswish,
    hardtanh,
    leaky_relu,
    logsigmoid,
    mish,
    prelu,
    relu6,
    selu,
    sigmoid,
    silu,
    softplus,
    softshrink,
    softsign,
    tanhshrink,
    threshold,
)
from mini_autograd.operations.attention import scaled_dot_product_attention
from mini_autograd.operations.convolution import conv1d, conv2d, conv_transpose1d, conv_transpose2d
from mini_autograd.operations.dropout import dropout
from mini_autograd.operations.dropout import dropout_channels as dropout2d
from mini_autograd.operations.elementwise import log, tanh, where
from mini_autograd.operations.elementwise import relu as _relu
from mini_autograd.operations.gathering import embedding as rows_of_table
from mini_autograd.operations.joining import pad, stack
from mini_autograd.operations.linear_algebra import linear
from mini_autograd.operations.losses import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    huber_loss,
    kl_div,
    l1_loss,
    mse_loss,
    nll_loss,
    smooth_l1_loss,
)
from mini_autograd.operations.margins import (
    cosine_embedding_loss,
    gaussian_nll_loss,
    hinge_embedding_loss,
    margin_ranking_loss,
    multi_margin_loss,
    soft_margin_loss,
    triplet_margin_loss,
)
from mini_autograd.operations.mathematical import rsqrt
from mini_autograd.operations.normalization import batch_norm, group_norm, layer_norm
from mini_autograd.operations.norms import cosine_similarity, normalize
from mini_autograd.operations.pooling import avg_pool1d, avg_pool2d, max_pool1d, max_pool2d
from mini_autograd.operations.resizing import interpolate
from mini_autograd.operations.statistics import pairwise_distance
from mini_autograd.operations.windows import one_per_axis

__all__ = [
    "adaptive_avg_pool2d",
    "avg_pool1d",
    "avg_pool2d",
    "batch_norm",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "celu",
    "conv1d",
    "conv2d",
    "conv_transpose1d",
    "conv_transpose2d",
    "cosine_embedding_loss",
    "cosine_similarity",
    "cross_entropy",
    "dropout",
    "dropout2d",
    "elu",
    "embedding",
    "gaussian_nll_loss",
    "gelu",
    "glu",
    "group_norm",
    "gumbel_softmax",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hinge_embedding_loss",
    "huber_loss",
    "interpolate",
    "kl_div",
    "l1_loss",
    "layer_norm",
    "leaky_relu",
    "linear",
    "log_softmax",
    "logsigmoid",
    "margin_ranking_loss",
    "max_pool1d",
    "max_pool2d",
    "mish",
    "mse_loss",
    "multi_margin_loss",
    "nll_loss",
    "normalize",
    "one_hot",
    "pad",
    "pairwise_distance",
    "prelu",
    "relu",
    "relu6",
    "rms_norm",
    "scaled_dot_product_attention",
    "selu",
    "sigmoid",
    "silu",
    "smooth_l1_loss",
    "soft_margin_loss",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
    "triplet_margin_loss",
]


def relu(input: Value, inplace: bool = False) -> Value:
    """Each element, or 0 where it is negative; `inplace` is ignored."""
    return _relu(input)


def softmax(input: Value, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Value:
    """Probabilities along `dim`: e^x divided by its sum."""
    return probabilities.softmax(input, chosen_dim("softmax", input, dim, _stacklevel), dtype)


def log_softmax(input: Value, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Value:
    """The logarithms of the softmax probabilities along `dim`, without the loss of digits of `log(softmax(x))`."""
    return probabilities.log_softmax(input, chosen_dim("log_softmax", input, dim, _stacklevel), dtype)


def softmin(input: Value, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Value:
    """softmax of the negative numbers."""
    return probabilities.softmax(-input, chosen_dim("softmin", input, dim, _stacklevel), dtype)


def chosen_dim(name: str, input: Value, dim: int | None, stacklevel: int) -> int:
    """The axis to normalize along; without `dim`, PyTorch's choice and its warning."""
    if dim is not None:
        return dim
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if input.ndim in (0, 1, 3) else 1


def gumbel_softmax(logits: Value, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Value:
    """A random choice along `dim` with the probabilities softmax(logits), softened so that it has a gradient.

    The lower the temperature `tau`, the nearer is the result to 0 and 1. With `hard` it is exactly that, and the
    gradient is still that of the soft one. `eps` is ignored.
    """
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    noise = -log(zeros_like(logits).exponential_())
    soft = probabilities.softmax((logits + noise) / tau, dim)
    if not hard:
        return soft
    chosen = soft.detach().max(dim, keepdim=True).indices
    return zeros_like(logits).scatter(dim, chosen, 1.0) - soft.detach() + soft


def rms_norm(input: Value, normalized_shape: Any, weight: Value | None = None, eps: float | None = None) -> Value:
    """Divide by the root of the mean square over the last axes, whose lengths are `normalized_shape`; times weight.

    Without `eps`, the smallest step from 1 that the dtype knows is added under the root.
    """
    check_floating(input, "rms_norm")
    shape = tuple(normalized_shape)
    if not shape:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
            "normalized_shape = []"
        )
    if input.shape[-len(shape) :] != shape:
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with shape [*{', '.join(map(str, shape))}], but "
            f"got input of size{list(input.shape)}"
        )
    if weight is not None and weight.shape != shape:
        raise RuntimeError(
            f"Expected weight to be of same shape as normalized_shape, but got weight of shape {list(weight.shape)} "
            f"and normalized_shape = {list(shape)}"
        )
    axes = tuple(range(-len(shape), 0))
    least = float(finfo(input.dtype).eps) if eps is None else eps
    normalized = input * rsqrt((input * input).mean(axes, keepdim=True) + least)
    return normalized if weight is None else normalized * weight


def embedding(
    input: Value,
    weight: Value,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
) -> Value:
    """Rows of the table `weight` (n, d), one for each index in `input` (...). The row `padding_idx` gets no gradient.

    With `max_norm` the rows that are looked up, and are longer, are first shortened to that norm, in `weight` itself.
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
    if labels.dtype != int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if labels.size == 0 and num_classes <= 0:
        raise RuntimeError("Can not infer total number of classes from empty tensor.")
    if labels.size and labels.min() < 0:
        raise RuntimeError("Class values must be non-negative.")
    count = int(labels.max()) + 1 if num_classes == -1 else num_classes
    if labels.size and labels.max() >= count:
        raise RuntimeError("Class values must be smaller than num_classes.")
    return wrap((labels[..., None] == range(count)).astype(int64), tensor)
