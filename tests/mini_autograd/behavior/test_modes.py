"""Grad mode and inference mode: the same as under PyTorch.

The name of a program says what is tried.
"""

from typing import Any

import pytest

from tests.mini_autograd.same_as_torch import Program, same, scalar, title, x3


def grad_modes(lib: Any) -> Any:
    x = scalar(lib)
    states = [lib.is_grad_enabled()]
    with lib.no_grad():
        states += [lib.is_grad_enabled(), (x * 2).requires_grad]
        with lib.enable_grad():
            states += [lib.is_grad_enabled(), (x * 2).requires_grad]
        states += [lib.is_grad_enabled()]
    return [*states, lib.is_grad_enabled(), (x * 2).requires_grad]


def grad_mode_decorators(lib: Any) -> Any:
    x = scalar(lib)

    @lib.no_grad()
    def with_call(n: int) -> Any:
        return [(x * n).requires_grad, *(with_call(n - 1) if n else [])]

    @lib.no_grad
    def without_call() -> Any:
        return (x * 2).requires_grad

    @lib.enable_grad()
    def enabled() -> Any:
        return (x * 2).requires_grad

    with lib.no_grad():
        return [with_call(2), without_call(), enabled(), with_call.__name__, lib.is_grad_enabled()]


def grad_mode_of_a_generator(lib: Any) -> Any:
    @lib.no_grad()
    def steps() -> Any:
        yield lib.is_grad_enabled()
        yield lib.is_grad_enabled()

    return [state for step in steps() for state in (step, lib.is_grad_enabled())]


def set_grad_enabled(lib: Any) -> Any:
    states = []
    with lib.set_grad_enabled(False):
        states.append(lib.is_grad_enabled())
    lib.set_grad_enabled(False)
    states.append(lib.is_grad_enabled())
    lib.set_grad_enabled(True)
    return [*states, lib.is_grad_enabled()]


def grad_mode_restored_after_an_error(lib: Any) -> Any:
    try:
        with lib.no_grad():
            raise KeyError
    except KeyError:
        return lib.is_grad_enabled()


def backward_inside_no_grad(lib: Any) -> Any:
    x = scalar(lib)
    y = x**3
    with lib.no_grad():
        (first,) = lib.autograd.grad(y, x, create_graph=True)
    return first, *lib.autograd.grad(first, x)


def inference_saved(lib: Any) -> Any:
    with lib.inference_mode():
        y = lib.ones(3)
    return x3(lib) * y


def inference_add(lib: Any) -> Any:
    with lib.inference_mode():
        y = lib.ones(3)
    x = x3(lib)
    (x + y).sum().backward()
    return (
        x.grad,
        y.is_inference(),
        (y + 1).is_inference(),
        y[0].is_inference(),
        y.detach().is_inference(),
        y.clone().is_inference(),
    )


def inference_tensor_changed(lib: Any) -> Any:
    with lib.inference_mode():
        y = lib.ones(3)
    y.add_(1)


def inference_tensor_version(lib: Any) -> Any:
    with lib.inference_mode():
        y = lib.ones(3)
    return y._version


def inference_tensor_requires_grad(lib: Any) -> Any:
    with lib.inference_mode():
        y = lib.ones(3)
    y.requires_grad_()


def inference_enable(lib: Any) -> Any:
    x = x3(lib)
    with lib.inference_mode():
        with lib.enable_grad():
            a = ((x * 2).requires_grad, lib.is_grad_enabled())
        with lib.inference_mode(False):
            b = ((x * 2).requires_grad, lib.is_inference_mode_enabled())
    return (a, b)


PROGRAMS: list[Program] = [
    grad_modes,
    grad_mode_decorators,
    grad_mode_of_a_generator,
    set_grad_enabled,
    grad_mode_restored_after_an_error,
    backward_inside_no_grad,
    inference_saved,
    inference_add,
    inference_tensor_changed,
    inference_tensor_version,
    inference_tensor_requires_grad,
    inference_enable,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=title)
def test_the_same_as_in_pytorch(program: Program) -> None:
    same(program)
