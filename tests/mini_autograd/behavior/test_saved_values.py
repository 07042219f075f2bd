"""What nodes saved, under PyTorch's names (`y.grad_fn._saved_self`): the same values, errors and listing."""

from collections.abc import Callable
from typing import Any

import pytest

from mini_autograd.graph.saved_values import NAMES
from tests.mini_autograd.same_as_torch import same

Operation = Callable[[Any, Any, Any], Any]

OPERATIONS: dict[str, Operation] = {
    name: lambda lib, x, y, name=name: getattr(x, name)()
    for name in (
        *("exp", "log", "sqrt", "reciprocal", "square", "abs", "sin", "tanh", "sigmoid", "relu", "neg", "clone"),
        *("sum", "mean", "var", "max", "min"),
    )
} | {
    "softmax": lambda lib, x, y: x.softmax(0),
    "log_softmax": lambda lib, x, y: x.log_softmax(0),
    "gelu": lambda lib, x, y: lib.nn.functional.gelu(x),
    "product": lambda lib, x, y: x * y,
    "product with a number": lambda lib, x, y: x * 2.0,
    "product with an integer": lambda lib, x, y: x * 2,
    "product with a constant": lambda lib, x, y: x * y.detach(),
    "product of an inner tensor": lambda lib, x, y: (x + 1).exp() * y,
    "quotient": lambda lib, x, y: x / y,
    "quotient by a constant": lambda lib, x, y: x / y.detach(),
    "sum of two": lambda lib, x, y: x + y,
    "power": lambda lib, x, y: x**2,
    "power of tensors": lambda lib, x, y: x**y,
    "maximum": lambda lib, x, y: lib.maximum(x, y),
    "matrices": lambda lib, x, y: x @ y,
    "matrix with a constant": lambda lib, x, y: x @ y.detach(),
    "matrix and vector": lambda lib, x, y: x @ y[0],
    "vectors": lambda lib, x, y: x[0] @ y[0],
}


def inputs(lib: Any) -> tuple[Any, Any]:
    x = lib.tensor([[0.5, 0.25], [0.75, 0.3]], requires_grad=True)
    return x, lib.tensor([[0.7, 0.8], [0.9, 0.6]], requires_grad=True)


def saved(node: Any) -> list[Any]:
    """Every value that the node has saved, and the node that made the value."""
    found = []
    for name in NAMES:
        if hasattr(node, f"_saved_{name}"):
            value = getattr(node, f"_saved_{name}")
            found.append([name, value, value.grad_fn and value.grad_fn.name() if hasattr(value, "grad_fn") else None])
    return found


@pytest.mark.parametrize("name", OPERATIONS)
def test_saved_values(name: str) -> None:
    def program(lib: Any) -> Any:
        node = OPERATIONS[name](lib, *inputs(lib)).grad_fn
        listed = [f"_saved_{name}" for name in NAMES if name != "exponent" and f"_saved_{name}" in dir(node)]
        return saved(node), listed

    same(program)


@pytest.mark.parametrize(
    "name", ["exp", "sin", "product", "power", "matrices", "sum of two", "product of an inner tensor"]
)
def test_freed_and_changed_values(name: str) -> None:
    def freed(lib: Any) -> Any:
        z = OPERATIONS[name](lib, *inputs(lib))
        z.sum().backward()
        return saved(z.grad_fn)

    def changed(lib: Any) -> Any:
        x, y = inputs(lib)
        z = OPERATIONS[name](lib, x, y)
        x.detach().add_(1)
        return saved(z.grad_fn)

    same(freed)
    same(changed)


def test_pytorchs_tutorial() -> None:
    def program(lib: Any) -> Any:
        x = lib.tensor([1.0, 2.0], requires_grad=True)
        y = x.pow(2)
        z = x.exp()
        power = [x.equal(y.grad_fn._saved_self), x is y.grad_fn._saved_self, y.grad_fn._saved_exponent]
        result = z.grad_fn._saved_result
        return power, z.equal(result), result is z, result.grad_fn is z.grad_fn

    same(program)


def test_values_that_hooks_packed_are_unpacked() -> None:
    def program(lib: Any) -> Any:
        x = lib.tensor([1.0, 2.0], requires_grad=True)
        with lib.autograd.graph.saved_tensors_hooks(lambda tensor: tensor * 1, lambda tensor: tensor + 1):
            y = x.exp() * x
        return y.grad_fn._saved_self, y.grad_fn._saved_other

    same(program)


PICKS: dict[str, Callable[[Any, Any], Any]] = {
    "a slice": lambda lib, x: x[1:3],
    "a number": lambda lib, x: x[1],
    "a list": lambda lib, x: x[[0, 1]],
    "a tensor": lambda lib, x: x[lib.tensor([0, 1])],
    "a mask": lambda lib, x: x[x > 2],
    "gather": lambda lib, x: x.gather(0, lib.tensor([1, 2])),
    "index_select": lambda lib, x: x.index_select(0, lib.tensor([1, 2])),
    "where": lambda lib, x: lib.where(x > 2, x, -x),
    "masked_fill": lambda lib, x: x.masked_fill(x > 2, 0.0),
    "max over an axis": lambda lib, x: x.reshape(2, 3).max(1).values,
    "min over an axis": lambda lib, x: x.reshape(2, 3).min(1).values,
    "sort": lambda lib, x: x.sort().values,
    "topk": lambda lib, x: x.topk(2).values,
    "embedding": lambda lib, x: lib.nn.functional.embedding(lib.tensor([0, 1]), x.reshape(2, 3)),
    "scatter_add": lambda lib, x: lib.zeros(6).scatter_add(0, lib.tensor([0, 0, 1, 1, 2, 2]), x),
    "written into a slice": lambda lib, x: written(lib, x, slice(1, None)),
    "written into places": lambda lib, x: written(lib, x, [0, 2]),
}


def written(lib: Any, x: Any, index: Any) -> Any:
    base = lib.zeros(3) * 1
    base[index] = x[:2]
    return base


@pytest.mark.parametrize("retained", [False, True])
@pytest.mark.parametrize("name", PICKS)
def test_an_index_is_freed_like_what_was_saved(name: str, retained: bool) -> None:
    def twice(lib: Any) -> Any:
        x = (lib.arange(6) * 1.0).requires_grad_()
        y = PICKS[name](lib, x).sum()
        y.backward(retain_graph=retained)
        y.backward()
        return x.grad, y.grad_fn is not None

    same(twice)
