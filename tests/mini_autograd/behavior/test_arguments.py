"""Arguments of operations that this engine once handled differently from PyTorch: NumPy's names, numbers, odd dtypes.

A row is an expression of `lib` and F (its nn.functional); it gives the same under PyTorch: values, dtype, shape and
warnings, or error type and text.
"""

import math
import subprocess
import sys

import numpy as np
import pytest
import torch

import mini_autograd as ma
from tests.mini_autograd.same_as_torch import same

NAMES_OF_NUMPY = """
m.argmax(axis=1)
m.argmin(axis=0, keepdims=True)
m.max(axis=1)
m.max(axis=1, keepdims=True)
lib.min(m, axis=0)
m.amax(axis=(0, 1), keepdims=True)
m.std(axis=0, keepdims=True)
lib.var(m, axis=1)
m.prod(axis=0)
m.median(axis=1)
m.any(axis=0)
m.all(axis=1, keepdims=True)
m.softmax(axis=1)
lib.log_softmax(m, axis=0)
m.logsumexp(axis=0, keepdims=True)
m.cumsum(axis=1)
m.sort(axis=0)
m.unsqueeze(axis=0)
m.squeeze(axis=0)
lib.cat([m, m], axis=1)
lib.stack([m, m], axis=2)
m.index_select(axis=1, index=lib.tensor([0]))
"""

NUMBERS_BESIDE_INTEGERS = """
u / -1
u / 300
300 / u
i / True
"""

ONLY_FLOATS = "silu gelu leaky_relu softplus"
ACTIVATIONS_OF_INTEGERS = [f"F.{name}(i)" for name in ONLY_FLOATS.split()] + [
    "F.gelu(b, approximate='tanh')",
]


INTEGERS_AND_BOOLS = """
i % 0
i // 0
i.remainder_(0)
i // lib.tensor([1, 0, 1])
lib.tensor([], dtype=lib.int64) % 0
f % 0
f // 0
b // b
b % True
+b
b.positive()
~i
~f
b.argmax()
b.argmin(0)
b.topk(1)
u.norm()
u.clamp(-1)
u.clamp(max=-1)
i.clamp(lib.zeros(2))
f.clamp(max=lib.ones(4))
lib.where(b)
lib.where(m > 0)
lib.where(f0)
lib.where(i, 1, 2)
lib.where(f, f, f)
f.where(i, f)
"""

ODD_OPERANDS = """
f // None
f % "a"
f // [1.0]
[1.0] % f
lib.isclose(f, lib.ones(2))
lib.allclose(f, lib.ones(2))
"""

NUMBERS_THAT_DO_NOT_FIT = """
lib.tensor(300, dtype=lib.uint8)
lib.tensor([[300]], dtype=lib.uint8)
lib.tensor(-1, dtype=lib.uint8)
lib.tensor(-300, dtype=lib.uint8)
lib.tensor([1, 2**40], dtype=lib.int32)
lib.tensor(math.nan, dtype=lib.int64)
lib.tensor([1.0, math.inf], dtype=lib.int64)
lib.tensor([1.7], dtype=lib.int64)
lib.tensor(2**63)
lib.tensor([2**64])
lib.tensor(2**63, dtype=lib.float64)
lib.tensor([-(2**63)])
lib.tensor([], dtype=lib.int64)
lib.full((2,), 1e300)
lib.full((2,), 300, dtype=lib.uint8)
lib.full((2,), math.inf)
lib.full_like(u, 300)
lib.full((2,), f0)
lib.full((2,), lib.tensor(2.5, dtype=lib.float64))
"""

GATHERING = """
f.masked_fill(b, 1e300)
h.masked_fill(b, -1e9)
h.masked_fill(b, -math.inf)
i.masked_fill(b, math.inf)
u.masked_fill(b, 300)
m.scatter(0, lib.tensor([[0, 1]]), value=3)
f.scatter(dim=0, index=lib.tensor([0]), value=1.0)
m.scatter(1, lib.tensor([[0], [1]]), lib.ones(1, 1))
m.scatter_add(1, lib.tensor([[0], [1]]), lib.ones(1, 1))
m.scatter_add(1, lib.tensor([[0], [1]]), lib.ones(2, 2))
m.masked_select(i)
m.masked_select(b)
m.masked_select(lib.tensor([True, False]))
F.one_hot(f)
F.one_hot(i.int())
F.one_hot(lib.zeros(0).long())
F.one_hot(lib.zeros(0).long(), 3)
lib.div(i, 0, rounding_mode="trunc")
lib.div(b, b, rounding_mode="trunc")
lib.div(f, 0, rounding_mode="trunc")
lib.round(i, decimals=1)
"""

LOSSES = """
F.mse_loss(f, i)
F.mse_loss(i, f)
F.mse_loss(f, b)
F.mse_loss(h, i)
F.mse_loss(f, f.double())
F.mse_loss(i, i)
F.l1_loss(f, i)
F.smooth_l1_loss(f, i)
F.smooth_l1_loss(i, i)
F.binary_cross_entropy(f.sigmoid(), i)
F.binary_cross_entropy(f.sigmoid(), b)
F.binary_cross_entropy(f.sigmoid(), f.double())
F.binary_cross_entropy_with_logits(f, i)
F.binary_cross_entropy_with_logits(f, f.double())
F.binary_cross_entropy_with_logits(i, f)
"""

CREATION = """
lib.tensor([1, 2], dtype=float)
lib.tensor([1.5, 2], dtype=int)
lib.tensor([0, 2], dtype=bool)
lib.tensor([f0, 1])
lib.tensor([lib.tensor(2), 1.5])
lib.tensor([np.float32(1.5), 2])
lib.tensor({1: 2})
lib.tensor({1, 2})
lib.tensor(map(int, [1]))
lib.tensor(b"1")
lib.zeros(size=(2, 3))
lib.ones(size=(2,), dtype=float)
lib.empty(size=(2, 0))
lib.zeros()
lib.rand(size=(2, 3)).shape == (2, 3)
lib.randn(size=(2,), dtype=lib.float64).dtype == lib.float64
lib.randn(2, dtype=lib.int64)
lib.rand(2, dtype=lib.int32)
lib.rand_like(i)
lib.randn_like(b)
lib.randint(5, size=(2,)).shape == (2,)
lib.randint(high=1, size=(2,))
lib.randint(1, (2,))
lib.randint(4, 5, (2,))
lib.randperm(-1)
lib.normal(f, -1.0)
lib.multinomial(i, 1)
lib.multinomial(f0, 1)
lib.arange(end=3)
lib.arange(np.int64(3))
lib.arange(1, lib.tensor(4))
lib.arange(lib.tensor(2.5))
lib.arange(3.0, requires_grad=True)
lib.arange(3, requires_grad=True)
lib.arange(0, math.inf)
lib.arange(math.nan)
lib.eye(-1)
lib.eye(2, -1)
"""

NAMES_AND_SHAPES = """
i.to(float)
f.to(int)
f.to(dtype=bool)
f.to("cpu", float)
f.to("cpu", copy=True)
lib.reshape(m, shape=(3, 2))
m.reshape(shape=(3, 2))
m.view(size=(3, 2))
f.expand(size=(2, 3))
f.repeat(repeats=(2,))
f.repeat(-1)
f.repeat((2, -1))
F.pad(m, (3, 1), mode="reflect")
F.pad(m, (2, 2), mode="reflect")
lib.add(i, i, alpha=0.5)
lib.sub(i, 1, alpha=2.0)
lib.add(f, i, alpha=0.5)
lib.add(i, f, alpha=0.5)
lib.add(i, i, alpha=2)
lib.add(f, 2, alpha=3)
i.add_(1, alpha=0.5)
"""

SPECIAL_NUMBERS = """
lib.tensor([math.inf, math.nan, 0.0, 1.0]).norm(0)
"""


def lines(text: str) -> list[str]:
    return text.strip().splitlines()


@pytest.mark.parametrize(
    "expression",
    lines(NAMES_OF_NUMPY)
    + lines(NUMBERS_BESIDE_INTEGERS)
    + lines(INTEGERS_AND_BOOLS)
    + lines(ODD_OPERANDS)
    + lines(NUMBERS_THAT_DO_NOT_FIT)
    + lines(SPECIAL_NUMBERS)
    + lines(GATHERING)
    + lines(LOSSES)
    + lines(CREATION)
    + lines(NAMES_AND_SHAPES)
    + ACTIVATIONS_OF_INTEGERS,
)
def test_gives_what_pytorch_gives(expression: str) -> None:
    def program(lib):
        names = {
            "u": lib.tensor([1, 200, 3], dtype=lib.uint8),
            "i": lib.tensor([3, -1, 2]),
            "b": lib.tensor([True, False, True]),
            "f": lib.tensor([1.0, 2.0, 3.0]),
            "f0": lib.tensor(2.5),
            "h": lib.tensor([1.5, -2.0, 3.0], dtype=lib.float16),
            "m": lib.tensor([[0.5, -1.0, 2.0], [3.0, 4.0, -5.0]]),
        }
        return eval(expression, {"lib": lib, "F": lib.nn.functional, "math": math, "np": np, **names})

    same(program)


@pytest.mark.parametrize("arguments", ["f", "f, None", "None, f", "other=f"])
def test_where_is_given_both_values_or_none(arguments: str) -> None:
    """Only the type of the error is compared: PyTorch's text lists its signatures."""
    for lib in (ma, torch):
        with pytest.raises(TypeError, match=r"where\(\) received an invalid combination of arguments"):
            eval(f"lib.where(b, {arguments})", {"lib": lib, "b": lib.tensor([True, False]), "f": lib.ones(2)})


def test_numpy_does_not_warn_of_overflow_in_the_engine() -> None:
    """PyTorch gives inf and nan without a warning. NumPy in users' own programs warns as before."""
    program = """
import warnings
warnings.simplefilter("error")
import numpy as np
import mini_autograd as ma
x = ma.tensor([1e30, -1e30, 0.0], requires_grad=True)
(x * x * x - x * x).sum().backward()
(x * 1e8).sum(), ma.tensor([float("inf"), -float("inf")]).sum(0).sin()
ma.tensor(1e30) * ma.tensor(1e30), x.detach().half(), x @ x, ma.tensor(1e300)
ma.tensor([float("nan")]).long(), x.detach() * float("inf")
try:
    np.float32(1e30) * np.float32(1e30)
except RuntimeWarning:
    print("warned")
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert (result.stdout, result.stderr) == ("warned\n", "")
