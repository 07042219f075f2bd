"""Views made in every mode and then looked at, used and changed in every mode: the same as under PyTorch.

A program combines three choices: what the view shows, how and in which mode it was made, and what is then done with it.
"""

from collections.abc import Callable
from typing import Any

import pytest

from tests.mini_autograd.same_as_torch import OWNERS, Program, same, title, x3

MAKES: dict[str, Callable[[Any], Any]] = {
    "slice": lambda x: x[:2],
    "unsqueeze": lambda x: x.unsqueeze(0),
    "expand": lambda x: x.expand(3),
    "chunk": lambda x: x.chunk(2)[0],
    "detach": lambda x: x.detach(),
    "data": lambda x: x.data,
}
MODES: dict[str, Callable[[Any], Any]] = {
    "no_grad": lambda lib: lib.no_grad(),
    "inference mode": lambda lib: lib.inference_mode(),
    "grad mode": lambda lib: lib.enable_grad(),
}


def looked_at(lib: Any, view: Any) -> Any:
    return view.requires_grad, view.is_leaf, view._is_view(), view.grad_fn is None, view.is_inference()


def changed_in(mode: str) -> Callable[[Any, Any], Any]:
    def change(lib: Any, view: Any) -> Any:
        with MODES[mode](lib):
            view.add_(1)
            used = view * 2
        text = repr(view).split("grad_fn=")  # without the node: where ours repeats the steps, PyTorch has AsStrided
        return used, view.requires_grad, text[0], "Invalid" in text[-1], view.is_leaf

    return change


def used(lib: Any, view: Any) -> Any:
    product = view * lib.ones(1, requires_grad=True)
    product.sum().backward()
    return product, view.grad if view.is_leaf else None


def follow_up(lib: Any, view: Any) -> Any:
    """A view of the view is changed."""
    part = view[:]
    part.add_(1)
    return part, part.grad_fn is None, view, view.grad_fn is None


def owner_is_changed(lib: Any, view: Any) -> Any:
    owner = view if view._base is None else view._base
    owner.mul_(lib.ones(1, requires_grad=True))
    return view, view.requires_grad, view.is_leaf


USES: dict[str, Callable[[Any, Any], Any]] = {
    "looked at": looked_at,
    "used": used,
    "changed": lambda lib, view: (view.add_(1), view.is_leaf),
    "changed with a tensor that requires grad": lambda lib, view: view.mul_(lib.ones(1, requires_grad=True)),
    "changed under no_grad": changed_in("no_grad"),
    "changed in inference mode": changed_in("inference mode"),
    "viewed and changed": follow_up,
    "its owner changed": owner_is_changed,
    "made to require grad": lambda lib, view: (view.requires_grad_().is_leaf, view._is_view(), view * 2),
    "made to require grad and changed": lambda lib, view: view.requires_grad_().add_(1),
    "detached and changed": lambda lib, view: (view.detach().add_(1), view._version),
}


def program(owner: str, mode: str, make: str, use: str) -> Program:
    def run(lib: Any) -> Any:
        base = OWNERS[owner](lib)
        with MODES[mode](lib):
            view = MAKES[make](base)
        return USES[use](lib, view), base, base.is_leaf, base._version

    return run


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("owner", OWNERS)
def test_views_made_in_a_mode(owner: str, mode: str, use: str) -> None:
    for make in MAKES:
        same(program(owner, mode, make, use))


def parts_filled_and_used(lib: Any) -> Any:
    x = x3(lib)
    sums = []
    with lib.no_grad():
        for part in x.split(2):
            sums.append((part.fill_(4.0).sum(), part.requires_grad))
    return x, sums


def view_without_a_way_to_its_base(lib: Any) -> Any:
    x = x3(lib)
    with lib.no_grad():
        part = x[:2]
    (part * part).sum().backward()
    return part.requires_grad, part.is_leaf, part.grad, x.grad


def base_requires_grad_later(lib: Any) -> Any:
    x = lib.ones(3)
    part = x[:2]
    x.requires_grad_()
    return part.requires_grad, part.is_leaf, part.grad_fn is None, (part * 2).requires_grad


def base_was_changed_and_requires_grad_later(lib: Any) -> Any:
    x = lib.ones(3)
    part = x[:2]
    x.add_(1)
    x.requires_grad_()
    (part * part).sum().backward()
    return part.requires_grad, x.grad


def part_that_requires_grad_itself(lib: Any) -> Any:
    x = lib.ones(3)
    part = x[:2].requires_grad_()
    (part * 3).sum().backward()
    return part._is_view(), part.grad, x.requires_grad


def requires_grad_switched_off_on_a_leaf_view_before_backward(lib: Any) -> Any:
    x = lib.ones(3)
    part = x[:2].requires_grad_()
    y = (part * 3).sum()
    part.requires_grad_(False)
    y.backward()
    return part.grad, part.requires_grad, part.is_leaf, part._is_view(), (part * 2).requires_grad


def requires_grad_switched_off_on_a_detached_view_before_backward(lib: Any) -> Any:
    x = x3(lib)
    part = x.detach()[1:].requires_grad_()
    y = (part * x[1:]).sum()
    part.requires_grad = False
    y.backward()
    return part.grad, part.requires_grad, x.grad


def requires_grad_switched_off_and_on_again_before_backward(lib: Any) -> Any:
    part = lib.ones(3)[:2].requires_grad_()
    y = (part * part).sum()
    part.requires_grad_(False)
    part.requires_grad_(True)
    y.backward()
    return part.grad, part.is_leaf


def requires_grad_switched_off_on_the_view_of_a_leaf(lib: Any) -> None:
    x3(lib)[:2].requires_grad_(False)


def part_of_one_of_several(lib: Any) -> Any:
    (x3(lib) * 1).chunk(2)[0][:1].add_(1)


PROGRAMS: tuple[Program, ...] = (
    *(parts_filled_and_used, view_without_a_way_to_its_base, base_requires_grad_later, part_of_one_of_several),
    *(base_was_changed_and_requires_grad_later, part_that_requires_grad_itself),
    requires_grad_switched_off_on_a_leaf_view_before_backward,
    requires_grad_switched_off_on_a_detached_view_before_backward,
    requires_grad_switched_off_and_on_again_before_backward,
    requires_grad_switched_off_on_the_view_of_a_leaf,
)


@pytest.mark.parametrize("program", PROGRAMS, ids=title)
def test_the_same_as_in_pytorch(program: Program) -> None:
    same(program)
