"""Does each bug change the engine while it is planted, and leave no trace afterwards?"""

import numpy as np
import pytest

import mini_autograd as ma
from autograder.bugs.bank import BUGS, bug
from autograder.runs.inputs import cases_of
from autograder.runs.methods import reference_methods
from autograder.runs.reference_patch import COMPOSED, OPERATIONS, composed_arithmetic, disturbed
from mini_autograd.graph import backward, grad_mode
from mini_autograd.graph.function import Function
from mini_autograd.numerics import arrays
from mini_autograd.tensors.tensor import Tensor
from tests.autograder.bugs import planted

PROGRAMS = [
    (expression, case)
    for check in planted.CHECKS.values()
    for expression in check.expressions.values()
    for case in cases_of(check.inputs)
]


def leaves(expression, case):
    generator = np.random.default_rng(3)
    arrays = [spec.draw(generator) for spec in case[: expression.__code__.co_argcount]]
    return [ma.tensor(array, dtype=ma.float64, requires_grad=True) for array in arrays]


def gradients(expression, case):
    """The gradients of an expression, twice over the same leaves, and then the leaves' data."""
    inputs = leaves(expression, case)
    for _ in range(2):
        out = expression(*inputs)
        out.backward(ma.tensor((1.0 + np.arange(out.data.numpy().size)).reshape(out.shape) ** 2, dtype=ma.float64))
    found = [np.array(leaf.grad.data if leaf.grad is not None else 0.0) for leaf in inputs]
    return [*found, *(np.array(leaf.data) for leaf in inputs)]


def operations_in(expression, case):
    return {type(node).__qualname__ for node in backward.reachable(expression(*leaves(expression, case)).gradient_edge)}


def state():
    rules = {name: (vars(op).get("forward"), vars(op).get("backward")) for name, op in OPERATIONS.items()}
    names = ("send", "accumulate", "accumulate_leaf", "own", "topological_order", "fitted", "run_backward")
    engine = {name: vars(backward)[name] for name in names}
    operators = {name: vars(Tensor)[name] for name in (*COMPOSED, "grad")}
    modes = {name: vars(grad_mode.no_grad).get(name) for name in ("entered", "__exit__")}
    return rules, engine, operators, modes, vars(Function)["release"], vars(Function)["connect"], arrays.sum_to


def same(found, right):
    return found.shape == right.shape and found.dtype == right.dtype and np.allclose(found, right, equal_nan=True)


def agree(right):
    """Whether the gradients of these programs are the right ones."""
    try:
        return all(all(map(same, gradients(*program), arrays)) for program, arrays in right)
    except (ValueError, RuntimeError, IndexError):
        return False  # shapes that do not fit show a bug as well


@pytest.fixture(scope="module")
def right():
    """The operations and the gradients of each program, before anything was planted."""
    with reference_methods():
        yield [(operations_in(*program), program, gradients(*program)) for program in PROGRAMS]


@pytest.mark.slow
@pytest.mark.parametrize("entry", BUGS, ids=lambda entry: entry.name)
def test_bug_changes_gradients_while_planted_only(entry, right):
    before = state()
    for variant in entry.variants(entry.operations):
        where = set(variant.operations or entry.operations)
        concerned = [(program, arrays) for operations, program, arrays in right if operations & where]
        with variant.plants[0]():
            shown = not agree(concerned)
        assert shown or (variant.operations and where != set(entry.operations)), variant
        assert state() == before
    assert agree(concerned)


def test_bug_goes_when_something_raises():
    before = state()
    with pytest.raises(ZeroDivisionError), bug("sign_lost").planted(), composed_arithmetic(), disturbed(1e-9, None):
        raise ZeroDivisionError
    assert state() == before


def test_bug_in_one_operation_leaves_the_others_alone():
    a, b = (ma.tensor(value, dtype=ma.float64, requires_grad=True) for value in (2.0, 3.0))
    with bug("operands_swapped").planted("Multiply"):
        (a - b + a * b).backward()
    assert (a.grad.item(), b.grad.item()) == (1 + 2, -1 + 3)


def test_composed_arithmetic_agrees(right):
    with composed_arithmetic():
        for _, program, arrays in right:
            assert all(np.allclose(g, r, rtol=1e-12) for g, r in zip(gradients(*program), arrays, strict=True))


def test_every_bug_has_its_words():
    assert len(BUGS) >= 60
    assert len({entry.name for entry in BUGS}) == len({entry.explanation for entry in BUGS}) == len(BUGS)
    for entry in BUGS:
        assert entry.name.replace("_", "").isalnum()
        assert entry.name.islower()
        for text in (entry.family, entry.explanation, entry.hint, entry.misconception):
            assert text
            assert "!" not in text
        assert entry.hint[-1] in ".?"
        assert entry.explanation[-1] != "."
        assert set(entry.operations) <= set(OPERATIONS)
        assert entry.operations


def test_examples_are_of_the_operation_that_is_wrong():
    for entry in BUGS:
        assert set(entry.examples) <= set(entry.operations)
    wrong_output = bug("input_used_for_output")
    assert wrong_output.explained(("Exp",)).endswith("(exp(x), not x)")
    assert wrong_output.explained(("Exp", "Tanh")) == wrong_output.explained() == wrong_output.explanation
