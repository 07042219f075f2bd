"""The gradients of the workloads by hand in NumPy, with nothing recorded: the limit for an engine that runs on NumPy.

The one idea to know: an engine's extra time is the price of recording, of walking back and of not knowing which memory
may be used again. Freed memory is kept if arrays are large, as in the engine's column "keeping memory".
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np

import mini_autograd
from benchmarks.engine import workloads
from benchmarks.engine.workloads import (
    BATCH,
    CHAIN,
    HEADS,
    LARGE,
    LAYERS,
    LONG_CHAIN,
    TIME,
    VOCABULARY,
    WIDTH,
    Job,
    choices,
    normal,
    uniform,
)
from mini_autograd import allocator
from mini_autograd.operations.neural.activations import gelu_exact, gelu_exact_gradient

Chain = Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
Arrays = dict[str, np.ndarray]


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
        grad = through_cross_entropy(inputs[-1], hot)
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


def through_cross_entropy(scores: np.ndarray, hot: np.ndarray) -> np.ndarray:
    """The gradient of the mean cross entropy: (p - onehot) / rows. Written into `scores`, which nothing else uses."""
    scores -= scores.max(1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(1, keepdims=True)
    scores -= hot
    scores /= len(scores)
    return scores


def transformer() -> Job:
    """W5: forward, back and Adam's step. Gives the gradients by the names of the parameters.

    NumPy has no erf, so GELU is the engine's formula of arrays, which runs block by block.
    """
    allocator.keep_freed_memory()
    p = parameters_of(workloads.transformer(mini_autograd))
    text, following = (choices(VOCABULARY, BATCH, TIME, seed=seed) for seed in range(2))
    text_hot, hot = (np.eye(VOCABULARY, dtype=np.float32)[one.reshape(-1)] for one in (text, following))
    hidden = np.where(np.tri(TIME, dtype=bool), np.float32(0), np.float32(-np.inf))
    scale = np.float32((WIDTH // HEADS) ** -0.5)
    rows, heads = BATCH * TIME, (BATCH, TIME, 3, HEADS, WIDTH // HEADS)
    first, second = {name: np.zeros_like(x) for name, x in p.items()}, {name: np.zeros_like(x) for name, x in p.items()}
    count = 0

    def linear(x: np.ndarray, name: str) -> np.ndarray:
        result = x @ p[f"{name}.weight"].T
        result += p[f"{name}.bias"]
        return result

    def through_linear(grad: np.ndarray, x: np.ndarray, name: str, grads: Arrays) -> np.ndarray:
        grads[f"{name}.weight"], grads[f"{name}.bias"] = grad.T @ x, grad.sum(0)
        return grad @ p[f"{name}.weight"]

    def normalize(x: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The result, and what its rule needs: the standardized rows and 1 / their standard deviations."""
        standard = x - x.mean(1, keepdims=True)
        inverse = (np.einsum("ij,ij->i", standard, standard) / WIDTH + np.float32(1e-5))[:, None] ** np.float32(-0.5)
        standard *= inverse
        result = standard * p[f"{name}.weight"]
        result += p[f"{name}.bias"]
        return result, standard, inverse

    def through_normalize(grad: np.ndarray, kept: tuple, name: str, grads: Arrays) -> np.ndarray:
        _, standard, inverse = kept
        grads[f"{name}.weight"], grads[f"{name}.bias"] = np.einsum("ij,ij->j", grad, standard), grad.sum(0)
        grad = grad * p[f"{name}.weight"]
        along = np.einsum("ij,ij->i", grad, standard)[:, None] / WIDTH
        grad -= grad.mean(1, keepdims=True)
        grad -= standard * along
        grad *= inverse
        return grad

    def attend(parts: np.ndarray) -> tuple[np.ndarray, ...]:
        """The mixture of values, and what its rule needs."""
        query, key, value = parts.reshape(heads).transpose(2, 0, 3, 1, 4).copy()
        query *= scale
        weights = query @ key.mT.copy()
        weights += hidden
        weights -= weights.max(-1, keepdims=True)
        np.exp(weights, out=weights)
        weights /= weights.sum(-1, keepdims=True)
        return (weights @ value).transpose(0, 2, 1, 3).reshape(rows, WIDTH), query, key, value, weights

    def through_attend(grad: np.ndarray, kept: tuple) -> np.ndarray:
        _, query, key, value, weights = kept
        grad = grad.reshape(BATCH, TIME, HEADS, WIDTH // HEADS).transpose(0, 2, 1, 3).copy()
        of_weights = grad @ value.mT.copy()
        of_weights -= np.einsum("bhij,bhij->bhi", of_weights, weights)[..., None]
        of_weights *= weights
        result = np.empty(heads, np.float32)
        parts = result.transpose(2, 0, 3, 1, 4)
        np.multiply(of_weights @ key, scale, out=parts[0])
        parts[1], parts[2] = of_weights.mT @ query, weights.mT @ grad
        return result.reshape(rows, 3 * WIDTH)

    def step() -> Arrays:
        nonlocal count
        x = (p["character.weight"][text] + p["position.weight"]).reshape(rows, WIDTH)
        kept = []
        for block in (f"blocks.{number}" for number in range(LAYERS)):
            before = normalize(x, f"{block}.norm1")
            mixed = attend(linear(before[0], f"{block}.attend"))
            x = x + linear(mixed[0], f"{block}.project")
            after = normalize(x, f"{block}.norm2")
            wide = linear(after[0], f"{block}.widen")
            bent = gelu_exact(wide)
            x = x + linear(bent, f"{block}.narrow")
            kept.append((block, before, mixed, after, wide, bent))
        last = normalize(x, "norm")
        grads: Arrays = {}
        grad = through_linear(through_cross_entropy(linear(last[0], "head"), hot), last[0], "head", grads)
        grad = through_normalize(grad, last, "norm", grads)
        while kept:
            block, before, mixed, after, wide, bent = kept.pop()
            inner = gelu_exact_gradient(wide, through_linear(grad, bent, f"{block}.narrow", grads))
            inner = through_linear(inner, after[0], f"{block}.widen", grads)
            grad += through_normalize(inner, after, f"{block}.norm2", grads)
            inner = through_attend(through_linear(grad, mixed[0], f"{block}.project", grads), mixed)
            inner = through_linear(inner, before[0], f"{block}.attend", grads)
            grad += through_normalize(inner, before, f"{block}.norm1", grads)
        grads["character.weight"] = text_hot.T @ grad
        grads["position.weight"] = grad.reshape(BATCH, TIME, WIDTH).sum(0)
        count += 1
        for name, gradient in grads.items():
            first[name] += np.float32(0.1) * (gradient - first[name])
            second[name] *= np.float32(0.999)
            second[name] += np.float32(0.001) * gradient * gradient
            root = np.sqrt(second[name])
            root /= np.float32(math.sqrt(1 - 0.999**count))
            root += np.float32(1e-8)
            np.divide(first[name], root, out=root)
            root *= np.float32(1e-3 / (1 - 0.9**count))
            p[name] -= root
        return grads

    return Job(step)


def convolutional() -> Job:
    """W6: forward, back and the step. Gives the gradients by the names of the parameters."""
    allocator.keep_freed_memory()
    p = parameters_of(workloads.convolutional(mini_autograd))
    images, hot = normal(64, 1, 28, 28), np.eye(10, dtype=np.float32)[choices(10, 64)]
    places = list(itertools.product(range(3), range(3)))

    def convolve(x: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
        """The result (N, O, H, W), and the windows of x as columns (N, 9 C, H W)."""
        n, channels, height, width = x.shape
        padded = np.zeros((n, channels, height + 2, width + 2), np.float32)
        padded[..., 1:-1, 1:-1] = x
        columns = np.empty((n, channels, 9, height, width), np.float32)
        for j in range(3):
            met = padded[..., j : j + width].copy()
            for i in range(3):
                columns[:, :, 3 * i + j] = met[:, :, i : i + height]
        lines, weight = columns.reshape(n, 9 * channels, height * width), p[f"{name}.weight"]
        result = (weight.reshape(len(weight), -1) @ lines).reshape(n, len(weight), height, width)
        result += p[f"{name}.bias"][:, None, None]
        return result, lines

    def through_convolve(grad: np.ndarray, columns: np.ndarray, name: str, grads: Arrays) -> np.ndarray:
        """The gradient (N, O, H W) of the result, with its columns."""
        weight = p[f"{name}.weight"]
        grads[f"{name}.weight"] = (grad @ columns.mT).sum(0).reshape(weight.shape)
        grads[f"{name}.bias"] = grad.sum((0, 2))
        return weight.reshape(len(weight), -1)

    def pool(x: np.ndarray) -> np.ndarray:
        wide = np.maximum(x[..., ::2], x[..., 1::2])
        return np.maximum(wide[..., ::2, :], wide[..., 1::2, :])

    def through_pool_and_relu(grad: np.ndarray, x: np.ndarray, pooled: np.ndarray) -> np.ndarray:
        """Where an element is its window's largest, and positive, its gradient; several are only where all are 0."""
        result = np.empty_like(x)
        grad = grad * (pooled > 0)
        for i, j in itertools.product(range(2), range(2)):
            np.multiply(grad, x[..., i::2, j::2] == pooled, out=result[..., i::2, j::2])
        return result

    def step() -> Arrays:
        grads: Arrays = {}
        one, columns_one = convolve(images, "0")
        np.maximum(one, 0, out=one)
        pooled_one = pool(one)
        two, columns_two = convolve(pooled_one, "3")
        np.maximum(two, 0, out=two)
        pooled_two = pool(two)
        flat = pooled_two.reshape(64, -1)
        grad = through_cross_entropy(flat @ p["7.weight"].T + p["7.bias"], hot)
        grads["7.weight"], grads["7.bias"] = grad.T @ flat, grad.sum(0)
        grad = through_pool_and_relu((grad @ p["7.weight"]).reshape(pooled_two.shape), two, pooled_two)
        grad = grad.reshape(64, 16, -1)
        columns = (through_convolve(grad, columns_two, "3", grads).T @ grad).reshape(64, 8, 9, 14, 14)
        padded = np.zeros((64, 8, 16, 16), np.float32)
        for number, (i, j) in enumerate(places):
            padded[..., i : i + 14, j : j + 14] += columns[:, :, number]
        grad = through_pool_and_relu(padded[..., 1:-1, 1:-1], one, pooled_one)
        through_convolve(grad.reshape(64, 8, -1), columns_one, "0", grads)
        for name, gradient in grads.items():
            p[name] -= np.float32(1e-2) * gradient
        return grads

    return Job(step)


def parameters_of(job: Job) -> Arrays:
    """Copies of the parameters of a job's model, by name."""
    return {name: x.detach().numpy().copy() for name, x in job.model.named_parameters()}


def gradient_check_of_a_layer() -> Job:
    """W8: the Jacobian of x w^T + b by central differences, and twice by its rules, as `gradcheck` does it."""
    x, w, b = (uniform(*shape, seed=seed).astype(np.float64) for seed, shape in enumerate(((8, 8), (8, 8), (8,))))
    change = 1e-6

    def step() -> tuple[np.ndarray, np.ndarray]:
        rows = []
        for array in (x, w, b):
            for place in np.ndindex(array.shape):
                kept = array[place]
                array[place] = kept + change
                above = x @ w.T + b
                array[place] = kept - change
                rows.append((above - (x @ w.T + b)).reshape(-1) / (2 * change))
                array[place] = kept
        measured = np.array(rows)
        for _ in range(2):
            columns = []
            for place in np.ndindex(8, 8):
                grad = np.zeros((8, 8))
                grad[place] = 1.0
                columns.append(np.concatenate([(grad @ w).reshape(-1), (grad.T @ x).reshape(-1), grad.sum(0)]))
            by_rules = np.array(columns).T
            assert np.allclose(measured, by_rules, 1e-3, 1e-5)
        return measured, by_rules

    return Job(step)


def silu() -> Job:
    """The result, and the gradient for ones; the sigmoid is kept between the two."""
    x, ones = normal(256, 512), np.ones((256, 512), np.float32)

    def step() -> tuple[np.ndarray, np.ndarray]:
        s = np.exp(-x)
        s += 1.0
        np.reciprocal(s, out=s)
        slope = 1.0 - s
        slope *= x
        slope += 1.0
        slope *= s
        slope *= ones
        return x * s, slope

    return Job(step)


def softmax() -> Job:
    """Of the rows: the result, and the gradient for ones."""
    x, ones = normal(256, 512), np.ones((256, 512), np.float32)

    def step() -> tuple[np.ndarray, np.ndarray]:
        p = x - x.max(1, keepdims=True)
        np.exp(p, out=p)
        p /= p.sum(1, keepdims=True)
        grad = ones - np.einsum("ij,ij->i", ones, p)[:, None]
        grad *= p
        return p, grad

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
    "W5": transformer,
    "W6": convolutional,
    "W8": gradient_check_of_a_layer,
    "W9": long_chain,
    "op silu": silu,
    "op softmax": softmax,
}
