"""Plants classic mistakes in the solutions of lesson 06: each costs points only on the cells that it concerns."""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import pytest
import torch

from tests.course.planting import LessonTests, solved, styles

LESSON = "06_lifetime"

STYLES = ["", *styles(LESSON)]


class TestLesson(LessonTests):
    lesson = LESSON
    test_cells = 6
    visible = True
    examples = 36


@pytest.fixture(params=STYLES, ids=lambda style: style or "solution")
def lesson(request: pytest.FixtureRequest) -> dict[str, Any]:
    return solved(LESSON, request.param)


def test_a_second_backward_says_what_pytorch_says(lesson: dict[str, Any]) -> None:
    texts = []
    for x in (lesson["MiniTensor"](2.0, requires_grad=True), torch.tensor(2.0, requires_grad=True)):
        y = x**3
        y.backward()
        with pytest.raises(RuntimeError) as caught:
            y.backward()
        texts.append(str(caught.value))
    assert texts[0] == texts[1]


def test_values_go_with_backward_and_nodes_with_the_loss(lesson: dict[str, Any]) -> None:
    x = lesson["MiniTensor"](np.ones(100), requires_grad=True)
    h = x.exp()
    saved, node = weakref.ref(h.data), weakref.ref(h.grad_fn)
    loss = (h * 2.0).sum()
    del h
    assert saved() is not None
    loss.backward()
    assert saved() is None
    assert node() is not None
    del loss
    assert node() is None
