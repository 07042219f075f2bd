"""Random programs of operations, views, in-place changes, custom Functions, hooks, retained gradients, passes that free
the graph or keep it, and transforms of functions (`func`, `autograd.functional`), each run under PyTorch and under
mini_autograd.

A program is a list of steps drawn from a seed; a step picks its operands among the tensors that exist by then. Both
libraries must refuse the same steps, and end with the same values, first and second gradients. If PyTorch's last pass
finds a changed tensor, the program is left out: PyTorch saves some tensors that we do not need. Conversely,
`add(alpha=2)` and `lerp` with a number save something here and nothing in PyTorch, so no step uses them.
`python -m tests.mini_autograd.test_random_programs 0 3000` tries other seeds. Of 0 to 4000, about ten differ, nearly
all with nan or infinity: which of several nan is among the largest, and `lerp` at infinity.
"""

from __future__ import annotations

import random
import sys
import warnings
from typing import Any

import numpy as np
import pytest
import torch

import mini_autograd as ma

PROGRAMS = 1000
SHAPES = [(3, 4), (4,), (3, 4), (), (4, 3), (2, 3, 4)]

LAYOUTS = """
x.transpose(0, -1)
x.permute(*range(x.ndim)[::-1])
x[:1].expand(x.shape)
x.reshape(-1)[::2]
x[..., 1:]
x[..., :0]
lib.where(x > 1, x, x / 0)
lib.where(x > 1, x, x * float("nan"))
""".strip().splitlines()
"""How a leaf may lie in memory, and what else it may hold; half of them are ordinary."""

ONE = """
x.exp()
x.tanh() * 2
x.sigmoid()
x.abs().sqrt()
(x * x + 1).log()
x.relu() + x.neg() / 2
x.sum(dim)
x.mean()
x.amax(dim, keepdim=True)
x.max(dim)[0]
x.prod(dim) if x.ndim else x + 1
x.var(dim) if x.numel() > 1 else x * 2
x.logsumexp(dim)
x.softmax(dim)
x.cumsum(dim)
x.sort(dim, descending=True)[0]
(x + lib.arange(x.numel()).reshape(x.shape) / 1000).topk(2, dim)[0]
(x + 2).norm(dim=dim)
x.flip(dim)
x.roll(1, 0)
x.tril()
x.diagonal()
x.T if x.ndim == 2 else x.reshape(-1)
x.reshape(-1)
x.view(-1, 1)
x.unsqueeze(dim)
x.squeeze()
x.unbind(dim)[-1] * 1
x.chunk(2, dim)[0] * 1
x.repeat(2, *[1] * x.ndim)
x[1:]
x[..., 0]
x[lib.tensor([0, -1, 0])]
x[0, [1, 0]]
x[x > 1]
x.reshape(-1)[x.argmax()]
x.gather(dim, lib.zeros(x.shape, dtype=lib.int64))
lib.where(x > 0.8, x, x * x)
x.clamp(0.5, 1.2)
lib.nn.functional.gelu(x)
lib.nn.functional.softplus(x)
lib.nn.functional.layer_norm(x, x.shape[-1:])
lib.nn.functional.pad(x, (1, 0), value=2.0)
lib.stack([x, x * 2], dim)
x @ x.transpose(-1, -2)
x.detach() * x
x.clone()
""".strip().splitlines()

TWO = """
x + z
x - z
x * z
x / (z.abs() + 0.1)
(x.abs() + 0.1) ** z
lib.maximum(x, z)
x @ z if z.ndim < 3 > x.ndim else x + 1
lib.cat([x, z])
lib.stack([x, z])
lib.where(x > z, x, z)
x.lerp(z, x)
lib.nn.functional.mse_loss(x, z) + 0.5
lib.nn.functional.linear(x, z)
""".strip().splitlines()

IN_PLACE = """
x.add_(z)
x.mul_(z)
x.sub_(z)
x.div_(z)
x.exp_()
x.clamp_(max=1.0)
x.relu_()
x.cumsum_(0)
x.lerp_(z, z)
x.masked_fill_(x > 1, 0.5)
x.view(-1).mul_(2)
x[1:].zero_()
x[:1].copy_(z[:1])
x[0].fill_(2.0)
x.t().mul_(2)
x.diagonal().add_(1)
x.__setitem__(0, z.sum())
x.__setitem__(x > 1, 0.5)
x.__setitem__((0, [0, -1]), z.mean())
""".strip().splitlines()

FUNCTIONS = """
v * v
v.exp() * z.mean()
v.T.tanh() + z.sum() if v.ndim == 2 else v.sigmoid()
v.cumsum(-1) * v
(v * v).sum(-1)
v.unsqueeze(0).expand(2, *v.shape) * v
lib.cat([v.reshape(-1), v.reshape(-1)[:1] * 2])
lib.where(v > 1, v, v ** 3)
v * z.detach().mean()
lib.func.grad(lambda u: (u ** 3 * z.mean()).sum())(v)
lib.func.vjp(lambda u: u ** 3, v)[1](v * v)[0]
lib.func.jvp(lambda u: u ** 3, (v,), (v * v,))[1]
lib.func.jacrev(lambda u: u.sum() ** 3)(v)
lib.func.jacfwd(lambda u: u.sum() ** 3 * z.mean())(v.reshape(-1)[:2])
v * lib.no_grad()(lib.func.grad(lambda u: (u ** 3).sum()))(v)
v * lib.no_grad()(lambda u: u * u)(v)
lib.no_grad()(lambda u: lib.enable_grad()(lib.func.grad(lambda t: (t ** 3).sum()))(u) * v)(v)
""".strip().splitlines()
"""Functions of v; they may use z, which is outside."""

TRANSFORMS = """
lib.func.grad(lambda v: g(v).sum())(x)
lib.func.grad_and_value(lambda v: g(v).sum())(x)[1]
lib.func.grad(lambda v: (g(v).sum(), v), has_aux=True)(x)[1] * 2
lib.func.vjp(g, x)[1](g(x) * 2)[0]
lib.func.jvp(g, (x,), (x + 1,))[1]
lib.func.jacrev(g)(p)
lib.func.jacfwd(g)(p)
lib.func.jacfwd(g)(x[:2])
lib.func.hessian(g)(p)
lib.func.hessian(lambda a, b: (g(a) * b.sum()).sum(), argnums=(0, 1))(p, p * 2)[0][1]
lib.func.vmap(g)(x)
lib.func.vmap(g, in_dims=-1, out_dims=-1)(x)
lib.func.vmap(lib.func.grad(lambda v: g(v).sum()))(x)
lib.func.jvp(lib.func.jacrev(g), (p,), (p + 1,))[1]
lib.func.jacfwd(lib.func.jacfwd(lambda v: v ** 3 * z.mean()))(p)
lib.func.grad(lambda v: lib.func.vjp(g, p)[1](v)[0].sum())(g(p) * 2)
lib.func.vjp(lib.func.vjp(g, p)[1], g(p))[1]((p,))[0]
lib.func.grad(lambda v: lib.func.jvp(g, (p,), (v,))[1].sum())(p)
lib.no_grad()(lib.func.grad(lambda v: g(v).sum()))(x)
lib.no_grad()(lib.func.vjp)(g, x)[0] * 2
functional.jacobian(g, p)
functional.jacobian(g, p * 1, create_graph=True)
functional.hessian(lambda v: g(v).sum(), p)
functional.hessian(lambda v: g(v).sum().reshape(1), p * 1, create_graph=True)
functional.vjp(g, x, g(x))[1]
functional.jvp(g, x, x + 1)[1]
functional.vjp(g, p * 1, g(p) * 2, create_graph=True)[1]
functional.jvp(g, p * 1, p + 1, create_graph=True)[1]
functional.hvp(lambda v: g(v).sum().reshape(1), p, p + 1)[0]
functional.hvp(lambda v: g(v).sum(), p, p + 1)[1]
functional.vhp(lambda v: g(v).sum(), p * 1, p + 1, create_graph=True)[1]
""".strip().splitlines()
"""Derivatives of g, one of these functions; p is a small part of x."""

CHANGED = (
    "modified by an inplace operation",
    "has been modified inplace",
    "some elements of the input tensor and the written-to tensor refer to a single memory location",
)
"""PyTorch's words for a change of a saved tensor, or of the base of a view made under no_grad, and for operands that
share part of their memory, which only PyTorch detects."""

ONLY_IN_PYTORCH = (
    "more than one element of the written-to tensor refers to a single memory location",
    "the unspecified dimension size -1 can be any value and is ambiguous",
    "stack expects a non-empty TensorList",
)
"""Its words for derivatives of expanded and of empty tensors that it does not do."""

SWITCHES = [
    "grad mode",
    "hook",
    "pass",
    "freeing pass",
    "pass to some",
    "detach",
    "retain",
    "double",
    "double in place",
]

Step = tuple[str, str, int, int, int]


def program_of(seed: int) -> list[Step]:
    """The 3 to 12 steps of a program."""
    draw = random.Random(seed)
    kinds = {"one": ONE, "two": TWO, "in place": IN_PLACE, "switch": SWITCHES, "transform": TRANSFORMS}
    steps = []
    for _ in range(draw.randint(3, 12)):
        (kind,) = draw.choices([*kinds], [50, 25, 20, 5, 5])
        steps.append((kind, draw.choice(kinds[kind]), *(draw.randrange(10**6) for _ in range(3))))
    return steps


class Run:
    """A program under one library: what it refused, and the tensors in the order in which they were made."""

    def __init__(self, lib: Any, seed: int, moved: float = 0.0) -> None:
        self.lib, self.recording = lib, True
        numbers, draw = np.random.default_rng(seed), random.Random(seed)
        self.leaves = []
        for _ in range(3):
            x = lib.tensor(numbers.uniform(0.3, 1.6, draw.choice(SHAPES)) + moved)
            recorded, layout = draw.random() < 0.8, draw.choice(LAYOUTS)
            if x.ndim and draw.random() < 0.5:
                x = eval(layout, {"lib": lib, "x": x})
            self.leaves.append(x.detach().requires_grad_(recorded))  # no view of anything
        self.tensors = list(self.leaves)
        self.retained: list[Any] = []
        self.changed = False  # whether a step was refused for a tensor that had been changed, or by PyTorch alone
        self.refused: list[bool] = []
        self.made: list[int] = []  # how many tensors there were before each step
        for step in program_of(seed):
            self.made.append(len(self.tensors))
            self.refused.append(not self.done(step))

    def done(self, step: Step) -> bool:
        """Do a step; False if the library refuses it."""
        kind, text, first, second, axis = step
        x, z = (self.tensors[number % len(self.tensors)] for number in (first, second))
        if kind == "in place" and overlap_in_part(x, z):
            z = z.detach().clone()
        if kind == "in place" and ("x > 1" in text or "zero" in text) and 0 in x.stride():
            return True  # PyTorch fills expanded tensors with a number, and warns; it is refused here
        known = {"lib": self.lib, "x": x, "z": z, "dim": axis % max(x.ndim, 1)}
        try:
            with self.lib.set_grad_enabled(self.recording):
                if kind == "switch":
                    self.switch(text)
                elif kind == "transform":
                    g = eval(f"lambda v: {FUNCTIONS[axis % len(FUNCTIONS)]}", known)
                    known |= {"g": g, "p": x.reshape(-1)[:3], "functional": self.lib.autograd.functional}
                    self.tensors.append(eval(text, known) * 1)  # for some are views in PyTorch, of nothing known here
                elif kind == "in place":
                    assert x.grad_fn is None or x.requires_grad  # PyTorch finds a view's history when it is asked for
                    eval(text, known)
                else:
                    self.tensors.append(eval(text, known))
        except (RuntimeError, IndexError, ValueError, TypeError) as error:
            words = CHANGED + ONLY_IN_PYTORCH if kind == "transform" else CHANGED
            self.changed = self.changed or any(text in str(error) for text in words)
            return False
        return True

    def switch(self, what: str) -> None:
        last, some = self.tensors[-1], self.tensors[len(self.tensors) // 2]
        if what == "grad mode":
            self.recording = not self.recording
        elif what == "hook" and last.grad_fn is not None and not last._is_view():
            # PyTorch crashes for views of leaves made under no_grad; and if a view is changed in place after it got a
            # hook, a first gradient bypasses the hook and a second one passes through it, so the two do not agree.
            last.register_hook(lambda grad: grad * 2)
        elif what == "pass":
            (last * last).sum().backward(retain_graph=True)
        elif what == "freeing pass":
            last.sum().backward()
        elif what == "pass to some":
            last.sum().backward(inputs=[some], retain_graph=True)
        elif what == "detach":
            self.tensors.append(last.detach().clone().requires_grad_())
        elif what == "retain":
            some.retain_grad()
            self.retained.append(some)
        elif what == "double":
            self.tensors.append(self.doubled(in_place=False).apply(last))
        elif what == "double in place":
            self.doubled(in_place=True).apply(last)

    def doubled(self, in_place: bool) -> Any:
        """A custom Function whose rule is not the derivative of its value, so that a missing call of the rule shows."""

        class Double(self.lib.autograd.Function):  # type: ignore[name-defined]
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                if not in_place:
                    return x * 2
                ctx.mark_dirty(x)
                return x.mul_(2)

            @staticmethod
            def backward(ctx: Any, grad: Any) -> Any:
                return grad * 3

        return Double

    def gradients(self) -> list[Any]:
        """First and second gradients with respect to the leaves, and what `.grad` holds after a pass."""
        recorded = [(n, x) for n, x in enumerate(self.tensors) if x.grad_fn is not None]
        wanted = [x for x in self.leaves if x.requires_grad]
        first = second = [None] * len(wanted)
        if not recorded or not wanted:
            return [*first, *second, *[x.grad for x in wanted + self.retained]]
        total = sum((x * x.detach()).sum() * (0.1 + n / 100) for n, x in recorded)
        grad = self.lib.autograd.grad
        first = grad(total, wanted, create_graph=True, allow_unused=True)
        lengths = sum((g * g).sum() for g in first if g is not None and g.requires_grad)
        if hasattr(lengths, "shape"):  # otherwise the first ones are constant
            second = grad(lengths, wanted, allow_unused=True, retain_graph=True)
        total.backward()
        return [*first, *second, *[x.grad for x in wanted + self.retained]]


def arrays(values: list[Any]) -> list[Any]:
    return [None if value is None else np.array(value.numpy(force=True)) for value in values]


def overlap_in_part(x: Any, z: Any) -> bool:
    """Whether two tensors share memory and are not the same view of it.

    The result of `x.sub_(x.diagonal())` is undefined in PyTorch: some elements are read after they were written.
    PyTorch finds some cases and raises, and NumPy copies first.
    """
    a, b = (np.asarray(tensor.detach().numpy()) for tensor in (x, z))
    if (a.ctypes.data, a.shape, a.strides) == (b.ctypes.data, b.shape, b.strides):
        return False
    return bool(np.shares_memory(a, b))


def lie_alike(mine: Run, torchs: Run) -> bool:
    """Whether the tensors that were made before the first difference have the same order in memory.

    NumPy chooses the order of axes in memory here, and we do not promise it: `(x.T - z)` has the order of x.T in
    PyTorch, but is stored row by row by NumPy if z is. The order decides whether `view` is refused, and whether
    `reshape` copies.
    """
    differing = (n for n, (a, b) in enumerate(zip(mine.refused, torchs.refused, strict=True)) if a != b)
    known = mine.made[first] if (first := next(differing, None)) is not None else len(mine.tensors)
    return all(
        [step for step, size in zip(tensor.stride(), tensor.shape, strict=True) if size > 1]
        == [step for step, size in zip(other.stride(), other.shape, strict=True) if size > 1]
        for tensor, other in zip(mine.tensors[:known], torchs.tensors[:known], strict=True)
    )


def same(found: list[Any], expected: list[Any]) -> bool:
    """Equal shapes and numbers; a missing gradient counts as zeros.

    An overflow may be inf in one library and nan in the other, depending on the order of the factors in a rule.
    """
    if len(found) != len(expected):
        return False
    for got, wanted in zip(found, expected, strict=True):
        if got is None and wanted is None:
            continue
        got, wanted = (np.zeros_like(other) if x is None else x for x, other in ((got, wanted), (wanted, got)))
        got, wanted = (np.where(np.isfinite(x), x, np.nan) for x in (got, wanted))
        if got.shape != wanted.shape or not np.allclose(got, wanted, rtol=1e-7, atol=1e-9, equal_nan=True):
            return False
    return True


def gradients_or_error(run: Run) -> Any:
    try:
        return arrays(run.gradients())
    except RuntimeError as error:
        return str(error)


def difference(seed: int) -> str:
    """What differs between the libraries; an empty string if all is the same."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        mine, torchs = Run(ma, seed), Run(torch, seed)
        text = difference_of(mine, torchs)
        if text.startswith("other") and difference_of(Run(torch, seed, moved=1e-13), Run(torch, seed)) == text:
            return ""  # PyTorch differs from itself when its inputs change by a rounding error
        if text and not lie_alike(mine, torchs):
            return ""
    return text


def difference_of(mine: Run, torchs: Run) -> str:
    """What differs between two runs of one program."""
    if torchs.changed:
        return ""
    if mine.refused != torchs.refused:
        return f"one library refuses a step: {mine.refused}, PyTorch {torchs.refused}"
    if not same(arrays(mine.tensors), arrays(torchs.tensors)):
        return "other values"
    found, expected = gradients_or_error(mine), gradients_or_error(torchs)
    if isinstance(expected, str) and any(words in expected for words in CHANGED + ONLY_IN_PYTORCH):
        return ""
    if isinstance(found, str) or isinstance(expected, str):
        return "" if type(found) is type(expected) else f"a pass fails: {found}, PyTorch {expected}"
    return "" if same(found, expected) else "other gradients"


@pytest.mark.parametrize("first", range(0, PROGRAMS, 50))
def test_random_programs_do_the_same_as_in_pytorch(first: int) -> None:
    for seed in range(first, first + 50):
        assert not difference(seed), f"seed {seed}: {program_of(seed)}"


if __name__ == "__main__":
    for number in range(*map(int, sys.argv[1:3])):
        if text := difference(number):
            print(number, text[:200])
