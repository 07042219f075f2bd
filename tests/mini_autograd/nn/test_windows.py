"""Convolution and pooling with random geometries against PyTorch: values, gradients, or the same type of error.

Kernels that are not square, strides, paddings, dilations, groups, empty batches; and batches processed in blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import mini_autograd as ma
from mini_autograd.operations.neural import convolution

Program = Callable[..., Any]
Draw = tuple[Program, tuple[np.ndarray, ...]]


def pair(generator: np.random.Generator, low: int, high: int) -> tuple[int, int]:
    """Two random numbers from `low` to `high`."""
    first, second = generator.integers(low, high + 1, 2)
    return int(first), int(second)


def draw_convolution(generator: np.random.Generator) -> Draw:
    groups = int(generator.choice([1, 1, 2]))
    inputs, outputs = (groups * count for count in pair(generator, 1, 3))
    kernel, stride = pair(generator, 1, 4), pair(generator, 1, 2) if generator.random() < 0.5 else (1, 1)
    padding, dilation, size = pair(generator, 0, 2), pair(generator, 1, 2), pair(generator, 5, 9)
    x = generator.standard_normal((generator.integers(0, 5), inputs, *size))
    weight = generator.standard_normal((outputs, inputs // groups, *kernel))

    def program(lib: Any, x: Any, weight: Any, bias: Any) -> Any:
        return lib.nn.functional.conv2d(x, weight, bias, stride, padding, dilation, groups)

    return program, (x, weight, generator.standard_normal(outputs))


def draw_transposed(generator: np.random.Generator) -> Draw:
    inputs, outputs = pair(generator, 1, 3)
    kernel, stride, padding = pair(generator, 1, 4), pair(generator, 1, 2), pair(generator, 0, 1)
    dilation = pair(generator, 1, 2)
    extra = tuple(int(generator.integers(0, max(numbers))) for numbers in zip(stride, dilation, strict=True))
    x = generator.standard_normal((generator.integers(0, 5), inputs, *pair(generator, 2, 6)))

    def program(lib: Any, x: Any, weight: Any) -> Any:
        return lib.nn.functional.conv_transpose2d(x, weight, None, stride, padding, extra, 1, dilation)

    return program, (x, generator.standard_normal((inputs, outputs, *kernel)))


def draw_pooling(generator: np.random.Generator) -> Draw:
    kernel, stride, dilation = pair(generator, 1, 4), pair(generator, 1, 3), pair(generator, 1, 2)
    padding = tuple(int(generator.integers(0, length // 2 + 1)) for length in kernel)
    ceil = bool(generator.integers(0, 2))
    x = generator.integers(-3, 4, (generator.integers(0, 5), 2, *pair(generator, 5, 9))).astype(float)  # with ties

    def program(lib: Any, x: Any) -> Any:
        return lib.nn.functional.max_pool2d(x, kernel, stride, padding, dilation, ceil)

    return program, (x,)


def outcome(lib: Any, program: Program, arrays: tuple[np.ndarray, ...]) -> list[np.ndarray] | str:
    """The value of the program and the gradients of its inputs, or the error that it ends with."""
    tensors = [lib.tensor(array, requires_grad=True) for array in arrays]
    try:
        output = program(lib, *tensors)
    except (RuntimeError, ValueError) as error:
        return f"{type(error).__name__}: {error}"
    cotangent = np.cos(np.arange(output.numel())).reshape(tuple(output.shape))
    return [x.detach().numpy() for x in (output, *lib.autograd.grad(output, tensors, lib.tensor(cotangent)))]


@pytest.mark.parametrize("draw", [draw_convolution, draw_transposed, draw_pooling])
@pytest.mark.parametrize("block", [convolution.LARGE_BLOCK, 1], ids=["one block", "a block for each image"])
def test_drawn_geometries(draw: Callable[[np.random.Generator], Draw], block: int, monkeypatch: Any) -> None:
    monkeypatch.setattr(convolution, "LARGE_BLOCK", block)
    compared = 0
    for seed in range(60):
        program, arrays = draw(np.random.default_rng(seed))
        expected, got = (outcome(lib, program, arrays) for lib in (torch, ma))
        if isinstance(expected, str) or isinstance(got, str):
            assert type(expected) is type(got), (seed, expected, got)
            continue
        for theirs, ours in zip(expected, got, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-11, err_msg=f"seed {seed}")
        compared += 1
    assert compared > 30
