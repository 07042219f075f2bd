"""Derivatives of functions: `grad`, `vjp`, `jvp`, `jacrev`, `jacfwd`, `hessian`.

The one idea to know: a function is traced with new tensors in place of its arguments, so only what it does itself
counts. What comes out is a constant, unless it depends on something outside that requires grad.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count
from typing import Any

import numpy as np

from mini_autograd.autograd import forward_ad
from mini_autograd.graph.backward import nodes_leading_to, topological_order
from mini_autograd.graph.edges import node_of
from mini_autograd.graph.function import AccumulateGrad, GraphRoot, tensor_of
from mini_autograd.graph.grad_mode import enable_grad, is_grad_enabled, state
from mini_autograd.numerics.arrays import unit
from mini_autograd.operations.shapes.joining import stack
from mini_autograd.tensors.gradients import grad as gradients_of
from mini_autograd.tensors.gradients import one_as
from mini_autograd.tensors.tensor import Tensor


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

    The gradient is itself recorded if it depends on a tensor outside that requires grad, whether an argument or not, so
    calls can be nested for higher derivatives. Under `no_grad` it is not.

    The returned function raises RuntimeError if the value of `func` is not a 0-d tensor.
    """

    def gradient_and_value(*args: Any, **kwargs: Any) -> Any:
        numbers = _numbers(argnums, args)
        output, given = _traced(_of_some(func, args, kwargs, numbers), [args[number] for number in numbers])
        value, aux = output if has_aux else (output, None)
        if not isinstance(value, Tensor) or value.ndim:
            what = f"tensor with {value.ndim} dims" if isinstance(value, Tensor) else type(value)
            raise RuntimeError(
                f"grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got {what}. Maybe you "
                "wanted to use the vjp or jacrev APIs instead?"
            )
        found = _pulled_back([value], given, [tensor_of(one_as(value.array))])
        value, aux = _settled((value, aux))
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


def _of_some(func: Callable[..., Any], args: tuple, kwargs: dict, numbers: tuple[int, ...]) -> Callable[..., Any]:
    """`func` as a function of some of its arguments, with the others as given."""

    def of_some(*chosen: Any) -> Any:
        given = list(args)
        for number, x in zip(numbers, chosen, strict=True):
            given[number] = x
        return func(*given, **kwargs)

    return of_some


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


def _in_place_of(value: Any, others: Iterable[Any]) -> Any:
    """The same lists, tuples and dicts with other values in place of the tensors, in their order."""
    following = iter(others)
    return _mapped(lambda _: next(following), value)


_own_leaves: weakref.WeakValueDictionary[int, Tensor] = weakref.WeakValueDictionary()
"""By id, the leaves with which functions were traced: what depends on no other leaf is a constant outside of them."""


def _traced(func: Callable[..., Any], args: Sequence[Any]) -> tuple[Any, tuple]:
    """What `func` returns for new tensors with the values of `args`, and these tensors: only what `func` does counts.

    They lead on to tensors outside that require grad, unless nothing is recorded there.
    """
    recording = is_grad_enabled()
    leaves: list[Tensor] = []

    def fresh(x: Tensor) -> Tensor:
        if recording and x.requires_grad:
            return x.view_as_itself()
        leaves.append(_detached(x).requires_grad_())
        return leaves[-1]

    with enable_grad():
        given = tuple(_mapped(fresh, x) for x in args)
        output = func(*given)
    _own_leaves.update({id(x): x for x in leaves})  # only now: to what `func` itself differentiates, they are outside
    return output, given


def _pulled_back(outputs: Sequence[Tensor], given: tuple, cotangents: Sequence[Tensor]) -> tuple:
    """The gradients of `outputs` with respect to the tensors in `given`; zeros for what has no influence."""
    recorded = is_grad_enabled() and bool(_leading_outside([*outputs, *cotangents]))
    pairs = [(y, v) for y, v in zip(outputs, cotangents, strict=True) if y.requires_grad]
    xs = _tensors(given)
    found: Iterable[Tensor] = map(_zeros, xs)
    if pairs and xs:
        ys, vs = zip(*pairs, strict=True)
        found = gradients_of(ys, xs, vs, retain_graph=True, create_graph=recorded, materialize_grads=True)
    return _settled(_in_place_of(given, found))


def _leading_outside(tensors: Sequence[Tensor]) -> set[Any]:
    """The nodes behind these tensors that lead to a leaf outside of the functions that are differentiated."""
    tangents = [tangent for x in tensors if (tangent := forward_ad.tangent_of(x)) is not None]
    order = topological_order(GraphRoot(tuple(x.gradient_edge for x in [*tensors, *tangents])))
    leaves = {node for node in order if isinstance(node, AccumulateGrad) and id(node.variable) not in _own_leaves}
    return leaves | nodes_leading_to(leaves, order) if leaves else leaves


def _settled(value: Any) -> Any:
    """Results as they are outside: recorded only if that is on there, and if they depend on something that needs it."""
    recorded = [x for x in _tensors(value) if x.requires_grad]
    outside = _leading_outside(recorded) if recorded and is_grad_enabled() else ()
    return _mapped(lambda x: _detached(x) if x.requires_grad and node_of(x.gradient_edge) not in outside else x, value)


def _detached(x: Tensor) -> Tensor:
    """The tensor without its history, but with its tangent in forward mode."""
    result, tangent = x.detach(), forward_ad.tangent_of(x)
    if tangent is not None:
        state.forward_level.give(result, _settled(tangent))
    return result


def vjp(func: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[[Any], tuple]]:
    """The value of `func`, and a function that takes a cotangent of the value's form and gives one gradient per input.

    That function raises RuntimeError if the form differs.
    """
    output, given = _traced(func, primals)
    ys = _tensors(output)

    def pull(cotangents: Any) -> tuple:
        vs = _tensors(cotangents)
        if len(vs) != len(ys):
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the "
                f"function: got {len(vs)} tensors for {len(ys)} outputs."
            )
        return _pulled_back(ys, given, vs)

    return _settled(output), pull


def jvp(func: Callable[..., Any], primals: tuple, tangents: tuple) -> tuple[Any, Any]:
    """The value of `func`, and the product of its Jacobian with the tangents, in forward mode.

    Levels of forward mode do not nest: inside another, the product is computed by two backward passes. Raises
    RuntimeError if the tangents do not have the form of the primals.
    """
    if not isinstance(primals, tuple):
        raise RuntimeError(
            "jvp(f, primals, tangents): Expected primals to be a tuple. E.g. it should be valid to call f(*primals)."
        )
    xs, ts = _tensors(primals), _tensors(tangents)
    if len(xs) != len(ts):
        raise RuntimeError(
            "jvp(f, primals, tangents): Expected primals and tangents to have the same python structure. For example, "
            f"if primals is a tuple of 3 tensors, tangents also must be. Got {len(xs)} primals and {len(ts)} tangents."
        )
    if state.forward_level is not None:
        return _by_two_passes(func, primals, tangents)
    with forward_ad.dual_level():
        output = func(*_in_place_of(primals, [forward_ad.make_dual(*pair) for pair in zip(xs, ts, strict=True)]))
        values = _mapped(lambda y: forward_ad.unpack_dual(y).primal, output)
        products = _mapped(lambda y: _tangent(forward_ad.unpack_dual(y)), output)
    return values, products


def _tangent(dual: forward_ad.UnpackedDualTensor) -> Tensor:
    return _zeros(dual.primal) if dual.tangent is None else dual.tangent


def _zeros(x: Tensor) -> Tensor:
    return tensor_of(np.zeros_like(x.array))


def _by_two_passes(func: Callable[..., Any], primals: tuple, tangents: tuple) -> tuple[Any, Any]:
    """`jvp` in reverse mode: the gradient is linear in the cotangent, so its own gradient is the product.

    (Townsend 2017, "A new trick for calculating Jacobian vector products".)
    """
    output, pull = vjp(func, *primals)
    return output, vjp(pull, _mapped(_zeros, output))[1](tangents)[0]


def jacrev(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """A function that returns the Jacobian of `func`, row by row in reverse mode.

    For an output y and an argument x, it has the shape (*y.shape, *x.shape). The result is a tuple if `argnums` is a
    tuple; the same holds for `jacfwd` and `hessian`.
    """

    def jacobian(*args: Any, **kwargs: Any) -> Any:
        numbers = _numbers(argnums, args)
        chosen = tuple(args[number] for number in numbers)
        output, pull = vjp(_of_some(func, args, kwargs, numbers), *chosen)
        ys = _tensors(output)

        def blocks(place: int) -> Any:
            rows = [_tensors(pull(_in_place_of(output, one))) for one in _units(ys, place)]
            found = [
                stack([row[n] for row in rows]).reshape(*ys[place].shape, *x.shape) if rows else _no_rows(ys[place], x)
                for n, x in enumerate(_tensors(chosen))
            ]
            of_all = _in_place_of(chosen, found)
            return of_all[0] if isinstance(argnums, int) else of_all

        return _in_place_of(output, map(blocks, range(len(ys))))

    return jacobian


def jacfwd(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """Like `jacrev`, but column by column in forward mode (see `jvp`): better for few inputs and many outputs."""

    def jacobian(*args: Any, **kwargs: Any) -> Any:
        numbers = _numbers(argnums, args)
        chosen = tuple(args[number] for number in numbers)
        of_some, xs = _of_some(func, args, kwargs, numbers), _tensors(chosen)
        runs = [[jvp(of_some, chosen, _in_place_of(chosen, one)) for one in _units(xs, n)] for n in range(len(xs))]
        output = next((run[0] for columns in runs for run in columns), None)
        output = of_some(*chosen) if output is None else output
        columns = [[_tensors(run[1]) for run in some] for some in runs]

        def blocks(place: int, y: Tensor) -> Any:
            found = [
                stack([column[place] for column in some], -1).reshape(*y.shape, *x.shape) if some else _no_rows(y, x)
                for some, x in zip(columns, xs, strict=True)
            ]
            of_all = _in_place_of(chosen, found)
            return of_all[0] if isinstance(argnums, int) else of_all

        return _in_place_of(output, map(blocks, count(), _tensors(output)))

    return jacobian


def _units(tensors: Sequence[Tensor], place: int) -> Iterator[list[Tensor]]:
    """For each element of one of these tensors: zeros like all of them, with a 1 at that element."""
    vectors = [_zeros(x) for x in tensors]
    for position in range(tensors[place].numel()):
        vectors[place] = tensor_of(unit(tensors[place].array, position))
        yield vectors


def _no_rows(y: Tensor, x: Tensor) -> Tensor:
    """The Jacobian of `y` with respect to `x` if one of them is empty."""
    return tensor_of(np.zeros_like(x.array, shape=(*y.shape, *x.shape)))


def hessian(func: Callable[..., Any], argnums: int | tuple[int, ...] = 0) -> Callable[..., Any]:
    """A function that returns the second derivatives of `func`: for a scalar function, its Hessian."""
    return jacfwd(jacrev(func, argnums), argnums)
