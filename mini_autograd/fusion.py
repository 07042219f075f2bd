"""`compile(function)`: runs a chain of elementwise operations block by block, while its numbers are in the cache.

Imports autograd, function, tensor and tracing. The one idea to know: an eager chain of ten operations on a
large array takes the whole array through memory ten times, and memory is what it waits for. A compiled chain takes one
block of the array through all ten operations, then the next block; what happens between the first and the last never
leaves the cache. The backward pass computes the forward values again, block by block, rather than store them.

The steps are found by running `function`, and then the engine's own backward pass, on arrays without numbers (see
tracing.py). So there are no rules here: what runs is what the engine would do, in the same order, with the same bits.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mini_autograd import autograd
from mini_autograd.function import Function
from mini_autograd.grad_mode import is_grad_enabled, set_grad_enabled
from mini_autograd.tensor import Tensor
from mini_autograd.tracing import Step, Trace, Traced, UntraceableError

BLOCK = 16384
"""Elements of a block: several blocks of float32 fit into a core's second cache, and a call costs little beside one."""
CACHE_LINE = 64
"""Bytes."""


class Program:
    """Steps from inputs to results, written out as a Python function of one block, `source`.

    Its arguments are blocks: inputs `i0 i1 ...`, results `r0 ...` and buffers `b0 ...`. A buffer is used again as soon
    as its value is not needed any more, so few of them are enough and all stay in the cache.
    """

    def __init__(self, trace: Trace, inputs: Sequence[int], results: Sequence[int], block: int) -> None:
        self.block = block
        self.dtypes = [trace.values[number] for number in results]
        self.buffers: list[np.dtype] = []
        names = {number: repr(x) for number, x in enumerate(trace.values) if not isinstance(x, np.dtype)}
        names |= {number: f"i{i}" for i, number in enumerate(inputs)} | {n: f"r{i}" for i, n in enumerate(results)}
        arguments, lines, free = [names[number] for number in (*inputs, *results)], [], []
        scope: dict[str, Any] = {"inf": np.inf, "nan": np.nan}
        steps, last_use = needed_steps(trace.steps, results)
        for position, (function, operands, result) in enumerate(steps):
            ended = {names[number] for number in operands if last_use[number] == position}
            free += [name for name in ended if name[0] == "b"]  # before the result has one: it may overwrite an operand
            if result not in names:
                names[result] = self.take_buffer(free, trace.values[result])
            lines.append(f"    {function.__name__}({', '.join(names[n] for n in operands)}, out={names[result]})")
            scope[function.__name__] = function
        arguments += [f"b{i}" for i in range(len(self.buffers))]
        self.source = "\n".join([f"def run_block({', '.join(arguments)}):", *lines])
        exec(self.source, scope)
        self.run_block = scope["run_block"]

    def take_buffer(self, free: list[str], dtype: np.dtype) -> str:
        """A buffer of that dtype: one that is free, or a new one."""
        for name in reversed(free):  # the last one is still in the cache
            if self.buffers[int(name[1:])] == dtype:
                free.remove(name)
                return name
        self.buffers.append(dtype)
        return f"b{len(self.buffers) - 1}"

    def run(self, arrays: Sequence[Any]) -> list[Any]:
        """The results for whole arrays."""
        results = [np.empty(arrays[0].shape, dtype) for dtype in self.dtypes]
        flat = [array.reshape(-1) for array in (*arrays, *results)]
        buffers = [aligned_empty(self.block, dtype) for dtype in self.buffers]
        with np.errstate(all="ignore"):
            for start in range(0, flat[0].size, self.block):
                blocks = [array[start : start + self.block] for array in flat]
                if len(blocks[0]) < self.block:
                    buffers = [buffer[: len(blocks[0])] for buffer in buffers]
                self.run_block(*blocks, *buffers)
        return results


def aligned_empty(size: int, dtype: np.dtype) -> Any:
    """An array that begins at a line of the cache; on others arithmetic takes half as long again."""
    memory = np.empty(size * dtype.itemsize + CACHE_LINE, np.uint8)
    start = -memory.ctypes.data % CACHE_LINE
    return memory[start : start + size * dtype.itemsize].view(dtype)


def needed_steps(steps: Sequence[Step], results: Sequence[int]) -> tuple[list[Step], dict[int, int]]:
    """The steps that lead to the results, and at which of them each value is used for the last time."""
    needed, kept = set(results), []
    for step in reversed(steps):
        if step[2] in needed:
            needed.update(step[1])
            kept.append(step)
    kept.reverse()
    return kept, {number: position for position, step in enumerate(kept) for number in step[1]}


@dataclass(frozen=True)
class Kernel:
    """A compiled function of tensors of one shape: its forward pass, and for which inputs it gives gradients."""

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
    stand_ins = [Tensor(a[...]).requires_grad_(x.requires_grad) for a, x in zip(arrays, tensors, strict=True)]
    output = function(*stand_ins)
    forward = Program(trace, inputs, own_numbers([output.array], inputs), block)
    if not output.requires_grad:
        return Kernel(function, trace, forward, None, ())
    cotangent = trace.new(output.dtype)
    wanted = [number for number, x in enumerate(stand_ins) if x.requires_grad]
    grads = autograd.grad(output, [stand_ins[i] for i in wanted], Tensor(cotangent), allow_unused=True)
    used = {number: grad.array for number, grad in zip(wanted, grads, strict=True) if grad is not None}
    inputs.append(cotangent.number)
    backward = Program(trace, inputs, own_numbers(used.values(), inputs), block)
    return Kernel(function, trace, forward, backward, tuple(used))


def own_numbers(results: Iterable[Any], inputs: Sequence[int]) -> list[int]:
    """The numbers of results; one that is an input, or another result too, is copied into an array of its own."""
    numbers: list[int] = []
    for array in results:
        if not isinstance(array, Traced):
            raise UntraceableError("the result does not depend on the inputs")
        taken = array.number in (*inputs, *numbers)
        numbers.append((array.astype(array.dtype) if taken else array).number)
    return numbers


class Fused(Function):
    """A compiled chain as one operation. Only its inputs are saved; its rule is the engine's, run block by block."""

    __slots__ = ("kernel",)

    @staticmethod
    def forward(ctx, *arrays, kernel):
        ctx.kernel = kernel
        ctx.save_for_backward(*arrays)
        return kernel.forward.run(arrays)[0]

    @staticmethod
    def backward(ctx, grad):
        inputs, kernel = ctx.saved_tensors, ctx.kernel
        if isinstance(grad, Tensor):  # a pass that is recorded goes through the single operations
            wanted = [inputs[number] for number in kernel.wanted]
            results: Sequence[Any] = autograd.grad(kernel.function(*inputs), wanted, grad, create_graph=True)
        else:
            results = kernel.backward.run((*inputs, grad))
        grads = dict(zip(kernel.wanted, results, strict=True))
        return tuple([grads.get(number) for number in range(len(inputs))])


def compile(function: Callable[..., Tensor] | None = None, *, block: int = BLOCK) -> Callable[..., Any]:
    """`function`, faster on large arrays if all it does is elementwise; otherwise as it is. Also as a decorator.

    Tensors of one shape are arguments of the fused chain; everything else (numbers, flags) is part of what it was
    traced for, as are shapes, dtypes, `requires_grad`, the grad mode, and numbers that the function finds outside
    itself: if one of them changes, it is traced anew. Where tracing fails (control flow on values, reductions, other
    tensors from outside, small arrays) the function runs eagerly. As with any compiler, what it does besides computing,
    such as printing, happens only while it is traced.
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
    """Whether there are plain NumPy arrays, all of one shape, and large enough for blocks to matter."""
    return (
        len(tensors) > 0
        and all(type(x.array) is np.ndarray and x.shape == tensors[0].shape for x in tensors)
        and tensors[0].numel() >= block
    )


def guard(value: Any) -> Any:
    """What has to stay the same about an argument."""
    return (value.shape, value.dtype, value.requires_grad) if isinstance(value, Tensor) else repr(value)


def outer_numbers(function: Callable) -> tuple:
    """The numbers that a function finds in its closure and among the globals that it names."""
    if not isinstance(function, types.FunctionType):
        return ()
    found = [cell.cell_contents for cell in function.__closure__ or ()]
    found += [function.__globals__.get(name) for name in function.__code__.co_names]
    return tuple([repr(value) if isinstance(value, int | float) else None for value in found])


def with_constants(function: Callable, inputs: Sequence[Any]) -> Callable[..., Any]:
    """The function of the tensors alone, with its other arguments as they are now."""
    places = [place for place, value in enumerate(inputs) if isinstance(value, Tensor)]

    def of_tensors(*tensors: Tensor) -> Any:
        return function(*[dict(zip(places, tensors, strict=True)).get(i, x) for i, x in enumerate(inputs)])

    return of_tensors


def trace_twice(function: Callable[..., Any], tensors: Sequence[Tensor], block: int) -> Kernel | None:
    """The kernel; None if the function cannot be traced, or does not do the same each time (it draws numbers, say)."""
    try:
        kernel, again = build(function, tensors, block), build(function, tensors, block)
    except Exception:  # whatever it is, the eager run that follows raises it too, if it is the function's own
        return None
    same = kernel.trace.steps == again.trace.steps and kernel.trace.values == again.trace.values
    return kernel if same else None
