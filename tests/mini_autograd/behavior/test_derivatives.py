"""Forward mode, autograd.functional, gradcheck and checkpoint: programs that give the same under PyTorch.

The name of a program says what is tried.
"""

from typing import Any

import pytest

from tests.mini_autograd.same_as_torch import Program, d, same, title


def jacobian(lib: Any) -> Any:
    return lib.autograd.functional.jacobian(lambda x: x * x.sum(), d(lib, 1, 2, 3))


def jacobian_of_several(lib: Any) -> Any:
    return lib.autograd.functional.jacobian(lambda x, y: (x * y.sum(), y.exp()), (d(lib, 1, 2, 3), d(lib, 1, 2)))


def hessian(lib: Any) -> Any:
    return lib.autograd.functional.hessian(lambda x: (x**3).sum(), d(lib, 1, 2, 3))


def hessian_of_several(lib: Any) -> Any:
    return lib.autograd.functional.hessian(lambda x, y: (x * y * y).sum(), (d(lib, 1, 2), d(lib, 3, 4)))


def hessian_with_graph(lib: Any) -> Any:
    x = d(lib, 1, 2)
    h = lib.autograd.functional.hessian(lambda x: (x**4).sum(), x, create_graph=True)
    h.sum().backward()
    return (h, x.grad)


def vjp_of_squares(lib: Any) -> Any:
    return lib.autograd.functional.vjp(lambda x: x * x, d(lib, 1, 2), lib.ones(2, dtype=lib.float64))


def jvp_of_a_product(lib: Any) -> Any:
    return lib.autograd.functional.jvp(lambda x: x * x.sum(), d(lib, 1, 2), lib.ones(2, dtype=lib.float64))


def hvp_of_cubes(lib: Any) -> Any:
    return lib.autograd.functional.hvp(lambda x: (x**3).sum(), d(lib, 1, 2), lib.ones(2, dtype=lib.float64))


def vhp_of_cubes(lib: Any) -> Any:
    return lib.autograd.functional.vhp(lambda x: (x**3).sum(), d(lib, 1, 2), lib.ones(2, dtype=lib.float64))


def vjp_without_v(lib: Any) -> Any:
    return lib.autograd.functional.vjp(lambda x: x * x, d(lib, 1, 2))


def jvp_without_v(lib: Any) -> Any:
    return lib.autograd.functional.jvp(lambda x: x * x, d(lib, 1, 2))


def v_of_another_size(lib: Any) -> Any:
    return lib.autograd.functional.jvp(lambda x: x * x, d(lib, 1, 2), lib.ones(3))


def strict_with_unused(lib: Any) -> Any:
    return lib.autograd.functional.jacobian(lambda x, y: x * x, (d(lib, 1, 2), d(lib, 1, 2)), strict=True)


def jacobian_at_a_number(lib: Any) -> Any:
    return lib.autograd.functional.jacobian(lambda x: x, 3)


def hessian_of_a_vector(lib: Any) -> Any:
    return lib.autograd.functional.hessian(lambda x: x, d(lib, 1, 2))


def gradcheck_right(lib: Any) -> Any:
    def quotient(x: Any, y: Any) -> Any:
        return (x * y).exp() / y

    inputs = d(lib, 1, 2), d(lib, 0.5, 0.3)
    return lib.autograd.gradcheck(quotient, inputs), lib.autograd.gradgradcheck(quotient, inputs)


def gradcheck_wrong(lib: Any) -> Any:
    return lib.autograd.gradcheck(lambda x: x * x.detach(), (d(lib, 1, 2),), raise_exception=False)


def gradcheck_of_a_lost_history(lib: Any) -> Any:
    return lib.autograd.gradcheck(lambda x: x.detach() * 2, (d(lib, 1, 2),))


def gradcheck_of_what_does_not_depend_on_its_input(lib: Any) -> Any:
    return lib.autograd.gradcheck(lambda x: lib.ones(2), (d(lib, 1, 2),))


def gradcheck_of_constants(lib: Any) -> Any:
    return lib.autograd.gradcheck(lambda x: x * x.detach(), (lib.ones(2),))


def dual_numbers(lib: Any) -> Any:
    f = lib.autograd.forward_ad
    with f.dual_level():
        x = f.make_dual(lib.tensor([1.0, 2.0]), lib.tensor([1.0, 0.0]))
        y = (x * x).sum() * x.exp()
        u = f.unpack_dual(y)
        return (u.primal, u.tangent, f.unpack_dual(lib.ones(2)).tangent)


def dual_number_without_level(lib: Any) -> Any:
    return lib.autograd.forward_ad.make_dual(lib.ones(2), lib.ones(2))


def tangent_of_another_shape(lib: Any) -> Any:
    f = lib.autograd.forward_ad
    with f.dual_level():
        f.make_dual(lib.ones(2), lib.ones(3))


def dual_number_of_integers(lib: Any) -> Any:
    f = lib.autograd.forward_ad
    with f.dual_level():
        f.make_dual(lib.tensor([1, 2]), lib.ones(2))


def levels_nested(lib: Any) -> Any:
    f = lib.autograd.forward_ad
    with f.dual_level(), f.dual_level():
        pass


def reverse_over_forward(lib: Any) -> Any:
    f = lib.autograd.forward_ad
    x = d(lib, 1, 2)
    with f.dual_level():
        z = f.make_dual(x, lib.ones(2, dtype=lib.float64))
        y = (z**3).sum()
        t = f.unpack_dual(y).tangent
        return (t, lib.autograd.grad(t, x))


def forward_over_reverse(lib: Any) -> Any:
    f, x = lib.func, d(lib, 1, 2, 3).detach()
    cubes = lambda a: (a**3).sum() * a[0]  # noqa: E731
    two = lambda a, b: (a * b * b).sum()  # noqa: E731
    return (
        f.jacfwd(f.grad(cubes))(x),
        f.jacfwd(f.jacrev(cubes))(x),
        f.jacfwd(lambda a: f.vjp(cubes, a)[1](lib.ones((), dtype=lib.float64))[0])(x),
        f.jacfwd(f.grad(two), argnums=(0, 1))(x, x + 1),
    )


def tangents_through_backward_passes(lib: Any) -> Any:
    f, w, found = lib.autograd.forward_ad, d(lib, 1, 2), []

    class Cube(lib.autograd.Function):  # type: ignore[name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x**3
            ctx.save_for_backward(x, y)
            ctx.save_for_forward(x, y)
            return y

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            x, y = ctx.saved_tensors
            return grad * 3 * y / x

        @staticmethod
        def jvp(ctx: Any, tangent: Any) -> Any:
            x, y = ctx.saved_tensors
            return tangent * 3 * y / x

    with f.dual_level():
        x = f.make_dual(w, lib.ones(2, dtype=lib.float64))
        for cube in (lambda x: x**3, lambda x: x.exp() * x, Cube.apply, lambda x: (x * 1).mul_(x * x)):
            for options in ({}, {"create_graph": True}):
                (gradient,) = lib.autograd.grad(cube(x).sum(), w, **options)
                found.append(f.unpack_dual(gradient))
    return found


def gradient_of_a_tangent(lib: Any) -> Any:
    def product(v: Any) -> Any:
        return (lib.func.jvp(lambda x: x**3 * x.exp(), (d(lib, 1, 2).detach(),), (v,))[1] ** 2).sum()

    return lib.func.grad(product)(d(lib, 3, 4).detach())


def gradient_of_a_constant(lib: Any) -> Any:
    x = d(lib, 1, 2).detach()
    return lib.func.grad(lambda a: (a > 0).double().sum())(x), lib.func.grad(lambda a: lib.ones(()))(x)


def detached_dual_number(lib: Any) -> Any:
    f = lib.autograd.forward_ad
    with f.dual_level():
        x = f.make_dual(lib.ones(2), lib.ones(2)) * 2
        x.detach_()
        return f.unpack_dual(x * 3).tangent


def custom_jvp(lib: Any) -> Any:
    f = lib.autograd.forward_ad

    class S(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.x = x
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 2 * g * ctx.x

        @staticmethod
        def jvp(ctx: Any, t: Any) -> Any:
            return 2 * t * ctx.x

    with f.dual_level():
        return f.unpack_dual(S.apply(f.make_dual(lib.tensor([3.0]), lib.tensor([5.0])))).tangent


def custom_without_jvp(lib: Any) -> Any:
    f = lib.autograd.forward_ad

    class S(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.x = x
            return x * x

    with f.dual_level():
        return f.unpack_dual(S.apply(f.make_dual(lib.tensor([3.0]), lib.tensor([5.0])))).tangent


def tangents_of_views_and_sums(lib: Any) -> Any:
    f = lib.autograd.forward_ad
    with f.dual_level():
        x = f.make_dual(lib.tensor([[1.0, 2.0], [3.0, 4.0]]), lib.tensor([[1.0, 0.0], [2.0, 5.0]]))
        return [
            f.unpack_dual(y).tangent
            for y in (x.T, x[0], x.reshape(4), x.sum(0), x @ x, x + lib.ones(2), -x, x.mean(), x.relu())
        ]


def checkpoint_with_keywords(lib: Any) -> Any:
    n = [0]

    def f(x: Any, y: Any, k: Any = 1) -> Any:
        n[0] += 1
        return (x * y).exp().tanh() * k

    x, y = (d(lib, 0.1, 0.2), d(lib, 0.5, 0.3))
    z = lib.utils.checkpoint.checkpoint(f, x, y, k=3.0, use_reentrant=False)
    z.sum().backward()
    return (z, x.grad, y.grad, n, z.grad_fn.name())


def checkpoint_nested(lib: Any) -> Any:
    n = [0]

    def g(x: Any) -> Any:
        n[0] += 1
        return x.exp().tanh()

    def f(x: Any) -> Any:
        n[0] += 10
        return lib.utils.checkpoint.checkpoint(g, x * x, use_reentrant=False).exp()

    x = d(lib, 0.1, 0.2)
    z = lib.utils.checkpoint.checkpoint(f, x, use_reentrant=False)
    z.sum().backward()
    return (z, x.grad, n)


def checkpoint_of_a_closure(lib: Any) -> Any:
    w = d(lib, 2.0, 3.0)
    x = lib.ones(2, dtype=lib.float64)
    z = lib.utils.checkpoint.checkpoint(lambda x: (x * w).exp(), x, use_reentrant=False)
    z.sum().backward()
    return w.grad


def checkpoint_retained(lib: Any) -> Any:
    x = d(lib, 0.1, 0.2)
    z = lib.utils.checkpoint.checkpoint(lambda x: x.exp() * x, x, use_reentrant=False).sum()
    z.backward(retain_graph=True)
    z.backward()
    return x.grad


def checkpoint_differentiated_twice(lib: Any) -> Any:
    x = d(lib, 0.1, 0.2)
    z = lib.utils.checkpoint.checkpoint(lambda x: x.exp() * x, x, use_reentrant=False).sum()
    (g,) = lib.autograd.grad(z, x, create_graph=True)
    g.sum().backward()
    return x.grad


def checkpoint_sequential(lib: Any) -> Any:
    x = d(lib, 0.1, 0.2)
    steps = [lambda x: x.exp(), lambda x: x.tanh(), lambda x: x * x]
    z = lib.utils.checkpoint.checkpoint_sequential(steps, 2, x, use_reentrant=False)
    z.sum().backward()
    return x.grad


PROGRAMS: list[Program] = [
    jacobian,
    jacobian_of_several,
    hessian,
    hessian_of_several,
    hessian_with_graph,
    vjp_of_squares,
    jvp_of_a_product,
    hvp_of_cubes,
    vhp_of_cubes,
    vjp_without_v,
    jvp_without_v,
    v_of_another_size,
    strict_with_unused,
    jacobian_at_a_number,
    hessian_of_a_vector,
    gradcheck_right,
    gradcheck_of_a_lost_history,
    gradcheck_of_what_does_not_depend_on_its_input,
    gradcheck_wrong,
    gradcheck_of_constants,
    dual_numbers,
    dual_number_without_level,
    tangent_of_another_shape,
    dual_number_of_integers,
    levels_nested,
    reverse_over_forward,
    forward_over_reverse,
    tangents_through_backward_passes,
    gradient_of_a_tangent,
    gradient_of_a_constant,
    detached_dual_number,
    custom_jvp,
    custom_without_jvp,
    tangents_of_views_and_sums,
    checkpoint_with_keywords,
    checkpoint_nested,
    checkpoint_of_a_closure,
    checkpoint_retained,
    checkpoint_differentiated_twice,
    checkpoint_sequential,
]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("program", PROGRAMS, ids=title)
def test_the_same_as_in_pytorch(program: Program) -> None:
    same(program)
