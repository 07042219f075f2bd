"""Runs the code of lessons 01 and 02 as plain Python: the solutions, and every alternative style, on known numbers.

The graded checks themselves are run by `autograder audit`; here a mistake in a solution shows without a notebook.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tests.course.planting import solved, styles


@pytest.fixture(params=["", *styles("02_scalar_engine")], ids=lambda style: style or "solution")
def engine(request: pytest.FixtureRequest) -> Any:
    return solved("02_scalar_engine", request.param)["MiniTensor"]


@pytest.fixture(params=["", *styles("01_derivatives")], ids=lambda style: style or "solution")
def derivatives(request: pytest.FixtureRequest) -> dict[str, Any]:
    return solved("01_derivatives", request.param)


def shared(a: Any, b: Any) -> Any:
    c = a + b
    d = c + a
    return c + d


# name, expression, inputs, value, gradients
EXPRESSIONS = [
    ("the challenge", lambda a, b: (a + b) * a, (2, 3), 10, (7, 2)),
    ("squared error", lambda w, x, b: (w * x + b - 10) ** 2, (2, 3, 1), 9, (-18, -12, -6)),
    ("relu chain", lambda w, x, b: ((w * x + b).relu() - 3) ** 2, (0.5, 4, -1.5), 6.25, (-20, -2.5, -5)),
    ("dead relu", lambda w, x, b: ((w * x + b).relu() - 3) ** 2, (0.5, 4, -3), 9, (0, 0, 0)),
    ("square of a sum", lambda x, y: (x + y) ** 2, (2, 3), 25, (10, 10)),
    ("product and sum", lambda x, y: (x * y + x) ** 2, (2, 3), 64, (64, 32)),
    ("polynomial", lambda x: x**2 + 3 * x, (2,), 10, (7,)),
    ("fan-out", lambda w: w * w + w, (2,), 6, (5,)),
    ("used early and late", shared, (1, 2), 7, (3, 2)),
    ("reversed", lambda a: (2 - a) / a + 1 / a, (4,), -0.25, (-0.1875,)),
    ("minus", lambda a, b: -(a - b), (1, 5), 4, (-1, 1)),
    ("tanh of exp", lambda a: a.exp().tanh(), (0,), math.tanh(1), (1 - math.tanh(1) ** 2,)),
]


@pytest.mark.parametrize(
    ("expression", "inputs", "value", "gradients"), [e[1:] for e in EXPRESSIONS], ids=[e[0] for e in EXPRESSIONS]
)
def test_engine_on_known_expressions(engine: Any, expression: Any, inputs: Any, value: float, gradients: Any) -> None:
    tensors = [engine(number) for number in inputs]
    output = expression(*tensors)
    output.backward()
    assert output.data == pytest.approx(value)
    assert [tensor.grad for tensor in tensors] == pytest.approx(list(gradients))


def test_engine_visits_each_node_once_and_accumulates(engine: Any) -> None:
    x = engine(1.0)
    y = x
    for _ in range(200):
        y = y + y
    y.backward()
    assert x.grad == 2.0**200
    y.backward(gradient=-1.0)
    assert x.grad == 0.0


def test_gradients_by_hand(derivatives: dict[str, Any]) -> None:
    assert derivatives["product_and_sum_gradient"](2.0, 3.0) == pytest.approx((64, 32))
    assert derivatives["tanh_neuron_gradient"](2.0, 3.0, -6.0, 0.5) == pytest.approx((-3, -2, -1, 1))
    assert derivatives["relu_neuron_gradient"](0.5, 4.0, -1.5, 3.0) == pytest.approx((-20, -2.5, -5, 5))
    assert derivatives["relu_neuron_gradient"](0.5, 4.0, -3.0, 3.0) == pytest.approx((0, 0, 0, 6))
    assert derivatives["relative_error"](np.array([1.0, -4.0]), np.array([1.0, -3.0])) == 0.25


@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 3), (2, 1, 2), (0,)], ids=str)
def test_numerical_gradient_in_any_shape(derivatives: dict[str, Any], shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).normal(size=shape)
    before = x.copy()
    gradient = derivatives["numerical_gradient"](lambda x: (x**3).sum(), x)
    np.testing.assert_allclose(gradient, 3 * x**2, atol=1e-8)
    assert gradient.shape == shape
    assert np.array_equal(x, before)


def test_numerical_gradient_of_whole_numbers(derivatives: dict[str, Any]) -> None:
    gradient = derivatives["numerical_gradient"](lambda x: (x**2).sum(), np.array([1, 2, 3]))
    np.testing.assert_allclose(gradient, [2, 4, 6])
