"""Hooks of nodes, several views of one operation, reentrant checkpoints, `func`, creation: the same as under PyTorch.

The name of a program says what is tried.
"""

import copy
import pickle
from typing import Any

import pytest
import torch

import mini_autograd as ma
from tests.mini_autograd.same_as_torch import Program, outcome, same, x3


def checkpoint(lib: Any, *args: Any, **kwargs: Any) -> Any:
    return lib.utils.checkpoint.checkpoint(*args, use_reentrant=True, **kwargs)


def squared(lib: Any) -> tuple[Any, Any, Any]:
    x = x3(lib)
    y = x * lib.ones(3)
    return x, y, (y * y).sum()


def order_of_all_kinds_of_hooks(lib: Any) -> Any:
    _, y, z = squared(lib)
    seen: list[Any] = []
    y.register_hook(lambda grad: seen.append(("tensor", grad)))
    y.grad_fn.register_hook(lambda *grads: seen.append(("after", grads)))
    y.grad_fn.register_prehook(lambda grads: seen.append(("before", grads)))
    leaf = y.grad_fn.next_functions[0][0]
    leaf.register_hook(lambda *grads: seen.append(("leaf after", grads)))
    leaf.register_prehook(lambda grads: seen.append(("leaf before", grads)))
    z.backward()
    return [(name, _flat(grads)) for name, grads in seen]


def _flat(grads: Any) -> list[Any]:
    if isinstance(grads, tuple):
        return [part for grad in grads for part in _flat(grad)]
    return [grads]


def hook_of_a_node_replaces_gradients(lib: Any) -> Any:
    x, y, z = squared(lib)
    y.retain_grad()
    y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * 10, None))
    y.grad_fn.register_prehook(lambda outputs: (outputs[0] * 100,))
    z.backward()
    return x.grad, y.grad


def hook_of_a_node_sees_what_is_sent_on(lib: Any) -> Any:
    x, w = x3(lib), lib.tensor(2.0, requires_grad=True)
    y = x * w
    seen: list[Any] = []
    y.grad_fn.register_hook(lambda inputs, outputs: seen.append((tuple(inputs[1].shape), inputs[1].item())))
    y.sum().backward()
    return seen


def removed_hook_of_a_node(lib: Any) -> Any:
    x, y, z = squared(lib)
    y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * 10, None)).remove()
    z.backward()
    return x.grad


def hook_of_a_node_where_grad_ends(lib: Any) -> Any:
    x, y, z = squared(lib)
    y.grad_fn.register_prehook(lambda outputs: (outputs[0] * 100,))
    return lib.autograd.grad(z, y, retain_graph=True), lib.autograd.grad(z, x)


def hook_of_a_node_under_create_graph(lib: Any) -> Any:
    x, y, z = squared(lib)
    y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * inputs[0], None))
    (g,) = lib.autograd.grad(z, x, create_graph=True)
    return g, lib.autograd.grad(g.sum(), x)


def _bad_hook(register: str, hook: Any) -> Program:
    def program(lib: Any) -> Any:
        _, y, z = squared(lib)
        getattr(y.grad_fn, register)(hook)
        z.backward()

    return program


def _changed(part: Any, inner: bool) -> Program:
    """Change one of several views in place: of a leaf or, with `inner`, of an inner tensor."""

    def program(lib: Any) -> Any:
        x = lib.ones(4, 3, requires_grad=True)
        y = x * 2 if inner else x
        part(lib, y).add_(1)
        (y * y).sum().backward()
        return x.grad

    return program


PARTS = {
    "split": lambda lib, y: y.split(2)[1],
    "split_with_sizes": lambda lib, y: y.split([1, 3])[1],
    "chunk": lambda lib, y: y.chunk(2)[0],
    "unbind": lambda lib, y: y.unbind()[1],
    "rows": lambda lib, y: list(y)[2],
}


def part_of_a_constant_becomes_tracked(lib: Any) -> Any:
    w = lib.ones(1, requires_grad=True)
    y = lib.ones(4)
    y.split(2)[0].mul_(w)


def parts_changed_under_no_grad(lib: Any) -> Any:
    x = lib.ones(4, requires_grad=True)
    with lib.no_grad():
        x.split(2)[0].add_(1)
    return x


def reentrant_runs_unrecorded_first(lib: Any) -> Any:
    calls: list[bool] = []

    def function(x: Any) -> Any:
        calls.append(lib.is_grad_enabled())
        return (x * 2).tanh()

    x = x3(lib)
    y = checkpoint(lib, function, x)
    y.sum().backward()
    return calls, y.grad_fn.name(), x.grad


def reentrant_does_not_work_with_grad(lib: Any) -> Any:
    x = x3(lib)
    return lib.autograd.grad(checkpoint(lib, lambda x: x.exp(), x).sum(), x)


def reentrant_takes_no_keywords(lib: Any) -> Any:
    return checkpoint(lib, lambda x, k: x * k, x3(lib), k=2)


def reentrant_without_an_input_that_requires_grad(lib: Any) -> Any:
    w = x3(lib)
    return checkpoint(lib, lambda x: x * w, lib.ones(3)).requires_grad


def reentrant_reaches_closed_over_leaves(lib: Any) -> Any:
    x, w = x3(lib), x3(lib)
    checkpoint(lib, lambda x: (x * w).exp(), x).sum().backward()
    return x.grad, w.grad


def reentrant_nested(lib: Any) -> Any:
    x = x3(lib)
    checkpoint(lib, lambda a: checkpoint(lib, lambda b: b.tanh() * b, a) * 2, x).sum().backward()
    return x.grad


def reentrant_twice(lib: Any) -> Any:
    y = checkpoint(lib, lambda x: x.exp(), x3(lib)).sum()
    y.backward()
    y.backward()


def reentrant_keeps_random_numbers(lib: Any) -> Any:
    lib.manual_seed(0)
    x = x3(lib)
    y = checkpoint(lib, lambda x: x * lib.rand(3), x)
    y.sum().backward()
    return y, x.grad, lib.rand(2)


def checkpoint_without_a_choice(lib: Any) -> Any:
    return lib.utils.checkpoint.checkpoint(lambda x: x.exp(), x3(lib))


def vmap_of_several_arguments(lib: Any) -> Any:
    x = lib.arange(6.0).reshape(2, 3)
    return lib.vmap(lambda a, b: (a * b, a.sum()), in_dims=(0, None), out_dims=(1, 0))(x, lib.arange(3.0))


def vmap_of_a_dict(lib: Any) -> Any:
    x = lib.arange(6.0).reshape(2, 3)
    result = lib.vmap(lambda d: {"twice": d["x"] * 2}, in_dims=1)({"x": x})
    return result["twice"]


def gradients_of_every_example(lib: Any) -> Any:
    x = lib.arange(6.0).reshape(2, 3)
    return lib.vmap(lib.func.grad(lambda a, b: ((a * b).sum()) ** 2), in_dims=(0, None))(x, lib.arange(3.0))


def vmap_can_be_differentiated(lib: Any) -> Any:
    x = x3(lib)
    lib.vmap(lambda a: a**3)(x).sum().backward()
    return x.grad


def vmap_over_a_number(lib: Any) -> Any:
    return lib.vmap(lambda a: a * 2)(3)


def vmap_over_different_sizes(lib: Any) -> Any:
    return lib.vmap(lambda a, b: a)(lib.ones(2), lib.ones(3))


def vmap_returns_a_number(lib: Any) -> Any:
    return lib.vmap(lambda a: 3.0)(lib.ones(2))


def vmap_over_an_axis_that_is_not_there(lib: Any) -> Any:
    return lib.vmap(lambda a: a, in_dims=2)(lib.ones(2))


def third_derivative(lib: Any) -> Any:
    grad = lib.func.grad
    return grad(grad(grad(lambda a: a**4)))(lib.tensor(2.0))


def grad_of_several_arguments(lib: Any) -> Any:
    y = lib.arange(3.0)
    return lib.func.grad(lambda a, b: (a * b).sum(), argnums=(0, 1))(y, y + 1)


def grad_with_something_beside(lib: Any) -> Any:
    return lib.func.grad_and_value(lambda a: (a.sum(), a * 2), has_aux=True)(lib.arange(3.0))


def grad_of_a_vector(lib: Any) -> Any:
    return lib.func.grad(lambda a: a)(lib.ones(2))


def jacobians_both_ways(lib: Any) -> Any:
    def f(a: Any) -> Any:
        return (a**2).cumsum(0) * a[0]

    y = lib.arange(3.0) + 1
    return lib.func.jacrev(f)(y), lib.func.jacfwd(f)(y), lib.func.hessian(lambda a: (a**3).sum())(y)


def products_with_the_jacobian(lib: Any) -> Any:
    y = lib.arange(3.0)
    value, pull = lib.func.vjp(lambda a: a**2, y)
    return lib.func.jvp(lambda a: a**2, (y,), (y,)), value, pull(y)


def new_tensors(lib: Any) -> Any:
    x = lib.ones(2, dtype=lib.float64)
    made = [lib.eye(2, 3), lib.linspace(0, 1, 5), lib.full_like(x, 3), lib.as_tensor([1.0])]
    return [*made, x.new_zeros(2), x.new_ones((1,)), x.new_full((2,), 3.0), x.new_tensor([1, 2]), lib.is_tensor(x)]


def linspace_of_a_negative_number(lib: Any) -> Any:
    return lib.linspace(0, 1, -1)


def another_default_dtype(lib: Any) -> Any:
    lib.set_default_dtype(lib.float64)
    try:
        made = [lib.tensor(1.5), lib.zeros(2), lib.tensor([1, 2]) / 2, lib.arange(0, 1, 0.5), lib.eye(2)]
        layers = [lib.nn.Linear(2, 1), lib.nn.BatchNorm1d(2), lib.nn.Embedding(2, 1)]
        return made, [str(p.dtype).removeprefix("torch.") for m in layers for p in m.parameters()], repr(made[0])
    finally:
        lib.set_default_dtype(lib.float32)


def default_dtype_that_is_no_float(lib: Any) -> Any:
    lib.set_default_dtype(lib.int64)


def memory_of_a_tensor(lib: Any) -> Any:
    x = lib.arange(6.0).reshape(2, 3)
    layout = [x.t().is_contiguous(), x.t().contiguous().stride(), x.t().stride(), x.stride(0), x.contiguous() is x]
    return layout, x.nbytes, x.itemsize, x.element_size(), x.nelement(), x.data_ptr() == x[0].data_ptr()


def sum_to_size(lib: Any) -> Any:
    x = lib.arange(6.0).reshape(2, 3)
    return x.sum_to_size(2, 1), x.sum_to_size(3)


def sum_to_a_size_that_does_not_fit(lib: Any) -> Any:
    return lib.ones(2, 3).sum_to_size(2)


def random_numbers_in_place(lib: Any) -> Any:
    lib.manual_seed(1)
    made = [lib.zeros(5).uniform_(2, 3), lib.zeros(20).normal_(5, 0.1)]
    return [x.double() for x in made]


def random_numbers_into_a_leaf(lib: Any) -> Any:
    x3(lib).uniform_()


def draws_with_probabilities(lib: Any) -> Any:
    lib.manual_seed(2)
    weights = lib.rand(2, 5)
    return lib.multinomial(weights, 1), lib.multinomial(weights, 3), lib.multinomial(weights[0], 4)


def too_many_draws(lib: Any) -> Any:
    return lib.multinomial(lib.ones(3), 4)


def draws_with_negative_weights(lib: Any) -> Any:
    return lib.multinomial(-lib.ones(3), 1)


def copies(lib: Any) -> Any:
    x = x3(lib)
    x.sum().backward()
    other = copy.deepcopy(x)
    again = pickle.loads(pickle.dumps(x))
    return other, other.grad, other is x, again, again.requires_grad


def copy_of_an_inner_tensor(lib: Any) -> Any:
    copy.deepcopy(x3(lib) * 2)


PROGRAMS = [value for value in dict(globals()).values() if callable(value) and value.__module__ == __name__]
PROGRAMS = [p for p in PROGRAMS if p.__code__.co_varnames[: p.__code__.co_argcount] == ("lib",) and p is not squared]
BAD_HOOKS = {
    "tensor for a tuple": _bad_hook("register_hook", lambda inputs, outputs: inputs[0]),
    "too few": _bad_hook("register_hook", lambda inputs, outputs: (inputs[0],)),
    "a number": _bad_hook("register_hook", lambda inputs, outputs: (1, None)),
    "another size": _bad_hook("register_hook", lambda inputs, outputs: (inputs[0][:1], None)),
    "before: tensor for a tuple": _bad_hook("register_prehook", lambda outputs: outputs[0]),
    "before: a number": _bad_hook("register_prehook", lambda outputs: (1,)),
}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_program(program: Program) -> None:
    same(program)


@pytest.mark.parametrize("program", BAD_HOOKS.values(), ids=BAD_HOOKS.keys())
def test_hook_of_a_node_that_returns_something_unfit(program: Program) -> None:
    same(program)
    assert isinstance(outcome(program, ma)[1], str), "this is to raise"


@pytest.mark.parametrize("inner", [False, True], ids=["leaf", "inner"])
@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS.keys())
def test_one_of_several_views_is_changed(part: Any, inner: bool) -> None:
    same(_changed(part, inner))


@pytest.mark.parametrize(
    "program",
    [
        lambda lib: lib.vmap(lambda a: a * 2)(lib.zeros(0, 3)),
        lambda lib: lib.vmap(lambda a: a * 2, out_dims=1)(lib.zeros(0, 3)),
        lambda lib: lib.vmap(lambda a, b: (a @ b, a.sum()), in_dims=(1, None))(lib.zeros(3, 0), lib.ones(3, 2)),
    ],
)
def test_vmap_of_no_example(program: Program) -> None:
    same(program)


def test_torch_utils_can_be_imported_by_their_names() -> None:
    from mini_autograd.utils.checkpoint import checkpoint
    from mini_autograd.utils.data import DataLoader

    assert checkpoint is ma.utils.checkpoint.checkpoint
    assert len(DataLoader(range(4), batch_size=2)) == len(torch.utils.data.DataLoader(range(4), batch_size=2))
