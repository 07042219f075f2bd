"""Edge cases where this engine once differed from PyTorch: special numbers, small dtypes, odd arguments, rare methods.

A row is an expression of `lib`, F (its nn.functional) and d (makes a float64 leaf); it gives the same under PyTorch:
values, dtype, shape and warnings, or error type and text. The rows of GRADIENTS are differentiated, with respect to x.
"""

import math
from typing import Any

import numpy as np
import pytest

from tests.mini_autograd.same_as_torch import d, same

EXPRESSIONS = """
u - 3
u + 300
lib.tensor([1], dtype=lib.int8) * 200
u.sum(dtype=lib.uint8)
u.prod(0, dtype=lib.uint8)
u.cumsum(0, dtype=lib.uint8)
lib.add(u, u, alpha=-3)
lib.tensor([1, 2], dtype=lib.uint8).fill_(-1)
lib.tensor([1, 2], dtype=lib.uint8).add_(-3)
i ** lib.tensor([-1, -3, 2])
2 ** lib.tensor([-1, 0, 1])
i // lib.tensor([0, 1, 1])
i % lib.tensor([0, 1, 1])
i.masked_fill(i > 1, 2.7)
lib.ones(2) & lib.ones(2)
lib.remainder(lib.tensor(-1.0), lib.tensor(math.inf))
lib.median(lib.tensor([1.0, math.nan, 0.0]))
lib.median(lib.tensor([1.0, math.nan, 0.0]), 0)
lib.median(lib.tensor([]))
lib.median(lib.tensor([3, 1, 2]))
F.max_pool2d(lib.tensor([[[1.0, math.nan], [2.0, 3.0]]]), 2, return_indices=True)
F.max_pool2d(lib.ones(1, 4, 4), 2, stride=0)
F.max_pool2d(lib.ones(1, 4, 4), 2, dilation=0)
F.avg_pool2d(lib.ones(1, 4, 4), (2, 2), ())
lib.ones(3).scatter(0, lib.tensor([0, 0]), lib.tensor([2.0, 3.0]), reduce="other")
lib.arange(5, 1)
lib.arange(0, 5, 0)
lib.zeros(-1)
lib.zeros()
lib.tensor(lib.tensor([1.0]))
lib.ones(2).type()
lib.ones(2).type(lib.float64)
lib.ones(2).short()
lib.ones(2).char()
lib.ones(2).byte()
lib.ones(2).is_complex()
lib.ones(2, 3).ndimension()
m[0, :, [0, 2]]
m[lib.tensor(1), :, lib.tensor([0, 2])]
m[..., 1, lib.tensor([0, 2])]
m[0, :, lib.tensor([True, False, True, False])]
m[None, 0, :, [0, 2]]
m[lib.tensor(1)]
m[lib.tensor(5)]
m[lib.tensor(1)]._is_view()
m[0].diagonal()._is_view()
m[0].diagonal(1).fill_(7.0)
lib.ones(4).repeat(2, 1).add_(1)
lib.ones(3).expand(2, 3).repeat(1, 1).add_(1)
F.linear(lib.ones(2, 3).double(), lib.ones(4, 3), lib.ones(4))
F.linear(lib.ones(2, 3).long(), lib.ones(4, 3))
F.linear(lib.ones(2, 3), lib.ones(4, 3), lib.ones(4).double())
F.linear(lib.ones(2, 3), lib.ones(4, 3), lib.ones(5))
F.linear(lib.tensor(1.0), lib.ones(4, 3), lib.ones(4))
lib.autograd.backward([x * 2, x], [lib.ones(6)])
(x * 2)[:1].detach_()

""".strip().splitlines()

GRADIENTS = """
lib.remainder(lib.tensor([-1.0, 5.0], dtype=lib.float64), x[:2])
F.max_pool2d(x.reshape(1, 2, 3), 2, stride=1)
lib.median(x)
x[1:4][[0, 0]].repeat(2, 1)
x.reshape(2, 3).diagonal(1)
x.reshape(2, 3)[1, [0, 2]]
""".strip().splitlines()


def names(lib: Any) -> dict[str, Any]:
    return {
        "lib": lib,
        "F": lib.nn.functional,
        "math": math,
        "u": lib.tensor([1, 200, 100], dtype=lib.uint8),
        "i": lib.tensor([2, -1, 1]),
        "m": lib.arange(24.0).reshape(2, 3, 4),
        "special": lib.tensor([0.0, 1.0, 0.5, -0.5, 2.0, math.inf, -math.inf, math.nan]),
        "x": d(lib, math.inf, 0.25, 0.0, 1.0, math.nan, 0.5),
    }


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expression(expression: str) -> None:
    same(lambda lib: eval(expression, names(lib)))


@pytest.mark.parametrize("expression", GRADIENTS)
def test_gradient(expression: str) -> None:
    def program(lib: Any) -> Any:
        known = names(lib)
        output = eval(expression, known)
        cotangent = lib.tensor(np.arange(1.0, output.numel() + 1).reshape(tuple(output.shape)))
        return output, *lib.autograd.grad(output, known["x"], cotangent)

    same(program)


STATEMENTS = {
    "a list for an axis, after an integer": ("m[0, :, [0, 2]] = lib.ones(3, 2)", "m"),
    "leading axes of size 1": ("y = lib.zeros(3); y[[0, 1]] = lib.ones(1, 1, 2)", "y"),
    "a gradient that is deleted": ("w.sum().backward(); del w.grad; g = w.grad is None", "g"),
    "a hook that computes with what it packs": (
        "with lib.autograd.graph.saved_tensors_hooks(lambda t: t * 1, lambda t: t): y = (w * w).exp()\n"
        "g = lib.autograd.grad(y.sum(), w)",
        "g",
    ),
    "a list out of bounds": ("m[0, 0, [0, 7]] = 1.0", "m"),
    "an element by a tensor": ("m[0, 0][lib.tensor(1)] = 9.0", "m"),
    "a diagonal": ("m[0].diagonal().mul_(0)", "m"),
    "a part by a tensor, and back": (
        "y = w * 2; v = y[y.argmax()]; v.mul_(3); g, = lib.autograd.grad((y * y).sum(), w)",
        "y, v, g",
    ),
    "a diagonal, and back": (
        "y = (w * 2).reshape(2, 2); y.diagonal().mul_(w[:2]); g, = lib.autograd.grad((y * y).sum(), w)",
        "y, g",
    ),
    "the gradient of a tensor with a hook, on the way": (
        "y = w * 2; h = y.register_hook(lambda g: g * 2); g = lib.autograd.grad((y * y).sum(), [w, y])",
        "g",
    ),
    "the gradient of a tensor with a hook, at the end": (
        "y = w * 2; h = y.register_hook(lambda g: g * 2); g = lib.autograd.grad((y * y).sum(), [y])",
        "g",
    ),
}


@pytest.mark.parametrize("name", STATEMENTS)
def test_statement(name: str) -> None:
    steps, shown = STATEMENTS[name]

    def program(lib: Any) -> Any:
        known = {**names(lib), "w": d(lib, 1.0, 2.0, 3.0, 4.0)}
        exec(steps, known)
        return list(eval(f"({shown},)", known))

    same(program)
