"""`vmap`: a function of one example, called for each example of a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from mini_autograd.numerics.arrays import normalize_dim
from mini_autograd.operations.shapes.joining import stack
from mini_autograd.tensors.tensor import Tensor


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
