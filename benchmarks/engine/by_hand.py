"""The gradients of the workloads by hand in NumPy, with nothing recorded: the limit for an engine that runs on NumPy.

The one idea to know: an engine's extra time is the price of recording, of walking back and of not knowing which memory
may be used again. Freed memory is kept if arrays are large, as in the engine's column "keeping memory".
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from benchmarks.engine.workloads import CHAIN, LARGE, LONG_CHAIN, Job, choices, normal, uniform
from mini_autograd import allocator

Chain = Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


def small_chain(*shape: int) -> Job:
    """W1 and W2: gradients of x, w and b."""
    x, w, b = (uniform(*shape, seed=seed)[()] for seed in range(3))

    def step() -> tuple:
        values = [x]
        for _ in range(CHAIN):
            values.append(np.tanh(values[-1] * w + b))
        grad, grad_w, grad_b = np.ones_like(x), np.zeros_like(x), np.zeros_like(x)
        for after, before in itertools.pairwise(reversed(values)):
            grad = grad * (1.0 - after * after)
            grad_w += grad * before
            grad_b += grad
            grad = grad * w
        return grad, grad_w, grad_b

    return Job(step, 3 * CHAIN)


def large_chain(chain: Chain) -> Job:
    """W3 and W3b: gradients of x and w."""
    allocator.keep_freed_memory()
    x, w, cotangent = uniform(LARGE), uniform(LARGE, seed=1), normal(LARGE, seed=2)
    return Job(lambda: chain(x, w, cotangent))


def transcendental_chain(x: np.ndarray, w: np.ndarray, cotangent: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """tanh(log(e^((t + w) / 2) + 1) x - t) with t = tanh(x w), and back."""
    first = np.tanh(x * w)
    second = np.exp((first + w) * np.float32(0.5))
    third = np.log(second + 1.0)
    output = np.tanh(third * x - first)
    grad = cotangent * (1.0 - output * output)
    through_exp = grad * x / (second + 1.0) * second * np.float32(0.5)
    through_tanh = (through_exp - grad) * (1.0 - first * first)
    return grad * third + through_tanh * w, through_exp + through_tanh * x


def arithmetic_chain(x: np.ndarray, w: np.ndarray, cotangent: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """y <- y w - x, five times from y = x, and back."""
    values = [x]
    for _ in range(5):
        values.append(values[-1] * w - x)
    grad, grad_x, grad_w = cotangent, np.zeros_like(x), np.zeros_like(w)
    for before in reversed(values[:-1]):
        grad_w += grad * before
        grad_x -= grad
        grad = grad * w
    return grad_x + grad, grad_w


def perceptron() -> Job:
    """W4 with SGD: forward, back and the step. Gives the gradients: weights, then biases."""
    allocator.keep_freed_memory()
    images, labels = normal(128, 784), choices(10, 128)
    sizes = list(itertools.pairwise((784, 256, 128, 10)))
    weights = [0.05 * normal(after, before, seed=after) for before, after in sizes]
    biases = [np.zeros(after, np.float32) for _, after in sizes]
    hot, rate = np.eye(10, dtype=np.float32)[labels], np.float32(1e-3)

    def step() -> list[np.ndarray]:
        inputs = [images]
        for weight, bias in zip(weights, biases, strict=True):
            output = inputs[-1] @ weight.T
            output += bias
            inputs.append(np.maximum(output, 0) if weight is not weights[-1] else output)
        grad = np.exp(inputs[-1] - inputs[-1].max(1, keepdims=True))
        grad /= grad.sum(1, keepdims=True)
        grad -= hot
        grad /= len(images)
        of_weights, of_biases = [], []
        for layer in (2, 1, 0):
            of_weights.append(grad.T @ inputs[layer])
            of_biases.append(grad.sum(0))
            if layer:
                grad = grad @ weights[layer]
                grad *= inputs[layer] > 0
        grads = [*reversed(of_weights), *reversed(of_biases)]
        for parameter, gradient in zip([*weights, *biases], grads, strict=True):
            parameter -= rate * gradient
        return grads

    return Job(step)


def long_chain() -> Job:
    """W9: the gradient of x."""

    def step() -> np.float32:
        y = x = np.float32(0.5)
        for _ in range(LONG_CHAIN // 2):
            y = y * 0.999 + 0.001
        grad = np.ones_like(x)
        for _ in range(LONG_CHAIN // 2):
            grad = grad * 0.999
        return np.float32(grad)

    return Job(step, LONG_CHAIN)


BY_HAND: dict[str, Callable[[], Job]] = {
    "W1": small_chain,
    "W2": lambda: small_chain(32, 32),
    "W3": lambda: large_chain(transcendental_chain),
    "W3b": lambda: large_chain(arithmetic_chain),
    "W4 SGD": perceptron,
    "W9": long_chain,
}
