"""Modules called with other parameters, gradients of dicts of tensors, several arguments, batches of gradients.

A row is a script of `lib`, nn, F and the tensors of `usual_names`; it gives the same under PyTorch: values, dtype,
shape and warnings, or error type and text. `l` is a layer whose numbers come from the seed.
"""

from typing import Any

import pytest

from tests.mini_autograd.same_as_torch import lines, same, script, usual_names

FUNCTIONAL_CALLS = """
call(l, {"weight": m}, (f,)), l.weight
call(l, {"weight": m, "bias": f[:2]}, f)
call(l, [{"weight": m}, {"bias": f[:2]}], f)
call(l, {}, args=(), kwargs={"input": f})
call(nn.Sequential(l, nn.ReLU()), {"0.bias": f[:2]}, f)
W = X * 2; y = call(l, {"weight": W}, (f,)).sum(); lib.autograd.grad(y, X)
call(nn.BatchNorm1d(2).eval(), {"running_mean": f[:2]}, m.T)
s = nn.Sequential(l, l); s[0] is s[1]; l.weight.shape
t = Tied(); call(t, {"a.weight": lib.eye(2)}, f[:2])
t = Tied(); call(t, {"a.weight": lib.eye(2)}, f[:2], tie_weights=False)
call(l, {"w": m}, f)
call(l, {"a.b": m}, f)
call(l, {"weight": 3}, f)
call(l, 3, f)
call(l, [{"weight": m}, {"weight": m}], f)
call(l, {"weight": m}, f, strict=True)
call(l, {"weight": m, "bias": f[:2], "q": f}, f, strict=True)
p, q = lib.func.stack_module_state([l, l]); p["weight"], p["bias"].requires_grad, len(q), list(p)
p, q = lib.func.stack_module_state([nn.BatchNorm1d(2), nn.BatchNorm1d(2)]); q
lib.func.stack_module_state([])
lib.func.stack_module_state([nn.Linear(1, 1), nn.Linear(1, 1).eval()])
lib.func.stack_module_state([nn.Linear(1, 1), nn.ReLU()])
P = dict(l.named_parameters()); g = lib.func.grad(lambda p: call(l, p, f).sum())(P); list(g.items())
g = lib.func.grad(lambda p, q: (p[0] * q).sum() + p[1][0])([f, (f0,)], d); g
g = lib.func.grad(lambda p, q: (p["a"] * q).sum(), argnums=(0, 1))({"a": f}, f * 2); g
l.requires_grad_(False); lib.func.vmap(lib.func.grad(squared), (None, 0, None))({"weight": m}, m, l)["weight"]
lib.func.jacrev(lambda a, b: a * b, argnums=(0, 1))(f, f * 2)
lib.func.jacrev(lambda a, b: a * b, argnums=(1,))(f, f * 2)
lib.func.jacfwd(lambda a, b: a * b, argnums=(0, 1))(f, f * 2)
lib.func.hessian(lambda a, b: (a * b * b).sum(), argnums=(0, 1))(f[:2], f[1:])
lib.func.grad(lambda a: a.sum(), argnums=1)(f)
lib.func.jacrev(lambda a: a * a, argnums=(0, -2))(f)
lib.func.jacfwd(lambda a: a * a, argnums=1)(f)
lib.func.grad(lambda a, b: (a * b).sum(), argnums=(0, 0))(f, f)
lib.func.grad(lambda a: a.sum(), argnums=())(f)
lib.func.grad(lambda a, b: (a * b).sum(), argnums=-1)(f, f * 2)
"""

BATCHED_GRADIENTS = """
lib.autograd.grad(x * x, x, lib.eye(3), is_grads_batched=True)
lib.autograd.grad([x * x, s * x.sum()], [x, s], [lib.eye(3), f], is_grads_batched=True)
g = lib.autograd.grad(x ** 3, x, lib.eye(3), create_graph=True, is_grads_batched=True); g[0].sum().backward(); x.grad
lib.autograd.grad(x * x, [x, s], lib.eye(3), is_grads_batched=True, allow_unused=True)
lib.autograd.grad((x * x).sum(), x, None, None, False, True, True)
lib.autograd.grad((x * x).sum(), x, only_inputs=False)
"""


def names(lib: Any) -> dict[str, Any]:
    class Tied(lib.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = lib.nn.Linear(2, 2), lib.nn.Linear(2, 2)
            self.b.weight = self.a.weight

        def forward(self, x: Any) -> Any:
            return self.b(self.a(x))

    call = lib.func.functional_call
    lib.manual_seed(0)
    own = {
        "l": lib.nn.Linear(3, 2),
        "Tied": Tied,
        "call": call,
        "squared": lambda p, v, layer: (call(layer, p, v) ** 2).sum(),
    }
    return usual_names(lib) | own


def in_lists(value: Any) -> Any:
    """The value with its dicts as lists of pairs, so that what is in them is compared as tensors are."""
    if isinstance(value, dict):
        return [(key, in_lists(part)) for key, part in value.items()]
    return [in_lists(part) for part in value] if isinstance(value, list | tuple) else value


@pytest.mark.parametrize("row", lines(FUNCTIONAL_CALLS))
def test_functional_calls(row: str) -> None:
    program = script(row, names)
    same(lambda lib: in_lists(program(lib)))


@pytest.mark.parametrize("row", lines(BATCHED_GRADIENTS))
def test_batched_gradients(row: str) -> None:
    same(script(row, usual_names))


PADDING = """
lib.nn.utils.rnn.pad_sequence([f, f[:1]])
lib.nn.utils.rnn.pad_sequence([m, m[:1]], batch_first=True, padding_value=-1)
lib.nn.utils.rnn.pad_sequence([i[:1], i], True)
lib.nn.utils.rnn.pad_sequence([f[:1], f], padding_side="left")
lib.nn.utils.rnn.pad_sequence(m)
z = lib.nn.utils.rnn.pad_sequence([x, x[:1]]); (z * z).sum().backward(); x.grad
lib.nn.utils.rnn.pad_sequence([])
lib.nn.utils.rnn.pad_sequence([f], padding_side="up")
lib.nn.utils.rnn.pad_sequence([1, 2])
"""


@pytest.mark.parametrize("row", lines(PADDING))
def test_padding_of_sequences(row: str) -> None:
    same(script(row, usual_names))
