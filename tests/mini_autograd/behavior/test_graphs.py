"""Graphs, the backward passes through them and the names of their nodes: the same as under PyTorch.

A program gets the library and returns anything made of tensors and plain values. The name of a row says what is tried.
"""

import gc
from collections.abc import Callable
from typing import Any

import pytest

import mini_autograd as ma
from tests.mini_autograd.same_as_torch import Program, by_title, m23, same, scalar, x3


def twice(make: Callable[[Any], Any]) -> Program:
    """A program that walks the same graph backward twice."""

    def program(lib: Any) -> Any:
        output = make(lib)
        output.backward(lib.ones_like(output))
        output.backward(lib.ones_like(output))
        return "no error"

    return program


BACKWARD_TWICE: dict[str, Program] = {
    "x * 2": twice(lambda lib: x3(lib) * 2),
    "x + 2": twice(lambda lib: x3(lib) + 2),
    "x - y": twice(lambda lib: x3(lib) - x3(lib)),
    "x / 2": twice(lambda lib: x3(lib) / 2),
    "2 / x": twice(lambda lib: 2 / x3(lib)),
    "-x": twice(lambda lib: -x3(lib)),
    "x ** 2": twice(lambda lib: x3(lib) ** 2),
    "2 ** x": twice(lambda lib: 2 ** x3(lib)),
    "sum": twice(lambda lib: x3(lib).sum()),
    "mean": twice(lambda lib: x3(lib).mean()),
    "exp": twice(lambda lib: x3(lib).exp()),
    "log": twice(lambda lib: x3(lib).log()),
    "tanh": twice(lambda lib: x3(lib).tanh()),
    "relu": twice(lambda lib: x3(lib).relu()),
    "matmul": twice(lambda lib: m23(lib) @ x3(lib)),
    "slice": twice(lambda lib: x3(lib)[1:]),
    "transpose": twice(lambda lib: m23(lib).T),
    "reshape": twice(lambda lib: m23(lib).reshape(-1)),
    "expand": twice(lambda lib: x3(lib).expand(2, 3)),
    "clone": twice(lambda lib: x3(lib).clone()),
    "leaf": twice(lambda lib: x3(lib)),
}


def retained(lib: Any) -> Any:
    x = scalar(lib)
    y = x * x
    y.backward(retain_graph=True)
    first = x.grad.clone()
    y.backward()
    return first, x.grad


def retained_once_too_few(lib: Any) -> Any:
    y = scalar(lib) ** 2
    y.backward(retain_graph=True)
    y.backward()
    y.backward()


def shared_part_is_freed(lib: Any) -> Any:
    h = scalar(lib).exp()
    (h * 2).backward()
    (h * 3).backward()


def create_graph_retains(lib: Any) -> Any:
    x = scalar(lib)
    y = x**3
    (first,) = lib.autograd.grad(y, x, create_graph=True)
    (again,) = lib.autograd.grad(y, x)
    return first, again


def create_graph_without_retaining(lib: Any) -> Any:
    x = scalar(lib)
    y = x**3
    lib.autograd.grad(y, x, create_graph=True, retain_graph=False)
    y.backward()


def accumulates(lib: Any) -> Any:
    x = x3(lib)
    for _ in range(3):
        (x * x).sum().backward()
    return x.grad


def accumulates_in_place(lib: Any) -> Any:
    x = x3(lib)
    (x * 2).sum().backward()
    kept = x.grad
    (x * 2).sum().backward()
    return kept is x.grad, kept


def grad_is_not_shared(lib: Any) -> Any:
    x, y = x3(lib), x3(lib)
    seed = lib.tensor([1.0, 1.0, 1.0])
    (x + y).backward(seed)
    x.grad.numpy()[0] = 9.0
    return x.grad, y.grad, seed


def grad_of_a_leaf_is_not_the_seed(lib: Any) -> Any:
    x = x3(lib)
    seed = lib.tensor([1.0, 2.0, 3.0])
    x.backward(seed)
    x.backward(seed)
    return x.grad, seed


def create_graph_accumulation(lib: Any) -> Any:
    x = scalar(lib)
    (x**3).backward(create_graph=True)
    first = x.grad
    (x**3).backward(create_graph=True)
    return first is x.grad, x.grad, first


def gradient_penalty(lib: Any) -> Any:
    x, w = x3(lib), scalar(lib)
    (slope,) = lib.autograd.grad((w * x**2).sum(), x, create_graph=True)
    ((slope**2).sum() - 1).backward()
    return w.grad, x.grad


def unused_leaf(lib: Any) -> Any:
    x, y = x3(lib), x3(lib)
    (x * 2).sum().backward()
    return x.grad, y.grad


def diamond(lib: Any) -> Any:
    x = scalar(lib)
    a = x * 3
    b, c = a.exp(), a.tanh()
    (b * c + a).backward()
    return x.grad


def retain_grad_of_intermediate(lib: Any) -> Any:
    x = x3(lib)
    y = x * 2
    y.retain_grad()
    y.retain_grad()
    z = y * y
    z.sum().backward()
    return y.grad, x.grad, y.retains_grad, x.retains_grad


def retain_grad_twice_accumulates(lib: Any) -> Any:
    x = scalar(lib)
    y = x * 2
    y.retain_grad()
    (y * y).backward(retain_graph=True)
    (y * 3).backward()
    return y.grad


def retain_grad_of_output(lib: Any) -> Any:
    y = scalar(lib) * 2
    y.retain_grad()
    y.backward()
    return y.grad


def only_some_inputs(lib: Any) -> Any:
    x, y = scalar(lib), scalar(lib)
    (x * y).backward(inputs=[x])
    return x.grad, y.grad


def inputs_not_leaf(lib: Any) -> Any:
    x = scalar(lib)
    h = x * 3
    (h * h).backward(inputs=[h], retain_graph=True)
    return x.grad, h.grad, h.retains_grad


def grad_of_intermediate(lib: Any) -> Any:
    x = scalar(lib)
    h = x * 3
    y = h * h
    return *lib.autograd.grad(y, [h, x], retain_graph=True), x.grad, *lib.autograd.grad(y, h)


def grad_stops_at_inputs(lib: Any) -> Any:
    """What lies below the wanted tensor is neither computed nor freed."""
    x = scalar(lib)
    h = x.exp()
    lib.autograd.grad(h * 2, h)
    return lib.autograd.grad(h, x)


def several_outputs(lib: Any) -> Any:
    x = scalar(lib)
    lib.autograd.backward([x * 2, x.exp()], [lib.tensor(1.0), lib.tensor(3.0)])
    return x.grad, *lib.autograd.grad([x * x, x * 5], [x])


def output_that_is_input(lib: Any) -> Any:
    x = scalar(lib)
    return lib.autograd.grad(x, x)


def one_output_inside_the_other(lib: Any) -> Any:
    x = scalar(lib)
    h = x * x
    y = h.exp()
    return lib.autograd.grad([y, h], [x, h])


GRAPHS: dict[str, Program] = by_title(
    retained,
    retained_once_too_few,
    shared_part_is_freed,
    create_graph_retains,
    create_graph_without_retaining,
    accumulates,
    accumulates_in_place,
    grad_is_not_shared,
    grad_of_a_leaf_is_not_the_seed,
    create_graph_accumulation,
    gradient_penalty,
    unused_leaf,
    diamond,
    retain_grad_of_intermediate,
    retain_grad_twice_accumulates,
    retain_grad_of_output,
    only_some_inputs,
    inputs_not_leaf,
    grad_of_intermediate,
    grad_stops_at_inputs,
    several_outputs,
    output_that_is_input,
    one_output_inside_the_other,
)


STARTS: dict[str, Program] = {
    "backward of a vector": lambda lib: (x3(lib) * 2).backward(),
    "backward of one element": lambda lib: (x3(lib)[:1] * 2).backward(),
    "backward of none": lambda lib: (x3(lib)[:0] * 2).backward(),
    "backward of a constant": lambda lib: lib.tensor(1.0).backward(),
    "backward of a constant vector": lambda lib: lib.ones(3).backward(),
    "backward of detached": lambda lib: x3(lib).sum().detach().backward(),
    "seed of another shape": lambda lib: (x3(lib) * 2).backward(lib.ones(2)),
    "scalar seed for one element": lambda lib: (x3(lib) * 2)[:1].backward(lib.tensor(1.0)),
    "seed that would broadcast": lambda lib: (x3(lib) * 2).backward(lib.ones(1)),
    "seed of another dtype": lambda lib: (lambda x: [(x * 2).backward(lib.ones(3, dtype=lib.float64)), x.grad])(
        x3(lib)
    ),
    "seed of integers": lambda lib: (lambda x: [(x * 2).backward(lib.ones(3, dtype=lib.int64)), x.grad])(x3(lib)),
    "seed that is a number": lambda lib: scalar(lib).backward(1.0),
    "grad of unused": lambda lib: lib.autograd.grad(scalar(lib) * 2, [x3(lib)]),
    "grad of unused, allowed": lambda lib: lib.autograd.grad(scalar(lib) * 2, [x3(lib)], allow_unused=True),
    "grad of unused, as zeros": lambda lib: lib.autograd.grad(scalar(lib) * 2, [x3(lib)], materialize_grads=True),
    "grad contradictory": lambda lib: lib.autograd.grad(
        scalar(lib) * 2, [x3(lib)], allow_unused=False, materialize_grads=True
    ),
    "grad of a constant": lambda lib: lib.autograd.grad(scalar(lib) * 2, [lib.tensor(1.0)]),
    "grad of nothing": lambda lib: lib.autograd.grad(scalar(lib) * 2, []),
    "grad of a vector": lambda lib: lib.autograd.grad(x3(lib) * 2, [x3(lib)]),
    "grad from a constant": lambda lib: lib.autograd.grad(lib.tensor(2.0), [x3(lib)]),
    "grad seed of another shape": lambda lib: lib.autograd.grad(x3(lib) * 2, [x3(lib)], [lib.ones(2)]),
    "backward inputs empty": lambda lib: (scalar(lib) * 2).backward(inputs=[]),
}


def node_names(make: Callable[[Any], Any]) -> Program:
    """The name of the last node, and of the nodes of its inputs."""

    def program(lib: Any) -> Any:
        node = make(lib).grad_fn
        return node.name(), [(below and below.name(), number) for below, number in node.next_functions]

    return program


def one_accumulator_per_leaf(lib: Any) -> Any:
    x = x3(lib)
    y, z = x * 2, x.exp()
    (node, number), (other, _) = y.grad_fn.next_functions[0], z.grad_fn.next_functions[0]
    return node is other, node.variable is x, number, node.next_functions, repr(node), repr(z.grad_fn)


NODES: dict[str, Program] = {
    "x * 2": node_names(lambda lib: x3(lib) * 2),
    "2 * x": node_names(lambda lib: 2 * x3(lib)),
    "2 + x": node_names(lambda lib: 2 + x3(lib)),
    "x - 2": node_names(lambda lib: x3(lib) - 2),
    "x / y": node_names(lambda lib: x3(lib) / lib.tensor(2.0)),
    "x ** 2": node_names(lambda lib: x3(lib) ** 2),
    "x ** y": node_names(lambda lib: x3(lib) ** x3(lib)),
    "-x": node_names(lambda lib: -x3(lib)),
    "chain": node_names(lambda lib: (x3(lib) * 2).exp().log().tanh().relu()),
    "sum": node_names(lambda lib: x3(lib).sum()),
    "sum of an axis": node_names(lambda lib: m23(lib).sum(0)),
    "mean": node_names(lambda lib: (x3(lib) + x3(lib)).mean()),
    "mean of an axis": node_names(lambda lib: m23(lib).mean(1)),
    "matrix matrix": node_names(lambda lib: m23(lib) @ m23(lib).T),
    "matrix vector": node_names(lambda lib: m23(lib) @ x3(lib)),
    "vector vector": node_names(lambda lib: x3(lib) @ x3(lib)),
    "view": node_names(lambda lib: m23(lib).view(-1)),
    "reshape": node_names(lambda lib: m23(lib).reshape(3, 2)),
    "flatten": node_names(lambda lib: m23(lib).flatten()),
    "T": node_names(lambda lib: m23(lib).T),
    "mT": node_names(lambda lib: m23(lib).mT),
    "transpose": node_names(lambda lib: m23(lib).transpose(0, 1)),
    "permute": node_names(lambda lib: m23(lib).permute(1, 0)),
    "expand": node_names(lambda lib: x3(lib).expand(2, 3)),
    "x[0]": node_names(lambda lib: m23(lib)[0]),
    "x[:, 1:]": node_names(lambda lib: m23(lib)[:, 1:]),
    "x[list]": node_names(lambda lib: m23(lib)[[0, 0]]),
    "x[mask]": node_names(lambda lib: m23(lib)[m23(lib) > 1]),
    "x[None]": node_names(lambda lib: m23(lib)[None]),
    "x[...]": node_names(lambda lib: m23(lib)[...]),
    "clone": node_names(lambda lib: x3(lib).clone()),
    "double": node_names(lambda lib: x3(lib).double()),
    "where": node_names(lambda lib: lib.where(x3(lib) > 1, x3(lib), 0.0)),
    "one accumulator per leaf": one_accumulator_per_leaf,
}


TABLES = {"twice": BACKWARD_TWICE, "graph": GRAPHS, "start": STARTS, "node": NODES}


@pytest.mark.parametrize(
    "program",
    [pytest.param(program, id=f"{table}: {name}") for table, rows in TABLES.items() for name, program in rows.items()],
)
def test_the_same_as_in_pytorch(program: Program) -> None:
    same(program)


def test_backward_with_create_graph_warns_of_the_cycle() -> None:
    with pytest.warns(UserWarning, match="will create a reference cycle between the parameter and its gradient"):
        (scalar(ma) * 2).backward(create_graph=True)


def test_grad_does_not_depend_on_the_collector() -> None:
    """A graph that is freed by reference counting alone gives the same numbers."""
    gc.disable()
    try:
        same(diamond)
    finally:
        gc.enable()
