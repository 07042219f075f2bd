"""What training scripts use here and there: rare options, old names, texts of results.

A row is a script of `lib`, nn, F and the tensors of `usual_names`; it gives the same under PyTorch: values, dtype,
shape and warnings, or error type and text.
"""

import importlib
import math
import pickle
from typing import Any

import numpy as np
import pytest

import mini_autograd as ma
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
repr(m.aminmax())
f.aminmax().max, f.aminmax()[0]
str(X.max(1)), type(m.max(0)).__name__, isinstance(m.max(0), tuple), len(m.max(0))
values, indices = m.max(0); values, indices
"""

OLD_AND_RARE = """
m.fill_diagonal_(7)
m.t().fill_diagonal_(7); m
lib.zeros(7, 3).fill_diagonal_(1, wrap=True)
lib.zeros(7, 2).fill_diagonal_(1, True)
lib.zeros(2, 7).fill_diagonal_(1, True)
lib.zeros(3, 3, 3).fill_diagonal_(1)
lib.zeros(3, 3, 2).fill_diagonal_(1)
f.fill_diagonal_(1)
Y = X * 1; Y.fill_diagonal_(0); (Y * Y).sum().backward(); X.grad
f.greater_(2)
i.bitwise_not_()
z = lib.zeros(3); y = lib.add(f, f, alpha=2, out=z); y is z, z
z = lib.zeros(2, 2); lib.matmul(m, m.T, out=z); z
z = lib.zeros(2, 2); lib.mm(m, m.T, out=z); z
z = lib.zeros(3); lib.mul(f, 2, out=z); z
z = lib.zeros(3).double(); lib.sub(f, f0, out=z); z
z = lib.zeros(0); lib.mul(f, f, out=z); z
z = lib.zeros(2); lib.mul(f, f, out=z); z
z = lib.zeros(3).long(); lib.mul(f, f, out=z)
z = lib.zeros(3); lib.mul(x, f, out=z)
z = lib.zeros(3); k = lib.no_grad(); k.__enter__(); lib.add(x, f, out=z); k.__exit__(None, None, None); z
z = lib.zeros(2, 6); w = z[:, 1:3]; w.zero_(); lib.add(m[:, :2], 1, out=w); z
f.type(), i.type(), f.type(lib.float64)
lib.autograd.Variable(f), lib.autograd.Variable(f, requires_grad=True)
w = lib.autograd.Variable(f, requires_grad=True); (w * w).sum().backward(); w.grad
m.storage_offset(), m.detach()[1].storage_offset(), m.detach()[1:, 1:].storage_offset(), f0.storage_offset()
[lib.pi, lib.e, lib.inf, repr(lib.nan), f[lib.newaxis]]
lib.zeros_like(f, memory_format=lib.preserve_format), lib.full_like(i, 2, memory_format=lib.contiguous_format)
lib.empty_like(m, memory_format=None).shape, f.clone(memory_format=lib.preserve_format)
l = nn.Linear(2, 2).type(lib.float64); l.weight.dtype == lib.float64
"""

WITH_NUMPY = """
np.exp(f), np.sqrt(d), np.maximum(f, d)
f + np.ones(3), f * np.arange(3), m @ np.ones((3, 2)), 2.0 ** f - np.float64(1)
np.float32(2) * x, x / np.float64(2), np.float64(2) - f
np.ones(3) + f
np.ones(3) * x
x * np.ones(3)
np.exp(x)
np.exp(x.detach())
type(np.stack([f, f])).__name__, np.asarray(f).dtype.name, np.array(m).shape
x.numpy(force=True).tolist(), (x * 2).numpy(force=True).tolist()
np.asarray(x)
f == np.ones(3), np.ones(3) == x, i == np.arange(3), f == np.array(2.0), f == np.array([[True], [False]])
f == np.ones(2)
f == np.array(["a", "b", "c"]), f != np.ones(3), f == [1, 2, 3]
n = np.float64(1.5); f.clamp(n), f.clamp(max=n), lib.pow(f, n), lib.where(b, n, n), lib.full((2,), n)
n = np.float64(1.5); i.mul(n), i.div(n), i.add(n), i.sub(n), i.pow(n), i.remainder(n), i.floor_divide(n), n // i, n % i
n = np.float64(3); f.lerp(f, n), f.masked_fill(b, n), i.masked_fill(b, n), u.masked_fill(b, np.int64(3))
n, k = np.float64(3), lib.tensor([0]); f.scatter(0, k, n), f.scatter(0, k, value=n, reduce="add")
n = np.float64(0.5); F.leaky_relu(f, n), F.softplus(f, n), F.smooth_l1_loss(f, f + 1, beta=n), f.norm(n)
n = np.float64(0.5); F.scaled_dot_product_attention(m, m, m, scale=n), f.var(correction=n), F.normalize(f, eps=n, dim=0)
"""

EXPANDED = """
a = lib.zeros(1).expand(3); a[0] = 5; a
a = lib.zeros(2, 1).expand(2, 3); a[0, 1] = 5; a
a = lib.zeros(1).expand(3); a += 1
a = lib.zeros(1).expand(3); a[:2] = 5
a = lib.zeros(1); v = a.expand(3); v[1] = 7; a
"""

NAMES = """
isinstance(lib.__version__, str), lib.is_inference(f), lib.cuda.is_bf16_supported() and not lib.cuda.is_available()
lib.backends.cudnn.deterministic, lib.backends.mps.is_available(), lib.backends.cuda.matmul.allow_tf32
lib.accelerator.is_available(), lib.accelerator.current_accelerator(check_available=True)
lib.cuda.manual_seed_all(3), lib.cuda.manual_seed(3), lib.cuda.max_memory_allocated(), lib.cuda.empty_cache()
{"float32": lib.float32, "bfloat16": lib.bfloat16}["float32"] == f.dtype, repr(lib.bfloat16)
c = lib.autocast("cpu", enabled=False); c.__enter__(); r = x * 2; c.__exit__(None, None, None); r
s = lib.amp.GradScaler("cpu", enabled=False); s.scale(f), s.is_enabled(), s.state_dict()
s = lib.amp.GradScaler("cpu", enabled=False); o = lib.optim.SGD([x], 0.1); (x * x).sum().backward(); s.step(o); x
"""

DTYPES = """
str(f.dtype), str(d.dtype), repr(i.dtype), repr([lib.bool, lib.uint8, lib.long, lib.half])
f.dtype is lib.float32, f.dtype == lib.float64, f.dtype != d.dtype, isinstance(h.dtype, lib.dtype)
lib.float16.is_floating_point, lib.int8.is_floating_point, lib.uint8.is_signed, lib.int32.itemsize
repr((lib.promote_types(lib.int8, lib.float16), lib.get_default_dtype())), {lib.float32: 1}[f.dtype]
lib.zeros(2, dtype=d.dtype) + f, f.to(d.dtype), lib.finfo(f.dtype).eps, lib.iinfo(lib.int8).max
nn.Linear(1, 1).to(d.dtype), nn.Linear(1, 1).to(lib.int8)
f"{d.dtype}", "%s" % (u > 1).dtype
"""

GRADCHECKED = """
l = nn.Linear(2, 2).double(); z = lib.ones(1, 2).double(); lib.autograd.gradcheck(lambda w: l(z), (l.weight,))
z = d.clone().requires_grad_(); lib.autograd.gradcheck(lambda a, b: a * b, (z, z)), z
z = lib.eye(3).double().t().requires_grad_(); lib.autograd.gradcheck(lambda a: a.t() @ a, (z,)), z
z = lib.tensor(2.0).double().requires_grad_(); lib.autograd.gradcheck(lambda a: a.exp(), (z,)), z
z = d.requires_grad_(); lib.autograd.gradcheck(lambda a: {"y": a}, (z,))
z = d.requires_grad_(); lib.autograd.gradcheck(lambda a: (a, None), (z,))
z = d.requires_grad_(); lib.autograd.gradgradcheck(lambda a: 1.0, (z,), raise_exception=False)
z = d.requires_grad_(); lib.autograd.gradcheck(lambda a: "a", (z,))
z = d.requires_grad_(); [lib.autograd.gradcheck(lambda a: a / n, (z,), raise_exception=False) for n in (0, math.nan)]
z = (d - 2).requires_grad_(); lib.autograd.gradcheck(lambda a: a.sqrt(), (z,), raise_exception=False)
z = (d - 4).requires_grad_(); lib.autograd.gradgradcheck(lambda a: a.sqrt(), (z,), raise_exception=False)
"""

PRINT_OPTIONS = """
precision=2, sci_mode=False
sci_mode=True
precision=7
threshold=5, edgeitems=1
linewidth=40
profile="short"
profile="full", linewidth=60
profile="short", precision=3, sci_mode=False
"""


@pytest.mark.parametrize("row", lines(OLD_AND_RARE))
def test_old_and_rare(row: str) -> None:
    same(script(row, usual_names))


@pytest.mark.parametrize("row", lines(WITH_NUMPY + EXPANDED + NAMES + DTYPES + GRADCHECKED))
def test_what_stops_scripts(row: str) -> None:
    same(script(row, usual_names))


MODULES = "utils.data.dataloader utils.data.dataset nn.modules nn.parallel backends accelerator autograd.gradcheck amp"


@pytest.mark.parametrize("module", [*MODULES.split(), "distributed", "optim.lr_scheduler"])
def test_modules_that_scripts_import(module: str) -> None:
    assert importlib.import_module(f"mini_autograd.{module}")
    assert callable(importlib.import_module("mini_autograd.autograd").gradcheck)


def test_a_dtype_goes_wherever_one_of_numpy_goes() -> None:
    assert np.zeros(2, dtype=ma.float16).dtype == ma.float16 == np.float16
    assert ma.ones(2).dtype == np.float32
    assert np.dtype("float32") == ma.float32
    assert pickle.loads(pickle.dumps(ma.int64)) is ma.int64


def test_settings_of_a_gpu_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only here: PyTorch's testing module, which other tests import, forbids changing the settings of PyTorch."""
    monkeypatch.setattr(ma.backends.cudnn, "benchmark", True)
    monkeypatch.setattr(ma.backends.cuda.matmul, "allow_tf32", True)
    assert ma.backends.cudnn.benchmark


def test_what_is_not_there_says_what_to_use() -> None:
    for call, said in {
        lambda: ma.zeros(2, dtype=ma.bfloat16): "use float32",
        lambda: ma.distributed.init_process_group("nccl"): "without torchrun",
        lambda: ma.nn.parallel.DistributedDataParallel(ma.nn.Linear(1, 1)): "use the module itself",
        ma.cuda.current_device: "no GPU",
    }.items():
        with pytest.raises((RuntimeError, TypeError), match=said):
            call()


@pytest.mark.parametrize("options", lines(PRINT_OPTIONS))
def test_print_options(options: str) -> None:
    def program(lib: Any) -> list[str]:
        numbers = [1e-5, 1e5, 3.1415926], [1, 2.0], [[float("nan"), 0.5], [1e9, 3]], [True, False], [0.0, 0.0]
        try:
            eval(f"lib.set_printoptions({options})", {"lib": lib})
            return [repr(lib.tensor(n)) for n in numbers] + [repr(lib.arange(60).reshape(12, 5) / 7)]
        finally:
            lib.set_printoptions(profile="default")

    same(program)


@pytest.mark.parametrize("row", lines(IMPOSSIBLE_CLASSES))
def test_classes_of_probability_zero(row: str) -> None:
    names = {"inf": math.inf, "nan": math.nan, "rows": [[1, -math.inf, 2], [0, 1, 2.0]]}
    same(script(row, lambda lib: usual_names(lib) | names))


@pytest.mark.parametrize("row", lines(SEVERAL_RESULTS))
def test_several_results(row: str) -> None:
    same(script(row, usual_names))


def test_state_of_an_optimizer_of_ones_own() -> None:
    """The state that `step` finds for a parameter that is new to it, and the state that is saved and loaded again."""

    def program(lib: Any) -> Any:
        class Signs(lib.optim.Optimizer):
            def __init__(self, params: Any, lr: float) -> None:
                super().__init__(params, {"lr": lr})

            def step(self, closure: Any = None) -> None:
                for group in self.param_groups:
                    for param in group["params"]:
                        state = self.state[param]
                        state.setdefault("mean", lib.zeros_like(param)).lerp_(param.grad, 0.5)
                        state["calls"] = state.get("calls", 0) + 1
                        param.data.add_(state["mean"].sign(), alpha=-group["lr"])

        weights = [lib.nn.Parameter(lib.tensor([1.0, -2.0])), lib.nn.Parameter(lib.tensor(3.0))]
        optimizer = Signs(weights, 0.25)
        for _ in range(2):
            optimizer.zero_grad()
            sum((weight * weight).sum() for weight in weights).backward()
            optimizer.step()
        again = Signs(weights, 1.0)
        again.load_state_dict(optimizer.state_dict())
        again.step()
        saved = again.state_dict()
        return [*weights, [list(kept.items()) for kept in saved["state"].values()], repr(optimizer), len(again.state)]

    same(program)
