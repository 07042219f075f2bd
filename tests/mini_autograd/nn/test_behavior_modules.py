"""Edge cases of modules, optimizers and samplers: the same results and errors as under PyTorch."""

from typing import Any

import pytest

from tests.mini_autograd.same_as_torch import Program, same


def inputs(lib: Any) -> Any:
    return lib.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)


def linear(lib: Any) -> Any:
    lib.manual_seed(1)
    return lib.nn.Linear(3, 2)


def hook_sees_inputs_and_outputs(lib: Any) -> Any:
    x, module, seen = inputs(lib), linear(lib), []
    module.register_full_backward_hook(lambda module, before, after: seen.append([*before, *after]))
    module(x).sum().backward()
    return seen, x.grad


def hook_replaces_the_gradient_of_the_input(lib: Any) -> Any:
    x, module = inputs(lib), linear(lib)
    module.register_full_backward_hook(lambda module, before, after: (before[0] * 2,))
    module(x).sum().backward()
    return x.grad, module.weight.grad


def pre_hook_replaces_the_gradient_of_the_output(lib: Any) -> Any:
    x, module, seen = inputs(lib), linear(lib), []
    module.register_full_backward_pre_hook(lambda module, after: (after[0] * 3,))
    module.register_full_backward_hook(lambda module, before, after: seen.append(after[0]))
    module(x).sum().backward()
    return seen, x.grad, module.weight.grad


def hook_without_an_input_that_requires_grad(lib: Any) -> Any:
    module, seen = linear(lib), []
    module.register_full_backward_hook(lambda module, before, after: seen.append([*before, *after]))
    module(inputs(lib).detach()).sum().backward()
    return seen, module.weight.grad


def removed_hook(lib: Any) -> Any:
    x, module, seen = inputs(lib), linear(lib), []
    module.register_full_backward_hook(lambda module, before, after: seen.append(after)).remove()
    module(x).sum().backward()
    return seen, x.grad


def hooks_of_a_chain(lib: Any) -> Any:
    nn, seen = lib.nn, []
    lib.manual_seed(1)
    chain = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 1))
    for name, module in chain.named_children():
        module.register_full_backward_hook(lambda _, before, after, name=name: seen.append((name, *before, *after)))
    chain(inputs(lib)).sum().backward()
    return seen


def part_of_a_sequential_keeps_names(lib: Any) -> Any:
    nn = lib.nn
    chain = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    return repr(chain[1:]), list(chain[1:].state_dict())


def insert_into_a_sequential(lib: Any) -> Any:
    nn = lib.nn
    chain = nn.Sequential(nn.ReLU())
    chain.insert(0, nn.Tanh())
    chain.insert(-1, nn.Sigmoid())
    return repr(chain.extend([nn.GELU()]))


PROGRAMS: dict[str, Program] = {
    program.__name__.replace("_", " "): program
    for program in (
        *(hook_sees_inputs_and_outputs, hook_replaces_the_gradient_of_the_input),
        *(pre_hook_replaces_the_gradient_of_the_output, hook_without_an_input_that_requires_grad, removed_hook),
        *(hooks_of_a_chain, part_of_a_sequential_keeps_names, insert_into_a_sequential),
    )
} | {
    "insert beyond the end": lambda lib: lib.nn.Sequential().insert(2, lib.nn.ReLU()),
    "no module": lambda lib: linear(lib).add_module("x", 3),
    "a parameter by its path": lambda lib: lib.nn.Sequential(linear(lib)).get_parameter("0.weight"),
    "no such parameter": lambda lib: lib.nn.Sequential(linear(lib)).get_parameter("0.other"),
    "the same parameter twice": lambda lib: repr(lib.optim.SGD([inputs(lib)] * 2, lr=0.1)),
    "a tensor for a list of parameters": lambda lib: lib.optim.SGD(inputs(lib).double(), lr=0.1),
    "draws with replacement": lambda lib: [
        lib.manual_seed(0) and lib.multinomial(lib.tensor([[0.1, 0.2, 0.7], [5.0, 1.0, 0.0]]), 6, replacement=True)
    ],
    "jacobian of a number": lambda lib: lib.autograd.functional.jacobian(lambda x: 3, inputs(lib)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_as_in_pytorch(name: str) -> None:
    same(PROGRAMS[name])
