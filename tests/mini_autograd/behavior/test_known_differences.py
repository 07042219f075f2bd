"""Where the engine differs from PyTorch on purpose: what it does, and what PyTorch does.

A row of a table is a script and what it gives here and in PyTorch. The table, and what the docstrings of the tests say,
are a part of `docs/conformance.md`: `python -m tests.mini_autograd.behavior.test_known_differences` writes it.
"""

import inspect
import pickle
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

import mini_autograd as ma
from tests.mini_autograd.same_as_torch import outcome, script, usual_names, x3

SCRIPTS: dict[str, tuple[str, Any, Any]] = {
    "edges of a part that was replaced": (
        "y = x * 1; y[1:].mul_(2); [below and below.name() for below, _ in y.grad_fn.next_functions]",
        ["MulBackward0", "MulBackward0"],
        ["MulBackward0", None],
    ),
    "edges of a part that was written": (
        "y = x * 1; y[1:] = x[:2] * 1; [below.name() for below, _ in y.grad_fn.next_functions]",
        ["MulBackward0", "torch::autograd::CopyBackwards"],
        ["MulBackward0", "MulBackward0"],
    ),
    "a view that was changed": (
        "y = x * 1; part = y[1:]; part.mul_(2); part.grad_fn.name()",
        "SliceBackward0",
        "AsStridedBackward0",
    ),
    "the type of a node whose name depends on the call": (
        "y = X.sum(0).grad_fn; type(y).__name__, y.name()",
        ["SumBackward0", "SumBackward1"],
        ["SumBackward1", "SumBackward1"],
    ),
    "nodes of the smallest and the largest": (
        "y = X.aminmax(dim=0); y.min.grad_fn.name(), y.min.grad_fn is y.max.grad_fn",
        ["AminBackward0", False],
        ["AminmaxBackward0", True],
    ),
    "labels that are changed before the backward pass": (
        "k = lib.tensor([1, 1]); y = F.cross_entropy(X, k); k.zero_(); y.backward(); round(X.grad.sum().item(), 3)",
        0.0,
        "RuntimeError",
    ),
    "running means that are changed before the backward pass": (
        "k = lib.ones(3); y = F.batch_norm(X, k * 0, k, training=False); k.zero_(); y.sum().backward(); "
        "round(X.grad.sum().item(), 3)",
        6.0,
        "RuntimeError",
    ),
    "the target of an absolute difference that is changed": (
        "k = lib.zeros(2, 3); y = F.l1_loss(X, k); k.add_(1); y.backward(); round(X.grad.abs().sum().item(), 3)",
        "RuntimeError",
        1.0,
    ),
    "hooks for what is saved see no indices": (
        "n = []; c = lib.autograd.graph.saved_tensors_hooks(lambda t: n.append(t.dtype), lambda t: t); "
        "c.__enter__(); y = X[[0, 1]]; c.__exit__(None, None, None); len(n)",
        0,
        1,
    ),
    "the gradient of a piecewise linear function, differentiated again": (
        "[lib.autograd.grad(y.sum(), X, create_graph=True)[0].requires_grad for y in (F.relu(X), F.leaky_relu(X), "
        "F.pad(X, (1, 1), mode='reflect'), F.l1_loss(X, m), F.max_pool1d(X, 2), F.avg_pool1d(X, 2), "
        "F.nll_loss(X, lib.tensor([0, 1])), F.relu(X) ** 2)]",
        [False] * 3 + [True] + [False] * 3 + [True],
        [True] * 8,
    ),
    "the gradient of what scatter adds": (
        "x.scatter(0, lib.tensor([0, 0]), 2.0, reduce='add').sum().backward(); x.grad.tolist()",
        [1.0, 1.0, 1.0],
        "RuntimeError",
    ),
    "no_grad in forward mode inside forward mode": (
        "j = lib.func.jacfwd; j(j(lambda v: v * lib.no_grad()(lambda u: u * u)(v)))(f0).item()",
        5.0,
        15.0,
    ),
    "other data between the forward and the backward pass": (
        "y = s * s; s.data = lib.tensor(5.0); y.backward(); s.grad.item()",
        4.0,
        10.0,
    ),
    "an operation that the course does not use": (
        "lib.var_mean(X, 0)[0].grad_fn.name()",
        "AttributeError",
        "VarMeanBackward0",
    ),
}


def shortened(found: Any) -> Any:
    """The result without its warnings, or the type of the error."""
    result, more = found
    return result if isinstance(more, list) else found[0]


@pytest.mark.parametrize("name", SCRIPTS)
def test_what_either_does(name: str) -> None:
    text, ours, theirs = SCRIPTS[name]
    assert shortened(outcome(script(text, usual_names), ma)) == ours
    assert shortened(outcome(script(text, usual_names), torch)) == theirs


def test_a_whole_module_is_not_saved(tmp_path: Any) -> None:
    """`save` of a whole module raises an error: loading our files runs no code. Save the module's `state_dict()`."""
    torch.save(torch.nn.Linear(1, 1), tmp_path / "theirs")
    with pytest.raises(pickle.UnpicklingError):
        torch.load(tmp_path / "theirs")
    assert torch.load(tmp_path / "theirs", weights_only=False).weight.shape == (1, 1)
    with pytest.raises(TypeError, match=r"cannot save a Linear: .* such as a module's state_dict\(\)"):
        ma.save(ma.nn.Linear(1, 1), tmp_path / "ours")
    with pytest.raises(ValueError, match="reads safetensors files, and this is not one"):
        ma.load(tmp_path / "theirs")


def nested_passes(lib: Any, depth: int) -> Any:
    """The gradient through a Function whose rule starts another backward pass through the same Function."""

    class Deeper(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            with lib.enable_grad():
                ctx.below = x.detach().requires_grad_() - 1
            return ctx.below.detach()

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            if ctx.below >= 0:
                with lib.enable_grad():
                    Deeper.apply(ctx.below).sum().backward()
            return grad

    x = lib.tensor(float(depth), requires_grad=True)
    Deeper.apply(x).sum().backward()
    return x.grad.item()


def test_backward_passes_inside_each_other_are_limited_by_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many backward passes inside each other end in a `RecursionError`, unless `sys.setrecursionlimit` is raised."""
    limit = sys.getrecursionlimit()
    assert nested_passes(ma, 50) == nested_passes(torch, 50) == nested_passes(torch, 500) == 1
    with pytest.raises(RecursionError):
        nested_passes(ma, 500)
    try:
        sys.setrecursionlimit(20_000)
        assert nested_passes(ma, 500) == 1
    finally:
        sys.setrecursionlimit(limit)


def test_a_shape_of_the_base_is_lost_to_its_views() -> None:
    """Using a view whose base has since changed shape in place raises an error here."""

    def program(lib: Any) -> Any:
        y = x3(lib) * 1
        view = y[:2]
        y.unsqueeze_(0)
        return (view * 1).sum()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert program(torch) == 3
    with pytest.raises(RuntimeError, match="Make the view after its base has its final shape"):
        program(ma)


def test_a_mask_of_attention_that_was_changed_raises_here() -> None:
    """A mask of attention that is changed before the backward pass raises an error here."""

    def program(lib: Any) -> bool:
        query = lib.ones(1, 2, 3, requires_grad=True)
        mask = lib.zeros(2, 2)
        result = lib.nn.functional.scaled_dot_product_attention(query, query, query, attn_mask=mask)
        mask.add_(1)
        result.sum().backward()
        return query.grad is not None

    assert program(torch)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        program(ma)


def test_gradcheck_names_a_number_of_outputs_that_changes() -> None:
    """`gradcheck` says that the number of outputs changed; PyTorch raises an `IndexError`."""

    def check(lib: Any) -> bool:
        calls: list[int] = []

        def function(x: Any) -> Any:
            calls.append(1)
            return (x, x * 2) if len(calls) % 2 else (x,)

        return lib.autograd.gradcheck(function, (lib.ones(2, dtype=lib.float64, requires_grad=True),))

    with pytest.raises(IndexError):
        check(torch)
    with pytest.raises(AssertionError, match="as many outputs"):
        check(ma)


def test_a_jvp_that_returns_nothing_gives_no_tangent_here() -> None:
    """A custom `jvp` that returns None gives no tangent; PyTorch fails an internal assertion."""

    def tangent(lib: Any) -> Any:
        class Double(lib.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                return x * 2

            @staticmethod
            def jvp(ctx: Any, tangent: Any) -> Any:
                return None

        forward_ad = lib.autograd.forward_ad
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(lib.ones(2), lib.ones(2))
            return forward_ad.unpack_dual(Double.apply(dual)).tangent

    with pytest.raises(RuntimeError, match="INTERNAL ASSERT FAILED"):
        tangent(torch)
    assert tangent(ma) is None


def test_a_tangent_is_never_lost_without_a_word() -> None:
    """`autograd.functional` of a tensor in forward mode raises an error here; PyTorch loses the tangent."""

    def tangent(lib: Any) -> Any:
        forward_ad = lib.autograd.forward_ad
        with forward_ad.dual_level():
            x = forward_ad.make_dual(lib.ones(2), lib.ones(2))
            return forward_ad.unpack_dual(lib.autograd.functional.jacobian(lambda x: x**3, x)).tangent

    assert tangent(torch) is None
    with pytest.raises(RuntimeError, match="would lose the tangent"):
        tangent(ma)


PAGE = Path("docs/conformance.md")
BEGINS, ENDS = "<!-- written by tests/mini_autograd/behavior/test_known_differences.py -->\n", "<!-- until here -->"


def differences() -> str:
    """The part of the page that says where the engines differ: the table above, and the docstrings of the tests."""
    header = ["| what is tried | script | here | in PyTorch |", "| --- | --- | --- | --- |"]
    rows = [f"| {name} | `{text}` | `{ours}` | `{theirs}` |" for name, (text, ours, theirs) in SCRIPTS.items()]
    found = [inspect.getdoc(value) for name, value in globals().items() if name.startswith("test_")]
    parts = [[*header, *rows], [f"- {text}" for text in found if text]]
    return "\n\n".join(map("\n".join, parts)) + "\n\n"


def test_the_page_says_what_the_tests_found() -> None:
    assert PAGE.read_text().split(BEGINS)[1].split(ENDS)[0] == differences(), f"run python -m {__name__}"


if __name__ == "__main__":
    before, _, rest = PAGE.read_text().partition(BEGINS)
    PAGE.write_text(before + BEGINS + differences() + ENDS + rest.partition(ENDS)[2])
