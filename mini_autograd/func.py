"""Functions of functions: `torch.func` with `vmap`, `grad`, `vjp`, `jvp`, `jacrev`, `jacfwd` and `hessian`; and calls
of modules with parameters other than their own.

The one idea to know: most of them return a function, so they can be nested: `vmap(grad(f))` gives the gradient of each
example separately.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from mini_autograd.autograd import forward_ad, functional
from mini_autograd.graph.function import tensor_of
from mini_autograd.graph.grad_mode import enable_grad
from mini_autograd.numerics.arrays import normalize_dim
from mini_autograd.operations.shapes.joining import stack
from mini_autograd.tensors.gradients import ForwardOverReverseError, refuse_tangents
from mini_autograd.tensors.gradients import grad as gradients_of
from mini_autograd.tensors.tensor import Tensor

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "stack_module_state",
    "vjp",
    "vmap",
]


def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0) -> Callable[..., Any]:
    """A function that takes a batch where `func` takes one example, and stacks the results.

    `in_dims`: the batch axis of every argument, or a tuple with one entry per argument (None: the same for every
    example); lists, tuples and dicts of tensors are searched. `out_dims`: where the batch axis of each result goes.

    Unlike PyTorch's `vmap`, which rewrites every operation, this one calls `func` once per example: the results are the
    same and can be differentiated, but nothing gets faster, and `func` may do anything, `.item()` included.

    Raises ValueError if no input has a batch axis, if their lengths differ, or if `in_dims` does not fit the inputs.
    """
    name = getattr(func, "__name__", repr(func))

    def batched(*args: Any, **kwargs: Any) -> Any:
        dims = _spread(in_dims, args, name)
        found = list(_sizes(args, dims, name))
        if not found:
            raise ValueError(f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): no input has a batch axis")
        if len(set(found)) > 1:
            raise ValueError(
                "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
                f"{list(dict.fromkeys(found))} for the mapped dimension"
            )
        if found[0] == 0:  # one example of zeros shows what the results look like
            return _stacked([func(*_example(args, dims, None), **kwargs)], out_dims, name, empty=True)
        results = [func(*_example(args, dims, number), **kwargs) for number in range(found[0])]
        return _stacked(results, out_dims, name)

    return batched


def _spread(in_dims: Any, args: tuple, name: str) -> tuple:
    """One entry of `in_dims` per argument. Raises ValueError if it does not fit."""
    where = f"vmap({name}, in_dims={in_dims}, ...)(<inputs>)"
    if isinstance(in_dims, int):
        return (in_dims,) * len(args)
    if not isinstance(in_dims, tuple | list):
        raise ValueError(
            f"{where}: expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, "
            f"got: {type(in_dims)}."
        )
    if len(in_dims) != len(args):
        raise ValueError(f"{where}: in_dims has {len(in_dims)} entries, but there are {len(args)} inputs")
    return tuple(in_dims)


def _parts(value: Any, dims: Any) -> Iterator[tuple[Any, Any, Any]]:
    """The entries of a list, tuple or dict, each with its key and its part of `dims`."""
    keys: Any = value if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield key, value[key], dims[key] if isinstance(dims, tuple | list | dict) else dims


def _sizes(value: Any, dims: Any, name: str) -> Iterator[int]:
    """The length of the batch axis of every tensor. Raises ValueError if an input does not have that axis."""
    if isinstance(value, tuple | list | dict):
        for _, part, dim in _parts(value, dims):
            yield from _sizes(part, dim, name)
    elif dims is not None:
        if not isinstance(value, Tensor):
            raise ValueError(
                f"vmap({name}, in_dims={dims}, ...)(<inputs>): Got in_dim={dims} for an input but the input is of type "
                f"{type(value)}. We cannot vmap over non-Tensor arguments, please use None as the respective in_dim"
            )
        if not -value.ndim <= dims < value.ndim:
            raise ValueError(
                f"vmap({name}, in_dims={dims}, ...)(<inputs>): Got in_dim={dims} for some input, but that input is a "
                f"Tensor of dimensionality {value.ndim} so expected in_dim to satisfy -{value.ndim} <= in_dim < "
                f"{value.ndim}."
            )
        yield value.shape[dims]


def _example(value: Any, dims: Any, number: int | None) -> Any:
    """The arguments with one example in place of every batch: example `number`, or one of zeros if that is None."""
    if isinstance(value, dict):
        return {key: _example(part, dim, number) for key, part, dim in _parts(value, dims)}
    if isinstance(value, tuple | list):
        return type(value)(_example(part, dim, number) for _, part, dim in _parts(value, dims))
    if dims is None:
        return value
    return value.sum(dims, dtype=value.dtype) if number is None else value.select(dims, number)


def _stacked(results: Sequence[Any], out_dims: Any, name: str, empty: bool = False) -> Any:
    """The results of all examples, stacked; if `empty`, with none of them. Raises ValueError for a non-tensor."""
    first = results[0]
    if isinstance(first, dict):
        return {key: _stacked([r[key] for r in results], dim, name, empty) for key, _, dim in _parts(first, out_dims)}
    if isinstance(first, tuple | list):
        if isinstance(out_dims, tuple | list) and len(out_dims) != len(first):
            raise ValueError(f"vmap({name}): out_dims has {len(out_dims)} entries, but there are {len(first)} outputs")
        return type(first)(
            _stacked([r[key] for r in results], dim, name, empty) for key, _, dim in _parts(first, out_dims)
        )
    if out_dims is None:
        return first
    if not isinstance(first, Tensor):
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(first)}. Did you mean to set "
            "out_dims= to None for output?"
        )
    axis = normalize_dim(out_dims, first.ndim + 1)
    stacked = stack(list(results), axis)
    return stacked.narrow(axis, 0, 0) if empty else stacked


def grad(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """A function that returns the gradient of the scalar function `func` with respect to some arguments."""
    both = grad_and_value(func, argnums, has_aux)

    def gradient(*args: Any, **kwargs: Any) -> Any:
        found, value = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return gradient


def grad_and_value(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Like `grad`, but also return the value. With `has_aux`, `func` returns its value and extra data to pass through.

    An argument may be a tensor, or a list, tuple or dict of tensors, such as the parameters of a module; its gradient
    has the same form.

    The gradient is itself recorded if an argument requires grad, so calls can be nested for higher derivatives.

    The returned function raises RuntimeError if the value of `func` is not a 0-d tensor.
    """

    def gradient_and_value(*args: Any, **kwargs: Any) -> Any:
        numbers = _numbers(argnums, args)
        recorded = any(x.requires_grad for x in _tensors(args))
        refuse_tangents(_tensors(args))
        given = list(args)
        with enable_grad():
            for number in numbers:
                given[number] = _mapped(_fresh, args[number])
            output = func(*given, **kwargs)
            value, aux = output if has_aux else (output, None)
            if not isinstance(value, Tensor) or value.ndim:
                what = f"tensor with {value.ndim} dims" if isinstance(value, Tensor) else type(value)
                raise RuntimeError(
                    f"grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got {what}. Maybe you "
                    "wanted to use the vjp or jacrev APIs instead?"
                )
            wanted = [given[number] for number in numbers]
            grads = iter(_gradients(value, _tensors(wanted), recorded))
            found = tuple(_mapped(lambda _: next(grads), part) for part in wanted)
        if not recorded:
            value, aux = _detached(value), _detached(aux)
        return found[0] if isinstance(argnums, int) else found, (value, aux) if has_aux else value

    return gradient_and_value


def _numbers(argnums: int | tuple[int, ...], args: tuple) -> tuple[int, ...]:
    """The numbers of some arguments, or PyTorch's error for one that does not exist or is there twice, or for none."""
    numbers = (argnums,) if isinstance(argnums, int) else argnums
    if not numbers:
        raise RuntimeError("argnums must be non-empty")
    if len(set(numbers)) < len(numbers):
        raise RuntimeError(f"argnums elements must be unique, got {numbers}")
    for number in numbers:
        if not -len(args) <= number < len(args):
            raise RuntimeError(f"Got argnum={number}, but only {len(args)} positional inputs")
    return numbers


def _gradients(value: Tensor, xs: Sequence[Tensor], recorded: bool) -> Sequence[Tensor]:
    """The gradients of a scalar; zeros for inputs that it does not depend on."""
    if not value.requires_grad:
        return [tensor_of(np.zeros_like(x.array)) for x in xs]
    return gradients_of(value, xs, create_graph=recorded, materialize_grads=True)


def _tensors(value: Any) -> list[Tensor]:
    """The tensors in lists, tuples and dicts, in their order."""
    if isinstance(value, tuple | list | dict):
        return [tensor for part in (value.values() if isinstance(value, dict) else value) for tensor in _tensors(part)]
    return [value] if isinstance(value, Tensor) else []


def _mapped(change: Callable[[Tensor], Any], value: Any) -> Any:
    """The same lists, tuples and dicts with every tensor changed."""
    if isinstance(value, dict):
        return {key: _mapped(change, part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return type(value)(_mapped(change, part) for part in value)
    return change(value) if isinstance(value, Tensor) else value


def _fresh(x: Tensor) -> Tensor:
    """A new tensor with the same values, so that only what `func` does with it counts."""
    return x.view_as_itself() if x.requires_grad else x.detach().requires_grad_()


def _detached(value: Any) -> Any:
    return _mapped(lambda x: x.detach(), value)


def vjp(func: Callable[..., Any], *primals: Tensor) -> tuple[Any, Callable[..., tuple]]:
    """The value of `func`, and a function that takes a cotangent (one per output) and gives one gradient per input."""
    recorded = any(x.requires_grad for x in primals)
    refuse_tangents(primals)
    with enable_grad():
        given = [_fresh(x) for x in primals]
        output = func(*given)

    def pull(*cotangents: Any) -> tuple:
        wanted = cotangents[0] if isinstance(output, tuple) and isinstance(cotangents[0], tuple) else cotangents
        return gradients_of(output, given, wanted, retain_graph=True, create_graph=recorded, materialize_grads=True)

    return output if recorded else _detached(output), pull


def jvp(func: Callable[..., Any], primals: tuple, tangents: tuple) -> tuple[Any, Any]:
    """The value of `func`, and the product of its Jacobian with the tangents."""
    return functional.jvp(func, tuple(primals), tuple(tangents), create_graph=any(x.requires_grad for x in primals))


def jacrev(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """A function that returns the Jacobian of `func`, row by row in reverse mode.

    The result is a tuple if `argnums` is a tuple; the same holds for `jacfwd` and `hessian`.
    """
    return _with_respect_to(functional.jacobian, func, argnums)


def jacfwd(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """Like `jacrev`, but column by column in forward mode: better for few inputs and many outputs.

    If `func` runs a backward pass itself, each column is computed by two backward passes instead.
    """

    def columns(f: Callable[..., Any], x: Any, create_graph: bool) -> Any:
        if isinstance(x, tuple):
            parts = range(len(x))
            return tuple(columns(lambda one, n=n: f(*x[:n], one, *x[n + 1 :]), x[n], create_graph) for n in parts)
        products = []
        for position in range(x.numel()):
            direction = x.detach() * 0
            direction.reshape(-1)[position] = 1
            try:
                with forward_ad.dual_level():
                    output = f(forward_ad.make_dual(x, direction))
                    tangent = forward_ad.unpack_dual(output).tangent
                products.append(output.detach() * 0 if tangent is None else tangent)
            except ForwardOverReverseError:
                products.append(functional.jvp(f, x, direction, create_graph=create_graph)[1])
        return stack(products, -1).reshape((*products[0].shape, *x.shape))

    return _with_respect_to(columns, func, argnums)


def hessian(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """A function that returns the Hessian of the scalar function `func`."""
    return _with_respect_to(functional.hessian, func, argnums)


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """The result of `module` for these arguments, with other tensors in place of its parameters and buffers.

    The tensors are in a dict by path ("encoder.0.weight"), or in a sequence of such dicts; tensors that are not named
    stay. With `tie_weights`, a parameter that a module has under two names is replaced under both. Raises RuntimeError
    if `strict` and the names differ from the module's, AttributeError for a path that leads nowhere, and ValueError for
    dicts that name a tensor twice.
    """
    given = _in_one_dict(parameter_and_buffer_dicts)
    own = {
        **dict(module.named_parameters(remove_duplicate=False)),
        **dict(module.named_buffers(remove_duplicate=False)),
    }
    if strict and set(given) != set(own):
        _complain_of_keys(module, set(own) - set(given), set(given) - set(own))
    if tie_weights:
        replaced = {id(own[name]): tensor for name, tensor in given.items() if name in own}
        given |= {name: replaced[id(x)] for name, x in own.items() if id(x) in replaced and name not in given}
    before = [_put(module, name, tensor) for name, tensor in given.items()]
    try:
        return module(*(args if isinstance(args, tuple) else () if args is None else (args,)), **(kwargs or {}))
    finally:
        for family, name, tensor in reversed(before):
            family[name] = tensor


def _in_one_dict(dicts: Any) -> dict[str, Tensor]:
    """The tensors of a dict, or of several. Raises ValueError if one is named twice, or for anything else."""
    if isinstance(dicts, dict):
        return dict(dicts)
    if not isinstance(dicts, Sequence) or not all(isinstance(part, dict) for part in dicts):
        raise ValueError(
            f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(dicts)}"
        )
    names = [name for part in dicts for name in part]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"{sorted(twice)} appeared in multiple dictionaries; behavior of functional call is ambiguous")
    return {name: tensor for part in dicts for name, tensor in part.items()}


def _complain_of_keys(module: Any, missing: set[str], unexpected: set[str]) -> None:
    """Raise PyTorch's error for names that are missing or that the module does not have."""
    found = [("Unexpected", unexpected), ("Missing", missing)]
    problems = [
        f"\n\t{what} key(s): {', '.join(repr(name) for name in sorted(names))}." for what, names in found if names
    ]
    raise RuntimeError(f"Error(s) in reparametrizing for {type(module).__name__}:{''.join(problems)}")


def _put(module: Any, path: str, tensor: Tensor) -> tuple[dict, str, Any]:
    """Put a tensor in place of a parameter or buffer; return where it was put, and what was there."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{tensor} is not an instance of torch.Tensor")
    owner_path, _, name = path.rpartition(".")
    owner = module.get_submodule(owner_path)
    for family in (owner._parameters, owner._buffers):
        if name in family:
            before, family[name] = family[name], tensor
            return family, name, before
    return {name: None}, name, None  # the module has nothing of this name, so nothing is replaced


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The parameters and the buffers of models of one class, each stacked along a new axis 0, for `vmap`.

    The stacked parameters are leaves, which require grad if those of the models do. Raises RuntimeError if there are no
    models, or if they differ in class or training mode.
    """
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({model.training for model in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if len({type(model) for model in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    return _joined_by_name([m.named_parameters() for m in models]), _joined_by_name([m.named_buffers() for m in models])


def _joined_by_name(states: Sequence[Any]) -> dict[str, Tensor]:
    """For every name, the tensors of that name, stacked."""
    known = [dict(state) for state in states]
    return {name: _joined([state[name] for state in known]) for name in known[0]}


def _joined(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors stacked as a new leaf."""
    return stack([tensor.detach() for tensor in tensors]).requires_grad_(tensors[0].requires_grad)


def _with_respect_to(
    derivative: Callable[..., Any], func: Callable[..., Any], argnums: int | tuple[int, ...]
) -> Callable[..., Any]:
    def differentiated(*args: Any) -> Any:
        numbers = _numbers(argnums, args)

        def of_some(*chosen: Tensor) -> Any:
            given = list(args)
            for number, x in zip(numbers, chosen, strict=True):
                given[number] = x
            return func(*given)

        wanted = tuple(args[number] for number in numbers)
        recorded = any(x.requires_grad for x in wanted)
        return derivative(of_some, wanted[0] if isinstance(argnums, int) else wanted, create_graph=recorded)

    return differentiated
