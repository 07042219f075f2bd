"""`copy_`, `fill_`, `zero_` and assigned numbers: what they accept, refuse and record.

A row is a script of `lib`, nn, F and the tensors of `usual_names`; it gives the same under PyTorch: values, dtype,
shape and warnings, or error type and text.
"""

import pytest
import torch

import mini_autograd as ma
from tests.mini_autograd.same_as_torch import same, script, usual_names

SCRIPTS = """
f.copy_(2)
f.copy_(2.5)
f.copy_(True)
f.copy_("a")
f.copy_(None)
f.copy_([1.0, 2.0, 3.0])
f.copy_(np.ones(3))
f.copy_(i)
i.copy_(f)
b.copy_(f)
f.copy_(d)
f.copy_(lib.ones(1))
f.copy_(f0)
f.copy_(m)
m.copy_(f)
m.copy_(lib.ones(2))
f.copy_(lib.ones(1, 3))
f.copy_(x); [f, f.grad_fn.name()]
f.copy_(x); f.sum().backward(); x.grad
d.copy_(x); d.sum().backward(); x.grad
i.copy_(x)
i.copy_(x); i.requires_grad
x.copy_(f)
y.copy_(f); [y, y.grad_fn.name()]
y.copy_(f); y.sum().backward()
y[0].copy_(f0); [y, y.grad_fn.name()]
y[:2].copy_(f0); (y * y).sum()
m[0].copy_(x); (m * m).sum().backward(); x.grad
m[:, 0].copy_(f0); m
x.copy_(x)
y.copy_(y); y.grad_fn.name()
f.copy_(f); f
f.copy_(f); f._version
f.copy_(f.flip(0)); f
m.t().copy_(lib.arange(6.0).reshape(3, 2)); m
f.expand(2, 3).copy_(m)
f0.copy_(f)
f0.copy_(lib.ones(1))
f0.copy_(lib.ones(1, 1))
f.copy_(f, True)
f.copy_(i, non_blocking=True)
z = x * 2; f.copy_(z); f.pow(2).sum().backward(); x.grad
z = y.exp(); y.copy_(f); z.sum().backward()
z = y.exp(); z.copy_(f); z.sum().backward()
z = y * y; y.copy_(f); z.sum().backward()
m.copy_(x); m.pow(2).sum().backward(); x.grad
f.fill_(2)
f.fill_(True)
i.fill_(2.7)
b.fill_(2)
u.fill_(300)
u.fill_(-1)
u.fill_(2.7)
f.fill_(1e+300)
f.fill_(math.inf)
i.fill_(math.inf)
i.fill_(math.nan)
h.fill_(1000000.0)
f.fill_(f0)
f.fill_(f)
f.fill_(lib.ones(1))
f.fill_(lib.ones(1, 1))
f.fill_(lib.ones(2, 3))
i.fill_(f0)
f.fill_(lib.tensor(2))
f.fill_(np.float64(2.5))
s = lib.tensor(2.0, requires_grad=True); f.fill_(s); [f, f.grad_fn.name()]
s = lib.tensor(2.0, requires_grad=True); f.fill_(s); (f * f).sum().backward(); s.grad
s = lib.tensor(2.0, requires_grad=True); i.fill_(s)
s = lib.tensor(2.0, requires_grad=True); y.fill_(s); (y * y).sum().backward(); s.grad
s = lib.tensor(2.0, requires_grad=True, dtype=lib.float64); f.fill_(s); (f * f).sum().backward(); s.grad
s = lib.tensor(2.0, requires_grad=True); m[0].fill_(s); (m * m).sum().backward(); s.grad
f.fill_(x[0]); (f * f).sum().backward(); x.grad
f.fill_(f[1]); f
f0.fill_(f0)
f0.fill_(3)
x.fill_(1)
x[0].fill_(1)
y.fill_(1); y.grad_fn.name()
y[0].fill_(1); [y, y.grad_fn.name()]
f.fill_(value=2)
f.fill_(value=f0)
x.zero_()
y.zero_(); y.grad_fn.name()
z = y.exp(); z.fill_(1); z.sum().backward()
m[0] = x; m.sum().backward(); x.grad
m[0] = x.double(); m.sum().backward(); x.grad
m[0, 0] = x[0]; (m * m).sum().backward(); x.grad
m[0] = m[1]; m
m[m > 0] = f0; m
m[:] = 1; m
i[0] = 2.7; i
i[0] = f0; i
u[0] = 300; u
u[0] = -1; u
f[0] = f
m[0] = lib.ones(2)
m[0] = None
m[5] = 1
m[[0, 1]] = x; m.sum().backward(); x.grad
m[0] += x; m.sum().backward(); x.grad
m[:, 1] *= 2; m
m[m > 0] = f0.double(); m
m[m > 0] = lib.ones(4).double(); m
m[[0]] = f0.double(); m
m[0, [0, 1]] = f.double(); m
i[[0]] = f0; i
i[i > 0] = f0; i
m[:] = lib.ones(3, 2); m
"""


@pytest.mark.parametrize("text", SCRIPTS.strip().splitlines())
def test_gives_what_pytorch_gives(text: str) -> None:
    same(script(text, usual_names))


NO_NUMBERS = ["'a'", "None", "[1.0]", "np.ones(3)"]


@pytest.mark.parametrize("value", NO_NUMBERS)
def test_fill_takes_numbers_and_tensors_only(value: str) -> None:
    """PyTorch's error lists its signatures; this engine's says what it expects."""
    for lib in (ma, torch):
        with pytest.raises(TypeError, match="fill_"):
            script(f"f.fill_({value})", usual_names)(lib)
