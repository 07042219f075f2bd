"""`compile(function)`: run a chain of elementwise operations block by block, while its numbers are in the cache.

The one idea to know: an eager chain of ten operations on a large array takes the whole array through memory ten times,
and spends its time waiting for memory. A compiled chain takes one block of the array through all ten operations, then
the next block; results between the first and the last operation never leave the cache. The backward pass computes the
forward values again, block by block, instead of storing them.

The steps are found by running `function`, and then the engine's own backward pass, on arrays without numbers (see
tracing.py). So there are no rules here: the engine's own steps run in the same order, and give the same bits.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mini_autograd import autograd
from mini_autograd.graph.function import Function, tensor_of
from mini_autograd.graph.grad_mode import is_grad_enabled, set_grad_enabled
from mini_autograd.numerics.blocks import BLOCK, Program
from mini_autograd.numerics.tracing import Trace, Traced, UntraceableError
from mini_autograd.tensors.tensor import Tensor


@dataclass(frozen=True)
class Kernel:
    """A compiled function of tensors of one shape: its forward and backward pass, and which inputs get gradients."""

    function: Callable[..., Tensor]
    trace: Trace
    forward: Program
    backward: Program | None  # None: the result does not require grad
    wanted: tuple[int, ...]  # numbers of the inputs


def build(function: Callable[..., Tensor], tensors: Sequence[Tensor], block: int) -> Kernel:
    """Run the function on stand-ins for these tensors, and the engine's backward pass after it."""
    trace = Trace(tensors[0].shape)
    arrays = [trace.new(x.dtype) for x in tensors]
    inputs = [array.number for array in arrays]
    stand_ins = [tensor_of(a[...]).requires_grad_(x.requires_grad) for a, x in zip(arrays, tensors, strict=True)]
    output = function(*stand_ins)
    forward = Program(trace, inputs, own_numbers([output.array], inputs), block)
    if not output.requires_grad:
        return Kernel(function, trace, forward, None, ())
    cotangent = trace.new(output.dtype)
    wanted = [number for number, x in enumerate(stand_ins) if x.requires_grad]
    grads = autograd.grad(output, [stand_ins[i] for i in wanted], tensor_of(cotangent), allow_unused=True)
    used = {number: grad.array for number, grad in zip(wanted, grads, strict=True) if grad is not None}
    inputs.append(cotangent.number)
    backward = Program(trace, inputs, own_numbers(used.values(), inputs), block)
    return Kernel(function, trace, forward, backward, tuple(used))


def own_numbers(results: Iterable[Any], inputs: Sequence[int]) -> list[int]:
    """The numbers of the results; one that is also an input, or another result, is copied into a new array.

    Raises UntraceableError for a result that does not depend on the inputs.
    """
    numbers: list[int] = []
    for array in results:
        if not isinstance(array, Traced):
            raise UntraceableError("the result does not depend on the inputs")
        taken = array.number in (*inputs, *numbers)
        numbers.append((array.astype(array.dtype) if taken else array).number)
    return numbers


class Fused(Function):
    """A compiled chain as one operation. Only its inputs are saved; its rule is the engine's, run block by block."""

    torch_name = "FusedBackward"
    __slots__ = ("kernel",)

    @staticmethod
    def forward(ctx, *arrays, kernel):
        ctx.kernel = kernel
        ctx.save_for_backward(*arrays)
        return kernel.forward.run(arrays)[0]

    @staticmethod
    def backward(ctx, grad):
        inputs, kernel = ctx.saved_tensors, ctx.kernel
        if isinstance(grad, Tensor):  # a recorded pass goes through the individual operations
            wanted = [inputs[number] for number in kernel.wanted]
            results: Sequence[Any] = autograd.grad(kernel.function(*inputs), wanted, grad, create_graph=True)
        else:
            results = kernel.backward.run((*inputs, grad))
        grads = dict(zip(kernel.wanted, results, strict=True))
        return tuple([grads.get(number) for number in range(len(inputs))])


def compile(function: Callable[..., Tensor] | None = None, *, block: int = BLOCK) -> Callable[..., Any]:
    """`function`, faster on large arrays if it is purely elementwise; otherwise unchanged. Also works as a decorator.

    Tensors of one shape are the arguments of the fused chain. A trace is specific to everything else (numbers, flags),
    and to shapes, dtypes, `requires_grad`, the grad mode, and numbers that the function finds outside itself: if one of
    them changes, the function is traced again. If tracing fails (control flow on values, reductions, other tensors from
    outside, small arrays), the function runs eagerly. As with any compiler, side effects such as printing happen only
    during tracing.
    """
    if function is None:
        return functools.partial(compile, block=block)
    kernels: dict[Any, Kernel | None] = {}

    @functools.wraps(function)
    def compiled(*inputs: Any, **options: Any) -> Any:
        tensors = [x for x in inputs if isinstance(x, Tensor)]
        numbers = all(isinstance(x, Tensor | int | float | str | None) for x in inputs)
        if options or not numbers or not fusible(tensors, block):
            return function(*inputs, **options)
        signature = (*map(guard, inputs), is_grad_enabled(), outer_numbers(function))
        if signature not in kernels:
            kernels[signature] = trace_twice(with_constants(function, inputs), tensors, block)
        kernel = kernels[signature]
        if kernel is None:
            return function(*inputs)
        with set_grad_enabled(is_grad_enabled() and kernel.backward is not None):
            return Fused.apply(*tensors, kernel=kernel)

    return compiled


def fusible(tensors: Sequence[Tensor], block: int) -> bool:
    """Whether the tensors hold plain NumPy arrays, all of one shape, and large enough for blocks to matter."""
    return (
        len(tensors) > 0
        and all(type(x.array) is np.ndarray and x.shape == tensors[0].shape for x in tensors)
        and tensors[0].numel() >= block
    )


def guard(value: Any) -> Any:
    """The properties of an argument that have to stay the same."""
    return (value.shape, value.dtype, value.requires_grad) if isinstance(value, Tensor) else repr(value)


def outer_numbers(function: Callable) -> tuple:
    """The numbers that a function finds in its closure and among the globals that it names."""
    if not isinstance(function, types.FunctionType):
        return ()
    found = [cell.cell_contents for cell in function.__closure__ or ()]
    found += [function.__globals__.get(name) for name in function.__code__.co_names]
    return tuple([repr(value) if isinstance(value, int | float) else None for value in found])


def with_constants(function: Callable, inputs: Sequence[Any]) -> Callable[..., Any]:
    """The function of the tensors alone, with its other arguments fixed at their present values."""
    places = [place for place, value in enumerate(inputs) if isinstance(value, Tensor)]

    def of_tensors(*tensors: Tensor) -> Any:
        return function(*[dict(zip(places, tensors, strict=True)).get(i, x) for i, x in enumerate(inputs)])

    return of_tensors


def trace_twice(function: Callable[..., Any], tensors: Sequence[Tensor], block: int) -> Kernel | None:
    """The kernel; None if the function cannot be traced, or differs from run to run (by random numbers, say)."""
    try:
        kernel, again = build(function, tensors, block), build(function, tensors, block)
    except Exception:  # if it is the function's own error, the eager run that follows raises it too
        return None
    same = kernel.trace.steps == again.trace.steps and kernel.trace.values == again.trace.values
    return kernel if same else None
