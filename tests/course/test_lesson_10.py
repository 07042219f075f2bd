"""Plants classic mistakes in the solutions of lesson 10: each costs points where it was made, and where it spreads to.

Also compares the second derivatives of every operation with PyTorch's, in every style, and trains with
recorded gradients.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from autograder.notebooks.regions import without_hidden_tests
from autograder.runs.context import check_context
from tests.course.planting import LessonTests, cells_that_define, solved, styles

LESSON = "10_higher_order_and_hooks"


class TestLesson(LessonTests):
    lesson = LESSON
    test_cells = 6
    examples = 21
    visible = True


@pytest.fixture(params=["", *styles(LESSON)], ids=lambda style: style or "solution")
def engine(request: pytest.FixtureRequest) -> dict[str, Any]:
    return solved(LESSON, request.param)


EXPRESSIONS: dict[str, Callable[..., Any]] = {
    "operators": lambda a, b: (a * a.exp() - b.T / a) ** 3 - 2 / a,
    "a power at zero": lambda a, b: ((a - a.detach()) ** 2 * b.T) + a * b.T,
    "functions": lambda a, b: (a.log() * b.T).tanh().exp(),
    "kinks": lambda a, b: (a - 1).relu() ** 2 * (b.T - 1).abs() ** 3,
    "matrices": lambda a, b: (a @ b) @ (b.T @ a.T),
    "vectors": lambda a, b: (a[0] @ b) * (a[1] @ b[:, 0]),
    "batches": lambda a, b: (a.reshape(2, 1, 3) @ b.reshape(1, 3, 2)) ** 2,
    "sums and means": lambda a, b: a.sum(1) ** 2 * (b * b).mean(0) + a.sum() * b.mean(),
    "kept dimensions": lambda a, b: a.sum(1, True) ** 2 * a * b.T.mean(0, True) ** 2,
    "the largest": lambda a, b: (a * a).max() * b.T,
    "indices": lambda a, b: (a[[0, 0, 1], 1:] ** 2).T * b.reshape(2, 3)[1, 2] ** 2,
    "softmax": lambda a, b: a.softmax(1) * (b.T * a).log_softmax(0),
    "log-sum-exp": lambda a, b: a.logsumexp(dim=1) * b.logsumexp(dim=0),
    "written in place": lambda a, b: (a * b.T).mul_(a).add_(b[0, 0] ** 2),
    "linear in both": lambda a, b: a * 2 - b.T,
}


def second_derivatives(expression: Callable[..., Any], inputs: Any, grad: Any, cotangent: Any, weights: Any) -> Any:
    """Gradients of the weighted first gradients; zeros if there is no path."""
    first = grad(expression(*inputs), inputs, cotangent, create_graph=True)
    total = sum((g * w).sum() + (0 * x).sum() for g, w, x in zip(first, weights, inputs, strict=True))
    return grad(total, inputs)


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_second_derivatives_agree_with_pytorch(name: str, engine: dict[str, Any]) -> None:
    generator, expression = np.random.default_rng(6), EXPRESSIONS[name]
    arrays = [generator.uniform(0.5, 2.0, size=shape) for shape in ((2, 3), (3, 2))]
    theirs = [torch.tensor(array, requires_grad=True) for array in arrays]
    cotangent = generator.normal(size=tuple(expression(*theirs).shape))
    weights = [generator.normal(size=array.shape) for array in arrays]
    ours = [engine["MiniTensor"](array, requires_grad=True) for array in arrays]
    found = second_derivatives(expression, ours, engine["grad"], cotangent, weights)
    tensors = [torch.tensor(weight) for weight in weights]
    expected = second_derivatives(expression, theirs, torch.autograd.grad, torch.tensor(cotangent), tensors)
    for mine, right in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine.data, right.numpy(), rtol=1e-9, atol=1e-9)


def test_derivatives_of_any_order_at_zero(engine: dict[str, Any]) -> None:
    x = engine["MiniTensor"](0.0, requires_grad=True)
    value, found = x**2 + x.exp(), []
    for _ in range(4):
        (value,) = engine["grad"](value, x, create_graph=True)
        found.append(value.item())
    np.testing.assert_allclose(found, [1.0, 3.0, 1.0, 1.0])


def test_a_rule_on_arrays_is_refused_by_name(engine: dict[str, Any]) -> None:
    class Doubled(engine["Function"]):  # type: ignore[misc,name-defined]
        @staticmethod
        def forward(ctx: Any, a: Any) -> Any:
            return 2 * a

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return np.add(grad, grad)

    x = engine["MiniTensor"]([1.0, 2.0], requires_grad=True)
    with pytest.raises(RuntimeError, match=r"DoubledBackward0 computes with arrays.*lesson 10, section 2"):
        engine["grad"](Doubled.apply(x).sum(), x, create_graph=True)
    np.testing.assert_array_equal(engine["grad"](Doubled.apply(x).sum(), x)[0].data, [2.0, 2.0])


def test_the_check_of_the_walk_names_a_given_cell_that_has_not_run() -> None:
    skipped, said = "    walk_back(root, cotangent, create_graph if", "the cell between your answer and this check"
    names: dict[str, Any] = {"__name__": LESSON}
    for cell in cells_that_define(LESSON, tests=True):
        if cell.grade_id == "test_walk":
            with check_context(explained=False):
                credit = eval(without_hidden_tests(cell.source), names)
            assert said in "".join(report.text() for report in credit.reports)
            return
        if skipped not in cell.source and not cell.nbgrader.get("grade"):
            exec(cell.source, names)
    raise AssertionError("there is no such test cell")


def test_hooks_are_those_of_pytorch(engine: dict[str, Any]) -> None:
    def seen_by_hooks(x: Any) -> list[Any]:
        seen: list[Any] = []
        y = x * 3
        y.register_hook(lambda grad: seen.append(grad.tolist() if hasattr(grad, "tolist") else grad.data.tolist()))
        y.register_hook(lambda grad: grad * 10)
        handle = y.register_hook(lambda grad: seen.append(grad.sum().item()))
        once: Any = x.register_hook(lambda grad: (once.remove(), grad + 1)[1])
        (y * y).sum().backward(retain_graph=True)
        handle.remove()
        handle.remove()
        (y * y).sum().backward()
        return [*seen, x.grad.data.tolist()]

    ours = seen_by_hooks(engine["MiniTensor"]([1.0, 2.0], requires_grad=True))
    assert ours == seen_by_hooks(torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True))


def test_a_hook_keeps_history_and_shape(engine: dict[str, Any]) -> None:
    x = engine["MiniTensor"]([3.0, 4.0], requires_grad=True)
    y = x * x
    y.register_hook(lambda grad: grad * x)
    (first,) = engine["grad"](y.sum(), x, create_graph=True)
    np.testing.assert_allclose(engine["grad"](first.sum(), x)[0].data, 4 * x.data)

    def shortened(grad: Any) -> Any:
        return grad[:1]

    x.register_hook(shortened)
    with pytest.raises(RuntimeError, match="hook 'shortened' has changed the size of value"):
        (x * 2).sum().backward()
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't require gradient"):
        engine["MiniTensor"]([1.0]).register_hook(shortened)


def test_grad_makes_no_circle(engine: dict[str, Any]) -> None:
    """What `grad` has recorded is freed with its last reference; Python's collector has nothing to do."""
    gc.collect()
    gc.disable()
    try:
        x = engine["MiniTensor"]([0.5, 1.5], requires_grad=True)
        (first,) = engine["grad"]((x.exp() * x.tanh() / x).sum(), x, create_graph=True)
        (second,) = engine["grad"](first.sum(), x, create_graph=True)
        found = [weakref.ref(thing) for thing in (x, first.grad_fn, second.grad_fn)]
        del x, first, second
        assert [reference() for reference in found] == [None, None, None]
    finally:
        gc.enable()


def test_a_gradient_penalty_trains_like_pytorch(engine: dict[str, Any]) -> None:
    """A loss that contains a gradient, trained with clipping: after some steps the weights are PyTorch's."""
    generator = np.random.default_rng(2)
    arrays = [generator.normal(size=shape) for shape in ((2, 5), (5,), (5, 1))]
    points = generator.normal(size=(6, 2))

    def trained(leaf: Any, grad: Any, clip: Any, step: Any) -> Any:
        parameters, x = [leaf(array) for array in arrays], leaf(points)
        for _ in range(10):
            w1, b1, w2 = parameters
            output = (x @ w1 + b1).tanh() @ w2
            (slope,) = grad(output.sum(), x, create_graph=True)
            loss = ((output - 1) ** 2).mean() + ((slope * slope).sum(1) - 1).abs().mean()
            for parameter in parameters:
                parameter.grad = None
            loss.backward()
            clip(parameters, 0.5)
            step(parameters)
        return parameters

    def our_step(parameters: Any) -> None:
        engine["SGD"](parameters, lr=0.1).step()

    def their_step(parameters: Any) -> None:
        torch.optim.SGD(parameters, lr=0.1).step()

    ours = trained(
        lambda array: engine["MiniTensor"](array.copy(), requires_grad=True),
        engine["grad"],
        engine["clip_grad_norm_"],
        our_step,
    )
    theirs = trained(
        lambda array: torch.tensor(array, requires_grad=True),
        torch.autograd.grad,
        torch.nn.utils.clip_grad_norm_,
        their_step,
    )
    for mine, right in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine.data, right.detach().numpy(), rtol=1e-9, atol=1e-12)
