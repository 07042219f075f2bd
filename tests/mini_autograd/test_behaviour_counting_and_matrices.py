"""Unique values, counts, histograms, quantiles; inverse, determinant and solving where a matrix is singular or wrong.

A row is a script of `lib`, nn, F and the tensors of `usual_names`; it gives the same under PyTorch: values, dtype,
shape and warnings, or error type and text.
"""

from typing import Any

import numpy as np
import pytest
import torch

import mini_autograd as ma
from tests.mini_autograd.same_as_torch import same, script, usual_names

MATRICES = """
A = lib.zeros(0, 0, requires_grad=True); z = lib.det(A); z.backward(); [z, A.grad]
lib.det(i.reshape(1, 3))
lib.det(i)
lib.det(i[:1].reshape(1, 1))
lib.det(m)
m.det()
lib.inverse(m)
lib.linalg.inv(i)
lib.linalg.inv(lib.ones(1, 1).long())
lib.linalg.solve(lib.eye(2), lib.ones(3))
lib.linalg.solve(lib.eye(2), lib.ones(3, 1))
lib.linalg.solve(lib.eye(2), lib.ones(2, 1).double())
lib.linalg.solve(m, f)
lib.linalg.slogdet(lib.zeros(2, 2))
lib.logdet(-lib.eye(3))
lib.logdet(lib.zeros(2, 2))
lib.linalg.matrix_power(m, 2)
lib.linalg.matrix_power(lib.eye(2) * 2, -2)
lib.matrix_power(lib.eye(2) * 2, 0)
"""

COUNTS = """
lib.unique(i)
lib.unique(lib.tensor([3, 1, 2, 3, 1]))
lib.unique(lib.tensor([3, 1, 2, 3, 1]), return_inverse=True)
lib.unique(lib.tensor([3, 1, 2, 3, 1]), return_counts=True)
lib.unique(lib.tensor([3, 1, 2, 3, 1]), True, True, True)
lib.unique(lib.tensor([3, 1, 2, 3, 1]), sorted=False)
lib.unique(m, return_inverse=True)
lib.tensor([[1, 2], [1, 2], [0, 5]]).unique(dim=0, return_inverse=True, return_counts=True)
lib.tensor([[1, 2], [1, 2], [0, 5]]).unique(dim=1)
lib.tensor([[1, 1, 2], [3, 3, 0]]).unique(dim=-1)
lib.unique(f0)
lib.unique(lib.tensor([]))
lib.unique(b)
lib.unique(lib.tensor([math.nan, 1.0, math.nan]), return_counts=True)
lib.unique(m, dim=2)
lib.unique(f0, dim=0)
lib.unique_consecutive(lib.tensor([1, 1, 2, 2, 1]), return_counts=True, return_inverse=True)
lib.unique_consecutive(lib.tensor([1, 1, 2, 2, 1]))
lib.tensor([1, 1, 2, 2, 1]).unique_consecutive(return_counts=True)
lib.unique_consecutive(lib.tensor([[1, 1], [1, 1], [2, 1]]), dim=0)
lib.bincount(lib.tensor([1, 1, 3]))
lib.bincount(lib.tensor([1, 1, 3]), minlength=6)
lib.bincount(lib.tensor([1, 1, 3]), lib.tensor([0.5, 1.0, 2.0]))
lib.bincount(lib.tensor([1, 1, 3]), weights=lib.tensor([0.5, 1.0, 2.0]).double(), minlength=2)
lib.bincount(lib.tensor([1, 1, 3]), weights=lib.tensor([1, 2, 3]))
lib.bincount(i)
lib.bincount(f)
lib.bincount(b)
lib.bincount(u)
lib.bincount(m.long())
lib.bincount(lib.tensor([1, 1]), lib.ones(3))
lib.bincount(lib.tensor([1, 1]), minlength=-1)
lib.bincount(lib.tensor([]).long())
lib.bincount(lib.tensor([]).long(), minlength=3)
lib.tensor([1, 1, 3]).bincount()
lib.histc(lib.tensor([1.0, 2.0, 1.0]), bins=4, min=0, max=3)
lib.histc(f)
lib.histc(f, 3)
lib.histc(lib.tensor([2.0, 2.0]), 3)
lib.histc(f, bins=0)
lib.histc(f, min=2, max=1)
lib.histc(i, 3)
lib.histogram(f, 3)
lib.histogram(f, 3, density=True)
lib.histogram(f, bins=4, range=(0.0, 4.0), weight=f)
lib.histogram(f, lib.tensor([0.0, 1.5, 3.0]))
lib.quantile(f, 0.5)
lib.quantile(m, 0.25, dim=1)
lib.quantile(m, lib.tensor([0.25, 0.5]), dim=1, keepdim=True)
lib.quantile(m, lib.tensor([0.0, 1.0]))
lib.quantile(f, 1.5)
lib.quantile(i, 0.5)
lib.quantile(f, 0.3, interpolation="nearest")
lib.quantile(f, 0.3, interpolation="lower")
lib.quantile(f, 0.3, interpolation="midpoint")
lib.quantile(lib.tensor([1.0, math.nan]), 0.3)
lib.searchsorted(f, lib.tensor([0.5, 1.0, 2.5, 9.0]))
lib.searchsorted(f, 2.0, right=True)
lib.bucketize(lib.tensor([0.5, 1.0, 2.5, 9.0]), f)
lib.bucketize(lib.tensor([0.5, 1.0, 2.5, 9.0]), f, right=True)
lib.searchsorted(m.sort()[0], m)
lib.cov(m)
lib.corrcoef(m)
lib.cov(f)
lib.cov(lib.zeros(2, 2, 2))
lib.corrcoef(lib.zeros(2, 2, 2))
lib.cdist(m, f)
lib.cdist(m, lib.ones(2, 2))
lib.cdist(m, m, 1.0)
lib.cdist(X, m.flip(1)).sum().backward(); X.grad
lib.cdist(X, X.detach()).sum().backward(); X.grad
lib.quantile(x, 0.3).backward(); x.grad
lib.quantile(f, d)
lib.quantile(f, 0.5, interpolation="best")
lib.quantile(f, lib.tensor([0.5, 2.0]))
lib.quantile(f0, 0.5)
lib.quantile(m, 0.25, keepdim=True)
lib.searchsorted(m, f)
F.pairwise_distance(m, f, keepdim=True)
lib.pairwise_distance(f, f)
"""

EDGES = """
lib.unique_consecutive(lib.zeros(0, 3), dim=0)
lib.unique_consecutive(lib.zeros(0, 3), dim=1)
lib.unique(lib.zeros(0, 3), dim=1)
lib.unique_consecutive(lib.ones(1), return_inverse=True)
lib.histogram(f0, 2, density=True)
lib.histogram(lib.zeros(0), 2)
lib.quantile(lib.zeros(0), 0.5)
lib.cov(lib.ones(3, 1))
lib.bincount(lib.tensor([1, 0]), lib.ones(2).half())
lib.logdet(i.reshape(1, 3))
lib.linalg.matrix_power(lib.tensor([[1, 2], [3, 4]]), 3)
lib.linalg.solve(lib.eye(2).expand(3, 2, 2), lib.ones(2, 2, 1))
"""

ARRANGEMENTS = """
lib.FloatTensor([1, 2])
lib.LongTensor([1, 2])
lib.LongTensor([1.0, 2])
lib.FloatTensor(2, 3).shape == (2, 3)
lib.FloatTensor()
lib.BoolTensor([True, False])
lib.is_nonzero(f0)
f.is_nonzero()
(f0 * 0).is_nonzero()
lib.is_nonzero(lib.tensor([]))
lib.manual_seed(1); lib.randint_like(m, 3)
lib.manual_seed(1); lib.randint_like(i, 3, 9)
lib.broadcast_shapes((2, 1), (3,)) == (2, 3)
lib.trapezoid(i)
lib.trapezoid(m, f)
lib.trapezoid(m, dx=0.5, dim=0)
lib.trapezoid(f0)
lib.combinations(i, 3, with_replacement=True)
lib.combinations(i, 4)
lib.combinations(i, 0)
lib.combinations(m)
lib.combinations(i, -1)
lib.cartesian_prod(i)
lib.cartesian_prod(i, i, i)
m.unfold(1, 2, 1)
m.unfold(-1, 4, 1)
m.unfold(0, 1, 0)
m.unfold(0, -1, 1)
m.unfold(2, 1, 1)
f0.unfold(0, 1, 1)
m.unfold(1, 3, 5)
m.fill_diagonal_(7)
m.t().fill_diagonal_(7); m
lib.zeros(7, 3).fill_diagonal_(1, wrap=True)
lib.zeros(7, 2).fill_diagonal_(1, True)
lib.zeros(2, 7).fill_diagonal_(1, True)
lib.zeros(3, 3, 3).fill_diagonal_(1)
lib.zeros(3, 3, 2).fill_diagonal_(1)
f.fill_diagonal_(1)
Y = X * 1; Y.fill_diagonal_(0); (Y * Y).sum().backward(); X.grad
f.masked_scatter_(b, f * 2)
y.masked_scatter_(b, f * 2); y.sum().backward()
m.addmm_(lib.eye(2), m)
Y = X * 1; Y.addmm_(lib.eye(2), X); (Y * Y).sum().backward(); X.grad
m.addmm_(m, m)
f.greater_(2)
f.addmv_(m.t(), lib.ones(2))
f.asinh_()
i.bitwise_not_()
i.asinh_()
"""


@pytest.mark.parametrize("text", (MATRICES + COUNTS + EDGES + ARRANGEMENTS).strip().split("\n"))
def test_gives_what_pytorch_gives(text: str) -> None:
    if text:
        same(script(text, usual_names))


SINGULAR = [[[1.0, 2.0], [2.0, 4.0]], [[0.0, 0.0], [0.0, 0.0]], [[1.0, 2.0, 3.0], [0.0, 1.0, 1.0], [1.0, 3.0, 4.0]]]


@pytest.mark.parametrize("rows", SINGULAR)
def test_determinant_of_a_singular_matrix_has_the_gradient_of_finite_differences(rows: Any) -> None:
    """PyTorch gives 0 in an ordinary pass, and the cofactors in a recorded one."""
    matrix = ma.tensor(rows, dtype=ma.float64, requires_grad=True)
    assert ma.autograd.gradcheck(ma.linalg.det, (matrix,))
    assert ma.autograd.gradgradcheck(ma.linalg.det, (matrix,))
    batch = ma.stack([matrix, matrix + ma.eye(len(rows), dtype=ma.float64)])
    assert ma.autograd.gradcheck(ma.linalg.det, (batch.detach().requires_grad_(),))
    (recorded,) = ma.autograd.grad(ma.linalg.det(matrix), matrix, create_graph=True)
    theirs = torch.tensor(rows, dtype=torch.float64, requires_grad=True)
    (expected,) = torch.autograd.grad(torch.linalg.det(theirs), theirs, create_graph=True)
    np.testing.assert_allclose(recorded.detach().numpy(), expected.detach().numpy(), rtol=1e-6, atol=1e-6)


def test_a_singular_matrix_has_no_inverse() -> None:
    singular = ma.ones(2, 2)
    for call in (ma.linalg.inv, lambda matrix: ma.linalg.solve(matrix, ma.ones(2)), lambda m: m.matrix_power(-1)):
        with pytest.raises(ma.linalg.LinAlgError, match="singular"):
            call(singular)
    assert issubclass(ma.linalg.LinAlgError, RuntimeError)


def test_slogdet_says_the_sign() -> None:
    for rows in ([[0.0, 1.0], [1.0, 0.0]], [[1.0, 1.0], [1.0, 1.0]], [[2.0, 0.0], [0.0, 3.0]]):
        (sign, logarithm), expected = ma.linalg.slogdet(ma.tensor(rows)), torch.linalg.slogdet(torch.tensor(rows))
        assert (sign.item(), logarithm.item()) == pytest.approx((expected.sign.item(), expected.logabsdet.item()))
