"""Random programs of in-place operations and views give PyTorch's gradients, or raise."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import mini_autograd as ma

NEW: list[Callable] = [
    lambda a, b: a * b,
    lambda a, b: a.exp() * 0.3,
    lambda a, b: a + b,
    lambda a, b: a.tanh(),
    lambda a, b: a.clone(),
]


CHANGES: list[Callable] = [
    lambda a, b: a.mul_(b),
    lambda a, b: a.add_(b),
    lambda a, b: a.exp_(),
    lambda a, b: a.tanh_(),
    lambda a, b: a.mul_(0.5),
]


VIEWS: list[Callable] = [
    lambda a, b: a[0],
    lambda a, b: a.T,
    lambda a, b: a[..., 1:],
    lambda a, b: a.detach(),
    lambda a, b: a[..., None],
]


def random_program(seed: int) -> Callable:
    """A program of five to ten steps: in-place operations, views, and operations that save their inputs or outputs.

    It returns the steps that failed, and the gradients or the error of the backward pass.
    """

    def run(lib: Any) -> Any:
        choose = random.Random(seed)
        x = lib.tensor([[0.3, 0.7, 1.1], [0.2, 0.5, 0.9]], dtype=lib.float64, requires_grad=True)
        y = lib.tensor([0.4, 0.6, 0.8], dtype=lib.float64, requires_grad=True)
        live = [(x * 1.0, 0), (y * 1.0, 1), (lib.ones(2, 3, dtype=lib.float64) * 0.5, 2)]
        failed = []
        for step in range(5 + seed % 6):
            (a, memory), (b, other) = choose.choice(live), choose.choice(live)
            kind, number = choose.choice(["new", "change", "change", "view", "put"]), choose.randrange(5)
            try:
                if kind == "new":
                    live.append((NEW[number](a, b), 3 + step))
                elif kind == "change" and (memory != other or number > 1):  # PyTorch is wrong if they share memory
                    CHANGES[number](a, b)
                elif kind == "view":
                    live.append((VIEWS[number](a, b), memory))
                elif kind == "put":
                    a[..., number % 2] = b[..., 0] if number > 2 and memory != other else 0.7
            except (RuntimeError, IndexError):
                failed.append(step)
        loss = sum((t * t * 0.7).sum() for t, _ in live if t.requires_grad)
        try:
            return failed, [
                None if g is None else g.numpy() for g in lib.autograd.grad(loss, [x, y], allow_unused=True)
            ]
        except RuntimeError as error:
            return failed, str(error)

    return run


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(0, 1000, 100))
def test_random_programs_are_right_or_raise(seed: int) -> None:
    """If PyTorch gives gradients, ours are the same or we raise an error; if PyTorch raises, so do we."""
    right = 0
    for number in range(seed, seed + 100):
        (failed, mine), (failed_there, theirs) = random_program(number)(ma), random_program(number)(torch)
        if failed != failed_there:  # PyTorch refuses some changes of a view of a constant that was changed before
            continue
        if isinstance(mine, str):
            assert "modified by an inplace operation" in mine, number
            continue
        assert not isinstance(theirs, str), number
        for ours, expected in zip(mine, theirs, strict=True):
            assert (ours is None) == (expected is None), number
            if ours is not None:
                np.testing.assert_allclose(ours, expected, rtol=1e-9, atol=1e-12, err_msg=str(number))
        right += 1
    assert right > 30
