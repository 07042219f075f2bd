"""The workloads, written once against PyTorch's public API: the same code runs under `torch` and `mini_autograd`.

Imports NumPy only. The one idea to know: a workload is a function of the module; it builds what it needs and returns a
`Job`, whose `step` does one forward and backward pass (and the optimizer's step, if there is one).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

CHAIN, LONG_CHAIN, LARGE = 333, 100_000, 1_000_000
BATCH, VOCABULARY, WIDTH, HEADS, LAYERS, TIME = 16, 64, 128, 4, 4, 64


@dataclass(frozen=True)
class Job:
    """Something to repeat; `operations` is the number of operations that one step records, and `model` what it trains,
    if that is of interest.
    """

    step: Callable[[], Any]
    operations: int = 1
    model: Any = None


def uniform(*shape: int, seed: int = 0) -> np.ndarray:
    """The same numbers for every library: float32, between 0.1 and 0.9."""
    return np.random.default_rng(seed).uniform(0.1, 0.9, shape).astype(np.float32)


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    """The same numbers for every library: float32, standard normal."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def choices(high: int, *shape: int, seed: int = 0) -> np.ndarray:
    """The same integers for every library: int64, below `high`."""
    return np.random.default_rng(seed).integers(0, high, shape)


def small_chain(torch: Any, *shape: int) -> Job:
    """333 times multiply, add, tanh on something small: what an operation costs besides its arithmetic."""
    x, w, b = (torch.tensor(uniform(*shape, seed=seed), requires_grad=True) for seed in range(3))
    ones = torch.ones(shape)

    def step() -> None:
        x.grad = w.grad = b.grad = None
        y = x
        for _ in range(CHAIN):
            y = (y * w + b).tanh()
        y.backward(ones)

    return Job(step, 3 * CHAIN)


def transcendental_chain(x: Any, w: Any) -> Any:
    """Ten elementwise operations, four of them tanh, exp or log."""
    first = (x * w).tanh()
    second = ((first + w) * 0.5).exp()
    return ((second + 1.0).log() * x - first).tanh()


def arithmetic_chain(x: Any, w: Any) -> Any:
    """Ten multiplications and subtractions: nothing but memory traffic."""
    y = x
    for _ in range(5):
        y = y * w - x
    return y


def large_chain(torch: Any, chain: Callable[[Any, Any], Any], compiled: bool = False) -> Job:
    """A chain on a million elements, forward and backward, eager or compiled."""
    x, w = (torch.tensor(uniform(LARGE, seed=seed), requires_grad=True) for seed in range(2))
    cotangent = torch.tensor(normal(LARGE, seed=2))
    run = torch.compile(chain) if compiled else chain

    def step() -> None:
        x.grad = w.grad = None
        run(x, w).backward(cotangent)

    return Job(step)


def train(model: Any, optimizer: Any, loss: Callable[[], Any]) -> Job:
    """One training step."""

    def step() -> None:
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()

    return Job(step, model=model)


def perceptron(torch: Any, optimizer: str) -> Job:
    """784-256-128-10 with ReLU and cross entropy, batch 128."""
    nn = torch.nn
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 10))
    images, labels = torch.tensor(normal(128, 784)), torch.tensor(choices(10, 128))
    update = getattr(torch.optim, optimizer)(model.parameters(), lr=1e-3)
    return train(model, update, lambda: nn.functional.cross_entropy(model(images), labels))


def transformer(torch: Any, gelu: str = "none") -> Job:
    """A character Transformer: 4 layers, width 128, 4 heads, 64 characters, batch 16, GELU, LayerNorm, Adam. `gelu`:
    how GELU is approximated.
    """
    nn, functional = torch.nn, torch.nn.functional

    class Block(nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
            self.attend, self.project = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.widen, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x: Any) -> Any:
            batch, time, width = x.shape
            parts = self.attend(self.norm1(x)).reshape(batch, time, 3, HEADS, width // HEADS)
            query, key, value = (parts[:, :, part].transpose(1, 2) for part in range(3))
            mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
            x = x + self.project(mixed.transpose(1, 2).reshape(batch, time, width))
            return x + self.narrow(functional.gelu(self.widen(self.norm2(x)), approximate=gelu))

    class Model(nn.Module):  # type: ignore[name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.character, self.position = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(TIME, WIDTH)
            self.blocks = nn.Sequential(*[Block() for _ in range(LAYERS)])
            self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY)

        def forward(self, text: Any) -> Any:
            x = self.character(text) + self.position(torch.arange(TIME))
            return self.head(self.norm(self.blocks(x)))

    model = Model()
    update = torch.optim.Adam(model.parameters(), lr=1e-3)
    text, following = (torch.tensor(choices(VOCABULARY, BATCH, TIME, seed=seed)) for seed in range(2))
    return train(
        model, update, lambda: functional.cross_entropy(model(text).reshape(-1, VOCABULARY), following.reshape(-1))
    )


def convolutional(torch: Any) -> Job:
    """On 28x28 images: two 3x3 convolutions to 8 and 16 channels, each with ReLU and 2x2 max pooling; batch 64."""
    nn = torch.nn
    model = nn.Sequential(
        *(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(16 * 7 * 7, 10)),
    )
    images, labels = torch.tensor(normal(64, 1, 28, 28)), torch.tensor(choices(10, 64))
    update = torch.optim.SGD(model.parameters(), lr=1e-2)
    return train(model, update, lambda: nn.functional.cross_entropy(model(images), labels))


def gradient_check_of_a_layer(torch: Any) -> Job:
    """`gradcheck` without options, of a linear layer: 136 numbers in float64, 64 results."""
    arrays = (uniform(8, 8), uniform(8, 8, seed=1), uniform(8, seed=2))
    inputs = tuple(torch.tensor(array.astype(np.float64), requires_grad=True) for array in arrays)
    return Job(lambda: torch.autograd.gradcheck(torch.nn.functional.linear, inputs))


def gradient_check(torch: Any, batched: bool = False) -> Job:
    """`gradcheck` of a function of 100 parameters in float64, with one result."""
    x = torch.tensor(uniform(5, 10).astype(np.float64))
    w = torch.tensor(uniform(10, 10, seed=1).astype(np.float64), requires_grad=True)

    def loss(w: Any) -> Any:
        return (x @ w).tanh().sum(dim=(-2, -1))

    options = {"batched": True} if batched else {}
    return Job(lambda: torch.autograd.gradcheck(loss, (w,), **options))


def long_chain(torch: Any, operations: int = LONG_CHAIN) -> Job:
    """Multiplications and additions on a scalar, one after the other: depth."""
    x = torch.tensor(0.5, requires_grad=True)

    def step() -> None:
        x.grad = None
        y = x
        for _ in range(operations // 2):
            y = y * 0.999 + 0.001
        y.backward()

    return Job(step, operations)


def operation(function: Callable[..., Any], *inputs: Any) -> Job:
    """One operation and its backward pass. Tensors of floats need gradients."""
    leaves = [x for x in inputs if x.requires_grad]
    with_gradient = function(*inputs)
    ones = with_gradient.detach() * 0 + 1

    def step() -> None:
        for leaf in leaves:
            leaf.grad = None
        function(*inputs).backward(ones)

    return Job(step)


def lstm_step(torch: Any) -> Job:
    """One step of an LSTM, from 64 to 128 units, batch 32."""
    model = torch.nn.LSTM(64, 128)
    x, h, c = (torch.tensor(normal(1, 32, size), requires_grad=True) for size in (64, 128, 128))
    return operation(lambda x, h, c: model(x, (h, c))[0], x, h, c)


def layer(module: Any, inputs: Any) -> Job:
    """A layer, and the gradients of its parameters."""
    return operation(lambda *_: module(inputs), *module.parameters())


def operations(torch: Any) -> dict[str, Callable[[], Job]]:
    """Single operations that programs call without thinking, under their names in the table."""
    functional = torch.nn.functional

    def matrix() -> Any:
        return torch.tensor(normal(256, 512), requires_grad=True)

    return {
        "op sum": lambda: operation(lambda x: x.sum(), torch.tensor([1.0, 2.0, 3.0], requires_grad=True)),
        "op gelu": lambda: operation(functional.gelu, matrix()),
        "op silu": lambda: operation(functional.silu, matrix()),
        "op softmax": lambda: operation(lambda x: x.softmax(-1), matrix()),
        "op cumsum": lambda: operation(lambda x: x.cumsum(-1), matrix()),
        "op embedding": lambda: layer(torch.nn.Embedding(10_000, 64), torch.tensor(choices(10_000, 64, 128))),
        "op lstm": lambda: lstm_step(torch),
        "op conv": lambda: layer(torch.nn.Conv2d(16, 16, 3, padding=1), torch.tensor(normal(16, 16, 28, 28))),
    }


OPERATIONS = ("op sum", "op gelu", "op silu", "op softmax", "op cumsum", "op embedding", "op lstm", "op conv")

JOBS: dict[str, Callable[[Any], Job]] = {
    "W1": lambda torch: small_chain(torch),
    "W2": lambda torch: small_chain(torch, 32, 32),
    "W3": lambda torch: large_chain(torch, transcendental_chain),
    "W3b": lambda torch: large_chain(torch, arithmetic_chain),
    "W4 SGD": lambda torch: perceptron(torch, "SGD"),
    "W4 Adam": lambda torch: perceptron(torch, "Adam"),
    "W5": transformer,
    "W5 tanh": lambda torch: transformer(torch, gelu="tanh"),
    "W6": convolutional,
    "W8": gradient_check_of_a_layer,
    "W8 one": gradient_check,
    "W9": long_chain,
    "W9 1e6": lambda torch: long_chain(torch, 1_000_000),
    **{name: lambda torch, name=name: operations(torch)[name]() for name in OPERATIONS},  # type: ignore[misc]
}
"""Each workload under its name in the table."""

COMPILED: dict[str, Callable[[Any], Job]] = {
    "W3": lambda torch: large_chain(torch, transcendental_chain, compiled=True),
    "W3b": lambda torch: large_chain(torch, arithmetic_chain, compiled=True),
    "W8 one": lambda torch: gradient_check(torch, batched=True),
}
"""Workloads for which mini_autograd has a faster way: fused chains, and a gradcheck of all inputs in one batch."""
