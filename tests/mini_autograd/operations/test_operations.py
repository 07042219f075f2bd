"""Every operation against PyTorch and against finite differences: values, gradients and second gradients, float64.

A row is a program that runs under either library, and the inputs to try it with. Cotangents are random, because an
all-ones cotangent cannot see a transpose, a flip or a sum in the wrong place.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

import mini_autograd as ma

ANY, POSITIVE, NOT_ZERO = "any", "positive", "not zero"


@dataclass(frozen=True)
class Case:
    """A program `program(lib, *tensors)` and its inputs: shapes, all drawn from `domain`."""

    name: str
    program: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]
    domain: str = ANY

    def draw(self) -> tuple[list[np.ndarray], np.random.Generator]:
        generator = np.random.default_rng(sum(map(ord, self.name)))
        arrays = [generator.standard_normal(shape) for shape in self.shapes]
        if self.domain == POSITIVE:
            arrays = [np.abs(array) + 0.2 for array in arrays]
        if self.domain == NOT_ZERO:
            arrays = [array + np.where(array < 0, -0.2, 0.2) for array in arrays]
        return arrays, generator


PAIRS = [
    ((), ()),
    ((3,), (3,)),
    ((3,), ()),
    ((2, 3), (3,)),
    ((2, 1), (1, 3)),
    ((1,), ()),
    ((4, 1, 2), (3, 1)),
    ((0, 3), (3,)),
]
SHAPES = [(), (3,), (2, 3), (1,), (2, 1, 3), (0,)]


def each(name: str, program: Callable[..., Any], shapes: list, domain: str = ANY) -> list[Case]:
    return [
        Case(f"{name} {shape}", program, shape if shape and isinstance(shape[0], tuple) else (shape,), domain)
        for shape in shapes
    ]


WITH_NUMBERS = [
    *each("x + 2", lambda lib, x: x + 2, SHAPES),
    *each("2 + x", lambda lib, x: 2 + x, SHAPES),
    *each("x - 2.5", lambda lib, x: x - 2.5, SHAPES),
    *each("2 - x", lambda lib, x: 2 - x, SHAPES),
    *each("x * 3", lambda lib, x: x * 3, SHAPES),
    *each("3 * x", lambda lib, x: 3 * x, SHAPES),
    *each("x / 4", lambda lib, x: x / 4, SHAPES),
    *each("4 / x", lambda lib, x: 4 / x, SHAPES, NOT_ZERO),
    *each("x ** 3", lambda lib, x: x**3, SHAPES),
    *each("x ** 2", lambda lib, x: x**2, SHAPES),
    *each("x ** 1", lambda lib, x: x**1, SHAPES),
    *each("x ** 0", lambda lib, x: x**0, SHAPES),
    *each("x ** 0.5", lambda lib, x: x**0.5, SHAPES, POSITIVE),
    *each("x ** -1", lambda lib, x: x**-1, SHAPES, NOT_ZERO),
    *each("2 ** x", lambda lib, x: 2**x, SHAPES),
    *each("x * numpy scalar", lambda lib, x: x * np.float32(2.5), SHAPES),
]
INDEXING = [
    *each("x[1]", lambda lib, x: x[1], [(3,), (2, 3)]),
    *each("x[-1, 0]", lambda lib, x: x[-1, 0], [(2, 3)]),
    *each("x[:, 1:]", lambda lib, x: x[:, 1:], [(2, 3)]),
    *each("x[::2]", lambda lib, x: x[::2], [(5,), (3, 2)]),
    *each("x[..., None]", lambda lib, x: x[..., None], SHAPES),
    *each("x[1:1]", lambda lib, x: x[1:1], [(3,)]),
    *each("x[[0, 0, 1]]", lambda lib, x: x[[0, 0, 1]], [(2,), (2, 3)]),
    *each("x[tensor]", lambda lib, x: x[lib.tensor([[1, 1], [0, -1]])], [(2,), (2, 3)]),
    *each("x[rows, columns]", lambda lib, x: x[lib.tensor([0, 1, 1]), lib.tensor([2, 0, 0])], [(2, 3), (2, 3, 2)]),
    *each("x[:, list]", lambda lib, x: x[:, [0, 2, 2]], [(2, 3)]),
    *each("x[list, :, list]", lambda lib, x: x[[0, 1], :, [1, 1]], [(2, 3, 2)]),
    *each("x[mask]", lambda lib, x: x[x > 0], [(), (5,), (2, 3)]),
    *each("x[True]", lambda lib, x: x[True], [(2,)]),
    *each("x[0-d tensor]", lambda lib, x: x[lib.tensor(1)], [(2, 3)]),
    *each("x[[]]", lambda lib, x: x[[]], [(2, 3)]),
    *each("rows", lambda lib, x: [row * (i + 1) for i, row in enumerate(x)][1], [(2, 3)]),
]
FAN_OUT = [
    Case("x + x", lambda lib, x: x + x, ((2, 3),)),
    Case("x * x * x", lambda lib, x: x * x * x, ((2, 3),)),
    Case("x / x", lambda lib, x: x / x, ((3,),), NOT_ZERO),
    Case("x @ x", lambda lib, x: x @ x, ((3, 3),)),
    Case("x @ x.T", lambda lib, x: x @ x.T, ((2, 3),)),
    Case("x ** x", lambda lib, x: x**x, ((3,),), POSITIVE),
    Case("x / detached x", lambda lib, x: x / x.detach(), ((3,),), NOT_ZERO),
    Case("detached x / x", lambda lib, x: x.detach() / x, ((3,),), NOT_ZERO),
    Case("detached x @ x", lambda lib, x: x.detach() @ x, ((3, 3),)),
    Case("x / view of x", lambda lib, x: x / x[:], ((3,),), NOT_ZERO),
    Case("diamond", lambda lib, x: (x.tanh() * x.exp()) + x.tanh(), ((2, 3),)),
    Case("reused output", lambda lib, a, b: (lambda y: y * y + y)(a * b), ((3,), (2, 1))),
    Case("same output twice", lambda lib, x: (lambda y: y * y)(x.exp()), ((2,),)),
    Case("network", lambda lib, x, w, b, v: ((x @ w + b).tanh() @ v).mean(), ((4, 3), (3, 5), (5,), (5,))),
    Case("softmax", lambda lib, x: x.exp() / x.exp().sum(-1, keepdim=True), ((2, 4),)),
    Case("constant operand", lambda lib, x: x * lib.tensor([1.0, 2.0, 3.0], dtype=lib.float64), ((2, 3),)),
    Case("constant base", lambda lib, x: lib.tensor([0.5, 2.0], dtype=lib.float64) ** x, ((3, 2),), POSITIVE),
]
CASES = WITH_NUMBERS + INDEXING + FAN_OUT
by_name = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def by_name_without(word: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "case", [case for case in CASES if word not in case.name], ids=lambda case: case.name
    )


def leaves(lib: Any, arrays: list[np.ndarray]) -> list[Any]:
    return [lib.tensor(array, dtype=lib.float64, requires_grad=True) for array in arrays]


def numbers(tensor: Any) -> np.ndarray | None:
    return None if tensor is None else tensor.detach().numpy()


def close(ours: Any, theirs: Any) -> None:
    """Same shape and dtype, and equal up to rounding."""
    ours, theirs = numbers(ours), numbers(theirs)
    assert (ours is None) == (theirs is None)
    if ours is not None:
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-12, strict=True)


def value_and_gradients(lib: Any, case: Case) -> list[Any]:
    arrays, generator = case.draw()
    inputs = leaves(lib, arrays)
    output = case.program(lib, *inputs)
    output.backward(lib.tensor(generator.standard_normal(output.shape)))
    return [output, *[tensor.grad for tensor in inputs]]


@by_name
def test_values_and_gradients_are_those_of_pytorch(case: Case) -> None:
    for ours, theirs in zip(value_and_gradients(ma, case), value_and_gradients(torch, case), strict=True):
        close(ours, theirs)


def second_gradients(lib: Any, case: Case) -> list[Any]:
    """Gradients of a random combination of the gradients, with respect to the inputs and the cotangent."""
    arrays, generator = case.draw()
    inputs = leaves(lib, arrays)
    output = case.program(lib, *inputs)
    (cotangent,) = leaves(lib, [generator.standard_normal(output.shape)])
    first = lib.autograd.grad(output, inputs, cotangent, create_graph=True)
    combined = sum((lib.tensor(generator.standard_normal(grad.shape)) * grad).sum() for grad in first)
    second: Any = (None,) * (len(inputs) + 1)
    if combined.requires_grad:
        second = lib.autograd.grad(combined, [*inputs, cotangent], allow_unused=True)
    zeros = [lib.zeros_like(tensor) for tensor in (*inputs, cotangent)]
    return [*first, *[zero if grad is None else grad for grad, zero in zip(second, zeros, strict=True)]]


@by_name
def test_second_gradients_are_those_of_pytorch(case: Case) -> None:
    for ours, theirs in zip(second_gradients(ma, case), second_gradients(torch, case), strict=True):
        close(ours, theirs)


@by_name_without("detach")  # through which finite differences see
def test_gradients_agree_with_finite_differences(case: Case) -> None:
    arrays, generator = case.draw()
    inputs = leaves(ma, arrays)
    output = case.program(ma, *inputs)
    cotangent = generator.standard_normal(output.shape)
    gradients = ma.autograd.grad(output, inputs, ma.tensor(cotangent))
    for position, gradient in enumerate(gradients):
        direction = generator.standard_normal(arrays[position].shape)
        slope = 0.0
        for sign in (1.0, -1.0):
            moved = [
                ma.tensor(array + sign * 1e-6 * direction if i == position else array) for i, array in enumerate(arrays)
            ]
            slope += sign * float((case.program(ma, *moved).numpy() * cotangent).sum()) / 2e-6
        np.testing.assert_allclose((gradient.numpy() * direction).sum(), slope, rtol=1e-6, atol=1e-7)


@by_name_without("constant")  # which is a float64
def test_float32_stays_float32(case: Case) -> None:
    arrays, _ = case.draw()
    inputs = [ma.tensor(array, dtype=ma.float32, requires_grad=True) for array in arrays]
    output = case.program(ma, *inputs)
    output.backward(ma.ones_like(output))
    assert [tensor.dtype for tensor in (output, *[tensor.grad for tensor in inputs])] == [ma.float32] * (
        len(inputs) + 1
    )


THIRD = {
    "cube": lambda lib, x: x**3,
    "tanh": lambda lib, x: x.tanh(),
    "exp of product": lambda lib, x: (x * x).exp(),
    "quotient": lambda lib, x: 1 / (1 + x * x),
    "log": lambda lib, x: (x * x + 1).log(),
}


@pytest.mark.parametrize("program", THIRD.values(), ids=THIRD)
def test_third_and_fourth_derivatives_are_those_of_pytorch(program: Callable[..., Any]) -> None:
    results = []
    for lib in (ma, torch):
        x = lib.tensor(0.7, dtype=lib.float64, requires_grad=True)
        grad = program(lib, x)
        for _ in range(4):
            (grad,) = lib.autograd.grad(grad, x, create_graph=True)
        results.append(grad)
    close(*results)


@pytest.mark.parametrize(("dtype", "error"), [(np.float16, 1e-3), (np.float32, 1.6e-7), (np.float64, 1e-13)])
def test_erf_and_gelu_over_the_whole_range(dtype: Any, error: float) -> None:
    """As in `math.erf`, from the smallest numbers to the largest; short arrays, and one that is processed in blocks."""
    most, least = float(np.finfo(dtype).max), 4 * float(np.finfo(dtype).tiny)
    ends = np.logspace(np.log10(least), np.log10(most) - 0.01, 500)
    positive = np.concatenate([np.linspace(0.1, 8.0, 40_000), ends]).astype(dtype)
    for x in (np.concatenate([-positive, positive]), positive[::1000]):
        erf, gelu = (f(ma.tensor(x)).numpy() for f in (ma.erf, ma.nn.functional.gelu))
        np.testing.assert_allclose(erf, [math.erf(value) for value in x], rtol=0, atol=error)
        below = [(1.0 + math.erf(value * math.sqrt(0.5))) / 2 for value in x.astype(np.float64)]
        np.testing.assert_allclose(gelu / x, below, rtol=0, atol=error)
    ends = ma.tensor(np.array([0.0, np.inf, -np.inf, np.nan], dtype))
    np.testing.assert_allclose(ma.erf(ends).numpy(), [0.0, 1.0, -1.0, np.nan], rtol=0, atol=error)


@pytest.mark.parametrize("strange", [None, np.inf, -np.inf, np.nan], ids=str)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(("shape", "dim"), [((3, 10_007), 1), ((10_007, 3), 0), ((40, 20, 32), 1), ((30_000,), 0)])
def test_running_sums_of_large_arrays(shape: tuple[int, ...], dim: int, dtype: Any, strange: float | None) -> None:
    """From both ends, in blocks and without; a number that is not finite does not reach the sums before it."""
    x = np.random.default_rng(0).uniform(-0.01, 0.01, shape).astype(dtype)
    grad = np.random.default_rng(1).uniform(-0.01, 0.01, shape).astype(dtype)
    if strange is not None:
        x.reshape(-1)[x.size // 2] = grad.reshape(-1)[x.size // 3] = strange
    tensor = ma.tensor(x, requires_grad=True)
    result = tensor.cumsum(dim)
    result.backward(ma.tensor(grad))
    error = {np.float16: 0.2, np.float32: 2e-5, np.float64: 1e-12}[dtype]
    with np.errstate(invalid="ignore"):
        expected = x.astype(np.float64).cumsum(dim), np.flip(np.flip(grad.astype(np.float64), dim).cumsum(dim), dim)
    for found, right in zip((result.detach().numpy(), tensor.grad.numpy()), expected, strict=True):
        assert found.dtype == dtype
        assert found.flags.c_contiguous
        np.testing.assert_allclose(found, right, rtol=0, atol=error)
