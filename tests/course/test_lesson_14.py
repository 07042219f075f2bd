"""Plants classic mistakes in the solutions of lesson 14: each costs points where it was made, and on no other cell.

Also compares chains in every style with PyTorch and, to the last bit, with the engine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from tests.course.planting import LessonTests, cells_that_define, solved, styles

LESSON = "14_fusion_and_devices"


class TestLesson(LessonTests):
    lesson = LESSON
    test_cells = 7
    visible = True
    examples = 20


@pytest.fixture(scope="module", params=["", *styles(LESSON)], ids=lambda style: style or "solution")
def engine(request: pytest.FixtureRequest) -> dict[str, Any]:
    return solved(LESSON, request.param)


CHAINS: dict[str, Callable[..., Any]] = {
    "a polynomial": lambda a, b: ((a * 0.5 + 1.0) * a - 2.0) * a + b,
    "functions": lambda a, b: (a * b).tanh() - (b * 0.1).exp() / (a * a + 1.0),
    "kinks and powers": lambda a, b: a.relu() ** 2 + (b * b + 0.5) ** -1 + (a * a + 0.1).log(),
    "an input is the result": lambda a, b: a,
    "a sum alone": lambda a, b: a + b,
    "a part without gradient": lambda a, b: (a * 3.0).detach() * b - a,
}


def leaves(make: Callable[..., Any], shape: tuple[int, ...]) -> list[Any]:
    generator = np.random.default_rng(7)
    return [make(generator.normal(size=shape), requires_grad=True) for _ in range(2)]


@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
@pytest.mark.parametrize("shape", [(), (1,), (3, 4), (9001,), (130, 131)])
def test_a_compiled_chain_has_the_bits_of_the_engine(
    engine: dict[str, Any], chain: Callable[..., Any], shape: tuple[int, ...]
) -> None:
    compiled = engine["compiled"](chain)
    cotangent = np.random.default_rng(8).normal(size=shape)
    found = []
    for function in (chain, compiled, compiled):
        a, b = leaves(engine["MiniTensor"], shape)
        output = function(a, b)
        output.backward(cotangent)
        found.append([output.data, *(None if x.grad is None else x.grad.data for x in (a, b))])
    assert compiled.traced == 1
    assert None not in compiled.chains.values()
    for again in found[1:]:
        for mine, right in zip(again, found[0], strict=True):
            assert (mine is None) == (right is None)
            assert mine is None or np.array_equal(mine, right)


def test_a_compiled_chain_agrees_with_pytorch(engine: dict[str, Any]) -> None:
    chain = CHAINS["functions"]
    a, b = leaves(engine["MiniTensor"], (40, 250))
    engine["compiled"](chain)(a, b).backward(np.ones((40, 250)))
    a_torch, b_torch = leaves(lambda value, requires_grad: torch.tensor(value, requires_grad=requires_grad), (40, 250))
    chain(a_torch, b_torch).backward(torch.ones(40, 250, dtype=torch.float64))
    np.testing.assert_allclose(a.grad.data, a_torch.grad.numpy(), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(b.grad.data, b_torch.grad.numpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: (x * 2.0).sum(),
        lambda x: x @ x,
        lambda x: x * 3.0 if x.sum().item() > 0 else x - 1.0,
        lambda x: x[0] * 2.0,
        lambda x: x * np.full((2, 2), 3.0),
    ],
    ids=["a sum", "a product of matrices", "a decision on the numbers", "an index", "an array from outside"],
)
def test_what_cannot_be_recorded_runs_as_it_is(engine: dict[str, Any], function: Callable[..., Any]) -> None:
    compiled = engine["compiled"](function)
    for sign in (1.0, -1.0):
        x = engine["MiniTensor"](sign * np.array([[1.0, 2.0], [3.0, 4.0]]), requires_grad=True)
        assert np.array_equal(compiled(x).data, function(x).data)
    assert [*compiled.chains.values()] == [None]


@pytest.mark.parametrize("style", ["", *styles(LESSON)], ids=lambda style: style or "solution")
def test_a_cell_may_run_again(style: str) -> None:
    names = solved(LESSON, style)
    cells = [cell.source for cell in cells_that_define(LESSON) if "engine" in cell.tags]
    saved = next(source for source in cells if "MiniTensor.on_host = " in source)
    module = next(source for source in cells if "class Trace:" in source)
    exec(saved, names)
    exec(module, names)
    tensor = names["MiniTensor"]
    assert tensor([1, 2]).data.tolist() == [1.0, 2.0]
    there = tensor(names["remote"].asarray(np.ones(3)), requires_grad=True)
    (there * tensor(2.0)).sum().backward()
    assert there.grad.data.get().tolist() == [2.0, 2.0, 2.0]


def test_without_exercise_5_the_sections_after_it_work() -> None:
    names = solved(LESSON)

    def unwritten(inputs: object) -> None:
        raise NotImplementedError

    names["on_one_device"] = unwritten
    there = names["MiniTensor"](names["remote"].asarray(np.ones(3)), requires_grad=True)
    (2 * there + 1).tanh().sum().backward()
    np.testing.assert_allclose(there.grad.data.get(), 2 * (1 - np.tanh(3.0) ** 2))


def test_a_tensor_from_outside_is_no_constant(engine: dict[str, Any]) -> None:
    factor = engine["MiniTensor"](2.0, requires_grad=True)
    compiled = engine["compiled"](lambda x: x * factor)
    x = engine["MiniTensor"](np.ones(3))
    assert np.array_equal(compiled(x).data, [2.0, 2.0, 2.0])
    factor.data = np.array(5.0)
    output = compiled(x)
    assert np.array_equal(output.data, [5.0, 5.0, 5.0])
    output.backward(np.ones(3))
    assert factor.grad.item() == 3.0
