"""`gradcheck(..., batched=True)` says what the loop over the elements says, from one call of the function."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import mini_autograd as ma


class WrongSquare(ma.autograd.Function):
    """x^2 with the rule of x^2 / 2."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return grad * x


def inputs() -> tuple[Any, Any]:
    numbers = np.random.default_rng(0)
    return ma.tensor(numbers.uniform(0.5, 1.5, (3, 4)), requires_grad=True), ma.tensor(
        numbers.uniform(0.5, 1.5, (3, 4))
    )


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize(
    ("function", "right"),
    [
        (lambda x, y: x * y, True),
        (lambda x, y: (x.tanh() * y).sum(dim=-1), True),
        (lambda x, y: (x.exp().sum(dim=(-2, -1)), x / y), True),
        (lambda x, y: WrongSquare.apply(x) * y, False),
    ],
    ids=["product", "sum of rows", "two outputs", "wrong rule"],
)
def test_the_same_verdict(function: Any, right: bool, batched: bool) -> None:
    assert ma.autograd.gradcheck(function, inputs(), batched=batched, raise_exception=False) is right


def test_refuses_a_function_that_is_not_batched() -> None:
    with pytest.raises(RuntimeError, match="keeps an extra leading axis"):
        ma.autograd.gradcheck(lambda x, y: (x * y).sum(), inputs(), batched=True)


@pytest.mark.parametrize("function", [lambda x: x, lambda x: x.T, lambda x: (x[1:], x * 2.0)])
def test_outputs_that_show_the_memory_of_the_input(function: Any) -> None:
    """The elements are changed in place, one after another, and an input may be stored column by column."""
    x = inputs()[0].detach().T.detach().requires_grad_()
    before = x.detach().clone()
    assert not x.is_contiguous()
    assert ma.autograd.gradcheck(function, (x,))
    assert ma.equal(x.detach(), before)
