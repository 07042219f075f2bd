"""Custom operations: `autograd.Function` programs that give the same under PyTorch."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import mini_autograd as ma


def leaf(lib: Any, *values: float) -> Any:
    return lib.tensor(values, dtype=lib.float64, requires_grad=True)


def cube(lib: Any) -> Any:
    class Cube(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            return grad * 3 * x**2

    return Cube


def first_and_second_order(lib: Any) -> Any:
    x = leaf(lib, 1.0, 2.0)
    y = cube(lib).apply(x)
    (first,) = lib.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = lib.autograd.grad(first.sum(), x)
    return y, first, second


def saved_output(lib: Any) -> Any:
    class Exp(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (y,) = ctx.saved_tensors
            return grad * y

    x = leaf(lib, 0.5, -1.0)
    (first,) = lib.autograd.grad(Exp.apply(x).sum(), x, create_graph=True)
    return first, *lib.autograd.grad(first.sum(), x)


def several_outputs_one_unused(lib: Any) -> Any:
    class Split(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, factor: float) -> Any:
            ctx.factor = factor
            return x * factor, x + factor

        @staticmethod
        def backward(ctx: Any, first: Any, second: Any) -> Any:
            return first * ctx.factor + second * 10, None

    x = leaf(lib, 1.0, 2.0)
    a, b = Split.apply(x, 3.0)
    names = [a.grad_fn is b.grad_fn, a.output_nr, b.output_nr, a.grad_fn.name()]
    (a * b).sum().backward(retain_graph=True)
    both = x.grad.clone()
    x.grad = None
    b.sum().backward()
    return names, both, x.grad


def without_materialized_gradients(lib: Any) -> Any:
    seen = []

    class Split(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx: Any, first: Any, second: Any) -> Any:
            seen.append((first is None, second is None))
            return second * 3

    x = leaf(lib, 1.0)
    Split.apply(x)[1].sum().backward()
    return seen, x.grad


def non_differentiable_output(lib: Any) -> Any:
    class Peak(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            positive = (x > 0).double()
            ctx.mark_non_differentiable(positive)
            ctx.save_for_backward(positive)
            return x * positive, positive

        @staticmethod
        def backward(ctx: Any, grad: Any, _: Any) -> Any:
            (positive,) = ctx.saved_tensors
            return grad * positive

    x = leaf(lib, 1.0, -1.0)
    y, mask = Peak.apply(x)
    y.sum().backward()
    return x.grad, mask.requires_grad, y.requires_grad


def needs_input_grad(lib: Any) -> Any:
    seen = []

    class Product(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            seen.append(ctx.needs_input_grad)
            ctx.save_for_backward(a, b)
            return a * b

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            seen.append(ctx.needs_input_grad)
            _, b = ctx.saved_tensors
            return grad * b, None

    x = leaf(lib, 1.0)
    y = Product.apply(x, lib.ones(1, dtype=lib.float64))
    y.backward()
    return seen, x.grad, [below and below.name() for below, _ in y.grad_fn.next_functions]


def with_setup_context(lib: Any) -> Any:
    class Scale(lib.autograd.Function):
        @staticmethod
        def forward(x: Any, factor: float) -> Any:
            return x * factor

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.factor = inputs[1]

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * ctx.factor, None

    x = leaf(lib, 1.0, 2.0)
    Scale.apply(x, 4.0).sum().backward()
    return x.grad


def under_no_grad(lib: Any) -> Any:
    x = leaf(lib, 2.0)
    with lib.no_grad():
        y = cube(lib).apply(x)
    return y, y.requires_grad, cube(lib).apply(x.detach()).requires_grad


def forward_is_not_recorded(lib: Any) -> Any:
    states = []

    class Watch(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            states.append((lib.is_grad_enabled(), (x * 2).requires_grad))
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            states.append((lib.is_grad_enabled(), grad.requires_grad))
            return grad * 2

    x = leaf(lib, 2.0)
    Watch.apply(x).sum().backward()
    lib.autograd.grad(Watch.apply(x).sum(), x, create_graph=True)
    return states


def broadcast_gradient_is_summed(lib: Any) -> Any:
    class Plus(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            return a + b

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad, grad

    a, b = leaf(lib, 1.0, 2.0), leaf(lib, 5.0)
    Plus.apply(a, b).sum().backward()
    return a.grad, b.grad


def returning(result: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A Function of two inputs of length 2 whose backward returns this."""

    def program(lib: Any) -> Any:
        class Plus(lib.autograd.Function):
            @staticmethod
            def forward(ctx: Any, a: Any, b: Any) -> Any:
                return a + b

            @staticmethod
            def backward(ctx: Any, grad: Any) -> Any:
                return result(grad)

        a, b = leaf(lib, 1.0, 2.0), leaf(lib, 5.0, 6.0)
        Plus.apply(a, b).sum().backward()
        return a.grad, b.grad

    return program


def freed_after_backward(lib: Any) -> Any:
    y = cube(lib).apply(leaf(lib, 2.0))
    y.backward()
    y.backward()


def no_backward(lib: Any) -> Any:
    class Half(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x / 2

    Half.apply(leaf(lib, 2.0)).backward()


def returns_its_input(lib: Any) -> Any:
    class Same(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.view(-1)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 7

    x = leaf(lib, 1.0)
    y = Same.apply(x)
    (y * x).sum().backward()
    return x.grad, y.is_leaf, x.is_leaf


def add_one(lib: Any, returned: bool = True) -> Any:
    """The Function that adds 1 in place. Its rule multiplies by 5, to show where it acts."""

    class AddOne(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            x.add_(1)
            return x if returned else x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 5

    return AddOne


def changes_an_inner_tensor(lib: Any) -> Any:
    x = lib.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 2
    z = add_one(lib).apply(y)
    (z * z).sum().backward()
    return z is y, z, z._version, x.grad


def changes_a_view(lib: Any) -> Any:
    x = lib.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 2
    add_one(lib).apply(y[:2])
    (y * y).sum().backward()
    return y, y._version, y.grad_fn.name(), x.grad


def changes_a_constant(lib: Any) -> Any:
    x = lib.ones(2)
    return add_one(lib).apply(x) is x, x, x._version


def changes_a_leaf(lib: Any) -> None:
    add_one(lib).apply(lib.ones(2, requires_grad=True))


def changes_what_it_does_not_return(lib: Any) -> None:
    add_one(lib, returned=False).apply(lib.ones(2, requires_grad=True) * 1)


def result_that_shows_the_input(make: Callable[[Any], Any], change: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    """A Function whose `forward` only makes a view (or two); then the view, or the memory that it shows, is changed."""

    def program(lib: Any) -> Any:
        class Shown(lib.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                return make(x)

            @staticmethod
            def backward(ctx: Any, *grads: Any) -> Any:
                return sum(grad.reshape(3) for grad in grads)

        x = lib.tensor([1.0, 2.0, 3.0], requires_grad=True) * 1
        result = Shown.apply(x)
        first = result[0] if isinstance(result, tuple) else result
        changed = change(x, first)
        return first._is_view(), first, first.grad_fn.name(), changed

    return program


def of_itself(x: Any) -> Any:
    return x


def of_a_column(x: Any) -> Any:
    return x.view(3, 1)


def of_two(x: Any) -> Any:
    return x.view(1, 3), x.view(3, 1)


PROGRAMS = {
    "changes an inner tensor": changes_an_inner_tensor,
    "changes a view": changes_a_view,
    "changes a constant": changes_a_constant,
    "changes a leaf": changes_a_leaf,
    "changes what it does not return": changes_what_it_does_not_return,
    "its input, unchanged": result_that_shows_the_input(of_itself, lambda x, y: None),
    "its input, changed": result_that_shows_the_input(of_itself, lambda x, y: y.add_(1)),
    "its input, changed itself": result_that_shows_the_input(of_itself, lambda x, y: x.add_(1)),
    "a view, unchanged": result_that_shows_the_input(of_a_column, lambda x, y: None),
    "a view, changed": result_that_shows_the_input(of_a_column, lambda x, y: y.add_(1)),
    "a view, whose owner is changed": result_that_shows_the_input(of_a_column, lambda x, y: x.add_(1)),
    "a view, viewed and changed": result_that_shows_the_input(of_a_column, lambda x, y: y[0].add_(1)),
    "two views, one changed": result_that_shows_the_input(of_two, lambda x, y: y.add_(1)),
    "first and second order": first_and_second_order,
    "saved output": saved_output,
    "several outputs, one unused": several_outputs_one_unused,
    "without materialized gradients": without_materialized_gradients,
    "non-differentiable output": non_differentiable_output,
    "needs_input_grad": needs_input_grad,
    "setup_context": with_setup_context,
    "under no_grad": under_no_grad,
    "forward is not recorded": forward_is_not_recorded,
    "broadcast gradient is summed": broadcast_gradient_is_summed,
    "returns its input": returns_its_input,
    "right number of gradients": returning(lambda grad: (grad, grad)),
    "too few gradients": returning(lambda grad: grad),
    "too many gradients": returning(lambda grad: (grad, grad, grad)),
    "too many, but None": returning(lambda grad: (grad, grad, None)),
    "no gradients": returning(lambda grad: (None, None)),
    "freed after backward": freed_after_backward,
    "no backward": no_backward,
}


def plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    return np.round(value.detach().numpy(), 9).tolist() if hasattr(value, "detach") else value


def outcome(program: Callable[[Any], Any], lib: Any) -> Any:
    try:
        return plain(program(lib))
    except Exception as error:
        return type(error).__name__, str(error)


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_the_same_as_in_pytorch(program: Callable[[Any], Any]) -> None:
    assert outcome(program, ma) == outcome(program, torch)


def test_a_gradient_of_a_wrong_shape_is_named() -> None:
    with pytest.raises(RuntimeError) as ours:
        returning(lambda grad: (grad[:1][[0, 0, 0]], grad))(ma)
    with pytest.raises(RuntimeError) as theirs:
        returning(lambda grad: (grad[:1][[0, 0, 0]], grad))(torch)
    assert str(ours.value) == str(theirs.value)
