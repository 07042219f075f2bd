"""Who owns the memory of a gradient: a later pass changes only `.grad`.

Each program returns the tensors that can still be seen after it. None of them may share memory with another, or change
in a later backward pass. An array that nothing else holds is kept without a copy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mini_autograd as ma
from mini_autograd.graph import backward as engine
from mini_autograd.numerics import arrays

LARGE = engine.LARGE + 1
"""Enough elements for sums of gradients to be made in place."""


class Remembers(ma.autograd.Function):
    """Keeps the gradient that it passes on."""

    kept: Any = None

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 1.0

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        Remembers.kept = grad * 2.0
        return Remembers.kept


def leaves(count: int = 2, *shape: int) -> list[Any]:
    draw = np.random.default_rng(0).normal
    return [ma.tensor(draw(size=shape or (LARGE,)), requires_grad=True) for _ in range(count)]


def handed_to_both() -> list[Any]:
    a, b = leaves()
    cotangent = ma.ones(LARGE, dtype=ma.float64)
    (a + b).backward(cotangent)
    return [a.grad, b.grad, cotangent]


def cotangent_of_a_leaf() -> list[Any]:
    (a,) = leaves(1)
    cotangent = ma.ones(LARGE, dtype=ma.float64)
    a.backward(cotangent)
    return [a.grad, cotangent]


def handed_on_and_added_to() -> list[Any]:
    a, b = leaves()
    first, second = a * b, a + b
    seen: list[Any] = []
    first.register_hook(seen.append)
    second.register_hook(seen.append)
    total = first + second + first + second
    total.backward(ma.ones(LARGE, dtype=ma.float64))
    return [a.grad, b.grad, *seen]


def seen_by_hooks() -> list[Any]:
    (a,) = leaves(1)
    seen: list[Any] = []
    a.register_hook(seen.append)
    product = a * 2.0
    product.register_hook(seen.append)
    (product + 0.0).sum().backward()
    return [a.grad, *seen]


def kept_by_a_function() -> list[Any]:
    (a,) = leaves(1)
    Remembers.apply(a).sum().backward()
    return [a.grad, Remembers.kept]


def retained() -> list[Any]:
    a, b = leaves()
    product = a * b
    product.retain_grad()
    (product + 0.0).sum().backward(retain_graph=True)
    return [a.grad, b.grad, product.grad, a, b]


def asked_for_twice() -> list[Any]:
    a, b = leaves()
    return [*ma.autograd.grad((a * b).sum(), (a, a, b)), a, b]


def only_some_inputs() -> list[Any]:
    a, b = leaves()
    product = a * b
    (product + a).sum().backward(inputs=[a, product])
    return [a.grad, product.grad, a, b]


def transposed() -> list[Any]:
    (a,) = leaves(1, 120, 110)
    cotangent = ma.tensor(np.random.default_rng(1).normal(size=(110, 120)))
    (a.T + 0.0).backward(cotangent)
    return [a.grad, cotangent]


PROGRAMS: list[Callable[[], list[Any]]] = [
    handed_to_both,
    cotangent_of_a_leaf,
    handed_on_and_added_to,
    seen_by_hooks,
    kept_by_a_function,
    retained,
    asked_for_twice,
    only_some_inputs,
    transposed,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_gradients_share_no_memory(program: Callable[[], list[Any]]) -> None:
    looked_at = program()
    memory = [x.detach().numpy() for x in looked_at]
    for number, array in enumerate(memory):
        others = [other for other in memory[:number] if other is not array]
        assert not any(np.shares_memory(array, other) for other in others), number


def test_a_later_pass_changes_only_the_gradients_of_leaves() -> None:
    a, b = leaves()
    seen: list[Any] = []
    product = a * b
    product.register_hook(seen.append)
    sums = product + a
    cotangent = ma.tensor(np.random.default_rng(2).normal(size=LARGE))
    sums.backward(cotangent, retain_graph=True)
    before = [x.clone() for x in (cotangent, a.detach(), b.detach(), *seen)]
    once = a.grad.clone()
    sums.backward(cotangent)
    after = [cotangent, a.detach(), b.detach(), *seen[:1]]
    assert all(ma.equal(x, y) for x, y in zip(before, after, strict=True))
    assert ma.equal(a.grad, once * 2.0)


def test_a_new_gradient_is_kept_without_a_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = leaves(2, 120, 110)
    unshared, right = [], arrays.is_unshared

    def noted(held: Any, key: Any) -> bool:
        unshared.append(right(held, key))
        return unshared[-1]

    monkeypatch.setattr(arrays, "is_unshared", noted)
    (a * b).backward(ma.ones(120, 110, dtype=ma.float64))
    assert unshared == [True, True]


@pytest.mark.parametrize(
    "held",
    [
        [np.ones((2, 3))[:1]],
        [np.broadcast_to(np.ones(3), (2, 3))],
        [np.ones((2, 3)).T],
        [np.asfortranarray(np.ones((2, 3)))],
    ],
    ids=["part", "repeated", "transposed", "by columns"],
)
def test_what_is_no_whole_array_of_its_own_is_not_kept(held: list[Any]) -> None:
    assert not arrays.is_unshared(held, 0)
    held[0] = np.ones((2, 3))
    assert arrays.is_unshared(held, 0)
