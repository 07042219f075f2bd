"""Convolution, pooling, normalization, attention and losses against PyTorch: values, first and second gradients, jvp.

A row is a program that runs under either library, and the shapes of its inputs. Cotangents are random.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as torch_functional

import mini_autograd as ma
from mini_autograd.graph import function
from mini_autograd.nn import functional

Shapes = tuple[tuple[int, ...], ...]

CLASSES = np.array([1, 0, 3, 3, 2])
IGNORED = np.array([1, -100, 3, -100, 2])
PLANES = np.array([[[0, 1], [2, 3]], [[3, 3], [1, 0]]])
WEIGHTS = np.array([0.5, 2.0, 1.0, 0.0])


def probability(lib: Any, x: Any) -> Any:
    return 1 / (1 + lib.exp(-x))


def distribution(lib: Any, x: Any) -> Any:
    return lib.exp(x) / lib.exp(x).sum(-1, keepdim=True)


# name: program(functional, lib, *tensors), shapes
ROWS: dict[str, tuple[Callable[..., Any], Shapes]] = {
    "conv1d": (lambda fn, lib, x, w, b: fn.conv1d(x, w, b), ((2, 3, 7), (4, 3, 3), (4,))),
    "conv1d stride": (lambda fn, lib, x, w: fn.conv1d(x, w, None, 2, 1), ((2, 3, 7), (4, 3, 3))),
    "conv1d unbatched": (lambda fn, lib, x, w, b: fn.conv1d(x, w, b, padding="same"), ((3, 7), (4, 3, 4), (4,))),
    "conv2d": (lambda fn, lib, x, w, b: fn.conv2d(x, w, b), ((2, 3, 5, 6), (4, 3, 3, 2), (4,))),
    "conv2d options": (
        lambda fn, lib, x, w, b: fn.conv2d(x, w, b, stride=(2, 1), padding=(1, 2), dilation=(1, 2)),
        ((2, 3, 5, 6), (4, 3, 3, 2), (4,)),
    ),
    "conv2d same": (lambda fn, lib, x, w: fn.conv2d(x, w, padding="same", dilation=2), ((1, 2, 6, 7), (2, 2, 2, 3))),
    "conv2d valid": (lambda fn, lib, x, w: fn.conv2d(x, w, padding="valid"), ((1, 2, 6, 7), (2, 2, 2, 3))),
    "conv2d groups": (
        lambda fn, lib, x, w, b: fn.conv2d(x, w, b, groups=2, padding=1),
        ((2, 4, 4, 4), (6, 2, 3, 3), (6,)),
    ),
    "conv2d depthwise": (lambda fn, lib, x, w: fn.conv2d(x, w, groups=4, stride=2), ((2, 4, 5, 5), (4, 1, 2, 2))),
    "conv2d unbatched": (lambda fn, lib, x, w: fn.conv2d(x, w), ((3, 5, 5), (2, 3, 3, 3))),
    "conv_transpose1d": (lambda fn, lib, x, w, b: fn.conv_transpose1d(x, w, b, 2, 1, 1), ((2, 3, 4), (3, 2, 3), (2,))),
    "conv_transpose2d": (
        lambda fn, lib, x, w, b: fn.conv_transpose2d(x, w, b, (2, 1), 1, (1, 0), 1, (1, 2)),
        ((2, 3, 4, 5), (3, 2, 3, 2), (2,)),
    ),
    "max_pool1d": (lambda fn, lib, x: fn.max_pool1d(x, 2), ((2, 3, 7),)),
    "max_pool2d": (lambda fn, lib, x: fn.max_pool2d(x, 2), ((2, 3, 6, 7),)),
    "max_pool2d overlap": (lambda fn, lib, x: fn.max_pool2d(x, (3, 2), (2, 1), 1), ((2, 3, 6, 7),)),
    "max_pool2d dilation": (lambda fn, lib, x: fn.max_pool2d(x, 2, 1, 0, 2), ((3, 6, 7),)),
    "max_pool2d ceil": (lambda fn, lib, x: fn.max_pool2d(x, 3, 2, 1, ceil_mode=True), ((2, 3, 6, 8),)),
    "max_pool2d ties": (lambda fn, lib, x: fn.max_pool2d((x > 0) * x, 3, 1), ((2, 3, 6, 8),)),
    "avg_pool1d": (lambda fn, lib, x: fn.avg_pool1d(x, 3, 2, 1), ((2, 3, 7),)),
    "avg_pool2d": (lambda fn, lib, x: fn.avg_pool2d(x, 2), ((2, 3, 6, 7),)),
    "avg_pool2d no pad": (lambda fn, lib, x: fn.avg_pool2d(x, 3, 2, 1, count_include_pad=False), ((2, 3, 6, 7),)),
    "avg_pool2d ceil": (lambda fn, lib, x: fn.avg_pool2d(x, 3, 2, 1, True), ((2, 3, 6, 8),)),
    "avg_pool2d ceil no pad": (lambda fn, lib, x: fn.avg_pool2d(x, (3, 2), 2, 1, True, False), ((2, 3, 6, 8),)),
    "avg_pool2d divisor": (lambda fn, lib, x: fn.avg_pool2d(x, 2, divisor_override=3), ((2, 3, 6, 7),)),
    "layer_norm": (lambda fn, lib, x, w, b: fn.layer_norm(x, (4,), w, b), ((2, 3, 4), (4,), (4,))),
    "layer_norm 2 axes": (lambda fn, lib, x, w, b: fn.layer_norm(x, (3, 4), w, b, 1e-2), ((2, 3, 4), (3, 4), (3, 4))),
    "layer_norm no weight": (lambda fn, lib, x: fn.layer_norm(x, (4,)), ((2, 3, 4),)),
    "layer_norm no bias": (lambda fn, lib, x, w: fn.layer_norm(x, (4,), w), ((2, 3, 4), (4,))),
    "batch_norm": (lambda fn, lib, x, w, b: fn.batch_norm(x, None, None, w, b, True), ((4, 3), (3,), (3,))),
    "batch_norm 4-D": (lambda fn, lib, x, w, b: fn.batch_norm(x, None, None, w, b, True), ((2, 3, 2, 2), (3,), (3,))),
    "batch_norm no weight": (lambda fn, lib, x: fn.batch_norm(x, None, None, training=True), ((2, 3, 2),)),
    "batch_norm eval": (
        lambda fn, lib, x, w, b: fn.batch_norm(
            x, lib.tensor(np.array([0.1, 0.2, 0.3])), lib.tensor(np.array([1.0, 2.0, 0.5])), w, b
        ),
        ((2, 3, 2), (3,), (3,)),
    ),
    "attention": (
        lambda fn, lib, q, k, v: fn.scaled_dot_product_attention(q, k, v),
        ((2, 3, 4), (2, 5, 4), (2, 5, 3)),
    ),
    "attention causal": (
        lambda fn, lib, q, k, v: fn.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.7),
        ((2, 2, 5, 4), (2, 2, 5, 4), (2, 2, 5, 3)),
    ),
    "attention mask": (
        lambda fn, lib, q, k, v, m: fn.scaled_dot_product_attention(q, k, v, m),
        ((2, 3, 4), (2, 5, 4), (2, 5, 3), (3, 5)),
    ),
    "attention bool mask": (
        lambda fn, lib, q, k, v: fn.scaled_dot_product_attention(
            q, k, v, lib.tensor(np.eye(3, 5, k=1) + np.eye(3, 5) > 0)
        ),
        ((2, 3, 4), (2, 5, 4), (2, 5, 3)),
    ),
    "cross_entropy sum vector": (lambda fn, lib, x: fn.cross_entropy(x, lib.tensor(2), reduction="sum"), ((4,),)),
    "cross_entropy planes": (lambda fn, lib, x: fn.cross_entropy(x, lib.tensor(PLANES)), ((2, 4, 2, 2),)),
    "cross_entropy planes none": (
        lambda fn, lib, x: fn.cross_entropy(x, lib.tensor(PLANES), lib.tensor(WEIGHTS), reduction="none"),
        ((2, 4, 2, 2),),
    ),
    "cross_entropy large": (lambda fn, lib, x: fn.cross_entropy(x * 1000, lib.tensor(CLASSES)), ((5, 4),)),
    "nll_loss": (lambda fn, lib, x: fn.nll_loss(x, lib.tensor(CLASSES)), ((5, 4),)),
    "nll_loss weight": (
        lambda fn, lib, x: fn.nll_loss(x, lib.tensor(IGNORED), lib.tensor(WEIGHTS), reduction="none"),
        ((5, 4),),
    ),
    "nll_loss ignore 3": (lambda fn, lib, x: fn.nll_loss(x, lib.tensor(CLASSES), ignore_index=3), ((5, 4),)),
}

for reduction in ("none", "mean", "sum"):
    ROWS |= {
        f"mse_loss {reduction}": (lambda fn, lib, x, t, r=reduction: fn.mse_loss(x, t, reduction=r), ((2, 3), (2, 3))),
        f"l1_loss {reduction}": (lambda fn, lib, x, t, r=reduction: fn.l1_loss(x, t, reduction=r), ((2, 3), (2, 3))),
        f"smooth_l1 {reduction}": (
            lambda fn, lib, x, t, r=reduction: fn.smooth_l1_loss(x, t, reduction=r, beta=0.8),
            ((4, 3), (4, 3)),
        ),
        f"bce logits {reduction}": (
            lambda fn, lib, x, t, r=reduction: fn.binary_cross_entropy_with_logits(x, probability(lib, t), reduction=r),
            ((4, 3), (4, 3)),
        ),
        f"bce logits weights {reduction}": (
            lambda fn, lib, x, t, r=reduction: fn.binary_cross_entropy_with_logits(
                x * 5,
                probability(lib, t),
                lib.tensor(WEIGHTS),
                reduction=r,
                pos_weight=lib.tensor(np.array([1.0, 3.0, 0.5, 1.0])),
            ),
            ((3, 4), (3, 4)),
        ),
        f"bce {reduction}": (
            lambda fn, lib, x, t, r=reduction: fn.binary_cross_entropy(
                probability(lib, x), probability(lib, t).detach(), reduction=r
            ),
            ((4, 3), (4, 3)),
        ),
        f"cross_entropy {reduction}": (
            lambda fn, lib, x, r=reduction: fn.cross_entropy(x, lib.tensor(CLASSES), reduction=r),
            ((5, 4),),
        ),
        f"cross_entropy all options {reduction}": (
            lambda fn, lib, x, r=reduction: fn.cross_entropy(
                x, lib.tensor(IGNORED), lib.tensor(WEIGHTS), reduction=r, label_smoothing=0.2
            ),
            ((5, 4),),
        ),
        f"cross_entropy probabilities {reduction}": (
            lambda fn, lib, x, t, r=reduction: fn.cross_entropy(
                x, distribution(lib, t), lib.tensor(WEIGHTS), reduction=r, label_smoothing=0.1
            ),
            ((5, 4), (5, 4)),
        ),
    }


def as_numpy(tensor: Any) -> np.ndarray:
    tensor = tensor.detach()
    return tensor.numpy(force=True) if isinstance(tensor, torch.Tensor) else tensor.numpy()


def draw(name: str, shapes: Shapes) -> tuple[list[np.ndarray], np.random.Generator]:
    generator = np.random.default_rng(sum(map(ord, name)))
    return [generator.standard_normal(shape) for shape in shapes], generator


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ROWS)
def test_values_first_and_second_gradients(name: str) -> None:
    program, shapes = ROWS[name]
    results = []
    for lib, fn in ((torch, torch_functional), (ma, functional)):
        arrays, generator = draw(name, shapes)
        inputs = [lib.tensor(array, requires_grad=True) for array in arrays]
        output = program(fn, lib, *inputs)
        cotangent = lib.tensor(generator.standard_normal(tuple(output.shape)))
        plain = lib.autograd.grad(output, inputs, cotangent, retain_graph=True, allow_unused=True)
        grads = lib.autograd.grad(output, inputs, cotangent, create_graph=True, allow_unused=True)
        mixed = [
            (grad * lib.tensor(generator.standard_normal(tuple(grad.shape)))).sum()
            for grad in grads
            if grad is not None
        ]
        total = mixed[0]
        for term in mixed[1:]:
            total = total + term
        second = (
            lib.autograd.grad(total, inputs, allow_unused=True, retain_graph=True)
            if total.requires_grad
            else [None] * len(inputs)
        )
        results.append([output, *plain, *grads, *second])
    for expected, got in zip(*results, strict=True):
        if got is None or expected is None:  # None stands for a gradient that is known to be zero
            present = expected if got is None else got
            assert present is None or not as_numpy(present).any()
            continue
        assert got.shape == tuple(expected.shape)
        np.testing.assert_allclose(as_numpy(got), as_numpy(expected), rtol=1e-10, atol=1e-11)


JVP_ROWS = [name for name in ROWS if "kl_div log" not in name]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", JVP_ROWS)
def test_forward_mode_agrees_with_reverse_mode(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """For each operation that the program runs, <cotangent, jvp(tangents)> = <vjp(cotangent), tangents>."""
    program, shapes = ROWS[name]
    arrays, generator = draw(name, shapes)
    nodes: list[Any] = []
    output = program(functional, ma, *[ma.tensor(array, requires_grad=True) for array in arrays])
    stack = [output.grad_fn]
    while stack:
        node = stack.pop()
        if node is None or node in nodes:
            continue
        nodes.append(node)
        stack += [below for below, _ in node.next_functions]
    checked = 0
    for node in nodes:
        if type(node).__module__.split(".")[-1] not in (
            "convolution",
            "pooling",
            "normalization",
            "losses",
            "attention",
        ):
            continue
        inputs = [None if below is None else below.outputs[number][0] for below, number in node.next_functions]
        tangents = [None if shape is None else np.array(generator.standard_normal(shape)) for shape in inputs]
        cotangent = generator.standard_normal(node.outputs[0][0])
        forward = node.jvp(node, *tangents)
        grads = node.backward(node, cotangent)
        grads = grads if isinstance(grads, tuple) else (grads,)
        pairs = [(g, t) for g, t in zip(grads, tangents, strict=True) if t is not None and g is not None]
        backward = sum((np.broadcast_to(g, np.broadcast_shapes(np.shape(g), t.shape)) * t).sum() for g, t in pairs)
        np.testing.assert_allclose((forward * cotangent).sum(), backward, rtol=1e-9, atol=1e-11)
        checked += 1
    assert checked or "eval" in name


def test_max_pool_indices() -> None:
    x = np.random.default_rng(1).standard_normal((2, 3, 6, 7))
    for options in ((2,), (3, 2, 1), (2, 1, 0, 2), (3, 2, 1, 1, True)):
        expected = torch_functional.max_pool2d(torch.tensor(x), *options, return_indices=True)
        got = functional.max_pool2d(ma.tensor(x), *options, return_indices=True)
        for a, b in zip(expected, got, strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_batch_norm_updates_its_running_statistics() -> None:
    x = np.random.default_rng(1).standard_normal((4, 3, 2))
    kept = []
    for lib, fn in ((torch, torch_functional), (ma, functional)):
        mean, variance = lib.zeros(3, dtype=lib.float64), lib.ones(3, dtype=lib.float64)
        fn.batch_norm(lib.tensor(x), mean, variance, training=True, momentum=0.3)
        kept.append((mean.numpy(), variance.numpy()))
    np.testing.assert_allclose(*map(np.array, kept))


ERRORS: dict[str, Callable[[Any, Any], Any]] = {
    "channels": lambda fn, lib: fn.conv2d(lib.zeros(1, 3, 5, 5), lib.zeros(2, 4, 3, 3)),
    "rank": lambda fn, lib: fn.conv2d(lib.zeros(3, 5), lib.zeros(2, 4, 3, 3)),
    "kernel": lambda fn, lib: fn.conv2d(lib.zeros(1, 3, 2, 5), lib.zeros(2, 3, 3, 3)),
    "same and stride": lambda fn, lib: fn.conv2d(
        lib.zeros(1, 3, 5, 5), lib.zeros(2, 3, 3, 3), stride=2, padding="same"
    ),
    "pool": lambda fn, lib: fn.max_pool2d(lib.zeros(1, 3, 2, 2), 3),
    "layer norm": lambda fn, lib: fn.layer_norm(lib.zeros(2, 3), (4,)),
    "batch norm": lambda fn, lib: fn.batch_norm(lib.zeros(1, 3), None, None, training=True),
    "batch": lambda fn, lib: fn.cross_entropy(lib.zeros(2, 3), lib.zeros(4, dtype=lib.int64)),
    "out of bounds": lambda fn, lib: fn.cross_entropy(lib.zeros(2, 3), lib.tensor([1, 3])),
    "target size": lambda fn, lib: fn.cross_entropy(lib.zeros(2, 3, 4), lib.zeros(2, 3, dtype=lib.int64)),
    "float classes": lambda fn, lib: fn.cross_entropy(lib.zeros(2, 3), lib.zeros(2)),
    "smoothing": lambda fn, lib: fn.cross_entropy(lib.zeros(2, 3), lib.tensor([1, 2]), label_smoothing=2.0),
    "reduction": lambda fn, lib: fn.mse_loss(lib.zeros(2), lib.zeros(2), reduction="average"),
    "bce size": lambda fn, lib: fn.binary_cross_entropy_with_logits(lib.zeros(2), lib.zeros(3)),
    "bce range": lambda fn, lib: fn.binary_cross_entropy(lib.ones(2) * 2, lib.zeros(2)),
    "dropout": lambda fn, lib: fn.dropout(lib.zeros(2), 1.5),
    "causal and mask": lambda fn, lib: fn.scaled_dot_product_attention(
        *[lib.zeros(2, 3)] * 3, attn_mask=lib.zeros(2, 2), is_causal=True
    ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors_are_pytorchs(name: str) -> None:
    with pytest.raises(Exception) as expected:  # noqa: PT011
        ERRORS[name](torch_functional, torch)
    with pytest.raises(type(expected.value)) as got:
        ERRORS[name](functional, ma)
    assert str(got.value) == str(expected.value)


def test_dropout_draws_pytorchs_mask() -> None:
    for dtype in ("float32", "float64"):
        for p in (0.1, 0.5, 1.0):
            torch.manual_seed(7)
            ma.manual_seed(7)
            expected = torch_functional.dropout(torch.ones(5, 40, dtype=getattr(torch, dtype)), p)
            got = functional.dropout(ma.ones(5, 40, dtype=getattr(ma, dtype)), p)
            np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=1e-6)


def test_function_is_imported_for_arrays_too() -> None:
    """Without a Tensor the operations return arrays: rules of other operations use them that way."""
    x = np.random.default_rng(1).standard_normal((1, 2, 4, 4))
    assert not isinstance(functional.max_pool2d(x, 2), function.Tensor)
