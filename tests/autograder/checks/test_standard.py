"""Is no engine called wrong on the standard list for what is its design, and are its faults named?"""

import numpy as np

from autograder.checks.standard import try_engine
from autograder.student import Adapter
from tests.autograder import student_engines as numbers
from tests.autograder import student_engines_arrays as arrays


def cells(trial):
    return {row.name: row.cells for row in trial.rows}


class Plain:
    """Arrays without operators, in methods; backward goes along every path; its sums have the shape (1,)."""

    def __init__(self, data, inputs=(), rule=None):
        assert type(data) is np.ndarray, "arrays only"
        self.data, self.inputs, self.rule, self.grad = data, inputs, rule, None

    def add(self, other):
        assert self.data.shape == other.data.shape
        return Plain(self.data + other.data, (self, other), lambda g: (g, g))

    def mul(self, other):
        assert self.data.shape == other.data.shape
        return Plain(self.data * other.data, (self, other), lambda g: (g * other.data, g * self.data))

    def sum(self):
        return Plain(np.array([self.data.sum()]), (self,), lambda g: (g * np.ones_like(self.data),))

    def backward(self, allow_fill=True):
        assert self.data.size == 1
        self.push(np.ones_like(self.data))

    def push(self, grad):
        self.grad = grad if self.grad is None else self.grad + grad
        for source, share in zip(self.inputs, self.rule(grad) if self.rule else (), strict=True):
            source.push(share)


def test_an_engine_of_methods_whose_sums_are_arrays_of_one():
    trial = try_engine(Plain)
    table = cells(trial)
    for name in ("a + b", "a * b", "sum(a)", "c + c * a, where c = a * b"):
        assert table[name][:2] == ("right", "right"), name
    assert table["a + b"][2] == "-", "it does not stretch arrays"
    assert table["a = a + a, 25 times"][1] == "slow"
    assert any(note.startswith("slow: ") for note in trial.notes)
    assert trial.right, "its gradients are"
    assert not trial.reports


class Stretching(Plain):
    """Stretches its second operand only, and raises an error of NumPy's otherwise."""

    def add(self, other):
        stretched = np.broadcast_to(other.data, self.data.shape)
        axes = tuple(range(self.data.ndim - other.data.ndim))
        return Stretching(
            self.data + stretched, (self, other), lambda g: (g, g.sum(axis=axes).reshape(other.data.shape))
        )

    def mul(self, other):
        return Stretching(super().mul(other).data, (self, other), lambda g: (g * other.data, g * self.data))

    def sum(self):
        return Stretching(np.array([self.data.sum()]), (self,), lambda g: (g * np.ones_like(self.data),))


def test_stretching_that_an_engine_refuses_is_not_asked_of_it():
    trial = try_engine(Stretching)
    assert cells(trial)["a + b"][:3] == ("right", "right", "wrong"), "an axis of size 1 is not summed"
    assert "(1, 3)" not in trial.reports[0].text(), "both operands are stretched there"


class Sums(arrays.closures()):
    """A sum over the last axis by default, a logarithm with an epsilon, `T` as a method."""

    def log(self):
        return arrays.closures().log(self + 1e-6)

    @property
    def T(self):  # noqa: N802
        return lambda: None

    def __getitem__(self, index):
        raise IndexError("name every axis")


def test_other_meanings_and_an_epsilon_are_noted_and_not_wrong():
    trial = try_engine(Sums)
    table = cells(trial)
    assert table["log(a)"][0] == "near"
    assert table["a.T"][0] == "other"
    assert "a[0]" not in table
    assert trial.right


def test_one_card_for_one_mistake():
    trial = try_engine(numbers.closures(("operands_swapped", "*")))
    assert not trial.right
    assert [report.bugs for report in trial.reports] == [("operands_swapped",)]
    assert cells(trial)["a + b"] == ("right", "right", "-", "right", "right", "recursion")


def test_functions_beside_the_class_and_in_an_adapter_are_tried():
    engine = numbers.closures()
    tanh = engine.tanh
    del engine.tanh
    assert "tanh(a)" not in cells(try_engine(engine))
    assert cells(try_engine(engine, {"tanh": tanh}))["tanh(a)"][:2] == ("right", "right")
    assert cells(try_engine(Adapter(engine, operations={"tanh": tanh})))["tanh(a)"][:2] == ("right", "right")
