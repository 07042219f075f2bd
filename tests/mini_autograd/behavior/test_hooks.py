"""Hooks of tensors, retained gradients, hooks for what a graph saves, and anomaly mode: the same as under PyTorch.

The name of a program says what is tried.
"""

import contextlib
import warnings
from typing import Any

import pytest

from tests.mini_autograd.same_as_torch import Program, same, title, x3


def hook_inplace(lib: Any) -> Any:
    seen = []
    x = x3(lib)
    y = x * 1
    y.register_hook(lambda g: seen.append(g.clone()))
    y.mul_(3)
    y.sum().backward()
    return seen


def retain_inplace(lib: Any) -> Any:
    x = x3(lib)
    y = x * 1
    y.retain_grad()
    y.mul_(3)
    (y * y).sum().backward()
    return y.grad


def retain_base_of_a_changed_view(lib: Any) -> Any:
    leaf = x3(lib)
    x = leaf.clone()
    x.retain_grad()
    view = x[:]
    view *= 2
    x *= 2
    x.sum().backward()
    return leaf.grad, x.grad


def retain_base_and_part_of_it(lib: Any) -> Any:
    leaf = x3(lib)
    x = leaf.clone()
    x.retain_grad()
    part = x[:2]
    part.mul_(3)
    (x * x).sum().backward()
    return leaf.grad, x.grad


def hook_of_what_is_not_wanted(lib: Any) -> Any:
    a, b = x3(lib), x3(lib)
    seen = []
    a.register_hook(lambda g: seen.append("a"))
    b.register_hook(lambda g: seen.append("b"))
    c = a * b
    c.register_hook(lambda g: seen.append("c"))
    (c + a).sum().backward(inputs=[b])
    return seen, a.grad, b.grad


def hooks_in_order_and_removed(lib: Any) -> Any:
    x = x3(lib)
    seen = []
    h1 = x.register_hook(lambda g: g * 2)
    x.register_hook(lambda g: seen.append(g))
    (x * x).sum().backward()
    h1.remove()
    (x * x).sum().backward()
    return (x.grad, seen)


def hook_gives_a_number(lib: Any) -> Any:
    x = x3(lib)
    x.register_hook(lambda g: 1)
    x.sum().backward()


def hook_gives_another_size(lib: Any) -> Any:
    x = x3(lib)

    def h(g: Any) -> Any:
        return g[:2]

    x.register_hook(h)
    x.sum().backward()


def hook_gives_another_dtype(lib: Any) -> Any:
    x = x3(lib)

    def h(g: Any) -> Any:
        return g.double()

    x.register_hook(h)
    x.sum().backward()


def hook_without_requires_grad(lib: Any) -> Any:
    lib.ones(3).register_hook(lambda g: g)


def post_hook(lib: Any) -> Any:
    x = x3(lib)
    seen = []
    x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.clone()))
    x.sum().backward()
    x.sum().backward()
    return seen


def post_hook_bad(lib: Any) -> Any:
    (x3(lib) * 2).register_post_accumulate_grad_hook(lambda p: 1)


def hook_retain_order(lib: Any) -> Any:
    x = x3(lib)
    y = x * 1
    y.retain_grad()
    y.register_hook(lambda g: g * 10)
    y.sum().backward()
    return (y.grad, x.grad)


def saved_hooks(lib: Any) -> Any:
    x = x3(lib)
    seen = []

    def pack(t: Any) -> Any:
        seen.append(("pack", tuple(t.shape)))
        return t.detach().numpy().copy()

    def unpack(a: Any) -> Any:
        seen.append("unpack")
        return lib.from_numpy(a)

    with lib.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = (x * x).exp()
    y.sum().backward()
    return (x.grad, seen)


def unpack_hook_gives_a_number(lib: Any) -> Any:
    x = x3(lib)
    with lib.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: 1):
        y = x.exp()
    y.sum().backward()


def pack_hook_changes_its_input(lib: Any) -> Any:
    x = x3(lib)
    with lib.autograd.graph.saved_tensors_hooks(lambda t: t.detach().mul_(2), lambda t: t):
        x**2


def saved_on_cpu(lib: Any) -> Any:
    x = x3(lib)
    with lib.autograd.graph.save_on_cpu():
        y = (x * x).exp()
    y.sum().backward()
    return x.grad


def anomaly_nan(lib: Any) -> Any:
    with lib.autograd.detect_anomaly():
        x = lib.tensor([-1.0, 0.0], requires_grad=True)
        (x * 0 / x).sum().backward()


def hooks_of_a_leaf_at_which_a_pass_ends(lib: Any) -> Any:
    seen = []
    x = x3(lib)
    x.register_hook(lambda g: seen.append("tensor"))
    x.register_post_accumulate_grad_hook(lambda p: seen.append(("after", p.grad.clone())))
    y = (x * x).sum()
    end = y.grad_fn.next_functions[0][0].next_functions[0][0]
    end.register_prehook(lambda grads: seen.append(("pre", *grads)))
    end.register_hook(lambda inputs, outputs: seen.append(("post", *outputs)))
    y.backward(inputs=[x], retain_graph=True)
    y.backward(inputs=[x], create_graph=True)
    return [*seen, x.grad]


def anomaly_shows_the_line_of_a_value_that_was_changed(lib: Any) -> Any:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with lib.autograd.detect_anomaly():
            y = x3(lib).exp()
            y += 1
            with contextlib.suppress(RuntimeError):
                y.sum().backward()
    texts = [str(warning.message).split(" (Triggered internally")[0] for warning in caught]
    return [("ExpBackward0" in text, "y = x3(lib).exp()" in text.splitlines()[-1]) for text in texts]


PROGRAMS: list[Program] = [
    anomaly_shows_the_line_of_a_value_that_was_changed,
    hook_inplace,
    hooks_of_a_leaf_at_which_a_pass_ends,
    retain_inplace,
    retain_base_of_a_changed_view,
    retain_base_and_part_of_it,
    hook_of_what_is_not_wanted,
    hooks_in_order_and_removed,
    hook_gives_a_number,
    hook_gives_another_size,
    hook_gives_another_dtype,
    hook_without_requires_grad,
    post_hook,
    post_hook_bad,
    hook_retain_order,
    saved_hooks,
    unpack_hook_gives_a_number,
    pack_hook_changes_its_input,
    saved_on_cpu,
    anomaly_nan,
]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("program", PROGRAMS, ids=title)
def test_the_same_as_in_pytorch(program: Program) -> None:
    same(program)
