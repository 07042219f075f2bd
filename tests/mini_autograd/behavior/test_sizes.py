"""The shape of a tensor is a `Size`; the constructors of PyTorch's first years take data or a size.

A row is a script of `lib` and the tensors of `usual_names`; it gives the same under PyTorch: value, type and text, or
error type and text.
"""

import copy
import pickle
from typing import Any

import pytest

import mini_autograd as ma
from tests.mini_autograd.same_as_torch import same, script, usual_names

SIZES = """
m.shape
m.size()
f0.shape
m.shape.numel()
f0.shape.numel()
lib.zeros(0, 3).size().numel()
m.shape[1:]
m.shape[0]
m.shape[:-1] + (5,)
(1,) + m.shape
m.shape + m.shape
m.shape * 2
2 * m.shape
m.shape + [1]
m.shape + 1
m.shape * 1.5
m.shape == (2, 3), m.shape == lib.Size([2, 3]), m.shape == [2, 3], m.shape != (2, 3)
lib.Size(), lib.Size([]), lib.Size((2,)), lib.Size(range(2)), lib.Size(n for n in [4])
lib.Size([lib.tensor(2), i[0]])
lib.Size([1.5])
lib.Size([2, "a"])
lib.Size(3)
lib.Size([-1])
f"{m.shape}, {m.size()!r}, {str(m.shape)}"
{m.shape: 1}[(2, 3)]
rows, columns = m.shape; rows, columns
[lib.zeros(m.shape), lib.ones(size=m.shape), f.expand(m.shape), i.new_zeros(m.shape[:1]), m.reshape(m.shape[::-1])]
lib.zeros(m.shape[0], *m.shape[1:], 2).shape
tuple(m.shape), list(m.shape), len(m.shape), max(m.shape), sorted(m.shape), 3 in m.shape
isinstance(m.shape, tuple), isinstance(m.shape, lib.Size), isinstance((2, 3), lib.Size)
x.grad is None or x.grad.shape
(X * 2).grad_fn is not None and (X * 2).shape
nn.Linear(3, 2).weight.shape
"""

OLD_CONSTRUCTORS = """
lib.Tensor([1, 2])
lib.Tensor((1, 2))
lib.Tensor([[1.5, 2], [3, 4]])
lib.Tensor([True, False])
lib.Tensor([f0, 2])
lib.Tensor(range(3))
lib.Tensor([])
lib.Tensor()
lib.Tensor(2, 3).shape
lib.Tensor(3).shape
lib.Tensor(np.int64(3)).shape
lib.Tensor(m.shape).shape
lib.Tensor(*m.shape).shape
lib.Tensor(size=(1, 2)).shape
lib.Tensor(data=[1, 2])
lib.Tensor([1, 2], device="cpu")
lib.Tensor(np.ones((2, 1)))
lib.Tensor(np.arange(3))
lib.Tensor(d)
lib.Tensor(i)
x2 = lib.Tensor(x); x2.requires_grad, (x2 * 2).sum().backward(), x.grad
w = lib.zeros(2); lib.Tensor(w).add_(1); w
a = np.ones(2, np.float32); t = lib.Tensor(a); a[0] = 5; t
w = lib.Tensor([1, 2]).requires_grad_(); w.square().sum().backward(); w.grad
lib.FloatTensor([1, 2]), lib.FloatTensor(2, 3).shape, lib.FloatTensor(), lib.FloatTensor(f)
lib.LongTensor([1.7, 2]), lib.LongTensor([[1, 2]]), lib.LongTensor(i), lib.LongTensor(m.shape).shape
f.type(lib.LongTensor), i.type(lib.FloatTensor), f.type("torch.LongTensor"), f.type(lib.int64), x.type(lib.FloatTensor)
[isinstance(a, kind) for a in (f, d, i, 1) for kind in (lib.FloatTensor, lib.LongTensor)], str(lib.LongTensor), f.type()
f.type("torch.FloatingTensor")
lib.FloatTensor(3.5)
lib.Tensor(2.5)
lib.Tensor(np.float32(2))
lib.Tensor(True)
lib.Tensor(None)
lib.Tensor("a")
lib.Tensor([[1], [2, 3]])
lib.Tensor(-1)
nn.Parameter([1.0, 2.0])
nn.Parameter(lib.Tensor([1, 2]))
nn.Parameter(i)
nn.Parameter(i, requires_grad=False)
nn.Parameter()
"""


def texts(value: Any) -> Any:
    """The result with its sizes as text, which shows their type too."""
    if type(value).__name__ == "Size":
        return repr(value)
    return [texts(part) for part in value] if type(value) in (list, tuple) else value


@pytest.mark.parametrize("row", SIZES.strip().splitlines())
def test_sizes(row: str) -> None:
    program = script(row, usual_names)
    same(lambda lib: texts(program(lib)))


@pytest.mark.parametrize("row", OLD_CONSTRUCTORS.strip().splitlines())
def test_old_constructors(row: str) -> None:
    program = script(row, usual_names)
    same(lambda lib: texts(program(lib)))


def test_old_constructors_in_the_default_dtype() -> None:
    def program(lib: Any) -> Any:
        lib.set_default_dtype(lib.float64)
        try:
            return [lib.Tensor([1, 2]), lib.Tensor(2).dtype == lib.float64]
        finally:
            lib.set_default_dtype(lib.float32)

    same(program)


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_of_a_size(duplicate: Any) -> None:
    size = duplicate(ma.zeros(2, 3).shape)
    assert type(size) is ma.Size
    assert size == (2, 3)
