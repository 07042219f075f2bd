"""A tensor's attributes, memory and gradient, and how Python treats it: the same as under PyTorch.

A program gets the library and returns anything made of tensors and plain values. The name of a row says what is tried.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.mini_autograd.same_as_torch import Program, m23, same, scalar, x3


def attributes(tensor: Any) -> Any:
    return tensor.requires_grad, tensor.is_leaf, tensor.grad_fn is None, tensor.output_nr


def set_grad(value: Callable[[Any], Any]) -> Program:
    def program(lib: Any) -> Any:
        x = x3(lib)
        x.grad = value(lib)
        return x.grad

    return program


def detached_shares_memory(lib: Any) -> Any:
    x = x3(lib)
    d = x.detach()
    d.numpy()[0] = 7.0
    return x, d, attributes(d)


def numpy_shares_memory(lib: Any) -> Any:
    x = lib.tensor([1.0, 2.0])
    x.numpy()[0] = 7.0
    number = lib.tensor(1.0)
    number.numpy()[...] = 7.0
    return x, number


def tensor_copies(lib: Any) -> Any:
    array = np.ones(2)
    x = lib.tensor(array)
    y = lib.from_numpy(array)
    array[0] = 7.0
    return x, y


def switch_requires_grad(lib: Any) -> Any:
    x = lib.tensor([1.0, 2.0])
    states = [attributes(x), attributes(x.requires_grad_()), attributes(x.requires_grad_(False))]
    x.requires_grad = True
    return [*states, attributes(x), attributes(x * 2), attributes((x * 2).requires_grad_())]


def switched_off_after_use(lib: Any) -> Any:
    x = scalar(lib)
    y = x * x
    x.requires_grad_(False)
    y.backward()
    return x.grad, attributes(x), attributes(x * 2)


def data_is_detached(lib: Any) -> Any:
    x = x3(lib)
    x.data = lib.tensor([5.0, 6.0, 7.0])
    return x, attributes(x.data)


def arrays_where_nothing_is_recorded(lib: Any) -> Any:
    x = x3(lib)
    with lib.no_grad():
        found = [x.numpy().tolist(), np.asarray(x).tolist()]
    with lib.inference_mode():
        return [*found, x.numpy().tolist()]


def branching_on_values(lib: Any) -> Any:
    x = scalar(lib)
    y = x * x if x > 1 else x
    y.backward()
    return x.grad


TENSORS: dict[str, Program] = {
    "leaf": lambda lib: attributes(x3(lib)),
    "constant": lambda lib: attributes(lib.tensor(1.0)),
    "computed": lambda lib: attributes(x3(lib) * 2),
    "computed from constants": lambda lib: attributes(lib.tensor(1.0) * 2),
    "detached shares memory": detached_shares_memory,
    "numpy shares memory": numpy_shares_memory,
    "tensor copies, from_numpy does not": tensor_copies,
    "switch requires_grad": switch_requires_grad,
    "requires_grad switched off after use": switched_off_after_use,
    "data": data_is_detached,
    "branching on values": branching_on_values,
    "requires_grad of integers": lambda lib: lib.tensor([1, 2], requires_grad=True),
    "requires_grad_ of integers": lambda lib: lib.tensor([1, 2]).requires_grad_(),
    "requires_grad = True of integers": lambda lib: setattr(lib.tensor([1]), "requires_grad", True),
    "requires_grad = False of computed": lambda lib: setattr(x3(lib) * 2, "requires_grad", False),
    "requires_grad_(False) of computed": lambda lib: (x3(lib) * 2).requires_grad_(False),
    "numpy() of leaf": lambda lib: x3(lib).numpy(),
    "numpy() of computed": lambda lib: (x3(lib) * 2).numpy(),
    "numpy() where nothing is recorded": arrays_where_nothing_is_recorded,
    "np.asarray of leaf": lambda lib: np.asarray(x3(lib)),
    "np.asarray": lambda lib: np.asarray(lib.tensor([1.0, 2.0])).tolist(),
    "item of three": lambda lib: x3(lib).item(),
    "item": lambda lib: [scalar(lib).item(), lib.tensor([[3]]).item(), lib.tensor(True).item()],
    "tolist": lambda lib: [m23(lib).tolist(), scalar(lib).tolist()],
    "float of three": lambda lib: float(x3(lib)),
    "int": lambda lib: [int(lib.tensor(2.7)), float(lib.tensor([3]))],
    "index": lambda lib: [10, 20, 30][lib.tensor(1)],
    "index with float": lambda lib: [10, 20, 30][lib.tensor(1.0)],
    "bool of three": lambda lib: bool(x3(lib)),
    "bool of none": lambda lib: bool(lib.tensor([])),
    "bool": lambda lib: [bool(lib.tensor([0.0])), bool(lib.tensor(2))],
    "len of 0-d": lambda lib: len(scalar(lib)),
    "len": lambda lib: len(m23(lib)),
    "iterate over 0-d": lambda lib: list(scalar(lib)),
    "iterate": lambda lib: list(m23(lib)),
    "unpack": lambda lib: (lambda a, b, c: [a, b * c])(*x3(lib)),
    "in": lambda lib: [2.0 in x3(lib), 5.0 in x3(lib)],
    "size": lambda lib: [tuple(m23(lib).size()), m23(lib).size(-1), m23(lib).dim(), m23(lib).numel(), m23(lib).ndim],
    "size of a missing axis": lambda lib: m23(lib).size(2),
    "f-string": lambda lib: [f"{scalar(lib):.3f}", f"{scalar(lib)}", f"{x3(lib)}"],
    "grad of another shape": set_grad(lambda lib: lib.ones(2)),
    "grad that is no tensor": set_grad(lambda lib: 1.0),
    "grad of another dtype": set_grad(lambda lib: lib.ones(3, dtype=lib.float64)),
    "grad set": set_grad(lambda lib: lib.ones(3)),
    "grad set to None": set_grad(lambda lib: None),
    "grad of computed warns": lambda lib: (x3(lib) * 2).grad,
    "retain_grad without requires_grad": lambda lib: lib.tensor(1.0).retain_grad(),
    "retain_grad of leaf": lambda lib: x3(lib).retain_grad(),
    "hashable": lambda lib: len({x3(lib), x3(lib)}),
    "equality with anything": lambda lib: [x3(lib) == "a", x3(lib) != None, (x3(lib) == 2)],  # noqa: E711
}


@pytest.mark.parametrize("program", TENSORS.values(), ids=TENSORS)
def test_the_same_as_in_pytorch(program: Program) -> None:
    same(program)
