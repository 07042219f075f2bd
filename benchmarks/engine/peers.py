"""The workloads written with the APIs of the peers: HIPS autograd, tinygrad and micrograd.

Imports workloads; the peers are imported when a job is built. The one idea to know: a peer is compared only where its
workload is written here. A missing entry mostly means that the peer has no such operation; tinygrad's Transformer and
HIPS autograd's convolution could still be written.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

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
    arithmetic_chain,
    choices,
    normal,
    uniform,
)

# HIPS autograd: functions of arrays, so a step returns new parameters


def hips_small_chain(*shape: int) -> Job:
    """W1 and W2."""
    import autograd
    import autograd.numpy as anp

    def chain(x: Any, w: Any, b: Any) -> Any:
        for _ in range(CHAIN):
            x = anp.tanh(x * w + b)
        return anp.sum(x)

    gradient = autograd.grad(chain, (0, 1, 2))
    inputs = [uniform(*shape, seed=seed) for seed in range(3)]
    return Job(lambda: gradient(*inputs), 3 * CHAIN)


def hips_large_chain(chain: Callable[[Any, Any], Any]) -> Job:
    """W3 and W3b."""
    import autograd

    x, w, cotangent = uniform(LARGE), uniform(LARGE, seed=1), normal(LARGE, seed=2)

    def step() -> None:
        pull_back, _ = autograd.make_vjp(lambda inputs: chain(*inputs))((x, w))
        pull_back(cotangent)

    return Job(step)


def hips_transcendental(x: Any, w: Any) -> Any:
    """The chain of W3 with functions, since HIPS autograd's arrays have no such methods."""
    import autograd.numpy as anp

    first = anp.tanh(x * w)
    second = anp.exp((first + w) * 0.5)
    return anp.tanh(anp.log(second + 1.0) * x - first)


def hips_cross_entropy(logits: Any, labels: np.ndarray) -> Any:
    """Mean cross entropy over rows."""
    import autograd.numpy as anp

    shifted = logits - anp.max(logits, axis=-1, keepdims=True)
    return anp.mean(anp.log(anp.sum(anp.exp(shifted), axis=-1)) - shifted[np.arange(len(labels)), labels])


def hips_training(loss: Callable[[list], Any], parameters: list[np.ndarray], adam: bool) -> Job:
    """One step with SGD or Adam, in place."""
    import autograd

    gradient = autograd.grad(loss)
    first, second = ([np.zeros_like(p) for p in parameters] for _ in range(2))
    count = [0]

    def step() -> None:
        count[0] += 1
        for p, g, m, v in zip(parameters, gradient(parameters), first, second, strict=True):
            if not adam:
                p -= 1e-3 * g
                continue
            m += 0.1 * (g - m)
            v += 0.001 * (g * g - v)
            rate = 1e-3 / (1 - 0.9 ** count[0])
            p -= rate * m / (np.sqrt(v / (1 - 0.999 ** count[0])) + 1e-8)

    return Job(step)


def hips_perceptron(adam: bool) -> Job:
    """W4."""
    import autograd.numpy as anp

    sizes = (784, 256, 128, 10)
    parameters = [0.05 * normal(*shape) for pair in itertools.pairwise(sizes) for shape in (pair, pair[1:])]
    images, labels = normal(128, 784), choices(10, 128)

    def loss(parameters: list) -> Any:
        x = images
        for layer in range(3):
            x = x @ parameters[2 * layer] + parameters[2 * layer + 1]
            x = x if layer == 2 else anp.maximum(x, 0)
        return hips_cross_entropy(x, labels)

    return hips_training(loss, parameters, adam)


def hips_transformer_parameters() -> tuple[list[list[np.ndarray]], list[np.ndarray]]:
    """Weights, biases, scales and shifts, each a list in order of use; and the tables of symbols and positions.

    Each layer has four matrices: for queries, keys and values together, for attention's output, and for the two steps
    of the perceptron. One more matrix gives the logits.
    """
    matrices = [(WIDTH, 3 * WIDTH), (WIDTH, WIDTH), (WIDTH, 4 * WIDTH), (4 * WIDTH, WIDTH)] * LAYERS
    matrices += [(WIDTH, VOCABULARY)]
    weights = [0.05 * normal(*shape, seed=seed) for seed, shape in enumerate(matrices)]
    biases = [np.zeros(shape[1], np.float32) for shape in matrices]
    scales = [np.ones(WIDTH, np.float32) for _ in range(2 * LAYERS + 1)]
    shifts = [np.zeros(WIDTH, np.float32) for _ in scales]
    return [weights, biases, scales, shifts], [normal(VOCABULARY, WIDTH), normal(TIME, WIDTH, seed=1)]


def hips_transformer() -> Job:
    """W5, built from HIPS autograd's operations on arrays."""
    import autograd.numpy as anp

    groups, tables = hips_transformer_parameters()
    ends = np.cumsum([len(group) for group in groups])
    text, following = (choices(VOCABULARY, BATCH, TIME, seed=seed) for seed in range(2))
    mask = np.triu(np.full((TIME, TIME), -np.inf, np.float32), 1)

    def norm(x: Any, scale: Any, shift: Any) -> Any:
        centered = x - anp.mean(x, axis=-1, keepdims=True)
        return centered / anp.sqrt(anp.mean(centered * centered, axis=-1, keepdims=True) + 1e-5) * scale + shift

    def attention(x: Any) -> Any:
        heads = anp.transpose(anp.reshape(x, (BATCH, TIME, 3, HEADS, WIDTH // HEADS)), (2, 0, 3, 1, 4))
        scores = heads[0] @ anp.swapaxes(heads[1], -1, -2) * (HEADS / WIDTH) ** 0.5 + mask
        powers = anp.exp(scores - anp.max(scores, axis=-1, keepdims=True))
        mixed = powers / anp.sum(powers, axis=-1, keepdims=True) @ heads[2]
        return anp.reshape(anp.swapaxes(mixed, 1, 2), (BATCH, TIME, WIDTH))

    def gelu(x: Any) -> Any:
        return 0.5 * x * (1 + anp.tanh(0.7978845608 * (x + 0.044715 * (x * x * x))))

    def loss(parameters: list) -> Any:
        weight, bias, scale, shift = (parameters[a:b] for a, b in zip((0, *ends), ends, strict=False))
        x = parameters[-2][text] + parameters[-1]
        for layer in range(LAYERS):
            i, j = 4 * layer, 2 * layer
            parts = norm(x, scale[j], shift[j]) @ weight[i] + bias[i]
            x = x + attention(parts) @ weight[i + 1] + bias[i + 1]
            wide = gelu(norm(x, scale[j + 1], shift[j + 1]) @ weight[i + 2] + bias[i + 2])
            x = x + wide @ weight[i + 3] + bias[i + 3]
        logits = norm(x, scale[-1], shift[-1]) @ weight[-1] + bias[-1]
        return hips_cross_entropy(anp.reshape(logits, (-1, VOCABULARY)), following.reshape(-1))

    return hips_training(loss, [*itertools.chain(*groups), *tables], adam=True)


def hips_long_chain() -> Job:
    """W9."""
    import autograd

    def chain(x: Any) -> Any:
        for _ in range(LONG_CHAIN // 2):
            x = x * 0.999 + 0.001
        return x

    gradient = autograd.grad(chain)
    return Job(lambda: gradient(0.5), LONG_CHAIN)


HIPS: dict[str, Callable[[], Job]] = {
    "W1": hips_small_chain,
    "W2": lambda: hips_small_chain(32, 32),
    "W3": lambda: hips_large_chain(hips_transcendental),
    "W3b": lambda: hips_large_chain(arithmetic_chain),
    "W4 SGD": lambda: hips_perceptron(adam=False),
    "W4 Adam": lambda: hips_perceptron(adam=True),
    "W5": hips_transformer,
    "W9": hips_long_chain,
}

# tinygrad: lazy, so a step ends when its gradients are realized


def tinygrad_chain(chain: Callable[..., Any], *arrays: np.ndarray, operations: int = 1) -> Job:
    """W1 to W3b."""
    from tinygrad import Tensor

    inputs = [Tensor(array).realize() for array in arrays]

    def step() -> None:
        Tensor.realize(*chain(*inputs).sum().gradient(*inputs))

    return Job(step, operations)


def tinygrad_small_chain(*shape: int) -> Job:
    """W1 and W2, a tenth as long: tinygrad's compiler takes more than linear time."""
    length = CHAIN // 10

    def chain(x: Any, w: Any, b: Any) -> Any:
        for _ in range(length):
            x = (x * w + b).tanh()
        return x

    return tinygrad_chain(chain, *(uniform(*shape, seed=seed) for seed in range(3)), operations=3 * length)


def tinygrad_transcendental(x: Any, w: Any) -> Any:
    """The chain of W3."""
    first = (x * w).tanh()
    second = ((first + w) * 0.5).exp()
    return ((second + 1.0).log() * x - first).tanh()


def tinygrad_training(model: Any, optimizer: Any, loss: Callable[[], Any]) -> Job:
    """One training step."""
    from tinygrad.helpers import Context

    def step() -> None:
        with Context(TRAINING=1):
            optimizer.zero_grad()
            loss().backward()
            optimizer.step()

    return Job(step)


def tinygrad_perceptron(optimizer: str) -> Job:
    """W4."""
    from tinygrad import Tensor, nn

    model: list[Any] = [nn.Linear(784, 256), Tensor.relu, nn.Linear(256, 128), Tensor.relu, nn.Linear(128, 10)]
    images, labels = Tensor(normal(128, 784)).realize(), Tensor(choices(10, 128)).realize()
    parameters = [tensor for layer in model[::2] for tensor in (layer.weight, layer.bias)]
    update = getattr(nn.optim, optimizer)(parameters, lr=1e-3)
    return tinygrad_training(model, update, lambda: images.sequential(model).sparse_categorical_crossentropy(labels))


def tinygrad_convolutional() -> Job:
    """W6."""
    from tinygrad import Tensor, nn

    layers: list[Any] = [nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 16, 3, padding=1), nn.Linear(16 * 7 * 7, 10)]
    images, labels = Tensor(normal(64, 1, 28, 28)).realize(), Tensor(choices(10, 64)).realize()

    def loss() -> Any:
        x = layers[0](images).relu().max_pool2d(2)
        x = layers[1](x).relu().max_pool2d(2)
        return layers[2](x.flatten(1)).sparse_categorical_crossentropy(labels)

    parameters = [tensor for layer in layers for tensor in (layer.weight, layer.bias)]
    return tinygrad_training(layers, nn.optim.SGD(parameters, lr=1e-2), loss)


TINYGRAD: dict[str, Callable[[], Job]] = {
    "W1": tinygrad_small_chain,
    "W2": lambda: tinygrad_small_chain(32, 32),
    "W3": lambda: tinygrad_chain(tinygrad_transcendental, uniform(LARGE), uniform(LARGE, seed=1)),
    "W3b": lambda: tinygrad_chain(arithmetic_chain, uniform(LARGE), uniform(LARGE, seed=1)),
    "W4 SGD": lambda: tinygrad_perceptron("SGD"),
    "W4 Adam": lambda: tinygrad_perceptron("Adam"),
    "W6": tinygrad_convolutional,
}

# micrograd: scalars, and a backward pass that recurses


def micrograd_small_chain() -> Job:
    """W1; micrograd has relu but no tanh, and recurses, so the chain is a third as long."""
    from micrograd.engine import Value

    x, w, b = (Value(number) for number in (0.5, 0.9, 0.1))
    length = CHAIN // 3

    def step() -> None:
        y = x
        for _ in range(length):
            y = (y * w + b).relu()
        y.backward()

    return Job(step, 3 * length)


def micrograd_long_chain() -> Job:
    """W9: ends in a RecursionError, and the table says so."""
    from micrograd.engine import Value

    def step() -> None:
        y = Value(0.5)
        for _ in range(LONG_CHAIN // 2):
            y = y * 0.999 + 0.001
        y.backward()

    return Job(step, LONG_CHAIN)


MICROGRAD: dict[str, Callable[[], Job]] = {"W1": micrograd_small_chain, "W9": micrograd_long_chain}
