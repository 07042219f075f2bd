"""Functions of functions: `torch.func` with `vmap`, `grad`, `vjp`, `jvp`, `jacrev`, `jacfwd` and `hessian`.

Imports arrays, grad_mode, gradients, tensor, forward_mode, functional and the operations. The one idea to know: each of
them returns a function, so they can be put around one another; `vmap(grad(f))` gives the gradient of every example by
itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mini_autograd import forward_mode, functional
from mini_autograd.arrays import normalize_dim
from mini_autograd.grad_mode import enable_grad
from mini_autograd.gradients import grad as gradients_of
from mini_autograd.operations.joining import stack
from mini_autograd.tensor import Tensor

__all__ = ["grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "vjp", "vmap"]


def vmap(func: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0) -> Callable[..., Any]:
    """A function that takes a batch where `func` takes one example, and stacks the results.

    `in_dims`: the batch axis of every argument, or a tuple with one entry per argument (None: the same for every
    example); lists, tuples and dicts of tensors are searched. `out_dims`: where the batch axis of each result goes.

    Different from PyTorch's, which rewrites every operation, this one calls `func` once per example: the results are
    the same and can be differentiated, but nothing gets faster, and `func` may do anything, `.item()` included.

    Raises ValueError if no input has a batch axis, if their lengths differ, or if `in_dims` does not fit to the inputs.
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
        if found[0] == 0:  # one example of zeros tells what the results look like
            return _stacked([func(*_example(args, dims, None), **kwargs)], out_dims, name, empty=True)
        results = [func(*_example(args, dims, number), **kwargs) for number in range(found[0])]
        return _stacked(results, out_dims, name)

    return batched


def _spread(in_dims: Any, args: tuple, name: str) -> tuple:
    """One entry of `in_dims` per argument. Raises ValueError."""
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
    """The length of the batch axis of every tensor. Raises ValueError where there is none."""
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
    """The arguments with one example in the place of every batch: that of a number, or (None) one of zeros."""
    if isinstance(value, dict):
        return {key: _example(part, dim, number) for key, part, dim in _parts(value, dims)}
    if isinstance(value, tuple | list):
        return type(value)(_example(part, dim, number) for _, part, dim in _parts(value, dims))
    if dims is None:
        return value
    return value.sum(dims, dtype=value.dtype) if number is None else value.select(dims, number)


def _stacked(results: Sequence[Any], out_dims: Any, name: str, empty: bool = False) -> Any:
    """The results of all examples as one; `empty`: without any. Raises ValueError where a result is no tensor."""
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
    """A function that returns the gradient of `func`, whose value is one number, with respect to some arguments."""
    both = grad_and_value(func, argnums, has_aux)

    def gradient(*args: Any, **kwargs: Any) -> Any:
        found, value = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return gradient


def grad_and_value(
    func: Callable[..., Any], argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """As `grad`, and the value beside it; with `has_aux`, `func` returns its value and something to be handed through.

    The gradient is itself recorded if an argument requires grad, so these can be nested for higher derivatives.

    What it returns raises RuntimeError if the value of `func` is not a tensor of 0 axes.
    """

    def gradient_and_value(*args: Any, **kwargs: Any) -> Any:
        numbers = (argnums,) if isinstance(argnums, int) else argnums
        recorded = any(isinstance(x, Tensor) and x.requires_grad for x in args)
        given = list(args)
        with enable_grad():
            for number in numbers:
                given[number] = _fresh(args[number])
            output = func(*given, **kwargs)
            value, aux = output if has_aux else (output, None)
            if not isinstance(value, Tensor) or value.ndim:
                what = f"tensor with {value.ndim} dims" if isinstance(value, Tensor) else type(value)
                raise RuntimeError(
                    f"grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got {what}. Maybe you "
                    "wanted to use the vjp or jacrev APIs instead?"
                )
            wanted = [given[number] for number in numbers]
            found = gradients_of(value, wanted, create_graph=recorded, materialize_grads=True)
        if not recorded:
            value, aux = _detached(value), _detached(aux)
        return found[0] if isinstance(argnums, int) else found, (value, aux) if has_aux else value

    return gradient_and_value


def _fresh(x: Tensor) -> Tensor:
    """The same values as a tensor of its own, so that only what `func` does with it counts."""
    return x.view_as_itself() if x.requires_grad else x.detach().requires_grad_()


def _detached(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return type(value)(map(_detached, value))
    return value.detach() if isinstance(value, Tensor) else value


def vjp(func: Callable[..., Any], *primals: Tensor) -> tuple[Any, Callable[..., tuple]]:
    """The value of `func`, and a function that takes a cotangent (one per output) and gives one gradient per input."""
    recorded = any(x.requires_grad for x in primals)
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


def jacrev(func: Callable[..., Any], argnums: int = 0) -> Callable[..., Any]:
    """A function that returns the Jacobian of `func` with respect to one argument, row by row in reverse mode."""
    return _with_respect_to(functional.jacobian, func, argnums)


def jacfwd(func: Callable[..., Any], argnums: int = 0) -> Callable[..., Any]:
    """As `jacrev`, but column by column in forward mode: better for few inputs and many outputs."""

    def columns(f: Callable[..., Any], x: Tensor, create_graph: bool) -> Any:
        products = []
        for position in range(x.numel()):
            direction = x.detach() * 0
            direction.reshape(-1)[position] = 1
            with forward_mode.dual_level():
                dual = forward_mode.make_dual(x, direction)
                output = f(dual)
                tangent = forward_mode.unpack_dual(output).tangent
            products.append(output.detach() * 0 if tangent is None else tangent)
        return stack(products, -1).reshape((*products[0].shape, *x.shape))

    return _with_respect_to(columns, func, argnums)


def hessian(func: Callable[..., Any], argnums: int = 0) -> Callable[..., Any]:
    """A function that returns the Hessian of `func`, whose value is one number, with respect to one argument."""
    return _with_respect_to(functional.hessian, func, argnums)


def _with_respect_to(derivative: Callable[..., Any], func: Callable[..., Any], argnums: int) -> Callable[..., Any]:
    def differentiated(*args: Any) -> Any:
        def of_one(x: Tensor) -> Any:
            return func(*args[:argnums], x, *args[argnums + 1 :])

        return derivative(of_one, args[argnums], create_graph=args[argnums].requires_grad)

    return differentiated
