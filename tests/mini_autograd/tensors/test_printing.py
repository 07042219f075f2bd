"""Tensors print as PyTorch's do."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import mini_autograd as ma

PRINTED = """
lib.tensor(1.0)
lib.tensor(1.5)
lib.tensor(-0.25)
lib.tensor(3)
lib.tensor(True)
lib.tensor([])
lib.tensor([[]])
lib.tensor([], dtype=lib.int64)
lib.zeros(0, 3)
lib.tensor([1.0, 2.0, 3.0])
lib.tensor([1.0, -2.5])
lib.tensor([1, -20, 300])
lib.tensor([True, False])
lib.tensor([0.0, 0.0])
lib.tensor([1e10, 1.0])
lib.tensor([1e-10, 1.0])
lib.tensor([1e-5, 2e-5])
lib.tensor([0.1, 1000.0])
lib.tensor([1e5, 2e5])
lib.tensor([1e9, 2e9])
lib.tensor(1e-6)
lib.tensor(123456.789)
lib.tensor([float("nan"), 1.0, float("inf")])
lib.tensor([float("nan"), 1.5, -float("inf")])
lib.tensor([float("nan")])
lib.tensor([[1.5, 2.0], [3.0, 4.0]], dtype=lib.float64)
lib.tensor([1.5, 2.0], dtype=lib.float16)
lib.tensor([1, 2], dtype=lib.int32)
lib.tensor([1.0, 2.0], requires_grad=True)
lib.tensor([1.0, 2.0], dtype=lib.float64, requires_grad=True)
lib.tensor([1.0, 2.0], requires_grad=True) * 2
lib.tensor(2.0, requires_grad=True).exp()
lib.tensor([1.0, 2.0], requires_grad=True).sum()
lib.tensor(np.arange(24).reshape(2, 3, 4))
lib.tensor(np.arange(24.0).reshape(2, 3, 4))
lib.tensor(np.linspace(0, 1, 30))
lib.tensor(np.linspace(-1, 1, 30).astype(np.float32), requires_grad=True)
lib.tensor(np.arange(1001.0))
lib.tensor(np.arange(1000))
lib.tensor(np.arange(2000.0).reshape(20, 100) / 7)
lib.tensor(np.linspace(0, 1, 2000).reshape(2, 1000)) * 1e-3
lib.ones(3, requires_grad=True).detach()
"""


@pytest.mark.parametrize("expression", PRINTED.strip().splitlines())
def test_prints_what_pytorch_prints(expression: str) -> None:
    def printed(lib: Any) -> str:
        return repr(eval(expression, {"lib": lib, "np": np}))

    assert printed(ma) == printed(torch)


@pytest.mark.parametrize(
    ("function", "requires_grad"),
    [
        (lambda x: x, False),
        (lambda x: x, True),
        (lambda x: x + 1, True),
        (lambda x: (x + 1).mul_(3), False),
        (lambda x: x.expand(20, 2), True),
    ],
)
def test_prints_the_tangent_of_a_dual_number(function: Callable[[Any], Any], requires_grad: bool) -> None:
    def printed(lib: Any) -> str:
        values = lib.tensor([1.0, 2.0], requires_grad=requires_grad)
        with lib.autograd.forward_ad.dual_level():
            return repr(function(lib.autograd.forward_ad.make_dual(values, lib.tensor([1.0, 10.0]))))

    assert printed(ma) == printed(torch)
