"""What training scripts use here and there: rare options, old names, texts of results.

A row is a script of `lib`, nn, F and the tensors of `usual_names`; it gives the same under PyTorch: values, dtype,
shape and warnings, or error type and text.
"""

import math

import pytest

from tests.mini_autograd.same_as_torch import lines, same, script, usual_names

IMPOSSIBLE_CLASSES = """
w = lib.tensor(rows, requires_grad=True); z = F.cross_entropy(w, i[:2] * 0); z.backward(); [z, w.grad]
w = lib.tensor(rows); F.cross_entropy(w, lib.tensor([1, 0]))
w = lib.tensor(rows); F.cross_entropy(w, lib.tensor([0, 1]), reduction="none")
w = lib.tensor(rows); F.cross_entropy(w, lib.tensor([0, 1]), label_smoothing=0.1)
w = lib.tensor(rows); F.cross_entropy(w, lib.tensor([0, -100]))
w = lib.tensor(rows); F.cross_entropy(w, lib.tensor([[1.0, 0, 0], [0, 1, 0]]))
w = lib.tensor(rows); F.cross_entropy(w, lib.tensor([2, 2]), weight=f)
w = lib.tensor([[1, nan, 2], [0, 1, 2.0]]); F.cross_entropy(w, lib.tensor([0, 1]), reduction="none")
w = lib.tensor([1, -inf, 2]); F.cross_entropy(w, lib.tensor(0))
w = lib.tensor(rows, requires_grad=True); z = F.nll_loss(F.log_softmax(w, 1), i[:2] * 0); z.backward(); [z, w.grad]
similar = (m @ m.T).fill_diagonal_(-inf); F.cross_entropy(similar, lib.tensor([1, 0]))
"""

SEVERAL_RESULTS = """
repr(m.max(dim=0))
repr(m.min(1))
repr(lib.sort(m))
repr(lib.topk(f, 2))
repr(m.median(0))
repr(lib.kthvalue(f, 2))
repr(m.cummax(0)), repr(m.cummin(0))
repr(m.aminmax())
repr(lib.slogdet(lib.eye(2)))
repr(lib.histogram(f, 2))
f.aminmax().max, f.aminmax()[0]
str(X.max(1)), type(m.max(0)).__name__, isinstance(m.max(0), tuple), len(m.max(0))
values, indices = m.max(0); values, indices
"""


@pytest.mark.parametrize("row", lines(IMPOSSIBLE_CLASSES))
def test_classes_of_probability_zero(row: str) -> None:
    names = {"inf": math.inf, "nan": math.nan, "rows": [[1, -math.inf, 2], [0, 1, 2.0]]}
    same(script(row, lambda lib: usual_names(lib) | names))


@pytest.mark.parametrize("row", lines(SEVERAL_RESULTS))
def test_several_results(row: str) -> None:
    same(script(row, usual_names))
