"""Plants classic mistakes in the solutions of lesson 15: each costs points where it was made.

Some cost points in later cells too, which build on the earlier ones. Forward mode itself is compared with PyTorch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from tests.course.planting import LessonTests, solved, styles

LESSON = "15_forward_mode"


class TestLesson(LessonTests):
    lesson = LESSON
    replaced_later = frozenset({"push_forward", "jvp"})
    test_cells = 6
    visible = True
    examples = 20
    own_examples = True


@pytest.fixture(params=["", *styles(LESSON)], ids=lambda style: style or "solution")
def lesson(request: pytest.FixtureRequest) -> dict[str, Any]:
    return solved(LESSON, request.param)


FUNCTIONS: dict[str, Any] = {
    "a layer": lambda x: (x @ np.linspace(-1, 1, 12).reshape(3, 4)).tanh().sum(dim=-1),
    "softmax by hand": lambda x: x.exp() / x.exp().sum(dim=1, keepdim=True),
    "stretched": lambda x: (x.sum(dim=0) - x) * np.array([[2.0], [-3.0]]) / (x**2 + 1),
    "logarithms": lambda x: ((x * x + 0.5).log() + (-x).relu()).sum(),
}


def in_torch(function: Any) -> Any:
    """The same function for PyTorch, where its constants must be tensors."""
    names = {**function.__globals__, "np": type("Tensors", (), {"linspace": linspace, "array": tensor})}
    return type(function)(function.__code__, names)


def tensor(values: Any) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def linspace(*arguments: Any) -> torch.Tensor:
    return torch.linspace(*arguments, dtype=torch.float64)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_forward_mode_and_all_jacobians_agree_with_pytorch(lesson: dict[str, Any], name: str) -> None:
    function, theirs = FUNCTIONS[name], in_torch(FUNCTIONS[name])
    x, direction = np.random.default_rng(7).normal(size=(2, 2, 3))
    value, tangent = lesson["jvp"](function, (x,), (direction,))
    expected = torch.func.jvp(theirs, (tensor(x),), (tensor(direction),))
    np.testing.assert_allclose(value, expected[0].numpy(), atol=1e-12)
    np.testing.assert_allclose(tangent, expected[1].numpy(), atol=1e-12)
    table = torch.func.jacrev(theirs)(tensor(x)).numpy()
    for way in ("jacobian_forward", "jacobian_reverse", "jacobian", "jacobian_stacked"):
        np.testing.assert_allclose(lesson[way](function, x), table, atol=1e-12, err_msg=way)


def test_nested_derivatives_agree_with_pytorch(lesson: dict[str, Any]) -> None:
    def slope(function: Any, x: Any) -> Any:
        return torch.func.jvp(function, (x,), (torch.ones_like(x),))[1]

    def nested(derivative: Any) -> Any:
        inner = lambda x: derivative(lambda y: x * y * y + derivative(lambda z: x * z * y, y * y), x)  # noqa: E731
        return lambda x: x * inner(x) + derivative(inner, x)

    for x in (-1.5, 0.0, 2.0):
        found = lesson["derivative"](nested(lesson["derivative"]), x)
        assert found == pytest.approx(slope(nested(slope), tensor(x)).item(), abs=1e-12)
