"""How large a graph may be and how it ends: deep chains, small stacks, and nothing left for the garbage collector."""

import gc
import sys
import threading
import tracemalloc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mini_autograd as ma
from mini_autograd.autograd import forward_ad
from mini_autograd.utils.checkpoint import checkpoint

DEEP = 100_000
SMALL_STACK = (256 if sys.version_info < (3, 13) else 1024) * 1024
"""Python 3.13.0 itself crashes when a long chain of any objects is dropped on less than a megabyte of stack."""


def chain(length: int) -> tuple[ma.Tensor, ma.Tensor]:
    x = ma.tensor(1.0, dtype=ma.float64, requires_grad=True)
    y = x
    for _ in range(length // 2):
        y = y * 1.00001 + 0.0
    return x, y


def forward_and_backward() -> None:
    x, y = chain(DEEP)
    y.backward()
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.item(), 1.00001 ** (DEEP // 2), rtol=1e-9)


def dropped_without_backward() -> None:
    chain(DEEP)


def dropped_after_a_retained_pass() -> None:
    _, y = chain(DEEP)
    y.backward(retain_graph=True)
    del y


def changed_in_place() -> None:
    x = ma.tensor([1.0, 2.0], dtype=ma.float64, requires_grad=True)
    y = x * 1.0
    for _ in range(DEEP // 20):
        y.mul_(1.00001)
        y[0].add_(0.0)
    y.sum().backward()
    assert x.grad is not None


def twice_differentiated() -> None:
    x = ma.tensor(0.5, dtype=ma.float64, requires_grad=True)
    y = x
    for _ in range(5_000):
        y = (y * y + 0.25) * 0.9
    (first,) = ma.autograd.grad(y, x, create_graph=True)
    first.backward()


def wanted_gradient_of_a_deep_input() -> None:
    x, y = chain(DEEP)
    assert ma.autograd.grad(y, x)[0].shape == ()


PROGRAMS = [
    forward_and_backward,
    dropped_without_backward,
    dropped_after_a_retained_pass,
    changed_in_place,
    twice_differentiated,
    wanted_gradient_of_a_deep_input,
]


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
@pytest.mark.parametrize("stack", [None, SMALL_STACK], ids=["main thread", "thread with a small stack"])
def test_depth_is_no_limit(program: Callable[[], None], stack: int | None) -> None:
    if stack is None:
        program()
        return
    errors: list[BaseException] = []

    def run() -> None:
        try:
            program()
        except BaseException as error:
            errors.append(error)

    before = threading.stack_size(stack)
    try:
        thread = threading.Thread(target=run)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    assert not errors


def test_a_wide_graph_is_walked_once() -> None:
    """Sixty doublings make 2**60 paths; each node is visited once."""
    x = ma.tensor(1.0, dtype=ma.float64, requires_grad=True)
    y = x
    for _ in range(60):
        y = y + y
    y.backward()
    assert x.grad is not None
    assert x.grad.item() == 2.0**60


def training_step(w: ma.Tensor, b: ma.Tensor, x: ma.Tensor) -> None:
    hidden = (x @ w + b).tanh()
    hidden.retain_grad()
    loss = ((hidden[:, [0, 1, 1]] - 1.0) ** 2).mean()
    loss.backward()
    with ma.no_grad():
        for parameter in (w, b):
            assert parameter.grad is not None
            parameter.data = parameter - parameter.grad * 0.1
            parameter.grad = None


def penalty_step(w: ma.Tensor, b: ma.Tensor, x: ma.Tensor) -> None:
    y = (x @ w + b).exp().sum()
    (slope,) = ma.autograd.grad(y, w, create_graph=True)
    (slope * slope).sum().backward()
    w.grad = b.grad = None


class Square(ma.Function):
    @staticmethod
    def forward(ctx: Any, x: ma.Tensor) -> ma.Tensor:
        output = x * x
        ctx.save_for_backward(x, output)
        return output

    @staticmethod
    def backward(ctx: Any, grad: ma.Tensor) -> ma.Tensor:
        return grad * 2 * ctx.saved_tensors[0]


def custom_step(w: ma.Tensor, b: ma.Tensor, x: ma.Tensor) -> None:
    Square.apply(w).sum().backward()
    w.grad = None


def failing_step(w: ma.Tensor, b: ma.Tensor, x: ma.Tensor) -> None:
    y = (w * w).sum()
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def in_place_step(w: ma.Tensor, b: ma.Tensor, x: ma.Tensor) -> None:
    hidden = x @ w
    hidden.retain_grad()
    hidden += b
    hidden[:, 0].add_(hidden[:, 1])
    rows = ma.zeros(5, 3, dtype=ma.float64)
    for row in range(5):
        rows[row] = hidden[row].add_(1.0)
    (rows.T.reshape(-1)[1:] * 2.0).sum().backward()
    with ma.no_grad():
        for parameter in (w, b):
            parameter -= 0.001 * parameter.grad  # type: ignore[operator]
            parameter.detach().zero_()
            parameter.grad = None


def hooked_step(w: ma.Tensor, b: ma.Tensor, x: ma.Tensor) -> None:
    handle = w.register_hook(lambda grad: grad * 2)
    after = b.register_post_accumulate_grad_hook(lambda leaf: None)
    hidden = x @ w + b
    hidden.register_hook(lambda grad: grad + 1)
    with ma.autograd.graph.saved_tensors_hooks(lambda t: t.detach().numpy(), ma.from_numpy):
        loss = (hidden * hidden).tanh().sum()
    loss.backward()
    handle.remove()
    after.remove()
    w.grad = b.grad = None


def recomputing_step(w: ma.Tensor, b: ma.Tensor, x: ma.Tensor) -> None:
    checkpoint(lambda data: (data @ w + b).tanh().exp(), x, use_reentrant=False).sum().backward()
    w.grad = b.grad = None


def forward_mode_step(w: ma.Tensor, b: ma.Tensor, x: ma.Tensor) -> None:
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(w, ma.ones_like(w))
        assert forward_ad.unpack_dual((x @ dual + b).tanh().sum()).tangent is not None


STEPS = [training_step, penalty_step, custom_step, failing_step]
STEPS += [in_place_step, hooked_step, recomputing_step, forward_mode_step]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_fifty_steps_leave_nothing_behind(step: Callable[..., None]) -> None:
    """With the collector off, only reference counting frees memory: nothing of a step may be in a cycle."""
    parameters = ma.tensor(np.ones((4, 3)), requires_grad=True), ma.tensor(np.ones(3), requires_grad=True)
    x = ma.tensor(np.ones((5, 4)))
    step(*parameters, x)
    while gc.collect():  # garbage of other tests: freeing one object may make garbage of others
        pass
    gc.disable()
    try:
        before = len(gc.get_objects())
        for _ in range(50):
            step(*parameters, x)
        grown = len(gc.get_objects()) - before
        assert grown < 50, f"{grown} objects after 50 steps"
        if step is not failing_step:  # an exception and its traceback refer to each other
            assert gc.collect() == 0
    finally:
        gc.enable()


def test_a_graph_ends_with_its_last_tensor() -> None:
    x = ma.tensor([1.0, 2.0], requires_grad=True)
    y = x.exp()
    middle = weakref.ref(y)
    z = y * 2
    del y
    assert middle() is None, "the graph holds nodes, not tensors"
    node = weakref.ref(z.grad_fn.next_functions[0][0].next_functions[0][0])  # the accumulator of x
    assert node() is not None
    del z
    assert node() is None


def test_backward_frees_saved_arrays() -> None:
    x = ma.tensor(np.ones(1000), requires_grad=True)
    y = x.exp()
    saved = weakref.ref(y.array)
    z = y.sum()
    del y
    assert saved() is not None
    z.backward()
    assert saved() is None


def test_a_leaf_that_only_the_graph_holds_still_gets_its_gradient() -> None:
    y = ma.tensor(3.0, requires_grad=True) * 2
    y.backward()
    leaf = y.grad_fn.next_functions[0][0].variable
    assert leaf.grad.item() == 2.0


def test_memory_of_a_chain() -> None:
    """A recorded operation on a number costs well under a kilobyte."""
    tracemalloc.start()
    kept = chain(10_000)
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size / 10_000 < 700
    assert sys.getsizeof(kept[1].grad_fn) < 200


def test_a_checkpoint_keeps_only_its_arguments() -> None:
    """The intermediate arrays are gone until the backward pass, and the gradients are the same to the last bit."""

    def layers(x: ma.Tensor) -> ma.Tensor:
        for _ in range(10):
            x = (x * x).tanh().exp()
            seen.append(weakref.ref(x.array))
        return x

    gradients = []
    for run in (layers, lambda x: checkpoint(layers, x, use_reentrant=False)):
        seen: list[Any] = []
        x = ma.tensor(np.linspace(0.1, 0.9, 1000), requires_grad=True)
        output = run(x)
        alive = sum(array() is not None for array in seen)
        assert alive == (10 if run is layers else 1)
        output.sum().backward()
        assert x.grad is not None
        gradients.append(x.grad.numpy())
    np.testing.assert_array_equal(*gradients)


@pytest.mark.slow
def test_a_million_operations() -> None:
    x, y = chain(1_000_000)
    y.backward()
    assert x.grad is not None
