"""Does each bug change the engine while it is planted, and leave no trace afterwards?"""

import numpy as np
import pytest

import mini_autograd as ma
from autograder.bugs.bank import BUGS, bug
from autograder.bugs.planting import DIALECTS, OPERATIONS, arithmetic, disturbed
from mini_autograd import arrays, backward
from mini_autograd.tensor import Tensor


def gradients():
    """Of an expression in which every bug of the bank shows, twice over the same leaves."""
    a = ma.tensor(np.array([[0.5, -1.5], [2.0, 0.7]]), requires_grad=True)
    b = ma.tensor(np.array([1.2, 0.4]), requires_grad=True)
    for _ in range(2):
        c = a * b - a / b
        d = (c + c.tanh()) @ a + (-c).exp() ** 2 * c
        d.backward(ma.tensor(np.array([[1.0, -2.0], [0.5, 3.0]])))
    return [np.array(leaf.grad.data if leaf.grad is not None else 0.0) for leaf in (a, b)]


def state():
    rules = {name: (vars(op).get("forward"), vars(op).get("backward")) for name, op in OPERATIONS.items()}
    engine = {name: vars(backward)[name] for name in ("send", "accumulate", "accumulate_leaf", "topological_order")}
    operators = {name: vars(Tensor)[name] for name in DIALECTS[-1]}
    return rules, engine, operators, arrays.sum_to


@pytest.mark.parametrize("planted", BUGS, ids=lambda entry: entry.name)
def test_bug_changes_gradients_while_planted_only(planted):
    right, before = gradients(), state()
    with planted.planted():
        wrong = gradients()
    assert any(w.shape != r.shape or not np.allclose(w, r) for w, r in zip(wrong, right, strict=True))
    assert state() == before
    assert all(np.array_equal(again, r) for again, r in zip(gradients(), right, strict=True))


def test_bug_goes_when_something_raises():
    before = state()
    with pytest.raises(ZeroDivisionError), bug("sign_lost").planted(), arithmetic(3), disturbed(1e-9, None):
        raise ZeroDivisionError
    assert state() == before


def test_bug_in_one_operation_leaves_the_others_alone():
    a, b = (ma.tensor(value, dtype=ma.float64, requires_grad=True) for value in (2.0, 3.0))
    with bug("operands_swapped").planted("Multiply"):
        (a - b + a * b).backward()
    assert (a.grad.item(), b.grad.item()) == (1 + 2, -1 + 3)


@pytest.mark.parametrize("dialect", range(len(DIALECTS)))
def test_dialects_of_arithmetic_agree(dialect):
    right = gradients()
    with arithmetic(dialect):
        assert all(np.allclose(g, r, rtol=1e-12) for g, r in zip(gradients(), right, strict=True))
