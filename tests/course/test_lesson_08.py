"""Plants classic mistakes in the solutions of lesson 08: each costs points where it was made, and on no other cell.

The engine is finished here, so the whole of it is tried as well, in every style: it trains two networks like PyTorch.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.course.planting import LessonTests, solved, styles

LESSON = "08_custom_functions"
DIGITS = Path(__file__).parents[2] / "course" / "data" / "digits.npz"


class TestLesson(LessonTests):
    lesson = LESSON
    test_cells = 6
    visible = True
    examples = 20


@pytest.fixture(params=["", *styles(LESSON)], ids=lambda style: style or "solution")
def engine(request: pytest.FixtureRequest) -> dict[str, Any]:
    return solved(LESSON, request.param)


def trained_by_torch(points: Any, labels: Any, arrays: Any, lr: float, momentum: float, steps: int) -> Any:
    parameters = [torch.tensor(array, requires_grad=True) for array in arrays]
    optimizer = torch.optim.SGD(parameters, lr=lr, momentum=momentum)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        h = torch.tensor(points)
        for w, b in zip(parameters[:-2:2], parameters[1:-2:2], strict=True):
            h = torch.tanh(h @ w + b)
        loss = torch.nn.functional.cross_entropy(h @ parameters[-2] + parameters[-1], torch.tensor(labels))
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_the_engine_learns_two_moons_like_pytorch(engine: dict[str, Any]) -> None:
    points, labels = engine["two_moons"](100, seed=3)
    arrays = engine["starting_weights"]((2, 16, 2), seed=4)
    settings: Any = {"lr": 0.2, "momentum": 0.9, "steps": 200}
    parameters, losses = engine["train"](points, labels, arrays, **settings)
    np.testing.assert_allclose(losses, trained_by_torch(points, labels, arrays, **settings), rtol=1e-9)
    answers = engine["logits"](engine["MiniTensor"](points), parameters).data.argmax(axis=1)
    assert (answers == labels).mean() > 0.95


def test_the_engine_learns_digits_like_pytorch(engine: dict[str, Any]) -> None:
    with np.load(DIGITS) as file:
        pixels, labels = file["images"].reshape(-1, 64) / 16.0, file["labels"].astype(int)
    arrays = [0.01 * np.random.default_rng(5).normal(size=(64, 10)), np.zeros(10)]
    settings: Any = {"lr": 0.5, "momentum": 0.9, "steps": 100}
    parameters, losses = engine["train"](pixels[:600], labels[:600], arrays, **settings)
    np.testing.assert_allclose(losses, trained_by_torch(pixels[:600], labels[:600], arrays, **settings), rtol=1e-9)
    answers = engine["logits"](engine["MiniTensor"](pixels[600:]), parameters).data.argmax(axis=1)
    assert (answers == labels[600:]).mean() > 0.9


def test_gradcheck_agrees_with_pytorch_about_every_operation(engine: dict[str, Any]) -> None:
    generator = np.random.default_rng(6)
    for expression in (
        lambda a, b: (a @ b).tanh() / 3,
        lambda a, b: (a * 2 - b.T).abs(),
        lambda a, b: a.logsumexp(dim=1) * b.exp().sum(dim=0),
        lambda a, b: (a[1] * b[:, 0]).log_softmax(0).mean(),
    ):
        arrays = generator.normal(size=(3, 2)), generator.normal(size=(2, 3))
        inputs = [engine["MiniTensor"](array, requires_grad=True) for array in arrays]
        assert engine["gradcheck"](expression, tuple(inputs))
        assert torch.autograd.gradcheck(expression, [torch.tensor(array, requires_grad=True) for array in arrays])
