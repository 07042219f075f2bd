"""In-place changes of tensors and of views, and the versions that count them: the same as under PyTorch.

The name of a program says what is tried.
"""

from typing import Any

import pytest

from tests.mini_autograd.same_as_torch import Program, same, title, x3


def a_tensor_multiplied_in_place_by_itself(lib: Any) -> Any:
    y = x3(lib) * 1
    y.mul_(y)
    y.sum().backward()


def result_that_was_saved_is_changed(lib: Any) -> Any:
    y = x3(lib).exp()
    y.add_(1)
    y.sum().backward()


def the_same_of_a_number(lib: Any) -> Any:
    y = lib.tensor(2.0, requires_grad=True).exp()
    y += 1
    y.backward()


def saved_result_changed_once_detached(lib: Any) -> Any:
    x = x3(lib)
    y = x.exp()
    z = y.sum()
    y.detach_()
    y.add_(1)
    z.backward()


def saved_result_changed_through_data(lib: Any) -> Any:
    x = x3(lib)
    y = x.exp()
    z = y.sum()
    y.data.add_(1)
    z.backward()
    return x.grad, y._version


def leaf_changed(lib: Any) -> Any:
    y = x3(lib)
    y += 1


def element_of_a_leaf_changed(lib: Any) -> Any:
    y = x3(lib)
    y[0] = 1.0


def view_of_a_leaf_changed(lib: Any) -> Any:
    y = x3(lib)
    y[1:].mul_(2)


def view_made_under_no_grad_changed(lib: Any) -> Any:
    y = x3(lib) * 1
    with lib.no_grad():
        v = y[:2]
    v.add_(1)


def expanded_tensor_changed(lib: Any) -> Any:
    y = x3(lib) * 1
    y.expand(2, 3).add_(1)


def shape_mismatch(lib: Any) -> Any:
    y = x3(lib) * 1
    y.add_(lib.ones(2, 3))


def dtype_mismatch(lib: Any) -> Any:
    lib.tensor([1, 2]).add_(1.5)


def base_changes(lib: Any) -> Any:
    x = x3(lib)
    y = x * 1
    v = y[:2]
    y.mul_(3)
    v.sum().backward()
    return (x.grad, v, v._version, v._base is y)


def setitem(lib: Any) -> Any:
    x = x3(lib)
    y = lib.zeros(4)
    y[1:] = x * 2
    y[0] = x[1]
    (y * y).sum().backward()
    return (x.grad, y)


def setitem_col(lib: Any) -> Any:
    x = x3(lib)
    y = lib.zeros(2, 3)
    y[:, 1] = x[:2]
    y[1] += x
    (y * y * y).sum().backward()
    return (x.grad, y)


def setitem_list(lib: Any) -> Any:
    x = x3(lib)
    y = x * 2
    y[[0, 2]] = x[1]
    (y * y).sum().backward()
    return (x.grad, y)


def setitem_mask(lib: Any) -> Any:
    x = x3(lib)
    y = x * 2
    y[y > 3] = 0.0
    (y * y).sum().backward()
    return (x.grad, y)


def setitem_too_long(lib: Any) -> Any:
    y = lib.ones(3)
    y[1:] = lib.ones(3)


def setitem_row_for_a_number(lib: Any) -> Any:
    y = x3(lib) * 1
    y[0] = lib.ones(2)


def setitem_list_of_another_length(lib: Any) -> Any:
    y = x3(lib) * 1
    y[[0, 1]] = lib.ones(3)


def copy_bad(lib: Any) -> Any:
    y = x3(lib) * 1
    y.copy_(lib.ones(2, 3))


def zero(lib: Any) -> Any:
    x = x3(lib)
    y = x * 1
    y.zero_()
    (y + x).sum().backward()
    return (x.grad, y.grad_fn.name())


def fill(lib: Any) -> Any:
    x = x3(lib)
    y = x * 1
    y.fill_(4.0)
    (y * x).sum().backward()
    return (x.grad, y)


def copy_of_another(lib: Any) -> Any:
    x = x3(lib)
    z = x3(lib)
    y = x * 1
    y.copy_(z)
    (y * y).sum().backward()
    return (x.grad, z.grad, y.grad_fn.name(), [n and n.name() for n, _ in y.grad_fn.next_functions])


def detached_change(lib: Any) -> Any:
    x = x3(lib)
    y = x * x
    x.detach().add_(1)
    y.sum().backward()


def data_change(lib: Any) -> Any:
    x = x3(lib)
    y = x * x
    x.data.add_(1)
    y.sum().backward()
    return x.grad


def const_change(lib: Any) -> Any:
    x = x3(lib)
    c = lib.ones(3)
    y = x * c
    c.add_(1)
    y.sum().backward()


def const_change_unsaved(lib: Any) -> Any:
    x = x3(lib)
    c = lib.ones(3)
    y = x + c
    c.add_(1)
    y.sum().backward()
    return x.grad


def mul_chain(lib: Any) -> Any:
    x = x3(lib)
    z = x3(lib)
    y = x * 1
    y.mul_(z)
    y.mul_(z)
    y.sum().backward()
    return (x.grad, z.grad)


def squared_twice_in_place(lib: Any) -> Any:
    x = x3(lib)
    y = x * 1
    y.pow_(2)
    y.pow_(2)
    y.sum().backward()
    return x.grad


def operators_in_place(lib: Any) -> Any:
    x = x3(lib)
    y = x * 1
    y **= 2
    y /= 3
    y -= 1
    y.sum().backward()
    return x.grad


def exp_relu(lib: Any) -> Any:
    x = x3(lib)
    y = x - 2
    y.exp_()
    y.relu_()
    y.tanh_()
    y.sum().backward()
    return x.grad


def exp_inp_changed(lib: Any) -> Any:
    x = x3(lib)
    y = x - 2
    y.exp_()
    y.mul_(2)
    y.sum().backward()
    return x.grad


def optimizer_between(lib: Any) -> Any:
    w = x3(lib)
    y = (w * w).sum()
    y.backward(retain_graph=True)
    with lib.no_grad():
        w -= 0.1 * w.grad
    y.backward()


def under_nograd(lib: Any) -> Any:
    w = x3(lib)
    with lib.no_grad():
        w -= 1
        w[0] = 5.0
        w.mul_(2)
    return (w, w._version, w.is_leaf)


def versions_of_views(lib: Any) -> Any:
    x = lib.ones(3)
    d = x.detach()
    v = x[0]
    e = x.data
    x += 1
    v.mul_(2)
    return (x, d, v, e, x._version, d._version, v._version, e._version)


PROGRAMS: list[Program] = [
    a_tensor_multiplied_in_place_by_itself,
    result_that_was_saved_is_changed,
    the_same_of_a_number,
    saved_result_changed_once_detached,
    saved_result_changed_through_data,
    leaf_changed,
    element_of_a_leaf_changed,
    view_of_a_leaf_changed,
    view_made_under_no_grad_changed,
    expanded_tensor_changed,
    shape_mismatch,
    dtype_mismatch,
    base_changes,
    setitem,
    setitem_col,
    setitem_list,
    setitem_mask,
    setitem_too_long,
    setitem_row_for_a_number,
    setitem_list_of_another_length,
    copy_bad,
    zero,
    fill,
    copy_of_another,
    detached_change,
    data_change,
    const_change,
    const_change_unsaved,
    mul_chain,
    squared_twice_in_place,
    operators_in_place,
    exp_relu,
    exp_inp_changed,
    optimizer_between,
    under_nograd,
    versions_of_views,
]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("program", PROGRAMS, ids=title)
def test_the_same_as_in_pytorch(program: Program) -> None:
    same(program)
