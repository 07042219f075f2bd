"""The engine's structure: what can be replaced, what is imported, and what belongs to a thread."""

import importlib
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mini_autograd as ma
from mini_autograd import operations
from mini_autograd.graph import backward as engine
from mini_autograd.graph.function import Function
from mini_autograd.numerics import arrays
from mini_autograd.operations.pointwise import elementwise, mathematical

PACKAGE = Path(ma.__file__).parent
ROOMS = ("numerics", "graph", "operations", "tensors", "autograd")
ENGINE_FILES = [
    *PACKAGE.glob("*.py"),
    *(
        file
        for room in ("numerics", "graph", "operations", "tensors", "autograd")
        for file in (PACKAGE / room).rglob("*.py")
    ),
]


def gradient_of_product() -> float:
    x = ma.tensor(3.0, requires_grad=True)
    (x * x + x).backward()
    assert x.grad is not None
    return x.grad.item()


def test_a_rule_can_be_exchanged_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    def swapped(ctx: Any, grad: Any) -> Any:
        a, b = ctx.saved_tensors
        return grad * a, grad * b * 0

    monkeypatch.setattr(elementwise.Multiply, "backward", staticmethod(swapped))
    assert gradient_of_product() == 4.0
    monkeypatch.undo()
    assert gradient_of_product() == 7.0


def assigning(pending: Any, node: Any, grad: Any) -> None:
    pending[node] = grad


EXCHANGED = {
    "accumulate": (engine, assigning, 3.0),
    "accumulate_leaf": (engine, lambda tensor, grad: setattr(tensor, "grad", ma.tensor(100.0)), 100.0),
    "sum_to": (arrays, lambda grad, shape: grad.reshape(-1)[0].reshape(shape), None),
    "topological_order": (engine, lambda root: [root], None),
}


@pytest.mark.parametrize("name", EXCHANGED)
def test_engine_functions_are_looked_up_when_called(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    owner, replacement, expected = EXCHANGED[name]
    monkeypatch.setattr(owner, name, replacement)
    if expected is not None:
        assert gradient_of_product() == expected
    elif name == "sum_to":
        b = ma.tensor(0.0, requires_grad=True)
        (ma.ones(5) + b).sum().backward()
        assert b.grad is not None
        assert b.grad.item() == 1.0
    else:
        x = ma.tensor(1.0, requires_grad=True)
        x.exp().backward()
        assert x.grad is None


def test_broadcasting_is_undone_in_one_place() -> None:
    calls = [file.name for file in ENGINE_FILES for _ in range(file.read_text().count("sum_to(grad"))]
    assert sorted(calls) == ["arrays.py", "backward.py"]  # its definition, and the one call


def test_topological_order_puts_every_node_before_its_inputs() -> None:
    x, y = ma.tensor(1.0, requires_grad=True), ma.tensor(2.0, requires_grad=True)
    a = x * y
    b = a.exp() + x
    c = b * a
    order = engine.topological_order(c.grad_fn)
    position = {node: index for index, node in enumerate(order)}
    assert order[0] is c.grad_fn
    assert len(position) == len(order) == 6
    assert all(position[node] < position[below] for node in order for below, _ in node.next_functions if below)


def test_operations_say_what_they_do() -> None:
    for operation in operations.ALL:
        assert issubclass(operation, Function)
        assert operation.__doc__
        assert not hasattr(operation(), "__dict__"), f"{operation.__qualname__} is not slotted"


def test_import_needs_numpy_only() -> None:
    heavy = ("torch", "scipy", "IPython", "ipywidgets", "anywidget", "traitlets", "autograder", "matplotlib", "json")
    code = f"import sys, mini_autograd; print([m for m in {heavy} if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_files_stay_short() -> None:
    assert max(len(file.read_text().splitlines()) for file in ENGINE_FILES) <= 500


def test_grad_mode_belongs_to_the_thread() -> None:
    states = []
    with ma.no_grad():
        thread = threading.Thread(target=lambda: states.append(ma.is_grad_enabled()))
        thread.start()
        thread.join()
        states.append(ma.is_grad_enabled())
    assert states == [True, False]


def test_threads_can_walk_one_graph_each() -> None:
    results = [0.0] * 4

    def work(index: int) -> None:
        for _ in range(50):
            x = ma.tensor(np.full(3, index + 1.0), requires_grad=True)
            (x * x).sum().backward()
            assert x.grad is not None
            results[index] = x.grad.numpy()[0]

    threads = [threading.Thread(target=work, args=(index,)) for index in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [2.0, 4.0, 6.0, 8.0]


def test_inputs_are_never_modified() -> None:
    array = np.arange(6.0).reshape(2, 3)
    x = ma.from_numpy(array).requires_grad_()
    (((x * x + x) / (x + 1)).exp().tanh() @ x.T).mean().backward()
    np.testing.assert_array_equal(array, np.arange(6.0).reshape(2, 3))


def test_a_function_given_arrays_gives_an_array() -> None:
    assert isinstance(mathematical.Tanh.apply(np.ones(3)), np.ndarray)
    assert isinstance(ma.transpose(np.ones((2, 3)), 0, 1), np.ndarray)


def test_anybody_may_note_something_at_a_node() -> None:
    node = ma.tensor(1.0, requires_grad=True).exp().grad_fn
    node.metadata["seen"] = True
    assert node.metadata == {"seen": True}


@pytest.mark.parametrize("package", [ma, ma.autograd], ids=["mini_autograd", "autograd"])
def test_what_is_imported_on_demand_is_offered_like_the_rest(package: Any) -> None:
    assert package.ON_DEMAND.keys() <= set(dir(package))
    for name in package.ON_DEMAND:
        assert getattr(package, name) is getattr(package, name)
    with pytest.raises(AttributeError, match="has no attribute 'gradchek'"):
        _ = package.gradchek


@pytest.mark.parametrize("name", ["forward_ad", "function", "functional", "graph"])
def test_modules_of_torch_autograd_are_imported_by_their_names(name: str) -> None:
    module = importlib.import_module(f"mini_autograd.autograd.{name}")
    assert module is getattr(ma.autograd, name)
    theirs = importlib.import_module(f"torch.autograd.{name}")
    assert module.__all__
    assert set(module.__all__) <= set(dir(theirs))
