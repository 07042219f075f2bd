"""The training loops of lessons 11 to 16, and the models of the widgets, on arrays that are not NumPy's: on a GPU if
there is one, and on a stand-in.

The stand-in for a GPU (`strict_array`) raises an error if CuPy lacks something or if numbers would be copied to the
host implicitly. Each loop gives the same numbers as on the CPU, and waits for the device only in the cases of READS.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mini_autograd as torch
from mini_autograd import nn, optim
from mini_autograd.nn import functional as F  # noqa: N812
from mini_autograd.utils.checkpoint import checkpoint
from mini_autograd.utils.data import DataLoader, TensorDataset
from mini_autograd.widgets.demos import accumulation, activations, optimizer_paths
from mini_autograd.widgets.demos.monitor import Monitor
from tests.mini_autograd import strict_array

STEPS = 4
Numbers = list[Any]
"""Tensors: a loop returns its results without reading them."""


def wave(device: str) -> tuple[Any, Any]:
    """Points on a sine: two tensors of shape (24, 1), float64."""
    x = np.linspace(-2.0, 2.0, 24)[:, None]
    return torch.tensor(x, device=device), torch.tensor(np.sin(3 * x), device=device)


def digits(device: str) -> tuple[Any, Any]:
    """Pixels of shape (20, 64), float32, and labels."""
    draw = np.random.default_rng(0)
    pixels, labels = draw.uniform(size=(20, 64)).astype(np.float32), draw.integers(10, size=20)
    return torch.tensor(pixels, device=device), torch.tensor(labels, device=device)


def best_weights(device: str) -> Numbers:
    """Lesson 11: keep a copy of the state in every step, and go back to the first."""
    torch.manual_seed(0)
    x, y = wave(device)
    model = nn.Sequential(nn.Linear(1, 8), nn.ReLU(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 1)).double().to(device)
    optimizer = optim.Adam(model.parameters(), lr=0.03)
    losses, kept = [], []
    for _ in range(STEPS):
        kept.append({name: value.clone() for name, value in model.state_dict().items()})
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    model.load_state_dict(kept[0])
    with torch.no_grad():
        return [*losses, F.mse_loss(model(x), y)]


def batches_of_digits(device: str) -> Numbers:
    """Lesson 11: batches in random order, normalization, dropout, clipping, weight decay, and an evaluation."""
    torch.manual_seed(6)
    model = nn.Sequential(
        nn.Linear(64, 12, bias=False), nn.BatchNorm1d(12), nn.GELU(), nn.Dropout(0.2), nn.Linear(12, 10)
    ).to(device)
    optimizer = optim.Adam(model.parameters(), lr=0.01, weight_decay=1e-3)
    pixels, labels = digits(device)
    found = []
    for x, y in DataLoader(TensorDataset(pixels, labels), batch_size=5, shuffle=True):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        found += [loss.detach(), nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.1)]
        optimizer.step()
    model.eval()
    with torch.no_grad():
        scores = model(pixels)
        return [*found, F.cross_entropy(scores, labels), (scores.argmax(1) == labels).sum(), *model.buffers()]


def small_batches(device: str) -> Numbers:
    """Lesson 11: the gradient of a batch, gathered from parts of it."""
    torch.manual_seed(1)
    x, y = digits(device)
    model = nn.Linear(64, 10).to(device)
    optimizer = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(STEPS):
        optimizer.zero_grad()
        for part, labels in zip(x.split(8), y.split(8), strict=True):
            (F.cross_entropy(model(part), labels) * (len(part) / len(x))).backward()
        optimizer.step()
    return [*model.parameters()]


def clinic(device: str) -> Numbers:
    """Lesson 12: norms of gradients, a root that is not differentiable at zero, and anomaly mode."""
    torch.manual_seed(2)
    x, y = wave(device)
    model = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 2)).double().to(device)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    norms = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        squares = (model(x).relu() ** 2).sum(dim=1, keepdim=True)
        harmless = torch.where(squares > 0, squares, torch.ones_like(squares))
        lengths = torch.where(squares > 0, harmless.sqrt(), torch.zeros_like(squares))
        F.mse_loss(lengths, y).backward()
        norms += [p.grad.norm() for p in model.parameters()]
        optimizer.step()
    return norms


def segments(device: str) -> Numbers:
    """Lesson 13: segments that are computed again in the backward pass, with dropout, and saved arrays on the host."""
    torch.manual_seed(3)
    x, y = wave(device)
    layers = nn.ModuleList([nn.Linear(1, 6), nn.Linear(6, 6), nn.Linear(6, 1)]).double().to(device)
    optimizer = optim.SGD(layers.parameters(), lr=0.05)
    for _ in range(STEPS):
        optimizer.zero_grad()
        value = x
        for layer in layers:
            value = checkpoint(lambda t, layer=layer: F.dropout(layer(t).tanh(), 0.1), value, use_reentrant=False)
        F.mse_loss(value, y).backward()
        optimizer.step()
    with torch.autograd.graph.save_on_cpu():
        loss = F.mse_loss(layers[1](layers[0](x)).mean(dim=1, keepdim=True), y)
    layers.zero_grad()
    loss.backward()
    return [*layers.parameters(), layers[0].weight.grad]


def regression(device: str) -> Numbers:
    """Lesson 14: a regression whose weights are replaced in each step, and picks from arrays of the device."""
    draw = np.random.default_rng(3)
    inputs = draw.normal(size=(50, 4))
    x, y = (torch.tensor(array, device=device) for array in (inputs, inputs @ np.array([[1.0], [-2.0], [0.5], [3.0]])))
    w = torch.zeros(4, 1, dtype=torch.float64, device=device, requires_grad=True)
    for _ in range(STEPS):
        loss = ((x @ w - y) ** 2).mean()
        loss.backward()
        w = (w - 0.1 * w.grad).detach().requires_grad_()
    best = w.max(dim=0)
    return [w, loss, best.values, best.indices, w[best.indices[0]], w.log_softmax(0)]


def compiled(device: str) -> Numbers:
    """Lesson 14: a compiled chain in a loop."""
    x, y = wave(device)
    w = torch.full((1,), 0.3, dtype=torch.float64, device=device, requires_grad=True)
    chain = torch.compile(lambda x, w: ((x * w).tanh() * 2.0 - x.exp()) * w)
    for _ in range(STEPS):
        F.mse_loss(chain(x, w), y).backward()
        with torch.no_grad():
            w -= 0.01 * w.grad
        w.grad = None
    return [w]


def forward_mode(device: str) -> Numbers:
    """Lesson 15: tangents, Jacobians both ways, and products with the Hessian, in steps along the gradient."""
    draw = np.random.default_rng(4)
    matrix, w = (torch.tensor(draw.normal(size=size), device=device) for size in ((5, 3), (3,)))

    def outputs(w: Any) -> Any:
        return (matrix @ w).tanh()

    def loss(w: Any) -> Any:
        return (outputs(w) ** 2).sum() + (w**4).sum()

    found = []
    for _ in range(STEPS):
        slope, curvature = torch.func.jvp(torch.func.grad(loss), (w,), (torch.ones_like(w),))
        found += [slope, curvature, torch.func.jacfwd(outputs)(w), torch.func.jacrev(outputs)(w)]
        w = w - 0.1 * slope
    return [*found, torch.func.hessian(loss)(w)]


class Block(nn.Module):
    """A block of the Transformer of lesson 16."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(approximate="tanh"), nn.Linear(2 * width, width))

    def forward(self, x: Any) -> Any:
        rows, length, width = x.shape
        parts = self.qkv(self.norms[0](x)).view(rows, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        query, key, value = parts.unbind(0)
        scores = query @ key.transpose(-1, -2) / (width // self.heads) ** 0.5
        seen = torch.ones(length, length, dtype=torch.bool, device=x.device).tril()
        mixed = scores.masked_fill(~seen, -torch.inf).softmax(-1) @ value
        x = x + self.out(mixed.transpose(1, 2).reshape(rows, length, width))
        return x + self.mlp(self.norms[1](x))


class Letters(nn.Module):
    """A small Transformer on letters, as in lesson 16."""

    def __init__(self, vocabulary: int, context: int, width: int) -> None:
        super().__init__()
        self.token, self.place = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.Sequential(Block(width, 2), Block(width, 2))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary)

    def forward(self, ids: Any) -> Any:
        return self.head(self.norm(self.blocks(self.token(ids) + self.place.weight[: ids.shape[1]])))


def letters(device: str) -> Numbers:
    """Lesson 16: the next letter with a Transformer and Adam, then a text of the likeliest letters."""
    torch.manual_seed(5)
    model = Letters(vocabulary=7, context=6, width=8).double().to(device)
    optimizer = optim.Adam(model.parameters(), lr=0.01)
    text = torch.tensor(np.random.default_rng(5).integers(7, size=(3, 7)), device=device)
    losses = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    ids = text[:1, :2]
    with torch.no_grad():
        for _ in range(4):
            ids = torch.cat([ids, model(ids)[:, -1].argmax(-1, keepdim=True)], dim=1)
    return [*losses, ids]


def network_of_accumulation(device: str) -> Numbers:
    """The network of the demo `accumulation`, trained with gradients that are never cleared."""
    task = accumulation.network()
    weights: Any = [torch.tensor(array, device=device, requires_grad=True) for array in task.weights]
    x, y = torch.tensor(task.inputs, device=device), torch.tensor(task.targets, device=device)
    method = accumulation.optimizer_for("SGD, momentum 0.9", weights, 0.05)
    for _ in range(STEPS):
        ((task.model(x, weights) - y) ** 2).mean().backward()
        method.step()
    return weights


def network_of_activations(device: str) -> Numbers:
    """The network of the demo `activations`, with each activation function."""
    x = torch.tensor(activations.INPUTS.reshape(-1, 1), device=device)
    found = []
    for function in activations.functions().values():
        weights: Any = [torch.tensor(a, device=device, requires_grad=True) for a in activations.start_weights(0.0)]
        before, after, result = activations.forward(x, weights, function)
        for tensor in (*before, *after):
            tensor.retain_grad()
        result.sum().backward()
        found += [tensor.grad for tensor in (*weights, *before, *after)]
    return found


def landscapes(device: str) -> Numbers:
    """The landscapes of the demo `optimizer_paths`."""
    found = []
    for ground in optimizer_paths.LANDSCAPES.values():
        place: Any = [torch.tensor(value, device=device, requires_grad=True) for value in ground.start]
        method = optim.Adam(place, lr=0.05)
        for _ in range(STEPS):
            method.zero_grad()
            ground.loss(*place).backward()
            method.step()
        found += place
    return found


LOOPS = {
    loop.__name__: loop
    for loop in (
        best_weights, batches_of_digits, small_batches, clinic, segments, regression, compiled, forward_mode, letters,
        network_of_accumulation, network_of_activations, landscapes,
    )
}  # fmt: skip
"""Each runs on a device and returns tensors that show how it went."""


def read(found: Numbers) -> list[np.ndarray]:
    return [tensor.detach().cpu().numpy() for tensor in found]


@pytest.fixture
def syncs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the methods that have made the host wait for the stand-in so far."""
    found: list[str] = []

    def counting(name: str) -> Callable[..., Any]:
        usual = getattr(strict_array.StrictArray, name)

        def ask(self: Any, *args: Any) -> Any:
            found.append(name)
            return usual(self, *args)

        return ask

    for name in ("get", "item", "tolist", "nonzero"):
        monkeypatch.setattr(strict_array.StrictArray, name, counting(name))
    return found


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_runs_on_the_device_with_the_same_numbers(name: str, gpu: None) -> None:
    found = LOOPS[name]("cuda")
    assert all(tensor.is_cuda for tensor in found)
    for got, wanted in zip(read(found), read(LOOPS[name]("cpu")), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-6)


READS = {
    "batches_of_digits": STEPS + 1,
    "small_batches": STEPS * 3,
    "regression": 1,
    "letters": STEPS + (STEPS + 4),
}
"""How often a loop waits for the device, if it does: `cross_entropy` counts the class numbers that are in range, an
embedding checks whether its indices are, and `regression` picks a row by a number on the device."""


@pytest.mark.parametrize("name", LOOPS)
def test_a_loop_waits_only_where_indices_are_checked(name: str, stand_in: None, syncs: list[str]) -> None:
    LOOPS[name]("cuda")
    assert syncs == ["item"] * READS.get(name, 0)


def test_a_monitor_measures_what_is_on_the_device(gpu: None) -> None:
    model = nn.Linear(2, 1, bias=False).to("cuda")
    watched = Monitor([1.0, 2.0], model=model, display=Nowhere())
    for number in watched:
        loss = (model.weight * number).sum()
        loss.backward()
        watched.log(loss=loss)
    assert set(watched.norms) == {"weight"}
    assert len(watched.history["loss"].steps) == 2


class Nowhere:
    """A monitor's display that draws nothing."""

    def show(self, monitor: Monitor, last: bool) -> None:
        pass
