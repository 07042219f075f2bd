"""Dtypes of results, and the errors of operations, one expression a row: each gives the same under PyTorch.

A row is an expression of `lib`; what it gives is compared by dtype, shape and values, or by error type and text.
"""

import numpy as np
import pytest
import torch

import mini_autograd as ma
from tests.mini_autograd.same_as_torch import evaluated, lines

CREATION = """
lib.tensor(1.5)
lib.tensor(3)
lib.tensor(True)
lib.tensor([])
lib.tensor([[]])
lib.tensor([1, 2])
lib.tensor((1, 2.5))
lib.tensor([True, 2])
lib.tensor([True, False])
lib.tensor([[1, 2], [3, 4]])
lib.tensor(range(3))
lib.tensor(np.ones(2))
lib.tensor(np.float64(2))
lib.tensor(np.float32(2))
lib.tensor([np.float64(1)])
lib.tensor(np.arange(3, dtype=np.int32))
lib.tensor([lib.tensor(1.0), lib.tensor(2.0)])
lib.tensor(1.5, dtype=lib.int64)
lib.tensor([1, 2], dtype=lib.float64)
lib.tensor([1, 2], dtype=lib.float32, requires_grad=True)
lib.tensor([[1, 2], [3]])
lib.tensor([[1.0, 2], 3.0])
lib.tensor([1.0, [2.0]])
lib.tensor("a")
lib.tensor(["a"])
lib.tensor(None)
lib.tensor([1.0, None])
lib.zeros(2, 3)
lib.zeros((2, 3), dtype=lib.int64)
lib.ones(())
lib.ones(2, requires_grad=True)
lib.ones_like(lib.tensor([1, 2]))
lib.zeros_like(lib.tensor([1.0, 2]), dtype=lib.float64)
lib.full((2,), 7.0)
lib.full((2,), 7)
lib.arange(4)
lib.arange(1, 4)
lib.arange(1.0, 2.0, 0.25)
lib.from_numpy(np.ones(2, np.float32))
lib.from_numpy([1, 2])
lib.tensor([1.7, -1.7]).long()
lib.tensor([0.0, 2.0]).bool()
lib.tensor([1, 2]).float()
lib.tensor([1, 2]).double()
lib.tensor([1.5]).half()
lib.tensor([1.5]).int()
lib.tensor([1.5]).to(lib.float64)
lib.tensor([1.5], requires_grad=True).long()
lib.tensor([1.5], requires_grad=True).double()
"""

PROMOTION = """
i + 1
i * 2.5
i / 2
i / i
i - True
i ** 2
i ** 0.5
2 ** i
2.5 ** i
i ** i
i ** f
b + 1
b + b
b * 1.5
b * b
b & True
i + f
f + d
d + f
f + d0
d0 + f
i + d0
i + f0
f0 + d0
f0 * i0
i + i0
b + i0
b + f0
h + f
h * 2.0
h + i
i32 / 2
i32 + i
i32 + i0
i32 * 2.5
f * np.float64(2)
f * np.float32(2)
d * np.float32(2)
f * np.int64(2)
np.float64(2) * f
np.float32(2) * f
f * True
i.exp()
i.log()
b.tanh()
i.relu()
-i
i.sum()
b.sum()
i32.sum()
b.sum(0)
h.sum()
f.sum(dtype=lib.float64)
i.sum(dtype=lib.float32)
i.mean(dtype=lib.float32)
f.mean(0, dtype=lib.float64)
i @ i
f @ f
lib.where(b, f, d)
lib.where(b, f, 1)
lib.where(b, i, 1.5)
lib.where(b, 1.0, 2.0)
lib.where(b, i, i0)
i == f
i == 1.5
f < d0
b == 1
f != f
f >= 1
1 < f
~b
b | (f > 1)
b ^ b
b & (i > 1)
i & 1
f / 0
-f / 0
f * 0 / 0
i / 0
(-f) ** 0.5
(-f).log()
(f * 1000).exp()
f[:0].mean()
f[:0].sum()
lib.tensor([0.1]) == 0.1
lib.tensor([0.1]) == lib.tensor(0.1, dtype=lib.float64)
lib.tensor([200], dtype=lib.uint8) + 100
lib.tensor([200], dtype=lib.uint8) + lib.tensor([3], dtype=lib.int8)
"""

ERRORS = """
f + lib.ones(4)
lib.ones(2, 3) * lib.ones(2, 4)
lib.ones(5, 3, 1) - lib.ones(2, 4)
lib.ones(2, 3) / lib.ones(2)
lib.ones(2, 3) ** lib.ones(2)
lib.ones(2, 3) < lib.ones(2)
lib.where(b, lib.ones(2), lib.ones(4))
b - b
b - True
-b
b.relu()
i ** -1
i.mean()
b.mean()
f + None
None + f
f - [1]
f / "a"
f ** "a"
f @ 2
2 @ f
f < "a"
f + (1, 2)
"a" + f
f0 @ f
f @ f0
f0 @ f0
lib.ones(3) @ lib.ones(4)
lib.ones(2, 3) @ lib.ones(2, 3)
lib.ones(2, 3) @ lib.ones(4)
lib.ones(4) @ lib.ones(2, 3)
lib.ones(2, 3, 4) @ lib.ones(2, 3, 4)
lib.ones(2, 3, 4) @ lib.ones(3, 4, 5)
lib.ones(2, 3, 4) @ lib.ones(5, 2)
lib.ones(3, 4) @ lib.ones(2, 5, 2)
lib.ones(2, 3, 4) @ lib.ones(5)
lib.ones(5) @ lib.ones(2, 3, 4)
lib.ones(2, 1, 3, 4) @ lib.ones(5, 3, 4)
lib.ones(2, 2, 3, 4) @ lib.ones(3, 4, 5)
f @ d
lib.ones(2, 3) @ d
lib.ones(2, 3) @ lib.ones(3, 2, dtype=lib.float64)
lib.ones(2, 3) @ lib.ones(3, 2, dtype=lib.int64)
lib.ones(2, 2, 2) @ lib.ones(2, 2, 2, dtype=lib.float64)
lib.ones(2, 2, 2) @ lib.ones(2, 2, dtype=lib.float64)
m.reshape(4, 2)
m.reshape(-1, 4)
m.reshape(-1, -1)
m.reshape(-2, 3)
lib.ones(0).reshape(-1, 0)
m.T.view(6)
m.view(4)
m.flatten(1, 0)
m.flatten(0, 5)
m.transpose(0, 2)
m.transpose(-3, 0)
m.permute(0)
m.permute(0, 0)
m.permute(0, 2)
lib.ones(2, 2, 2).t()
f.mT
f.expand(2)
f.expand(-1, 3)
m.expand(3)
m.sum(2)
m.sum((0, 0))
f0.sum(-2)
f0.sum(0)
m[2]
m[-3]
m[0, 3]
m[0, 0, 0]
f0[0]
m[[0, 2]]
m[0.5]
m[::-1]
m[lib.tensor([0.5])]
m[lib.tensor([True, False, True])]
m[[0, 1], [0, 1, 2]]
m[np.array([0, 1])]
m[np.int64(1)]
m[..., 0]
m[1:5]
m[lib.tensor([[True, False, True], [False, True, False]])]
m[range(2)]
f0[lib.tensor(True)]
f0[...]
f0[None]
"""


@pytest.mark.parametrize("expression", lines(CREATION) + lines(PROMOTION) + lines(ERRORS))
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning", "error::RuntimeWarning")
def test_gives_what_pytorch_gives(expression: str) -> None:
    assert evaluated(expression, ma) == evaluated(expression, torch)


GRADIENT_DTYPES = """
(f * d).sum()
(f + h).sum()
(d0 * f).sum()
(f0 * d).sum()
f.double().sum()
(d.float() * f).sum()
(f / d).sum()
lib.where(f > 1, f, d).sum()
(f.sum(dtype=lib.float64) * d).sum()
(h * 2.0).mean()
"""


@pytest.mark.parametrize("expression", lines(GRADIENT_DTYPES))
def test_gradients_have_the_dtype_of_their_tensor(expression: str) -> None:
    found = []
    for lib in (ma, torch):
        leaves = {
            "f": lib.tensor([1.0, 2.0, 3.0], requires_grad=True),
            "d": lib.tensor([1.0, 2.0, 3.0], dtype=lib.float64, requires_grad=True),
            "h": lib.tensor([1.0, 2.0, 3.0], dtype=lib.float16, requires_grad=True),
            "f0": lib.tensor(2.0, requires_grad=True),
            "d0": lib.tensor(2.0, dtype=lib.float64, requires_grad=True),
        }
        eval(expression, {"lib": lib, **leaves}).backward()
        grads = {name: leaf.grad.detach().numpy() for name, leaf in leaves.items() if leaf.grad is not None}
        found.append({name: (grad.dtype, grad.shape, np.round(grad, 3).tolist()) for name, grad in grads.items()})
    assert found[0] == found[1]


def test_power_with_base_zero_has_a_finite_gradient() -> None:
    x = ma.tensor([1.5, 2.0], requires_grad=True)
    (ma.tensor([0.0, 3.0]) ** x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [0.0, 9 * np.log(3)], rtol=1e-6)
