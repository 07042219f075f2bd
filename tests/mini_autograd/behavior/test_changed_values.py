"""A saved tensor is changed, or gets another shape in place: the same results and errors as under PyTorch.

PyTorch's error names the node that the changed tensor has now, not the one it had when it was saved.
"""

from collections.abc import Callable
from typing import Any

import pytest

import mini_autograd as ma
from tests.mini_autograd.same_as_torch import OWNERS, Program, same, title, x3

SAVED: dict[str, Callable[[Any], Any]] = {
    **OWNERS,
    "a part": lambda lib: (x3(lib) * 1)[1:],
    "reshaped": lambda lib: (x3(lib) * 1).view(3, 1),
}
SAVING: dict[str, Callable[[Any, Any], Any]] = {
    "multiplied": lambda lib, x: x * lib.tensor([2.0], requires_grad=True),
    "power": lambda lib, x: x**2,
    "exp": lambda lib, x: x.exp(),
    "sine": lambda lib, x: x.sin(),
    "norm": lambda lib, x: x.norm(),
}


def under_no_grad(lib: Any, x: Any) -> None:
    with lib.no_grad():
        x.add_(1)


def recorded_and_then_not(lib: Any, x: Any) -> None:
    x.add_(1)
    under_no_grad(lib, x)


def element(lib: Any, x: Any) -> None:
    x[0] = 5.0


def owner(lib: Any, x: Any) -> None:
    (x if x._base is None else x._base).add_(2)


CHANGES: dict[str, Callable[[Any, Any], Any]] = {
    "once": lambda lib, x: x.add_(1),
    "twice": lambda lib, x: x.add_(1).mul_(2),
    "with a tensor that requires grad": lambda lib, x: x.mul_(lib.tensor([2.0], requires_grad=True)),
    "copied into": lambda lib, x: x.copy_(lib.tensor([2.0], requires_grad=True)),
    "a part": lambda lib, x: x[:1].add_(1),
    "an element": element,
    "its owner": owner,
    "under no_grad": under_no_grad,
    "recorded and then not": recorded_and_then_not,
    "zeroed": lambda lib, x: x.zero_(),
    "detached": lambda lib, x: x.detach().add_(1),
}


def changed(saved: str, saving: str, change: str) -> Program:
    def program(lib: Any) -> Any:
        x = SAVED[saved](lib)
        y = SAVING[saving](lib, x)
        CHANGES[change](lib, x)
        y.sum().backward()
        return x.grad if x.is_leaf else "no error"

    return program


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("saved", SAVED)
def test_who_changed_a_saved_tensor(saved: str, change: str) -> None:
    for saving in SAVING:
        same(changed(saved, saving, change))


NUMBERED: dict[str, Callable[[Any], Any]] = {
    "mean": lambda x: x.mean(0),
    "sum of rows": lambda x: x.sum(0),
    "sum": lambda x: x.sum(),
    "clone": lambda x: x.clone(),
    "product of matrices": lambda x: x @ x,
}


@pytest.mark.parametrize("name", NUMBERED)
def test_names_of_nodes_that_pytorch_numbers(name: str) -> None:
    def program(lib: Any) -> None:
        x = lib.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        y = NUMBERED[name](x)
        z = (y * y).sum()
        y.detach().add_(1)
        z.backward()

    same(program)


def matrix(lib: Any) -> Any:
    return lib.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)


RESHAPES: dict[str, Callable[[Any], Any]] = {
    "t_": lambda x: x.t_(),
    "transpose_": lambda x: x.transpose_(0, 1),
    "swapaxes_": lambda x: x.swapaxes_(0, -1),
    "unsqueeze_": lambda x: x.unsqueeze_(0),
    "squeeze_": lambda x: x.squeeze_(),
    "squeeze_ of one axis": lambda x: x.squeeze_(0),
}

Reshape = Callable[[Any], Any]


def of_an_inner_tensor(lib: Any, reshape: Reshape) -> Any:
    x = matrix(lib)
    y = x * 2
    result = reshape(y)
    (y * y).sum().backward()
    return result is y, y, y._version, y.is_leaf, y._is_view(), x.grad


def of_a_row(lib: Any, reshape: Reshape) -> Any:
    x = lib.tensor([[1.0, 2.0]], requires_grad=True)
    y = x * 3
    reshape(y)
    (y * y).sum().backward()
    return y, x.grad


def of_a_leaf(lib: Any, reshape: Reshape) -> None:
    reshape(matrix(lib))


def of_a_leaf_under_no_grad(lib: Any, reshape: Reshape) -> Any:
    x = matrix(lib)
    with lib.no_grad():
        reshape(x)
    return x, x._version, x.is_leaf


def of_a_constant(lib: Any, reshape: Reshape) -> Any:
    x = lib.ones(2, 3)
    reshape(x)
    return x.add_(1), x._version, tuple(x.numpy().shape)


def of_a_number(lib: Any, reshape: Reshape) -> Any:
    x = lib.tensor(2.0)
    reshape(x)
    return x


def of_a_view(lib: Any, reshape: Reshape) -> Any:
    x = matrix(lib)
    y = x * 2
    part = y[:, :2]
    reshape(part)
    (part * part).sum().backward()
    return part, part._version, y._version, part._base is y, x.grad


def of_a_view_that_is_then_changed(lib: Any, reshape: Reshape) -> Any:
    x = matrix(lib)
    y = x * 2
    part = y[:, :2]
    reshape(part)
    part.mul_(3)
    (y * y).sum().backward()
    return part, y, y._version, x.grad


def and_then_changed(lib: Any, reshape: Reshape) -> Any:
    x = matrix(lib)
    y = x * 2
    reshape(y)
    y.mul_(2)
    y[0].add_(x.sum())
    (y * y).sum().backward()
    return y, x.grad


def of_a_view_made_under_no_grad(lib: Any, reshape: Reshape) -> None:
    x = matrix(lib) * 2
    with lib.no_grad():
        part = x[:]
    reshape(part)


def of_an_inference_tensor(lib: Any, reshape: Reshape) -> None:
    with lib.inference_mode():
        x = lib.ones(1, 2)
    reshape(x)


def of_a_tensor_that_retains_its_gradient(lib: Any, reshape: Reshape) -> Any:
    x = matrix(lib)
    y = x * 2
    y.retain_grad()
    reshape(y)
    (y * y).sum().backward()
    return y.grad, x.grad


SITUATIONS = (
    *(of_an_inner_tensor, of_a_row, of_a_leaf, of_a_leaf_under_no_grad, of_a_constant, of_a_number, of_a_view),
    *(of_a_view_that_is_then_changed, and_then_changed, of_a_view_made_under_no_grad, of_an_inference_tensor),
    of_a_tensor_that_retains_its_gradient,
)


@pytest.mark.parametrize("situation", SITUATIONS, ids=title)
@pytest.mark.parametrize("name", RESHAPES)
def test_another_shape_in_place(name: str, situation: Callable[[Any, Reshape], Any]) -> None:
    same(lambda lib: situation(lib, RESHAPES[name]))


@pytest.mark.parametrize("reshape", [lambda x: x.transpose_(0, 5), lambda x: x.unsqueeze_(7), lambda x: x.squeeze_(2)])
def test_no_such_axis(reshape: Reshape) -> None:
    same(lambda lib: of_an_inner_tensor(lib, reshape))


def test_a_view_made_before_its_base_got_another_shape() -> None:
    y = matrix(ma) * 2
    part = y[0]
    y.t_()
    with pytest.raises(RuntimeError, match="was changed in place"):
        part.sum()  # PyTorch makes the view again by strides; here its steps no longer fit
