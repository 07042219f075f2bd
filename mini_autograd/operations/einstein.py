"""`einsum`: sums of products, written with a letter for every axis.

Imports arrays, function, elementwise, shape and diagonals. The one idea to know: the gradient of one operand is again
an einsum, of the output's gradient and the other operands, with the letters of that operand as result.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from mini_autograd.arrays import promote_types
from mini_autograd.function import Function, Value
from mini_autograd.operations.diagonals import diagonal
from mini_autograd.operations.elementwise import cast
from mini_autograd.operations.shape import reshape

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


class Einsum(Function):
    """Sums of products, where no operand has a letter twice, or one that is nowhere else."""

    torch_name = "BmmBackward0"
    __slots__ = ("letters", "result")

    @staticmethod
    def forward(ctx, *operands, inputs, output):
        ctx.letters, ctx.result = inputs, output
        ctx.save_for_backward(*operands)
        return contract(operands, inputs, output)

    @staticmethod
    def backward(ctx, grad):
        operands, needed = ctx.saved_tensors, ctx.needs_input_grad
        grads = []
        for i, letters in enumerate(ctx.letters):
            others = [(x, names) for j, (x, names) in enumerate(zip(operands, ctx.letters, strict=True)) if j != i]
            terms = [(grad, ctx.result), *others]
            grads.append(product(terms, letters) if needed[i] else None)
        return tuple(grads)

    @staticmethod
    def jvp(ctx, *tangents):
        total = None
        for i, tangent in enumerate(tangents):
            if tangent is not None:
                terms = [tangent if j == i else x for j, x in enumerate(ctx.saved_tensors)]
                part = Einsum.apply(*terms, inputs=ctx.letters, output=ctx.result)
                total = part if total is None else total + part
        return total


def contract(operands: Sequence[Any], inputs: Sequence[str], output: str) -> Any:
    """NumPy's einsum, in the order of pairs that it finds cheapest."""
    equation = f"{','.join(inputs)}->{output}"
    result = np.einsum(equation, *operands, optimize=len(operands) > 1)
    return result.copy() if len(operands) == 1 and isinstance(result, np.ndarray) else result


def product(terms: list[tuple[Value, str]], output: str) -> Value:
    """The einsum of operands with their letters. A letter of the output that no operand has stands for an axis of 1."""
    sizes = {name: x.shape[axis] for x, letters in terms for axis, name in enumerate(letters)}
    known = "".join(name for name in output if name in sizes)
    result = Einsum.apply(*[x for x, _ in terms], inputs=tuple(names for _, names in terms), output=known)
    return result if known == output else reshape(result, [sizes.get(name, 1) for name in output])


def einsum(equation: Any, *operands: Any) -> Value:
    """Sums of products of the operands: `einsum("ij,jk->ik", a, b)`; "..." stands for axes that broadcast.

    Without "->" the result has the letters that occur once, in the order of the alphabet. The other form of the call
    gives numbers for letters: `einsum(a, [0, 1], b, [1, 2], [0, 2])`.

    Raises RuntimeError if operands and equation do not fit to each other, or if a letter stands for several sizes.
    """
    if not isinstance(equation, str):
        equation, operands = _in_letters([equation, *operands])
    elif len(operands) == 1 and isinstance(operands[0], list | tuple):
        operands = tuple(operands[0])
    inputs, output = parse(equation.replace(" ", ""), operands)
    common = functools.reduce(promote_types, [x.dtype for x in operands])
    operands = tuple(cast(x, common) for x in operands)
    prepared = [_without_repetition(x, letters) for x, letters in zip(operands, inputs, strict=True)]
    sizes = _sizes(prepared)
    for name in output:
        if output.count(name) > 1:
            raise RuntimeError(f"einsum(): output subscript {name} appears more than once in the output")
        if name not in sizes:
            raise RuntimeError(
                f"einsum(): output subscript {name} does not appear in the equation for any input operand"
            )
    broadcast = [_without_ones(x, letters, sizes) for x, letters in prepared]
    return product([_without_lonely(i, broadcast, output) for i in range(len(broadcast))], output)


def _in_letters(parts: list[Any]) -> tuple[str, tuple[Any, ...]]:
    """The other form of the call as an equation."""
    last = parts.pop() if len(parts) % 2 else None
    spell = lambda axes: "".join("..." if axis is Ellipsis else LETTERS[axis] for axis in axes)  # noqa: E731
    equation = ",".join(spell(axes) for axes in parts[1::2])
    return equation + ("" if last is None else "->" + spell(last)), tuple(parts[::2])


def parse(equation: str, operands: Sequence[Value]) -> tuple[list[str], str]:
    """The letters of every operand and of the output, with letters in place of "...". Raises PyTorch's errors."""
    left, arrow, output = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(operands):
        more = "fewer" if len(terms) > len(operands) else "more"
        raise RuntimeError(f"einsum(): {more} operands were provided than specified in the equation")
    free = [name for name in LETTERS if name not in equation]
    longest = max((x.ndim - len(term) + 3 for term, x in zip(terms, operands, strict=True) if "..." in term), default=0)
    ellipsis = "".join(free[:longest])
    inputs = []
    for number, (term, x) in enumerate(zip(terms, operands, strict=True)):
        covered = x.ndim - len(term.replace("...", ""))
        if covered < 0 or (covered and "..." not in term):
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({len(term.replace('...', ''))}) "
                f"{'does not match' if '...' not in term else 'is more than'} the number of dimensions ({x.ndim}) for "
                f"operand {number}" + (" and no ellipsis was given" if "..." not in term else "")
            )
        inputs.append(term.replace("...", ellipsis[len(ellipsis) - covered :] if covered else ""))
    if not arrow:
        once = sorted(name for name in set("".join(inputs)) - set(ellipsis) if left.count(name) == 1)
        return inputs, ellipsis + "".join(once)
    return inputs, output.replace("...", ellipsis)


def _without_repetition(x: Value, letters: str) -> tuple[Value, str]:
    """The diagonal, where one operand has a letter twice."""
    for name in letters:
        while letters.count(name) > 1:
            first = letters.index(name)
            second = letters.index(name, first + 1)
            x = diagonal(x, 0, first, second)
            letters = (
                letters.replace(name, "") + name if letters.count(name) == 2 else _drop(letters, first, second, name)
            )
    return x, letters


def _drop(letters: str, first: int, second: int, name: str) -> str:
    return letters[:first] + letters[first + 1 : second] + letters[second + 1 :] + name


def _sizes(terms: list[tuple[Value, str]]) -> dict[str, int]:
    """How long the axis of every letter is; an axis of size 1 broadcasts."""
    sizes: dict[str, int] = {}
    for number, (x, letters) in enumerate(terms):
        for name, size in zip(letters, x.shape, strict=True):
            known = sizes.get(name, 1)
            if size != 1 and known not in (1, size):
                raise RuntimeError(
                    f"einsum(): subscript {name} has size {size} for operand {number} which does not broadcast with "
                    f"previously seen size {known}"
                )
            sizes[name] = size if known == 1 else known
    return sizes


def _without_ones(x: Value, letters: str, sizes: dict[str, int]) -> tuple[Value, str]:
    """Axes of size 1 that broadcast against others are dropped: NumPy's faster paths do not know them."""
    kept = [(name, size) for name, size in zip(letters, x.shape, strict=True) if size == sizes[name]]
    if len(kept) == len(letters):
        return x, letters
    return reshape(x, [size for _, size in kept]), "".join(name for name, _ in kept)


def _without_lonely(number: int, terms: list[tuple[Value, str]], output: str) -> tuple[Value, str]:
    """Sums over letters that are in one operand only, done first."""
    x, letters = terms[number]
    elsewhere = output + "".join(names for i, (_, names) in enumerate(terms) if i != number)
    lonely = [axis for axis, name in enumerate(letters) if name not in elsewhere]
    if not lonely:
        return x, letters
    return x.sum(tuple(lonely)), "".join(name for name in letters if name in elsewhere)
