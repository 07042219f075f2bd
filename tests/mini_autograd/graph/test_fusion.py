"""`compile` gives what the eager run gives, bit for bit, whether it could fuse the function or not."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mini_autograd as ma
from mini_autograd.fusion import compile
from mini_autograd.numerics import blocks
from mini_autograd.operations.neural.activations import gelu_tanh, gelu_tanh_gradient

BLOCK = 64
BLOCK_OF_RULES = blocks.BLOCK + 17
SHAPE = (5, 37)  # two whole blocks and a part

FUSIBLE: dict[str, Callable[..., Any]] = {
    "arithmetic": lambda a, b: (a * b + a - b) / (b + 2.0),
    "tanh, exp, log": lambda a, b: ((a * b).tanh().exp() + 1.0).log() - b,
    "powers": lambda a, b: a**3 - 2.0 / b**0.5 + (b * b) ** -1.5,
    "a tensor as exponent": lambda a, b: b**a,
    "relu and its corner": lambda a, b: (a - a).relu() + (a * b).relu(),
    "where": lambda a, b: ma.where(a > b, a * b, a - b),
    "clamp": lambda a, b: a * b.clamp(0.3, 0.6),
    "negation and number first": lambda a, b: 1.0 - (-a) * 3 / b,
    "an input given back": lambda a, b: a,
    "one input unused": lambda a, b: a.exp(),
    "the same gradient for both": lambda a, b: a + b,
    "fan-out": lambda a, b: (a * a + a) * (a - b * a),
    "detached": lambda a, b: a * b.detach() + a.detach() * b,
    "all detached": lambda a, b: a.detach() * b.detach(),
    "another dtype": lambda a, b: (a.double() * 1e-9 + b.double()).float() * a,
    "infinite constant": lambda a, b: ma.where(a > 0, a, float("-inf")) + b,
    "sigmoid, silu, softplus": lambda a, b: a.sigmoid() * b + ma.nn.functional.softplus(a) * ma.nn.functional.silu(b),
    "tanh-gelu": lambda a, b: ma.nn.functional.gelu(a, approximate="tanh") * b,
    "erf, changed in place inside": lambda a, b: ma.nn.functional.gelu(a) * b,
    "without recording inside": lambda a, b: a * unrecorded(b),
}


@ma.no_grad()
def unrecorded(x: Any) -> Any:
    return x * x


def if_positive(a: Any, b: Any) -> Any:
    return a * b if a.sum() > 0 else a - b


def if_first(a: Any, b: Any) -> Any:
    return a * b if a[0, 0] > 0 else a - b


def if_item(a: Any, b: Any) -> Any:
    return a * a.sum().item() + b


def through_numpy(a: Any, b: Any) -> Any:
    return a * float(b.detach().numpy()[0, 0]) + b


FROM_OUTSIDE = ma.tensor(np.linspace(0.1, 1.0, 5 * 37, dtype=np.float32).reshape(SHAPE), requires_grad=True)
SCALAR_FROM_OUTSIDE = ma.tensor(0.25, requires_grad=True)

NOT_FUSIBLE: dict[str, Callable[..., Any]] = {
    "control flow on a sum": if_positive,
    "control flow on an element": if_first,
    "a number out of the data": if_item,
    "numbers through NumPy": through_numpy,
    "a reduction": lambda a, b: (a * b).sum(),
    "a mean that is broadcast": lambda a, b: a - b.mean(),
    "a matrix product": lambda a, b: a @ b.T,
    "a transpose": lambda a, b: (a.T * b.T).exp(),
    "rows": lambda a, b: a[1:] * b[1:],
    "a cumulative sum": lambda a, b: a.cumsum(1) * b,
    "a sorted copy": lambda a, b: a.sort(dim=1)[0] * b,
    "joined": lambda a, b: ma.cat([a, b]),
    "a rule with other NumPy functions": lambda a, b: a.abs() * b,
    "another tensor": lambda a, b: a * FROM_OUTSIDE + b,
    "another number that requires grad": lambda a, b: a * SCALAR_FROM_OUTSIDE + b,
    "a NumPy array from outside": lambda a, b: a * ma.from_numpy(np.full(SHAPE, 2.0, np.float32)) + b,
    "two results": lambda a, b: (a * b, a + b),
    "a constant": lambda a, b: ma.ones(*SHAPE, requires_grad=True) * 2.0,
}


def inputs(dtype: Any = np.float32, requires_grad: tuple[bool, ...] = (True, True), shape: Any = SHAPE) -> list[Any]:
    numbers = np.random.default_rng(0)
    values = [numbers.uniform(low, 1.0, shape).astype(dtype) for low in (-1.0, 0.1)]
    return [ma.tensor(x, requires_grad=flag) for x, flag in zip(values, requires_grad, strict=True)]


def outcome(function: Callable[..., Any], arguments: list[Any]) -> list[Any]:
    """The value, whether it requires grad, and the gradients for a random cotangent."""
    output = function(*arguments)
    outputs = output if isinstance(output, tuple) else (output,)
    numbers = np.random.default_rng(1)
    for result in outputs:
        if result.requires_grad:
            cotangent = numbers.standard_normal(result.shape).astype(result.dtype)
            result.backward(ma.tensor(cotangent), retain_graph=True)
    values = [(x.detach().numpy(), x.requires_grad) for x in outputs]
    gradients = [None if x.grad is None else x.grad.numpy() for x in arguments if isinstance(x, ma.Tensor)]
    return [*values, *gradients]


def assert_same(one: Any, other: Any) -> None:
    """The same structure, and the same bits, dtypes and shapes."""
    assert type(one) is type(other)
    if isinstance(one, list | tuple):
        assert len(one) == len(other)
        for left, right in zip(one, other, strict=True):
            assert_same(left, right)
    elif isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other, strict=True)
    else:
        assert one == other


def is_fused(tensor: Any) -> bool:
    return tensor.grad_fn is not None and tensor.grad_fn.name() == "FusedBackward"


@pytest.mark.parametrize("requires_grad", [(True, True), (True, False), (False, False)], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FUSIBLE)
def test_the_same_bits(name: str, dtype: Any, requires_grad: tuple[bool, bool]) -> None:
    function = FUSIBLE[name]
    compiled = compile(function, block=BLOCK)
    eager = outcome(function, inputs(dtype, requires_grad))
    for _ in range(2):  # traced, then from memory
        assert_same(outcome(compiled, inputs(dtype, requires_grad)), eager)


@pytest.mark.parametrize("name", [name for name in FUSIBLE if name != "all detached"])
def test_is_one_node(name: str) -> None:
    assert is_fused(compile(FUSIBLE[name], block=BLOCK)(*inputs()))


@pytest.mark.parametrize("name", NOT_FUSIBLE)
def test_unchanged_where_it_cannot_be_traced(name: str) -> None:
    function = NOT_FUSIBLE[name]
    compiled = compile(function, block=BLOCK)
    for _ in range(2):
        output = compiled(*inputs())
        assert not any(map(is_fused, output if isinstance(output, tuple) else (output,)))
        assert_same(outcome(compiled, inputs()), outcome(function, inputs()))


@pytest.mark.parametrize("name", ["tanh, exp, log", "powers", "fan-out", "one input unused"])
def test_second_order_goes_through_the_operations(name: str) -> None:
    def second(function: Callable[..., Any]) -> list[Any]:
        a, b = inputs(np.float64)
        (first,) = ma.autograd.grad(function(a, b).sum(), a, create_graph=True)
        return [x.numpy() for x in ma.autograd.grad((first * first).sum(), [a, b], materialize_grads=True)]

    assert_same(second(compile(FUSIBLE[name], block=BLOCK)), second(FUSIBLE[name]))


def test_traced_anew_for_what_changes() -> None:
    calls = []

    @compile(block=BLOCK)
    def function(a: Any, b: Any, power: int = 1) -> Any:
        calls.append(a.shape)
        return a**power * b

    def traced(*arguments: Any) -> int:
        before = len(calls)
        function(*arguments)
        return len(calls) - before

    assert traced(*inputs()) == 2  # it is run twice, to see whether it does the same each time
    assert traced(*inputs()) == 0
    assert traced(*inputs(), 2) == 2
    assert traced(*inputs(np.float64)) == 2
    assert traced(*inputs(requires_grad=(True, False))) == 2
    assert traced(*inputs(shape=(1000,))) == 2
    with ma.no_grad():
        assert traced(*inputs()) == 2
    assert traced(*inputs(), 2) == 0
    assert traced(*inputs(shape=(3,))) == 1  # small: eager


def test_numbers_from_outside_are_guarded() -> None:
    for scale in (2.0, 3.0, -0.0, 0.0):

        def function(a: Any, b: Any) -> Any:
            return a * scale + b  # noqa: B023  (the test is about this change)

        compiled = compile(function, block=BLOCK)
        assert_same(outcome(compiled, inputs()), outcome(function, inputs()))
        scale += 1.0
        assert_same(outcome(compiled, inputs()), outcome(function, inputs()))


@pytest.mark.parametrize("name", ["contiguous", "transposed", "broadcast"])
def test_a_formula_in_blocks(name: str) -> None:
    """The rules of tanh-GELU, on arrays large enough for blocks, with a partial block at the end."""
    x = np.random.default_rng(0).standard_normal((3, BLOCK_OF_RULES, 1)).astype(np.float32)
    x = {"contiguous": x, "transposed": x.T, "broadcast": np.broadcast_to(x, (3, BLOCK_OF_RULES, 3))}[name]
    grad = np.random.default_rng(1).standard_normal(x.shape).astype(np.float32)
    for rule, arguments in ((gelu_tanh, (x,)), (gelu_tanh_gradient, (x, grad))):
        np.testing.assert_array_equal(rule(*arguments), rule.__wrapped__(*arguments), strict=True)


def test_random_numbers_are_drawn_every_time() -> None:
    function = compile(lambda a, b: a * random.random() + b, block=BLOCK)
    a, b = inputs()
    assert not np.array_equal(function(a, b).detach().numpy(), function(a, b).detach().numpy())
    assert not is_fused(function(a, b))


def test_inside_another_compiled_function() -> None:
    inner = compile(FUSIBLE["tanh, exp, log"], block=BLOCK)

    def outer(a: Any, b: Any) -> Any:
        return inner(a, b) * a

    assert_same(outcome(compile(outer, block=BLOCK), inputs()), outcome(outer, inputs()))
    assert is_fused(compile(outer, block=BLOCK)(*inputs()))


def test_as_a_part_of_a_larger_graph() -> None:
    def run(function: Callable[..., Any]) -> list[Any]:
        a, b = inputs(np.float64)
        (function(a.exp(), b).sum() + (a * b).sum()).backward()
        return [a.grad.numpy(), b.grad.numpy()]

    function = FUSIBLE["fan-out"]
    for mine, eager in zip(run(compile(function, block=BLOCK)), run(function), strict=True):
        np.testing.assert_allclose(mine, eager, rtol=1e-14, atol=1e-15)  # the sum of three gradients in another order


def test_the_same_tensor_twice_and_other_layouts() -> None:
    function = FUSIBLE["tanh, exp, log"]
    compiled = compile(function, block=BLOCK)
    _, b = inputs(shape=SHAPE[::-1])
    twice, turned = (lambda f: [f(b, b), *ma.autograd.grad(f(b, b).sum(), b)]), (lambda f: [f(b.T, b.T * 2)])
    for run in (twice, turned):
        assert_same([x.detach().numpy() for x in run(compiled)], [x.detach().numpy() for x in run(function)])


def test_errors_are_those_of_the_function() -> None:
    compiled = compile(lambda a, b: a * undefined_name + b, block=BLOCK)  # noqa: F821
    with pytest.raises(NameError, match="undefined_name"):
        compiled(*inputs())
    with pytest.raises(RuntimeError, match="must match the size"):
        compile(FUSIBLE["arithmetic"], block=BLOCK)(inputs()[0], inputs(shape=(5, 36))[1])


def test_options_and_other_arguments_run_eagerly() -> None:
    compiled = compile(lambda a, b, scale=1.0, names=(): a * b * scale, block=BLOCK)
    a, b = inputs()
    assert not is_fused(compiled(a, b, scale=2.0))
    assert not is_fused(compiled(a, b, 2.0, ["x"]))
    assert is_fused(compiled(a, b, 2.0))
    np.testing.assert_array_equal(compiled(a, b, scale=2.0).detach().numpy(), compiled(a, b, 2.0).detach().numpy())


def test_is_documented_like_the_function() -> None:
    @ma.compile
    def scaled(x: Any) -> Any:
        """Twice."""
        return x * 2.0

    assert scaled.__name__ == "scaled"
    assert scaled.__doc__ == "Twice."
