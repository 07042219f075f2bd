"""Plants classic mistakes in the solutions of lesson 13: each costs points where it was made.

A wrong checkpoint may cost points on the cells that use it as well. Checkpoints in every style are tried on
networks with dropout and shared weights, also nested, and compared with PyTorch's.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.checkpoint import checkpoint as torch_checkpoint

from tests.course.planting import LessonTests, cells_that_define, solved, styles

LESSON = "13_memory"


class TestLesson(LessonTests):
    lesson = LESSON
    test_cells = 6
    visible = True
    examples = 15


@pytest.fixture(params=["", *styles(LESSON)], ids=lambda style: style or "solution")
def engine(request: pytest.FixtureRequest) -> dict[str, Any]:
    return solved(LESSON, request.param)


def test_blocks_with_dropout_and_a_shared_weight_train_like_pytorch(engine: dict[str, Any]) -> None:
    """One generator draws the masks for both, so that only the gradients are compared."""
    MiniTensor, draw = engine["MiniTensor"], np.random.default_rng(0)
    arrays = [draw.normal(size=(5, 5)) / 2 for _ in range(3)]
    rows, cotangent = draw.normal(size=(4, 5)), draw.normal(size=(4, 5))
    mine = [MiniTensor(array, requires_grad=True) for array in arrays]
    theirs = [torch.tensor(array, requires_grad=True) for array in arrays]
    masks = [(np.random.default_rng(number).random((4, 5)) > 0.3) / 0.7 for number in range(3)]
    x = MiniTensor(rows)
    for number, w in enumerate(mine):
        generator = np.random.default_rng(number)

        def block(x: Any, w: Any = w, generator: Any = generator) -> Any:
            return (x @ w @ mine[0]).tanh() * ((generator.random(x.shape) > 0.3) / 0.7) + x

        x = engine["checkpoint"](engine["repeatable"](block, [generator]), x)
    x.backward(cotangent)
    y = torch.tensor(rows)
    for w, mask in zip(theirs, masks, strict=True):
        y = torch_checkpoint(
            lambda y, w=w, mask=mask: (y @ w @ theirs[0]).tanh() * torch.tensor(mask) + y, y, use_reentrant=False
        )
    y.backward(torch.tensor(cotangent))
    np.testing.assert_allclose(x.data, y.detach().numpy(), rtol=1e-12, atol=1e-14)
    for w, w_torch in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(w.grad.data, w_torch.grad.numpy(), rtol=1e-10, atol=1e-12)


def test_memory_of_a_segment_is_given_back_while_backward_goes_on(engine: dict[str, Any]) -> None:
    """When the rules of the first segment run, nothing of the second segment is alive any more."""
    MiniTensor, Function, seen, alive = engine["MiniTensor"], engine["Function"], [], []

    class Exponential(Function):  # type: ignore[misc, valid-type]
        @staticmethod
        def forward(ctx: Any, a: Any, place: int) -> Any:
            output = np.exp(a)
            ctx.save_for_backward(output)
            ctx.place = place
            seen.append((place, weakref.ref(output)))
            return output

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (output,) = ctx.saved_tensors
            if ctx.place < 2:
                alive.append([place for place, array in seen if place >= 2 and array() is not None])
            return grad * output

    layers = [lambda x, place=place: Exponential.apply(x, place=place) * 0.1 for place in range(4)]
    x = MiniTensor(np.ones(3), requires_grad=True)
    output = engine["in_segments"]([*layers, lambda x: x.sum()], x, (2, 4))
    output.backward()
    assert alive == [[], []]


def test_gradcheck_passes_through_nested_checkpoints(engine: dict[str, Any]) -> None:
    checkpoint = engine["checkpoint"]

    def inner(x: Any, w: Any) -> Any:
        return checkpoint(lambda x: (x @ w).tanh(), x).exp()

    arrays = [np.random.default_rng(1).normal(size=shape) for shape in ((2, 3), (3, 3))]
    inputs = tuple(engine["MiniTensor"](array, requires_grad=True) for array in arrays)
    assert engine["gradcheck"](lambda x, w: checkpoint(inner, checkpoint(inner, x, w), w) * x, inputs)


def test_a_backward_pass_through_a_checkpoint_can_be_recorded(engine: dict[str, Any]) -> None:
    """Second derivatives (lesson 10) are the same with a checkpoint, without one, and in PyTorch."""
    arrays = np.array([0.3, 0.7]), np.array([1.5, -0.5])

    def second(call: Any, grad: Any, x: Any, w: Any) -> Any:
        loss = call(lambda x: (x * w).tanh().exp() * x, x).sum()
        (first,) = grad(loss, [x], create_graph=True)
        return grad((first * first).sum(), [w])[0]

    def plain(function: Any, x: Any) -> Any:
        return function(x)

    ways = (plain, engine["checkpoint"])
    found = [
        second(way, engine["grad"], *(engine["MiniTensor"](array, requires_grad=True) for array in arrays)).data
        for way in ways
    ]
    theirs = second(plain, torch.autograd.grad, *(torch.tensor(array, requires_grad=True) for array in arrays))
    np.testing.assert_array_equal(*found)
    np.testing.assert_allclose(found[0], theirs.numpy(), rtol=1e-12, atol=1e-14)


def test_the_cell_of_the_hooks_may_be_run_again() -> None:
    names = solved(LESSON)
    (cell,) = (cell for cell in cells_that_define(LESSON) if "class SavedHooks" in cell.source)
    exec(cell.source, names)
    x, runs = names["MiniTensor"]([1.0, 2.0], requires_grad=True), []

    def function(x: Any) -> Any:
        runs.append(1)
        return (x * x).tanh()

    output = names["checkpoint"](function, x)
    output.backward(np.ones(2))
    assert len(runs) == 2
    np.testing.assert_allclose(x.grad.data, 2 * x.data * (1 - np.tanh(x.data**2) ** 2))
