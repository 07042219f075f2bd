"""What other people's PyTorch programs rely on now and then: the same as under PyTorch.

The name of a program says what is tried. `docs/conformance.md` lists the differences.
"""

from collections.abc import Callable
from typing import Any

import pytest

from tests.mini_autograd.same_as_torch import Program, m23, same, script, title, usual_names, x3


def tripled(lib: Any) -> Any:
    """A custom Function."""

    class Triple(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 3

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 3

    return Triple


# nodes: their names, several outputs, calling them


def types_of_nodes_have_their_names(lib: Any) -> Any:
    x = m23(lib)
    results = [x * 2, x.exp(), x @ x.T, x.relu(), x.reshape(6), x.gather(1, lib.tensor([[0], [1]])), x.max(1).values]
    own = tripled(lib)
    inside = own.apply(x).grad_fn
    accumulator = (x * 2).grad_fn.next_functions[0][0]
    return (
        [type(y.grad_fn).__name__ for y in results],
        type(inside).__name__,
        inside.name(),
        own.__name__,
        type(accumulator).__name__,
    )


def parts_come_from_one_node(lib: Any) -> Any:
    y = m23(lib) * 1
    found = []
    for parts in (y.unbind(1), y.split(2, 1), y.split([1, 2], 1), y.chunk(2, 1), tuple(y), lib.zeros(0, 3).chunk(2)):
        nodes = [part.grad_fn for part in parts]
        found.append(([node and node.name() for node in nodes], [part.output_nr for part in parts], len(set(nodes))))
    return found


def gradients_of_some_parts(lib: Any) -> Any:
    x = m23(lib)
    first, second = x * 2
    left, _, right = x.unbind(1)
    (low,) = lib.autograd.grad((first**3).sum(), x, create_graph=True)
    low.sum().backward()
    (left * right).sum().backward()
    return x.grad, lib.autograd.grad((second * first).sum(), [second, first])


def a_node_is_called(lib: Any) -> Any:
    x, w = x3(lib), x3(lib)
    product, constant = (x * w).grad_fn, (x * lib.ones(3)).grad_fn
    accumulator = (x * 1).grad_fn.next_functions[0][0]
    with lib.no_grad():
        unrecorded = product(lib.ones(3))
    return product(lib.ones(3)), constant(lib.ones(3)), unrecorded, product(None), accumulator(lib.ones(3)), x.grad


def a_node_is_called_without_a_gradient(lib: Any) -> Any:
    x3(lib).exp().grad_fn()


def a_node_is_called_with_a_number(lib: Any) -> Any:
    x3(lib).exp().grad_fn(1.0)


def a_node_is_called_that_was_freed(lib: Any) -> Any:
    y = x3(lib).exp()
    y.sum().backward()
    y.grad_fn(lib.ones(3))


def a_node_of_ones_own_is_called(lib: Any) -> Any:
    tripled(lib).apply(x3(lib)).grad_fn(lib.ones(3))


# hooks


def hooks_of_parts_that_nobody_used(lib: Any) -> Any:
    seen: list[Any] = []
    first, second, _ = (x3(lib) * 1).unbind()
    first.register_hook(lambda grad: seen.append(["first", grad]))
    second.register_hook(lambda grad: seen.append(["second", grad]))
    second.retain_grad()
    first.grad_fn.register_prehook(lambda grads: seen.append(list(grads)))
    first.grad_fn.register_hook(lambda inputs, outputs: seen.append([*inputs, *outputs]))
    (first * 2).backward()
    return seen, second.grad


def a_hook_replaces_a_gradient_that_is_not_there(lib: Any) -> Any:
    first, second, _ = (x3(lib) * 1).unbind()
    second.register_hook(lambda grad: lib.tensor(1.0))
    first.backward()


def a_hook_of_a_node_sees_no_unwanted_gradient(lib: Any) -> Any:
    x, w = x3(lib), x3(lib)
    seen: list[Any] = []
    for start in (
        lambda y: lib.autograd.grad(y, x),
        lambda y: y.backward(inputs=[w]),
        lambda y: lib.autograd.grad(y, [w, x]),
    ):
        for y in (x * w, x @ w, tripled(lib).apply(x) / w):
            y.grad_fn.register_hook(lambda inputs, _: seen.append(list(inputs)))
            start(y.sum())
    return seen


def a_hook_of_a_module_runs_once_in_a_second_backward_pass(lib: Any) -> Any:
    seen: list[Any] = []
    layer = lib.nn.Tanh()
    layer.register_full_backward_hook(lambda _, inputs, outputs: seen.append([*inputs, *outputs]))
    x = x3(lib)
    (grad,) = lib.autograd.grad(layer(x).sum(), x, create_graph=True)
    grad.sum().backward()
    return seen, x.grad


def a_hook_of_a_module_with_a_constant_input(lib: Any) -> Any:
    class Both(lib.nn.Module):
        def forward(self, a: Any, b: Any) -> Any:
            return a * b, a + b, b.requires_grad

    seen: list[Any] = []
    layer = Both()
    layer.register_full_backward_hook(lambda _, inputs, outputs: seen.append([*inputs, *outputs]))
    first, _, tracked = layer(x3(lib), lib.ones(3))
    first.sum().backward()
    return seen, tracked


def a_post_accumulate_hook_returns_something(lib: Any) -> Any:
    x = x3(lib)
    x.register_post_accumulate_grad_hook(lambda leaf: leaf.grad)
    x.sum().backward()


def _packed(lib: Any, operation: Callable[[Any, Any, Any], Any]) -> Any:
    """How often the hooks of saved tensors ran in the forward pass and in both passes, and the gradient."""
    calls = [0, 0]

    def count(which: int) -> Callable[[Any], Any]:
        def hook(tensor: Any) -> Any:
            calls[which] += 1
            return tensor

        return hook

    x, w = x3(lib), x3(lib)
    with lib.autograd.graph.saved_tensors_hooks(count(0), count(1)):
        y = operation(lib, x, w)
    before = list(calls)
    y.sum().backward()
    return before, calls, x.grad


PACKED: dict[str, Callable[[Any, Any, Any], Any]] = {
    "product": lambda lib, x, w: x * w,
    "product with a constant": lambda lib, x, w: x * lib.ones(3),
    "product with a number": lambda lib, x, w: x * 2,
    "quotient by a constant": lambda lib, x, w: x / lib.ones(3),
    "matrix and constant": lambda lib, x, w: x.reshape(1, 3) @ lib.ones(3, 1),
    "constant matrix and vector": lambda lib, x, w: lib.ones(3, 3) @ x,
    "batch norm": lambda lib, x, w: lib.nn.functional.batch_norm(x.reshape(3, 1), None, None, training=True),
    "binary cross entropy": lambda lib, x, w: lib.nn.functional.binary_cross_entropy_with_logits(x, lib.ones(3)),
    "in place": lambda lib, x, w: (x * 1).mul_(w),
    "lerp": lambda lib, x, w: x.lerp(w, 0.5),
}


@pytest.mark.parametrize("name", PACKED)
def test_how_often_hooks_of_saved_tensors_run(name: str) -> None:
    same(lambda lib: _packed(lib, PACKED[name]))


def packed_values_of_ones_own_function_keep_their_history(lib: Any) -> Any:
    class Square(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 2 * ctx.saved_tensors[0]

    x = x3(lib)
    with lib.autograd.graph.saved_tensors_hooks(lambda tensor: tensor, lambda tensor: tensor):
        y = Square.apply(x)
    (grad,) = lib.autograd.grad(y.sum(), x, create_graph=True)
    grad.sum().backward()
    return grad, x.grad


# saved tensors that are changed or detached


def changes_are_allowed(change: Callable[[Any], Any]) -> Program:
    def program(lib: Any) -> Any:
        with lib.autograd.graph.allow_mutation_on_saved_tensors():
            return change(lib)

    program.__name__ = f"{change.__name__} and that is allowed"
    return program


def input_is_changed(lib: Any) -> Any:
    x = x3(lib)
    y = x * 1
    z = y**2 + tripled(lib).apply(y)
    y.zero_()
    z.sum().backward()
    return x.grad


def output_is_changed(lib: Any) -> Any:
    x = x3(lib)
    y = x.exp()
    z = y.sum()
    y.mul_(3).sin_()
    z.backward()
    return x.grad


def constant_and_index_are_changed(lib: Any) -> Any:
    x, factor, index = x3(lib), lib.ones(3), lib.tensor([0, 1])
    mask = x > 1
    y = (x * factor)[index].sum() + lib.where(mask, x, -x).sum()
    factor.zero_(), index.zero_(), mask.zero_()
    y.backward()
    return x.grad


def changed_and_differentiated_twice(lib: Any) -> Any:
    x = x3(lib)
    y = x * 1
    z = y**3
    y.zero_()
    (grad,) = lib.autograd.grad(z.sum(), x, create_graph=True)
    grad.sum().backward()
    return grad, x.grad


def two_contexts_in_each_other(lib: Any) -> Any:
    with lib.autograd.graph.allow_mutation_on_saved_tensors():
        pass


def backward_after_leaving_the_context(lib: Any) -> Any:
    with lib.autograd.graph.allow_mutation_on_saved_tensors():
        y = (x3(lib) * 1) ** 2
    y.sum().backward()


def detached_in_place_after_it_was_saved(lib: Any) -> Any:
    y = x3(lib) * 2
    z = y * y
    y.detach_()
    z.sum().backward()


def detached_in_place_after_its_result_was_saved(lib: Any) -> Any:
    x = x3(lib)
    y = x.exp()
    z = (y * 2).sum()
    y.detach_()
    z.backward()
    return x.grad, y._version, y.requires_grad


def a_view_of_it_was_saved(lib: Any) -> Any:
    x = x3(lib)
    y = x * 1
    part = y[:2]
    z = part * part
    y.detach_()
    z.sum().backward()
    return x.grad


CHANGED_INDEX = {
    "rows": "y = X[k]; k.zero_()",
    "columns": "y = X[:, k]; k.zero_()",
    "a row and columns": "y = X[0, k]; k.zero_()",
    "mask": "y = X[b2]; b2.zero_()",
    "gather": "y = X.gather(1, k2); k2.zero_()",
    "index_select": "y = X.index_select(1, k); k.zero_()",
    "where": "y = lib.where(b2, X, -X); b2.zero_()",
    "masked_fill": "y = X.masked_fill(b2, 0.0); b2.zero_()",
    "masked_select": "y = X.masked_select(b2); b2.zero_()",
    "scatter": "y = X.scatter(1, k2, 0.0); k2.zero_()",
    "scatter_add": "y = X.scatter_add(1, k2, X[:, :2]); k2.zero_()",
    "embedding": "y = F.embedding(k, X); k.zero_()",
    "max": "y, place = X.max(1); place.zero_()",
    "sort": "y, place = X.sort(1); place.zero_()",
    "topk": "y, place = X.topk(2); place.zero_()",
    "written to rows": "y = X * 1; y[k] = 0.0; k.zero_()",
    "written to a mask": "y = X * 1; y[b2] = 0.0; b2.zero_()",
    "written to places": "y = X * 1; y[k, k] = x[:2]; k.zero_()",
    "changed once the graph was freed": "y = X[k]; y.sum().backward(); k.zero_()",
}


@pytest.mark.parametrize("name", CHANGED_INDEX)
def test_an_index_is_changed_after_it_was_saved(name: str) -> None:
    def names(lib: Any) -> dict[str, Any]:
        mask = lib.tensor([[True, False, True], [False, True, True]])
        return usual_names(lib) | {"k": lib.tensor([1, 1]), "k2": lib.tensor([[1, 2], [0, 1]]), "b2": mask}

    same(script(f"{CHANGED_INDEX[name]}; y.sum().backward(); X.grad", names))


# the rest


ROWS = """
x[[slice(None)]], X[[slice(None), [0, 2]]], X[[None, 0]], X[[..., 1]]
X[[[0, 1], [1, 2]]], X[[lib.tensor(0), lib.tensor(1)]], X[[np.array([0, 1]), (1, 2)]], X[[range(2), range(2)]]
X[[0, 1]], X[[True, False]], X[np.array([[0, 1], [1, 0]])], X[:, [[0, 1], [1, 0]]], X[[[0]] * 32].shape
m[[slice(None), [0, 2]]] = 0.0; m
x.numpy(force=True).tolist(), y.numpy(force=True).tolist()
lib.autograd.grad(f.sum(), x, materialize_grads=True)
lib.autograd.grad([f.sum(), x.sum()], [x], materialize_grads=True)
x.data = 3
x.data = i
f.data = i; f
x.data = d; x, x.requires_grad
lib.autograd.gradcheck(lambda a: a[a > 1], (d.requires_grad_(),))
lib.autograd.gradcheck(lambda a: a.repeat(1 if a[0] <= 1 else 2), (d.requires_grad_(),), raise_exception=False)
x[0].data.fill_(math.inf); x.logsumexp(0).backward(); x.grad
x.data.fill_(-math.inf); x.logsumexp(0).backward(); x.grad
X[0, 1].data.fill_(math.nan); [lib.autograd.grad(a.sum(), X) for a in (X.amax(1), X.amin(), X.aminmax()[1])]
X[0, 1].data.fill_(math.nan); [lib.autograd.grad(a.sum(), X) for a in (X.max(), X.min(1)[0], X.norm(math.inf, dim=1))]
x.amax().grad_fn.name(), x.max().grad_fn.name(), x.min().grad_fn.name(), s.amin().grad_fn.name()
w = lib.zeros(3, requires_grad=True); lib.div(x, w, rounding_mode="trunc").sum().backward(); x.grad, w.grad
[lib.div(x, f, rounding_mode=mode).grad_fn.name() for mode in ("trunc", "floor")]
lib.div(lib.tensor([7, -7, 2**62 + 1]), lib.tensor([2, 2, -1]), rounding_mode="trunc"), u.div(-1, rounding_mode="trunc")
(x // 2).sum().backward()
y = lib.no_grad()(lambda: (x.numpy().sum(), np.asarray(x).sum()))(); y
b.add(b, alpha=2), b.add(b, alpha=True), i.add(b, alpha=2)
b.median()
b.reshape(3, 1).median(0)
b.trace()
b.reshape(3, 1).trace()
lib.randn(2, "3")
lib.rand("3")
lib.ones(2, None)
lib.zeros(3.5)
lib.manual_seed(0); a = nn.Embedding.from_pretrained(m, padding_idx=0); a.weight, lib.rand(2)
[tuple(y.shape) for y in lib.autograd.functional.hvp(lambda a: (a**3).sum().reshape(1), f, f)]
o = lib.optim.SGD([x], lr=0.1); a = lib.optim.lr_scheduler.StepLR(o, 1); a.step(); a.step(); a.get_last_lr()
o = lib.optim.SGD([x], lr=0.1); a = lib.optim.lr_scheduler.StepLR(o, 1); o.step(); a.step(); a.get_last_lr()
a = lib.optim.SGD([{"params": x, "initial_lr": 1}], 1); lib.optim.lr_scheduler.CosineAnnealingLR(a, 5, 0, 0)._last_lr
a = lib.optim.SGD([{"params": [x], "initial_lr": 1}], 1); lib.optim.lr_scheduler.ExponentialLR(a, 0.5, 1).get_last_lr()
a = lib.optim.SGD([{"params": [x], "initial_lr": 1}], 1); lib.optim.lr_scheduler.StepLR(a, 2, 0.5, 1).get_last_lr()
e = lib.zeros(0, requires_grad=True); lib.cat([e, X, e], 1).sum().backward(); e.grad, X.grad
e = lib.zeros(0, requires_grad=True); lib.cat([lib.ones(2, 2), e]), lib.cat([e, i]), lib.cat([e, e])
lib.ones(3, dtype=lib.int16).sum_to_size(3), lib.ones(2, 3, dtype=lib.int16).sum_to_size(3), b.sum_to_size((3,))
"""


@pytest.mark.parametrize("row", ROWS.strip().splitlines())
def test_rows(row: str) -> None:
    same(script(row, usual_names))


def views_of_a_tensor_of_inference_mode(lib: Any) -> Any:
    x = x3(lib)
    with lib.inference_mode():
        a, part, doubled = lib.ones(3), x[:2], x * 2
    view = a[:2]
    return [(y.requires_grad, y.is_inference()) for y in (view, part, doubled)], view + x[:2]


def a_view_of_inference_mode_is_to_require_grad(lib: Any) -> Any:
    with lib.inference_mode():
        a = lib.ones(3)
    a.view(1, 3).requires_grad_()


def _saving(save: Callable[[Any, Any], Any]) -> Program:
    def program(lib: Any) -> Any:
        with lib.inference_mode():
            a, index = lib.ones(3), lib.tensor([0, 1])
        return save(lib, (a, index))

    return program


SAVING: dict[str, Callable[[Any, Any], Any]] = {
    "in a product": lambda lib, made: x3(lib) * made[0],
    "a view in a product": lambda lib, made: x3(lib) * made[0][:],
    "as an index": lambda lib, made: x3(lib)[made[1]],
    "in a function of one's own": lambda lib, made: tripled(lib).apply(x3(lib)) * made[0],
}


@pytest.mark.parametrize("name", SAVING)
def test_a_tensor_of_inference_mode_is_saved(name: str) -> None:
    same(_saving(SAVING[name]))


def marked_dirty(lib: Any, mark: Callable[[Any, Any, Any], None]) -> Any:
    class Marking(lib.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x * 2
            mark(ctx, x, y)
            return y

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return grad * 2

    x = x3(lib)
    y = Marking.apply(x * 1)
    y.sum().backward()
    return y, x.grad


def marked_dirty_what_is_no_input(lib: Any) -> Any:
    return marked_dirty(lib, lambda ctx, x, y: ctx.mark_dirty(y))


def marked_dirty_what_is_not_returned(lib: Any) -> Any:
    return marked_dirty(lib, lambda ctx, x, y: ctx.mark_dirty(x))


def tangent_of(forward: Callable[[Any, Any], Any], rule: Callable[[Any, Any], Any]) -> Program:
    """What a custom `jvp` makes of a tangent."""

    def program(lib: Any) -> Any:
        class Own(lib.autograd.Function):
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                return forward(ctx, x)

            @staticmethod
            def jvp(ctx: Any, tangent: Any) -> Any:
                return rule(lib, tangent)

        forward_ad = lib.autograd.forward_ad
        with forward_ad.dual_level():
            output = Own.apply(forward_ad.make_dual(lib.tensor([1.0, 2.0]), lib.tensor([3.0, 0.0])))
            return [forward_ad.unpack_dual(y).tangent for y in (output if isinstance(output, tuple) else (output,))]

    return program


def _double(ctx: Any, x: Any) -> Any:
    return x * 2


def _both(ctx: Any, x: Any) -> Any:
    return x * 2, (x * 3).long()


def _in_place(ctx: Any, x: Any) -> Any:
    ctx.mark_dirty(x)
    return x.mul_(2)


def _view(ctx: Any, x: Any) -> Any:
    return x.view_as(x)


TANGENTS: dict[str, Program] = {
    "of another shape": tangent_of(_double, lambda lib, t: lib.ones(3)),
    "a number": tangent_of(_double, lambda lib, t: 3),
    "too many": tangent_of(_double, lambda lib, t: (t, t)),
    "too few": tangent_of(_both, lambda lib, t: t),
    "of integers": tangent_of(_both, lambda lib, t: (t, t)),
    "none of integers": tangent_of(_both, lambda lib, t: (t, None)),
    "not changed in place": tangent_of(_in_place, lambda lib, t: t * 2),
    "changed in place": tangent_of(_in_place, lambda lib, t: t.mul_(2)),
    "no view": tangent_of(_view, lambda lib, t: t.clone()),
    "a view": tangent_of(_view, lambda lib, t: t.view_as(t)),
    "of what was returned as it is": tangent_of(lambda ctx, x: x, lambda lib, t: t),
}


@pytest.mark.parametrize("name", TANGENTS)
def test_tangents_of_ones_own_function(name: str) -> None:
    same(TANGENTS[name])


PROGRAMS: list[Program] = [
    types_of_nodes_have_their_names,
    parts_come_from_one_node,
    gradients_of_some_parts,
    a_node_is_called,
    a_node_is_called_without_a_gradient,
    a_node_is_called_with_a_number,
    a_node_is_called_that_was_freed,
    a_node_of_ones_own_is_called,
    hooks_of_parts_that_nobody_used,
    a_hook_replaces_a_gradient_that_is_not_there,
    a_hook_of_a_node_sees_no_unwanted_gradient,
    a_hook_of_a_module_runs_once_in_a_second_backward_pass,
    a_hook_of_a_module_with_a_constant_input,
    a_post_accumulate_hook_returns_something,
    packed_values_of_ones_own_function_keep_their_history,
    changes_are_allowed(input_is_changed),
    changes_are_allowed(output_is_changed),
    changes_are_allowed(constant_and_index_are_changed),
    changes_are_allowed(changed_and_differentiated_twice),
    changes_are_allowed(two_contexts_in_each_other),
    backward_after_leaving_the_context,
    detached_in_place_after_it_was_saved,
    detached_in_place_after_its_result_was_saved,
    a_view_of_it_was_saved,
    views_of_a_tensor_of_inference_mode,
    a_view_of_inference_mode_is_to_require_grad,
    marked_dirty_what_is_no_input,
    marked_dirty_what_is_not_returned,
]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("program", PROGRAMS, ids=title)
def test_the_same_as_in_pytorch(program: Program) -> None:
    same(program)
