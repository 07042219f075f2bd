"""Plants classic mistakes in the solutions of lesson 12: each costs points where it was made, and on no other cell.

Anomaly mode, and the derivatives of `where` and `lengths`, are compared with PyTorch as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from tests.course.planting import LessonTests, solved, styles

LESSON = "12_debugging_clinic"


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::UserWarning")
class TestLesson(LessonTests):
    lesson = LESSON
    test_cells = 6
    visible = True
    examples = 19


@pytest.fixture(params=["", *styles(LESSON)], ids=lambda style: style or "solution")
def engine(request: pytest.FixtureRequest) -> dict[str, Any]:
    return solved(LESSON, request.param)


def raises(step: Callable[[], Any]) -> str:
    try:
        step()
    except RuntimeError as error:
        return str(error).splitlines()[0]
    return ""


CASES: dict[str, Callable[[Any], Any]] = {
    "log(-1)": lambda x: (x - 2).log().sum(),
    "1 / 0": lambda x: (1 / (x - 1)).sum(),
    "overflow": lambda x: (x * 1000).exp().sum(),
    "sqrt(0)": lambda x: (x - 1).sqrt().sum(),
    "sqrt(-1)": lambda x: (x - 2).sqrt().sum(),
    "0 / 0": lambda x: ((x - 1) / (x - 1)).sum(),
    "the logarithm of an overflow": lambda x: (x * 1000).exp().log().sum(),
    "nothing": lambda x: (x * x).sum(),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("case", CASES)
def test_the_alarm_is_raised_where_that_of_pytorch_is(engine: dict[str, Any], case: str) -> None:
    leaf = engine["MiniTensor"]([1.0, 1.0], requires_grad=True)
    theirs = torch.ones(2, dtype=torch.double, requires_grad=True)
    with engine["detect_anomaly"]():
        found = raises(lambda: CASES[case](leaf).backward())
    with torch.autograd.set_detect_anomaly(True):
        expected = raises(lambda: CASES[case](theirs).backward())
    assert bool(found) == bool(expected), (found, expected)
    assert found.partition("' ")[2] == expected.partition("' ")[2]  # except for the names of operations


def test_the_alarm_names_the_line_that_recorded_the_operation(engine: dict[str, Any]) -> None:
    def culprit(x: Any) -> Any:
        return x.sqrt()

    leaf = engine["MiniTensor"]([0.0, 1.0], requires_grad=True)
    with np.errstate(all="ignore"), engine["detect_anomaly"](), pytest.raises(RuntimeError) as caught:
        engine["where"](leaf.data > 0, culprit(leaf * 2), 0.0).sum().backward()
    last = str(caught.value).splitlines()[-1]
    assert last.endswith("in culprit: return x.sqrt()"), last
    assert engine["is_grad_enabled"]()
    assert not engine["switches"].anomaly


def test_where_has_right_first_and_second_derivatives(engine: dict[str, Any]) -> None:
    random = np.random.default_rng(3)
    condition, a, b = random.random((2, 3)) > 0.5, random.normal(size=3), random.normal(size=(2, 1))
    ours = [engine["MiniTensor"](value, requires_grad=True) for value in (a, b)]
    theirs = [torch.tensor(value, requires_grad=True) for value in (a, b)]
    cube = (engine["where"](condition, ours[0] ** 3, ours[1] ** 2)).sum()
    cube_torch = torch.where(torch.tensor(condition), theirs[0] ** 3, theirs[1] ** 2).sum()
    first = engine["grad"](cube, ours, create_graph=True)
    first_torch = torch.autograd.grad(cube_torch, theirs, create_graph=True)
    for slope, slope_torch, leaf, leaf_torch in zip(first, first_torch, ours, theirs, strict=True):
        np.testing.assert_allclose(slope.data, slope_torch.detach().numpy())
        (second,) = engine["grad"]((slope * slope).sum(), leaf, retain_graph=True)
        (second_torch,) = torch.autograd.grad((slope_torch * slope_torch).sum(), leaf_torch, retain_graph=True)
        np.testing.assert_allclose(second.data, second_torch.numpy())


def test_lengths_have_the_gradient_of_the_norm_in_pytorch(engine: dict[str, Any]) -> None:
    values = np.array([[3.0, 4.0], [0.0, 0.0], [1e-4, -1e-4], [1e6, 1.0]])
    x, theirs = engine["MiniTensor"](values, requires_grad=True), torch.tensor(values, requires_grad=True)
    cotangent = np.array([1.0, -2.0, 3.0, 0.5])
    engine["lengths"](x).backward(cotangent)
    theirs.norm(dim=1).backward(torch.tensor(cotangent))
    assert theirs.grad is not None
    np.testing.assert_allclose(x.grad.data, theirs.grad.numpy(), rtol=1e-6)


def test_a_second_run_of_the_given_cell_does_not_stack_up(engine: dict[str, Any]) -> None:
    record, shares_of = engine["record_alone"], engine["shares_alone"]
    assert engine["record"].alone is record
    assert engine["shares_of"].alone is shares_of
