"""Plants classic mistakes in the solutions of lesson 09: each costs points where it was made, and on no other cell.

Random programs that write through views, in every style of the solutions, must agree with PyTorch or be refused.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from tests.course.planting import LessonTests, solved, styles

LESSON = "09_in_place_and_views"
PROGRAMS = 30


class TestLesson(LessonTests):
    lesson = LESSON
    test_cells = 5
    examples = 25
    visible = True


@pytest.fixture(scope="module", params=["", *styles(LESSON)], ids=lambda style: style or "solution")
def engine(request: pytest.FixtureRequest) -> dict[str, Any]:
    return solved(LESSON, request.param)


def random_program(seed: int) -> Callable[[Any, Any], Any]:
    """A program that makes views and writes to tensors, views and bases in an order drawn from the seed."""

    def program(a: Any, b: Any) -> Any:
        draw = np.random.default_rng(seed)
        tensors = [a * 1.0, b * 2.0]
        for _ in range(draw.integers(2, 9)):
            t, other = (tensors[draw.integers(len(tensors))] for _ in range(2))
            number = other.reshape(-1)[:2].sum()
            actions = [
                lambda t=t: tensors.append(t.transpose(0, 1) if len(t.shape) == 2 else t.reshape(-1)),
                lambda t=t: tensors.append(t[0] if t.shape else t.reshape(-1)),
                lambda t=t: tensors.append(t.reshape(-1)[::2]),
                lambda t=t: tensors.append(t.exp()),
                lambda t=t: tensors.append(t * t),
                lambda t=t: t.mul_(0.5),
                lambda t=t, number=number: t.mul_(number),
                lambda t=t, other=other: t.sub_(other.sum()),
                lambda t=t, number=number: t.copy_(number),
                lambda t=t: t.zero_(),
                lambda t=t, number=number: t.__setitem__(-1, number) if t.shape else t.add_(number),
                lambda t=t, number=number: t.__setitem__([0], number) if t.shape else t.add_(1.0),
            ]
            actions[draw.integers(len(actions))]()
        return sum((t * t).sum() + t.tanh().sum() for t in tensors)

    return program


def gradients(program: Callable[[Any, Any], Any], make: Callable[[Any], Any], arrays: Any) -> Any:
    """The gradients of a program, or the beginning of its error."""
    inputs = [make(array) for array in arrays]
    try:
        program(*inputs).backward()
    except RuntimeError as error:
        return str(error)[:60]
    return [np.zeros(x.shape) if x.grad is None else np.array(x.grad.data.tolist()) for x in inputs]


def test_programs_that_write_through_views_agree_with_pytorch(engine: dict[str, Any]) -> None:
    draw, right, refused = np.random.default_rng(1), 0, 0
    for seed in range(PROGRAMS):
        arrays = 0.3 * draw.normal(size=(2, 3, 3))
        mine = gradients(random_program(seed), lambda v: engine["MiniTensor"](v.copy(), requires_grad=True), arrays)
        theirs = gradients(random_program(seed), lambda v: torch.tensor(v, requires_grad=True), arrays)
        if isinstance(mine, str) or isinstance(theirs, str):
            assert mine == theirs
            refused += 1
        else:
            np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-9)
            right += 1
    assert right > 0
    assert refused > 0


def test_a_view_made_with_recording_off_never_gives_a_wrong_gradient(engine: dict[str, Any]) -> None:
    tensor: Any = engine["MiniTensor"]([1.0, 2.0, 3.0], requires_grad=True)
    y = tensor * 2
    with engine["no_grad"]():
        quiet = y[:2]
    with pytest.raises(RuntimeError, match="created in no_grad mode and is being modified"):
        quiet.mul_(3.0)
    assert y.data.tolist() == [2.0, 4.0, 6.0]
    y.mul_(2.0)
    assert quiet.data.tolist() == [4.0, 8.0]
    with pytest.raises(RuntimeError, match="its base or another view of its base has been modified"):
        quiet.sum().backward()
    y.sum().backward()
    assert tensor.grad.data.tolist() == [4.0, 4.0, 4.0]


def test_an_operation_that_returns_its_input_gets_memory_of_its_own(engine: dict[str, Any]) -> None:
    class Same(engine["Function"]):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            return a[::-1]

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad[::-1]

    x = engine["MiniTensor"]([1.0, 2.0], requires_grad=True)
    y = Same.apply(x * 1.0)
    y.mul_(y.detach() * 0 + 5.0)
    y.backward(np.array([1.0, 10.0]))
    assert x.grad.data.tolist() == [50.0, 5.0]
    assert x.data.tolist() == [1.0, 2.0]


def test_a_marked_tensor_is_written_to_in_inference_mode_only(engine: dict[str, Any]) -> None:
    with engine["inference_mode"]():
        marked = engine["MiniTensor"]([1.0, 2.0])
        marked.add_(1.0)
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
        marked.add_(1.0)
    assert marked.data.tolist() == [2.0, 3.0]
    with pytest.raises(RuntimeError, match="do not track version"):
        _ = marked._version


def test_views_that_nobody_holds_are_not_kept_alive(engine: dict[str, Any]) -> None:
    x = engine["MiniTensor"](np.zeros((3, 3)))
    for row in range(3):
        x[row].add_(1.0)
    assert len(x._views) <= 1  # the last one may still have a name
    assert x.data.tolist() == [[1.0] * 3] * 3
