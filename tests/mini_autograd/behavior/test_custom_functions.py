"""Custom Functions that change their input, save what they may not, or cannot be differentiated twice.

The same results and errors as under PyTorch. The name of a program says what is tried.
"""

from typing import Any

import pytest

from tests.mini_autograd.same_as_torch import Program, same, title, x3


def once_differentiable(lib: Any) -> Any:

    class F(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @lib.autograd.function.once_differentiable
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * 2 * x

    x = x3(lib)
    lib.autograd.grad(F.apply(x).sum(), x)
    (b,) = lib.autograd.grad(F.apply(x).sum(), x, create_graph=True)
    b.sum().backward()


def doubled_in_place(lib: Any) -> Any:
    """A Function that changes its input and says so."""

    class F(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    return F


def mark_dirty(lib: Any) -> Any:
    x = x3(lib)
    y = x * 1
    z = doubled_in_place(lib).apply(y)
    z.sum().backward()
    return (z is y, x.grad, y._version)


def mark_dirty_of_a_view(lib: Any) -> Any:
    x = x3(lib)
    base = x * 1
    changed = doubled_in_place(lib).apply(base.view(1, 3))
    (changed * changed).sum().backward()
    return x.grad, changed.grad_fn is not None


def mark_dirty_of_a_part(lib: Any) -> Any:
    x = x3(lib)
    base = x * 1
    part = doubled_in_place(lib).apply(base[:2])
    (part.sum() + (base * base).sum()).backward()
    return x.grad, base


def mark_dirty_of_a_leaf(lib: Any) -> Any:
    doubled_in_place(lib).apply(x3(lib))


def save_bad(lib: Any) -> Any:

    class F(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x, 3)
            return x * 1

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    F.apply(x3(lib))


def custom_saved_changed(lib: Any) -> Any:

    class F(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.saved_tensors[0]

    y = F.apply(x3(lib))
    y.add_(1)
    y.sum().backward()


def custom_saved_changed2(lib: Any) -> Any:

    class F(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.saved_tensors[0]

    h = x3(lib) * 1
    y = F.apply(h)
    h.add_(1)
    y.sum().backward()


def an_input_that_is_returned(lib: Any) -> Any:
    class Same(lib.autograd.Function):  # type: ignore[name-defined]
        @classmethod
        def forward(cls, x: Any, factor: Any = 3) -> Any:
            return x

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.factor = inputs[1]
            if constant:
                ctx.mark_non_differentiable(output)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * ctx.factor, None

    found = []
    for constant in (False, True):
        for x in (x3(lib), x3(lib) * 1, x3(lib).detach()):
            for mode in (lib.enable_grad, lib.no_grad):
                with mode():
                    y = Same.apply(x)
                found.append((y.requires_grad, y.is_leaf, y is x, x.requires_grad, (y * 2).requires_grad))
            if x.requires_grad and not constant:
                found.append(lib.autograd.grad(Same.apply(x).sum(), x))
    return found


def an_output_that_is_returned_twice(lib: Any) -> Any:
    class Twice(lib.autograd.Function):  # type: ignore[name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x * 2
            return y, y

        @staticmethod
        def backward(ctx: Any, first: Any, second: Any) -> Any:
            return first * 2 + second * 3

    x = x3(lib)
    a, b = Twice.apply(x)
    (a + 2 * b).sum().backward()
    return x.grad, a is b, a.output_nr, b.output_nr


def backward_and_vjp(lib: Any) -> Any:
    class Both(lib.autograd.Function):  # type: ignore[name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad

        vjp = backward

    Both.apply(x3(lib)).sum().backward()


def inputs_with_defaults(lib: Any) -> Any:
    class Scaled(lib.autograd.Function):  # type: ignore[name-defined]
        @staticmethod
        def forward(x: Any, factor: float = 3.0) -> Any:
            return x * factor

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.count, ctx.factor = len(inputs), inputs[1]

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * ctx.factor, None

    x = x3(lib)
    y = Scaled.apply(x)
    y.sum().backward()
    return [y.grad_fn.count, x.grad]


def gradient_for_a_number(lib: Any) -> Any:
    class Scaled(lib.autograd.Function):  # type: ignore[name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any, factor: float) -> Any:
            return x * factor

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad, grad

    Scaled.apply(x3(lib), 3).sum().backward()


def in_place_on_a_view_of_a_leaf(lib: Any) -> Any:
    class Double(lib.autograd.Function):  # type: ignore[name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 2

    return Double.apply(x3(lib)[1:])


PROGRAMS: list[Program] = [
    an_input_that_is_returned,
    an_output_that_is_returned_twice,
    backward_and_vjp,
    gradient_for_a_number,
    inputs_with_defaults,
    in_place_on_a_view_of_a_leaf,
    once_differentiable,
    mark_dirty,
    mark_dirty_of_a_view,
    mark_dirty_of_a_part,
    mark_dirty_of_a_leaf,
    save_bad,
    custom_saved_changed,
    custom_saved_changed2,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=title)
def test_the_same_as_in_pytorch(program: Program) -> None:
    same(program)
