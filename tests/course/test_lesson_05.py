"""Plants classic mistakes in the solutions of lesson 05: each costs points only on the cells that it concerns.

Mistakes in parts that all later cells need (recording, the loop of backward) cost points there too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from tests.course.planting import LessonTests, solved, styles

LESSON = "05_leaves_and_accumulation"

STYLES = ["", *styles(LESSON)]


class TestLesson(LessonTests):
    lesson = LESSON
    test_cells = 7
    visible = True
    examples = 25


EXPRESSIONS = {
    "arithmetic": (lambda a, b: 2 / (a * b + 3) - (1 - a) / b, [(2, 3), (3,)]),
    "powers and functions": (lambda a, b: (a**3).exp() - (b**2 + 1).log() ** 0.5, [(2, 1), (1, 3)]),
    "reductions": (lambda a: a.sum(0) * a.mean(1, keepdim=True) + a.max(), [(3, 3)]),
    "matrix and vector": (lambda a, b: a @ b, [(4, 3), (3,)]),
    "vector and batch": (lambda a, b: a @ b, [(3,), (2, 3, 4)]),
    "two vectors": (lambda a, b: a @ b, [(3,), (3,)]),
    "batches, one of them stretched": (lambda a, b: a @ b, [(2, 1, 3, 4), (5, 4, 2)]),
    "shapes": (lambda a: a.T.reshape(2, 3).transpose(0, 1)[:, 1:].relu(), [(3, 2)]),
    "picked twice": (lambda a: a[[0, 0, 2]] * a[1], [(3, 4)]),
    "softmax": (lambda a: a.softmax(1) * a.log_softmax(0), [(3, 4)]),
}


@pytest.mark.parametrize("style", STYLES, ids=lambda style: style or "solution")
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_the_engine_agrees_with_pytorch(name: str, style: str) -> None:
    expression, shapes = EXPRESSIONS[name]
    tensor: Any = solved(LESSON, style)["MiniTensor"]
    rng = np.random.default_rng(0)
    arrays = [rng.uniform(0.2, 1.0, shape) for shape in shapes]
    ours = [tensor(array, requires_grad=True) for array in arrays]
    theirs = [torch.tensor(array, requires_grad=True) for array in arrays]
    output, right = expression(*ours), expression(*theirs)
    cotangent = rng.normal(size=output.shape)
    output.backward(cotangent)
    right.backward(torch.tensor(cotangent))
    np.testing.assert_allclose(output.data, right.detach(), rtol=1e-12, atol=1e-14)
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine.grad.data, other.grad, rtol=1e-10, atol=1e-12)


def test_the_printer_runs_on_the_graph_of_pytorch() -> None:
    x, y = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
    for style in STYLES:
        lines = solved(LESSON, style)["graph_lines"](((x * y + x) ** 2).grad_fn)
        assert [line.split()[0] for line in lines] == [
            "PowBackward0",
            "AddBackward0",
            "MulBackward0",
            "AccumulateGrad",
            "AccumulateGrad",
            "AccumulateGrad",
        ]
        assert lines[-1] == "        AccumulateGrad (again)"
