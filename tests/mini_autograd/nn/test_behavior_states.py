"""States, copies, hooks and containers of modules, clipping, pickling: the same results and errors as under PyTorch."""

import copy
import io
import math
import pickle
from typing import Any

import pytest

from tests.mini_autograd.same_as_torch import Program, same


def linear(lib: Any) -> Any:
    lib.manual_seed(0)
    return lib.nn.Linear(3, 2)


def rows(lib: Any) -> Any:
    return lib.tensor([[1.0, 2.0, 3.0], [3.0, -1.0, 0.0], [0.5, 0.0, 1.0]])


def own_module(lib: Any) -> Any:
    class Own(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = linear(lib)
            self.scale = lib.nn.Parameter(lib.ones(2))
            self.register_buffer("shift", lib.zeros(2))
            self.register_buffer("hidden", lib.ones(1), persistent=False)

        def forward(self, x: Any) -> Any:
            return self.linear(x) * self.scale + self.shift

    return Own()


def tied(lib: Any) -> Any:
    """Two layers with one weight."""
    modules = lib.nn.ModuleList([linear(lib), linear(lib)])
    modules[1].weight = modules[0].weight
    return modules


def with_gradients(lib: Any, factor: float = 100.0) -> Any:
    module = linear(lib)
    (module(rows(lib)) * factor).sum().backward()
    return module


def loaded(state: Any, **options: Any) -> Program:
    """Load a state into a linear layer."""

    def program(lib: Any) -> Any:
        module = linear(lib)
        result = module.load_state_dict(state(lib), **options)
        return repr(result), *result, module.weight, type(module.weight).__name__

    return program


def assigned(name: str, value: Any) -> Program:
    """Assign an attribute of a module that holds a layer, a parameter and two buffers."""

    def program(lib: Any) -> Any:
        module = own_module(lib)
        setattr(module, name, value(lib))
        return list(module.state_dict()), [name for name, _ in module.named_buffers()]

    return program


def names(lib: Any) -> Any:
    module = own_module(lib)
    walks = (module.named_parameters, module.named_buffers, module.named_modules, module.named_children)
    return [[name for name, _ in walk()] for walk in walks], repr(module), list(module.state_dict(prefix="p."))


def names_of_shared_parameters(lib: Any) -> Any:
    modules = tied(lib)
    (modules[1](rows(lib)) + modules[0](rows(lib))).sum().backward()
    every = [name for name, _ in modules.named_parameters(remove_duplicate=False)]
    return every, [name for name, _ in modules.named_parameters()], list(modules.state_dict()), modules[0].weight.grad


def order_of_apply(lib: Any) -> Any:
    seen: list[str] = []
    model = lib.nn.Sequential(linear(lib), lib.nn.Sequential(lib.nn.ReLU()))
    return model.apply(lambda module: seen.append(type(module).__name__)) is model, seen


def deleted_attributes(lib: Any) -> Any:
    module = own_module(lib)
    del module.scale, module.linear, module.shift
    return list(module.state_dict()), hasattr(module, "scale")


def copies_are_apart(lib: Any) -> Any:
    module = with_gradients(lib)
    other = copy.deepcopy(module)
    other.weight.data.zero_()
    return module.weight, other.weight, other.weight.grad, copy.deepcopy(tied(lib))[0].weight.requires_grad


def shared_parameters_stay_shared(lib: Any) -> Any:
    other = copy.deepcopy(tied(lib))
    return other[0].weight is other[1].weight


def shallow_copy_shows_the_same(lib: Any) -> Any:
    x = lib.ones(2, requires_grad=True)
    y = copy.copy(x)
    y.data.add_(1)
    return x, y, y.is_leaf


def copy_of_an_optimizer(lib: Any) -> Any:
    module = with_gradients(lib, 1.0)
    optimizer = lib.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
    optimizer.step()
    other = copy.deepcopy(optimizer)
    return other.param_groups[0]["lr"], other.param_groups[0]["params"][0] is module.weight, len(other.state)


def pickled(make: Any) -> Program:
    def program(lib: Any) -> Any:
        value = make(lib)
        other = pickle.loads(pickle.dumps(value))
        return other, other.is_leaf, other is value, type(other).__name__

    return program


def saved_to_memory(lib: Any) -> Any:
    file = io.BytesIO()
    lib.save(own_module(lib).state_dict(), file)
    file.seek(0)
    state = lib.load(file)
    return [[name, state[name]] for name in sorted(state)]


def hooks_with_keywords(lib: Any) -> Any:
    module, seen = linear(lib), []
    module.register_forward_pre_hook(lambda _, args, kwargs: seen.append((len(args), sorted(kwargs))), with_kwargs=True)
    module.register_forward_hook(lambda _, args, kwargs, result: result * len(kwargs) * 2, with_kwargs=True)
    return module(input=rows(lib)), seen


def pre_hook_that_replaces_keywords(lib: Any) -> Any:
    module = linear(lib)
    module.register_forward_pre_hook(lambda _, args, kwargs: ((rows(lib),), {}), with_kwargs=True)
    return module(input=None)


def pre_hook_that_forgets_keywords(lib: Any) -> None:
    module = linear(lib)
    module.register_forward_pre_hook(lambda _, args, kwargs: (args, kwargs, 3), with_kwargs=True)
    module(rows(lib))


def hook_that_is_always_called(lib: Any) -> Any:
    module, seen = linear(lib), []
    module.register_forward_hook(lambda _, args, result: seen.append("usual"))
    module.register_forward_hook(lambda _, args, result: seen.append("always"), always_call=True)
    with pytest.raises(RuntimeError):
        module(lib.ones(2, 5))
    return seen


def hook_that_fails_after_an_error(lib: Any) -> Any:
    module = linear(lib)
    module.register_forward_hook(lambda _, args, result: result + 1, always_call=True)
    with pytest.raises(RuntimeError):
        module(lib.ones(2, 5))


def result_of_a_hooked_module_changed(lib: Any) -> None:
    module = linear(lib)
    module.register_full_backward_hook(lambda *grads: None)
    module(rows(lib)).add_(1)


def list_of_modules(lib: Any) -> Any:
    nn = lib.nn
    modules = nn.ModuleList([linear(lib), nn.ReLU(), nn.Tanh(), nn.GELU(), nn.Softplus()])
    del modules[1]
    del modules[-2:]
    return repr(modules), modules.pop(0).bias, repr(modules)


def dict_of_modules(lib: Any) -> Any:
    modules = lib.nn.ModuleDict({"a": linear(lib), "b": lib.nn.ReLU()})
    modules.update({"c": lib.nn.Tanh(), "b": lib.nn.GELU()})
    popped = repr(modules.pop("b"))
    del modules["a"]
    before = list(modules.keys())
    modules.clear()
    return popped, before, len(modules), repr(modules)


def clipped(norm_type: Any, **options: Any) -> Program:
    def program(lib: Any) -> Any:
        module = with_gradients(lib, 2.0)
        total = lib.nn.utils.clip_grad_norm_(module.parameters(), 1.0, norm_type=norm_type, **options)
        return total, module.weight.grad

    return program


def clipped_infinity(**options: Any) -> Program:
    def program(lib: Any) -> Any:
        module = linear(lib)
        module.weight.grad = lib.ones(2, 3) * math.inf
        return lib.nn.utils.clip_grad_norm_(module.parameters(), 1.0, **options), module.weight.grad

    return program


PROGRAMS: dict[str, Program] = {
    program.__name__.replace("_", " "): program
    for program in (
        *(names, names_of_shared_parameters, order_of_apply, deleted_attributes, copies_are_apart),
        *(shared_parameters_stay_shared, shallow_copy_shows_the_same, copy_of_an_optimizer, saved_to_memory),
        *(hooks_with_keywords, pre_hook_that_replaces_keywords, pre_hook_that_forgets_keywords),
        *(hook_that_is_always_called, hook_that_fails_after_an_error, result_of_a_hooked_module_changed),
        *(list_of_modules, dict_of_modules),
    )
} | {
    "missing key": loaded(lambda lib: {"weight": lib.ones(2, 3)}),
    "unexpected key": loaded(lambda lib: {"weight": lib.ones(2, 3), "bias": lib.ones(2), "other": lib.ones(1)}),
    "wrong shapes": loaded(lambda lib: {"weight": lib.ones(3, 3), "bias": lib.ones(3)}),
    "not strict": loaded(lambda lib: {"weight": lib.ones(2, 3), "other": lib.ones(1)}, strict=False),
    "wrong shape, not strict": loaded(lambda lib: {"weight": lib.ones(3, 3)}, strict=False),
    "no tensor": loaded(lambda lib: {"weight": 3, "bias": lib.ones(2)}),
    "no dict": loaded(lambda lib: [1]),
    "another dtype": loaded(lambda lib: {"weight": lib.ones(2, 3).double(), "bias": lib.ones(2)}),
    "in their place": loaded(lambda lib: {"weight": lib.ones(2, 3).double(), "bias": lib.ones(2)}, assign=True),
    "type of a state": lambda lib: type(linear(lib).state_dict()).__name__,
    "tensor for a parameter": assigned("scale", lambda lib: lib.ones(2)),
    "None for a parameter": assigned("scale", lambda lib: None),
    "number for a module": assigned("linear", lambda lib: 3),
    "number for a buffer": assigned("shift", lambda lib: 3),
    "tensor for a buffer": assigned("shift", lambda lib: lib.ones(3)),
    "parameter for a module": assigned("linear", lambda lib: lib.nn.Parameter(lib.ones(1))),
    "no such attribute": lambda lib: own_module(lib).nothing,
    "no such module": lambda lib: own_module(lib).get_submodule("linear.other"),
    "a buffer by its path": lambda lib: own_module(lib).get_buffer("shift"),
    "no such buffer": lambda lib: own_module(lib).get_buffer("linear.other"),
    "a parameter is no buffer": lambda lib: own_module(lib).get_buffer("linear.bias"),
    "copy of what is no leaf": lambda lib: copy.deepcopy(lib.ones(2, requires_grad=True) * 2),
    "pickled leaf": pickled(lambda lib: lib.ones(2, requires_grad=True)),
    "pickled result": pickled(lambda lib: lib.ones(2, requires_grad=True) * 2),
    "pickled parameter": pickled(lambda lib: lib.nn.Parameter(lib.ones(2))),
    "clipped": clipped(2.0),
    "clipped by the largest": clipped(math.inf),
    "clipped by the largest, by name": clipped("inf"),
    "clipped by the sum": clipped(1),
    "clipped infinity": clipped_infinity(),
    "refused infinity": clipped_infinity(error_if_nonfinite=True),
    "nothing to clip": lambda lib: lib.nn.utils.clip_grad_norm_(linear(lib).parameters(), 1.0),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_as_in_pytorch(name: str) -> None:
    same(PROGRAMS[name])
