"""Does each bug change the engine while it is planted, and leave no trace afterwards?"""

from functools import cache

import numpy as np
import pytest

import mini_autograd as ma
from autograder.bugs.bank import BUGS, bug
from autograder.runs.reference_patch import OPERATIONS, OPERATOR_DECOMPOSITIONS, arithmetic, disturbed
from mini_autograd.graph import backward, grad_mode
from mini_autograd.graph.function import Function
from mini_autograd.nn import functional
from mini_autograd.numerics import arrays
from mini_autograd.tensors.tensor import Tensor


def kept_columns(x):
    """The leaky relu and then the dropout of a matrix, with the same elements dropped at every call."""
    ma.manual_seed(5)
    return functional.dropout(functional.leaky_relu(x, 0.01), 0.4)


def diamonds(shared, a):
    return (shared + shared.tanh()) @ a + (-shared).exp() ** 2 * shared


EXPRESSIONS = (
    lambda a, b, v, c: a * b - a / b + v - v[0],
    lambda a, b, v, c: ((a + a.tanh()) @ b + (-b).exp() ** 3 * a) @ v,
    lambda a, b, v, c: (a.sigmoid() + (a * a).sqrt() + b.cos()) * (b * b).log() + b.sin() * a.abs(),
    lambda a, b, v, c: a + v.reshape(3, 1) - (v[:1] * b).relu() + ma.stack([a, b]) @ b,
    lambda a, b, v, c: a.sum(1) * b.mean(0) + a.reshape(3, 3).T.mean() + ma.maximum(a, b).sum(0) * ma.minimum(v, v * v),
    lambda a, b, v, c: a.amax(1) * b.amin(0) + ma.cat([v, v]).amax() + ma.stack([v, v]).amax(0),
    lambda a, b, v, c: ma.stack([a, b]).permute(2, 0, 1) * ma.cat([a, b])[:2].reshape(3, 2, 1)[[0, 0, 2]],
    lambda a, b, v, c: (
        a.flip(0) * b.roll(1, 1)
        + ma.where(b > 0, a, b)
        + ma.cat([a, b]).sort(0).values.cumsum(1)[1:4] * a.max(0).values
    ),
    lambda a, b, v, c: kept_columns(a) + b.softmax(1) + a.log_softmax(0) + (a.exp().relu() * a) + a.T,
    lambda a, b, v, c: functional.layer_norm(a, (3,)) * functional.batch_norm(b, None, None, training=True),
    lambda a, b, v, c: functional.cross_entropy(a[:2], ma.tensor([0, 2])) * v + functional.mse_loss(a, b),
    lambda a, b, v, c: functional.embedding(ma.tensor([1, 1, 0]), a) * b,
    lambda a, b, v, c: a.exp().relu() + a.tanh() * b.exp().log(),
    lambda a, b, v, c: v.tanh() + (v + a[0]).exp() + c * a,
    lambda a, b, v, c: a + b,
    lambda a, b, v, c: diamonds(a * b - a / b, a),
)


def leaves():
    return (
        ma.tensor(np.array([[0.5, -1.5, 0.3], [2.0, 0.7, -0.6], [0.9, 1.1, -1.3]]), requires_grad=True),
        ma.tensor(np.array([[1.2, 0.4, -0.8], [0.3, 0.9, 1.7], [-0.5, 0.6, 1.4]]), requires_grad=True),
        ma.tensor(np.array([1.3, -0.7, 0.2]), requires_grad=True),
        ma.tensor(np.array([[0.8], [-1.2], [0.4]]), requires_grad=True),
    )


def gradients(expressions=EXPRESSIONS):
    """Gradients of expressions in which every bug shows, twice over the same leaves, and then the leaves' data."""
    found = []
    for expression in expressions:
        inputs = leaves()
        for _ in range(2):
            out = expression(*inputs)
            out.backward(ma.tensor((1.0 + np.arange(out.data.numpy().size)).reshape(out.shape) ** 2, dtype=ma.float64))
        found += [np.array(leaf.grad.data if leaf.grad is not None else 0.0) for leaf in inputs]
        found += [np.array(leaf.data) for leaf in inputs]
    return found


@cache
def operations_in(expression):
    return {type(node).__qualname__ for node in backward.reachable(expression(*leaves()).gradient_edge)}


def expressions_with(operations):
    """Those that a bug in these operations can change; all of them for a bug that sits in none."""
    return [each for each in EXPRESSIONS if not operations or operations_in(each).intersection(operations)]


def state():
    rules = {name: (vars(op).get("forward"), vars(op).get("backward")) for name, op in OPERATIONS.items()}
    names = ("send", "accumulate", "accumulate_leaf", "own", "topological_order", "fitted", "run_backward")
    engine = {name: vars(backward)[name] for name in names}
    operators = {name: vars(Tensor)[name] for name in (*OPERATOR_DECOMPOSITIONS[-1], "grad")}
    modes = {name: vars(grad_mode.no_grad).get(name) for name in ("entered", "__exit__")}
    return rules, engine, operators, modes, vars(Function)["release"], vars(Function)["connect"], arrays.sum_to


def same(found, right):
    return found.shape == right.shape and found.dtype == right.dtype and np.allclose(found, right, equal_nan=True)


@pytest.fixture(scope="module")
def right():
    """The gradients of each expression, before anything was planted."""
    return {expression: gradients([expression]) for expression in EXPRESSIONS}


@pytest.mark.slow
@pytest.mark.parametrize("planted", BUGS, ids=lambda entry: entry.name)
def test_bug_changes_gradients_while_planted_only(planted, right):
    before = state()
    for variant in planted.variants(planted.operations):
        expressions = expressions_with(variant.operations)
        right_here = [array for each in expressions for array in right[each]]
        with variant.plants[0]():
            try:
                wrong = gradients(expressions)
            except (ValueError, RuntimeError, IndexError):
                wrong = None  # shapes that do not fit show a bug as well
            changed = wrong is None or not all(map(same, wrong, right_here))
        if set(variant.operations) == set(planted.operations) or not variant.operations:
            assert changed, variant
        assert state() == before
    assert all(map(same, gradients(), [array for each in EXPRESSIONS for array in right[each]]))


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


@pytest.mark.parametrize("decomposition", range(len(OPERATOR_DECOMPOSITIONS)))
def test_operator_decompositions_agree(decomposition):
    right = gradients()
    with arithmetic(decomposition):
        assert all(np.allclose(g, r, rtol=1e-12) for g, r in zip(gradients(), right, strict=True))


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
