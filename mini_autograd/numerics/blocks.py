"""Programs that run block by block: steps on large arrays, taken while the numbers are in the cache.

The one idea to know: arithmetic on a large array waits for memory, so ten operations on it cost ten passes through
memory. A program takes one block of the arrays through all its steps, then the next.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mini_autograd.numerics.tracing import Step, Trace

BLOCK = 32768
"""Elements per block: several blocks of float32 fit into a core's L2 cache, and calls cost little beside a block."""
LARGE_BLOCK = 262144
"""Elements per block for one or two steps, which gain less from the cache than many steps, and lose more to calls."""
CACHE_LINE = 64
"""Bytes."""


class Program:
    """Steps from inputs to results, written out as a Python function of one block, `source`.

    Its arguments are blocks: inputs `i0 i1 ...`, results `r0 ...` and buffers `b0 ...`. A buffer is reused as soon as
    its value is no longer needed, so a few buffers are enough and all stay in the cache.
    """

    def __init__(self, trace: Trace, inputs: Sequence[int], results: Sequence[int], block: int) -> None:
        self.block = block
        self.dtypes = [trace.values[number] for number in results]
        self.buffers: list[np.dtype] = []
        self.spare: list[list[Any]] = []  # buffers that no thread uses at present
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
        kept = self.spare.pop() if self.spare else [aligned_empty(self.block, dtype) for dtype in self.buffers]
        buffers = kept
        with np.errstate(all="ignore"):
            for start in range(0, flat[0].size, self.block):
                blocks = [array[start : start + self.block] for array in flat]
                if len(blocks[0]) < self.block:
                    buffers = [buffer[: len(blocks[0])] for buffer in buffers]
                self.run_block(*blocks, *buffers)
        self.spare.append(kept)
        return results


def aligned_empty(size: int, dtype: np.dtype) -> Any:
    """An array that begins at a cache line; on other arrays, arithmetic takes half as long again."""
    memory = np.empty(size * dtype.itemsize + CACHE_LINE, np.uint8)
    start = -memory.ctypes.data % CACHE_LINE
    return memory[start : start + size * dtype.itemsize].view(dtype)


def blocks_of(*arrays: Any, size: int = LARGE_BLOCK) -> Sequence[Sequence[Any]]:
    """Large NumPy arrays of one shape, in flat blocks of `size` elements. Other arrays stay whole."""
    if arrays[0].size < 2 * size or not all(type(x) is np.ndarray and x.flags.c_contiguous for x in arrays):
        return (arrays,)
    flat = [x.reshape(-1) for x in arrays]
    return [[x[start : start + size] for x in flat] for start in range(0, flat[0].size, size)]


def needed_steps(steps: Sequence[Step], results: Sequence[int]) -> tuple[list[Step], dict[int, int]]:
    """The steps that lead to the results, and the position of the last step that uses each value."""
    needed, kept = set(results), []
    for step in reversed(steps):
        if step[2] in needed:
            needed.update(step[1])
            kept.append(step)
    kept.reverse()
    return kept, {number: position for position, step in enumerate(kept) for number in step[1]}


def in_blocks(formula: Callable[..., Any]) -> Callable[..., Any]:
    """An elementwise formula of one or two arguments that runs block by block on large NumPy arrays of one shape.

    With anything else (Tensors, numbers, CuPy's arrays, small arrays) the formula runs as it stands. The formula must
    not depend on the numbers: it is run once on arrays without numbers, for each combination of dtypes.
    """
    programs: dict[tuple[np.dtype, ...], Program] = {}

    @functools.wraps(formula)
    def run(x: Any, y: Any = None) -> Any:
        if type(x) is not np.ndarray or x.size < 2 * BLOCK:  # the usual case, quickly
            return formula(x) if y is None else formula(x, y)
        arrays = (x,) if y is None else (x, y)
        if type(arrays[-1]) is not np.ndarray or arrays[-1].shape != x.shape:
            return formula(*arrays)
        dtypes = tuple([array.dtype for array in arrays])
        program = programs.get(dtypes)
        if program is None:
            trace = Trace(x.shape)
            inputs = [trace.new(dtype) for dtype in dtypes]
            result = formula(*inputs)
            program = programs[dtypes] = Program(trace, [one.number for one in inputs], [result.number], BLOCK)
        return program.run(arrays)[0]

    return run
