"""Plants classic mistakes in the solutions of lesson 04, and compares its engine, in every style, with PyTorch.

The lesson's own test cells do the checking, in a plain namespace, without a notebook or a sandbox. The small set of
digits must be what its script makes.
"""

from __future__ import annotations

import runpy
from typing import Any

import numpy as np
import pytest
import torch

from tests.course.planting import LESSONS, LessonTests, solved, styles

LESSON = "04_arrays"
DATA = LESSONS.parent / "data"


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # some of the mistakes overflow
class TestLesson(LessonTests):
    lesson = LESSON
    test_cells = 10
    visible = True
    examples = 15


# name, expression, shapes
EXPRESSIONS = [
    ("stretched", lambda a, b: (a * b - a / b) ** 2, [(3, 1), (4,)]),
    ("reversed", lambda a: 1 - (2 / a - 3 * a), [(2, 3)]),
    ("elementwise", lambda a: (a.log().tanh() + a.exp()).relu(), [(2, 3)]),
    ("reductions", lambda a: a.sum(0) * a.mean(1, keepdim=True) + a.max(), [(3, 3)]),
    ("rearranged", lambda a: a.reshape(2, 6).T[[0, 5, 5]].transpose(0, 1), [(3, 4)]),
    ("stacks", lambda a, b: (a @ b).tanh() @ b.T, [(2, 3, 4), (4, 5)]),
    ("vectors", lambda a, b: (a @ b) * a, [(3,), (3, 3)]),
    ("probabilities", lambda a: a.softmax(1) * a.log_softmax(0), [(3, 4)]),
]


@pytest.mark.parametrize("style", ["", *styles(LESSON)], ids=lambda style: style or "solution")
@pytest.mark.parametrize(("expression", "shapes"), [e[1:] for e in EXPRESSIONS], ids=[e[0] for e in EXPRESSIONS])
def test_engine_beside_pytorch(style: str, expression: Any, shapes: list[tuple[int, ...]]) -> None:
    engine = solved(LESSON, style)["MiniTensor"]
    generator = np.random.default_rng(1)
    arrays = [generator.uniform(0.5, 2.0, shape) for shape in shapes]
    ours: list[Any] = [engine(array) for array in arrays]
    theirs: list[Any] = [torch.tensor(array, requires_grad=True) for array in arrays]
    output, right = expression(*ours), expression(*theirs)
    np.testing.assert_allclose(output.data, right.detach().numpy(), rtol=1e-12, atol=1e-14)
    for cotangent in generator.normal(size=(2, *right.shape)):
        expression(*ours).backward(cotangent)
        expression(*theirs).backward(torch.tensor(cotangent))
    for tensor, other in zip(ours, theirs, strict=True):
        assert tensor.grad.shape == tensor.shape
        np.testing.assert_allclose(tensor.grad, other.grad.numpy(), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("style", ["", *styles(LESSON)], ids=lambda style: style or "solution")
def test_classifier_has_the_curve_of_pytorch(style: str) -> None:
    names = solved(LESSON, style)
    with np.load(DATA / "digits.npz") as file:
        pixels, labels = file["images"][:100].reshape(100, 64) / 16, file["labels"][:100].astype(int)
    weights, bias = names["MiniTensor"](np.zeros((64, 10))), names["MiniTensor"](np.zeros(10))
    their_weights, their_bias = (torch.zeros(s, dtype=torch.float64, requires_grad=True) for s in ((64, 10), (10,)))
    optimizer = torch.optim.SGD([their_weights, their_bias], lr=0.5)
    for _ in range(20):
        loss = names["cross_entropy"](pixels @ weights + bias, labels)
        weights.grad = bias.grad = None
        loss.backward()
        weights.data, bias.data = weights.data - 0.5 * weights.grad, bias.data - 0.5 * bias.grad
        their_loss = torch.nn.functional.cross_entropy(
            torch.tensor(pixels) @ their_weights + their_bias, torch.tensor(labels)
        )
        optimizer.zero_grad()
        their_loss.backward()
        optimizer.step()
        assert loss.item() == pytest.approx(their_loss.item(), abs=1e-12)
    assert loss.item() < 1.5


def test_digits_are_what_their_script_makes() -> None:
    images, labels = runpy.run_path(str(DATA / "make_digits.py"))["digits"]()
    with np.load(DATA / "digits.npz") as file:
        assert np.array_equal(file["images"], images)
        assert np.array_equal(file["labels"], labels)
    assert images.shape == (800, 8, 8)
    assert np.array_equal(np.bincount(labels), [80] * 10)
