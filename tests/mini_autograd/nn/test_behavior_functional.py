"""Functions of torch.nn.functional at the edges: targets that are all ignored, wrong weights, missing axes, integers.

A row is a script of `lib`, nn, F and the tensors of `usual_names`; it gives the same under PyTorch: values, dtype,
shape and warnings, or error type and text.
"""

import pytest
import torch

import mini_autograd as ma
from tests.mini_autograd.same_as_torch import same, script, usual_names

LOSSES = """
F.cross_entropy(X, ignored)
l = F.cross_entropy(X, ignored); l.backward(); X.grad
l = F.cross_entropy(X, ignored, label_smoothing=0.1); l.backward(); [l, X.grad]
l = F.cross_entropy(X, ignored, weight=lib.tensor([1.0, 2.0, 3.0]), label_smoothing=0.1); l.backward(); [l, X.grad]
l = F.cross_entropy(X, ignored, reduction="sum"); l.backward(); [l, X.grad]
l = F.cross_entropy(X, ignored, reduction="none"); l.sum().backward(); [l, X.grad]
l = F.nll_loss(X, ignored); l.backward(); [l, X.grad]
l = F.nll_loss(X, ignored, weight=lib.tensor([1.0, 2.0, 3.0])); l.backward(); [l, X.grad]
l = F.cross_entropy(X[:0], lib.tensor([]).long()); l.backward(); [l, X.grad]
l = F.nll_loss(x, lib.tensor(-100)); l.backward(); [l, x.grad]
l = F.cross_entropy(x, lib.tensor(-100)); l.backward(); [l, x.grad]
Z = X[..., None, None]; l = F.cross_entropy(Z, lib.full((2, 1, 1), -100)); l.backward(); [l, X.grad]
X = lib.zeros(2, 3, 2, requires_grad=True); l = F.cross_entropy(X, lib.full((2, 2), -100)); l.backward(); [l, X.grad]
X = lib.zeros(2, 3, 2, requires_grad=True); F.nll_loss(X, lib.full((2, 2), -100)).backward(); X.grad
F.cross_entropy(X, lib.tensor([1, 2]), weight=lib.tensor([1.0, 2.0]))
F.cross_entropy(X, lib.tensor([1, 2]), weight=lib.tensor([1.0, 2.0, 3.0, 4.0]))
F.cross_entropy(X, lib.tensor([1, 2]), weight=lib.tensor([1.0]))
F.cross_entropy(X, lib.tensor([1, 2]), weight=lib.tensor(1.0))
F.cross_entropy(X, lib.tensor([1, 2]), weight=lib.ones(1, 3))
F.cross_entropy(X, lib.tensor([1, 2]), weight=lib.ones(3, 1))
F.cross_entropy(X, lib.tensor([1, 2]), weight=lib.ones(3).double())
F.cross_entropy(X, lib.tensor([1, 2]), weight=lib.ones(3).long())
F.cross_entropy(X, lib.tensor([1, 2]), weight=lib.ones(2), label_smoothing=0.1)
F.cross_entropy(X, X.softmax(1), weight=lib.ones(2))
F.cross_entropy(X, X.softmax(1), weight=lib.ones(1))
F.cross_entropy(X, X.softmax(1), weight=lib.ones(3).double())
F.cross_entropy(X, X.softmax(1).double())
F.cross_entropy(x, lib.tensor(1), weight=lib.ones(2))
F.nll_loss(x, lib.tensor(1), weight=lib.ones(2))
F.nll_loss(X, lib.tensor([1, 2]), weight=lib.ones(2))
F.nll_loss(X, lib.tensor([1, 2]), weight=lib.ones(1, 3))
F.nll_loss(X, lib.tensor([1, 2]), weight=lib.ones(3).double())
F.nll_loss(X, lib.tensor([1, 2]), weight=lib.ones(3).long())
F.nll_loss(lib.zeros(2, 3, 2, 2), lib.zeros(2, 2, 2).long(), weight=lib.ones(2))
F.nll_loss(lib.zeros(2, 3, 2), lib.zeros(2, 2).long(), weight=lib.ones(2))
F.cross_entropy(lib.zeros(2, 3, 2), lib.zeros(2, 2).long(), weight=lib.ones(2))
F.nll_loss(i.reshape(1, 3), lib.tensor([1]))
F.nll_loss(X, X)
F.cross_entropy(f0, lib.tensor(0))
F.cross_entropy(X, lib.tensor([1, 2]).int())
F.nll_loss(X, lib.tensor([1, 3]))
F.nll_loss(X, lib.tensor([1, -1]))
F.nll_loss(X, lib.tensor([1, 2, 2]))
F.nll_loss(X, lib.tensor([[1], [2]]))
F.nll_loss(f0, lib.tensor(1))
F.nll_loss(x, lib.tensor([1]))
F.cross_entropy(x, lib.tensor([1]))
F.nll_loss(X, lib.tensor([1, 2]), reduction="batchmean")
F.nll_loss(x, lib.tensor([1]), reduction="none")
F.cross_entropy(x, lib.tensor([1]), reduction="none")
F.nll_loss(x, lib.tensor([1, 2]))
F.nll_loss(x, lib.tensor([[1]]))
F.cross_entropy(x, lib.tensor([[1]]))
F.cross_entropy(X, X.long())
F.cross_entropy(X, lib.tensor([[1], [2]]))
F.cross_entropy(X, lib.tensor([[1.0], [2.0]]))
F.cross_entropy(X, lib.tensor(1))
F.nll_loss(X, lib.tensor(1))
F.nll_loss(X, lib.tensor([1.0, 2.0]))
F.nll_loss(x, lib.tensor(1.0))
F.nll_loss(lib.zeros(2, 3, 2, 2), lib.zeros(2, 2, 2))
F.nll_loss(lib.zeros(2, 3, 2, 2), lib.zeros(2, 2, 3).long())
F.nll_loss(lib.zeros(2, 3, 2, 2), lib.zeros(2, 2).long())
F.nll_loss(lib.zeros(2, 3, 2, 2), lib.zeros(3, 2, 2).long())
F.nll_loss(lib.zeros(2, 3, 2, 2), lib.zeros(2, 2, 2).long(), weight=lib.ones(3).double())
F.nll_loss(lib.zeros(2, 3, 2, 2).long(), lib.zeros(2, 2, 2).long())
F.nll_loss(lib.zeros(2, 3, 2), lib.zeros(2, 3).long())
F.nll_loss(lib.zeros(2, 3, 2), lib.zeros(2, 2))
F.nll_loss(lib.zeros(2, 3, 2), lib.zeros(2).long())
F.nll_loss(lib.zeros(2, 3, 2, 2, 2), lib.zeros(2, 2, 2, 2).long() + 3)
F.nll_loss(lib.zeros(2, 3, 2, 2), lib.zeros(2, 2, 2).long() + 3)
F.nll_loss(X, lib.tensor([1, 5]), weight=lib.ones(2))
F.nll_loss(X, lib.tensor([1.0, 2.0]), weight=lib.ones(2))
F.nll_loss(X, lib.tensor([1.0, 2.0]), weight=lib.ones(3).double())
F.cross_entropy(i, lib.tensor(1))
F.cross_entropy(i, lib.tensor(1), weight=lib.ones(2))
F.cross_entropy(X, lib.tensor([1, 3]), weight=lib.ones(2))
F.cross_entropy(X, X[:1])
F.cross_entropy(X, lib.ones(2, 2))
F.cross_entropy(X, i)
F.cross_entropy(X, lib.zeros(2).bool())
F.cross_entropy(X, X.softmax(1), ignore_index=1)
F.cross_entropy(X, X.softmax(1), weight=lib.ones(3).long())
F.cross_entropy(X, lib.tensor([0, 1]), weight=lib.tensor([-1.0, 1.0, 1.0]))
F.mse_loss(f, f, reduction="batchmean")
F.cross_entropy(X, lib.tensor([1, 2]), reduction="batchmean")
y.zero_().grad_fn.name()
i.fill_(lib.tensor(2.0, requires_grad=True))
"""

WEIGHTS = """
F.binary_cross_entropy(m.sigmoid(), m.sigmoid(), weight=lib.ones(2))
F.binary_cross_entropy(lib.ones(2, 1), lib.ones(2, 1), weight=lib.ones(2))
F.binary_cross_entropy_with_logits(m, m, weight=lib.ones(2))
F.binary_cross_entropy_with_logits(m, m, pos_weight=lib.ones(2))
F.binary_cross_entropy_with_logits(f[:1], f[:1], weight=f)
F.binary_cross_entropy_with_logits(f[:1], f[:1], pos_weight=f)
F.binary_cross_entropy_with_logits(f, f, weight=m)
F.nll_loss(lib.zeros(2, 3, 2), lib.zeros(2, 2).byte())
(F.cross_entropy(X, ignored) * math.nan).backward(); X.grad
F.binary_cross_entropy(f / 4, f / 4, weight=x)
F.binary_cross_entropy_with_logits(x, f / 4, weight=x)
F.binary_cross_entropy_with_logits(f, f / 4, pos_weight=x)
F.nll_loss(m, lib.tensor([0, 1]), weight=x)
F.nll_loss(m[None], lib.zeros(1, 3).long(), weight=x[:2])
F.cross_entropy(m, lib.tensor([0, 1]), weight=x, label_smoothing=0.1)
F.cross_entropy(m, m.softmax(1), weight=x).backward(); x.grad
k = lib.no_grad(); k.__enter__(); w = F.binary_cross_entropy(f / 4, f / 4, weight=x); k.__exit__(None, None, None); w
F.dropout2d(lib.ones(3), 1.0)
"""

KINKS = """
lib.autograd.functional.hessian(lambda a, b: F.binary_cross_entropy_with_logits(a, b, pos_weight=f0), (f - f, f))
lib.autograd.functional.hessian(lambda a: F.smooth_l1_loss(a, f * 0), f - 1)
w = lib.tensor([math.inf, -math.inf, math.nan], requires_grad=True); F.smooth_l1_loss(w, f).backward(); w.grad
"""

SOFTMAX = """
F.softmax(f)
F.softmax(m)
F.softmax(f0)
F.softmax(lib.zeros(1, 2, 3))
F.softmax(lib.zeros(1, 2, 3, 1))
F.log_softmax(f)
F.log_softmax(m)
F.softmax(f, None, 3, lib.float64)
F.softmax(f, -1, 3, lib.float64)
F.softmax(f, dim=0, dtype=lib.float64)
F.softmax(i, dtype=lib.float64)
f.softmax(0, lib.float64)
lib.softmax(f, 0, lib.float64)
f.softmax(dim=None)
F.softmax(f, 2)
nn.Softmax()(f)
nn.LogSoftmax()(m)
nn.Softmax(dim=1)(m)
F.softmax(i, 0)
"""

DROPOUT = """
F.dropout(i)
F.dropout(i, 0.5, False)
F.dropout(i, 1.0)
F.dropout(b)
F.dropout(u)
F.dropout(i, 1.5)
F.dropout2d(i.reshape(1, 3, 1, 1))
F.dropout2d(i)
F.dropout2d(f)
F.dropout2d(lib.zeros(2, 3))
nn.Dropout()(i)
F.dropout2d(lib.ones(2, 3, 4), 0.0)
F.dropout2d(lib.ones(3), 0.0)
F.dropout2d(lib.ones(3), 0.5, False)
F.dropout2d(lib.ones(2, 3, 4), 1.5)
nn.Dropout2d(0.0)(lib.ones(2, 3, 4))
F.dropout(lib.tensor([]).long())
nn.Dropout(2)
nn.Dropout2d(-1)
"""

RANDOM = """
i.uniform_()
i.normal_()
b.normal_()
b.uniform_()
f.uniform_(2, 1)
f.uniform_(1, 1)
f.normal_(0, -1)
x.normal_()
x.uniform_()
y.uniform_().requires_grad
y.normal_().grad_fn.name()
lib.bernoulli(i)
lib.bernoulli(b)
f.uniform_(0.0, math.inf)
f.uniform_(-3e+38, 3e+38)
h.uniform_(0, 1000000.0)
lib.manual_seed(0); lib.bernoulli(lib.full((40,), 0.5))
i.normal_(0, -1)
i.uniform_(2, 1)
lib.manual_seed(0); lib.full((3, 4), 0.25).multinomial(2)
lib.manual_seed(0); lib.full((3, 4), 0.25).bernoulli()
x[0].uniform_()
with_ = m[0].normal_(0, 0); m
m.t().normal_(1, 0); m
"""


@pytest.mark.parametrize("text", (LOSSES + WEIGHTS + KINKS + SOFTMAX + DROPOUT + RANDOM).split("\n"))
def test_gives_what_pytorch_gives(text: str) -> None:
    same(script(text, usual_names))


BATCH_NORM = """
nn.BatchNorm1d(3)(lib.ones(2, 4))
nn.BatchNorm2d(3, affine=False).eval()(lib.ones(2, 4, 1, 1))
nn.BatchNorm1d(3, track_running_stats=False)(lib.ones(2, 4))
F.batch_norm(m, lib.zeros(3), lib.ones(2), training=True)
F.batch_norm(m, lib.zeros(1), lib.ones(1))
F.batch_norm(m, None, None, bias=f[:2], training=True)
"""


@pytest.mark.parametrize("text", BATCH_NORM.strip().splitlines())
def test_batch_norm_of_the_wrong_number_of_channels(text: str) -> None:
    same(script(text, usual_names))


def test_an_axis_must_be_named() -> None:
    """Only functions of nn.functional choose an axis. Python words the TypeError of the others differently."""
    for lib in (ma, torch):
        vector = lib.ones(3)
        for function in (vector.softmax, vector.log_softmax):
            with pytest.raises(TypeError, match="missing 1 required"):
                function()
        for axis in ("a", 0.0, None):
            with pytest.raises(TypeError, match="must be int"):
                lib.softmax(vector, axis)


SAVED = {
    "mse_loss": ("F.mse_loss(Y, T)", ["self", "target"]),
    "smooth_l1_loss": ("F.smooth_l1_loss(Y, T)", ["self", "target"]),
    "binary_cross_entropy": ("F.binary_cross_entropy(Y, T, Y.detach())", ["self", "target", "weight"]),
    "with logits": (
        "F.binary_cross_entropy_with_logits(Y, T, Y.detach(), pos_weight=T.detach())",
        ["self", "target", "weight", "pos_weight"],
    ),
    "nll_loss": ("F.nll_loss(Y, lib.tensor([1, 0]))", ["self"]),
}


@pytest.mark.parametrize("name", SAVED)
def test_losses_name_what_they_saved_as_pytorch(name: str) -> None:
    text, saved = SAVED[name]
    listed = f"[(name, getattr(n, '_saved_' + name)) for name in {saved}]"
    make = "Y, T = X.sigmoid(), (X + 1).sigmoid()"
    same(script(f"{make}; n = {text}.grad_fn; [n.name(), {listed}]", usual_names))


def test_cross_entropy_names_nothing_that_it_saved() -> None:
    """It saves other values than PyTorch's node of that name."""
    node = script("F.cross_entropy(X, lib.tensor([1, 0])).grad_fn", usual_names)(ma)
    assert not [name for name in dir(node) if name.startswith("_saved")]
