"""Does every right answer pass, whatever its style, its formulas and its arithmetic? Twenty seeds, no alarm."""

import numpy as np
import pytest

from autograder.runs.context import check_context
from autograder.runs.engines import REFERENCE, TORCH
from autograder.student import between, check_function, check_gradients, check_handwritten_gradient
from tests.autograder import right_engines as right

pytestmark = pytest.mark.slow

SEEDS = range(20)

NUMBERS = {
    "operators": lambda a, b: 2 - a * b / (a * a + b) + a**3 * 0.5,
    "functions": lambda a, b: (a * b).tanh() * (a - b).exp() - (-a).relu(),
    "reused": lambda a, b: (lambda c: c * c + c.tanh() * a + c / b)(a + b),
    "canceling": lambda a, b: ((a * 1e5 + b) - a * 1e5) * a,
}
ARRAYS = {
    "broadcast": lambda a, b: (a * b - b).tanh() / (a * a + 1.5),
    "sums": lambda a, b: (a.relu() * b).sum() * 0.3 + (a * a).mean(),
    "softmax": lambda a, b: (a + b).softmax(-1) * a,
}
MATRICES = {"matrices": lambda a, b: (a @ b.T).tanh() @ b + a, "one unused": lambda a, b: a * a + a * 0.0}
SHAPES = [[(3, 4), (4,)], [(2, 1), (1, 3)]]


def test_there_are_many_right_answers():
    tables = (right.NUMBERS, right.ARRAYS, right.NARROW, right.FUNCTIONS, right.BY_HAND)
    assert sum(map(len, tables)) >= 40


@pytest.mark.parametrize("name", right.NUMBERS)
def test_engines_of_numbers(name):
    for seed in SEEDS:
        with check_context(seed):
            credit = check_gradients(
                NUMBERS, [between(0.4, 1.8), between(0.4, 1.8)], points=1, engine=right.NUMBERS[name]()
            )
        assert credit == 1, f"seed {seed}\n{credit.reports[0].text()}"


@pytest.mark.parametrize("name", [*right.ARRAYS, "the reference", "PyTorch"])
def test_engines_of_arrays(name):
    engine = {"the reference": REFERENCE, "PyTorch": TORCH}.get(name) or right.ARRAYS[name]
    for seed in SEEDS:
        with check_context(seed):
            credit = check_gradients(ARRAYS, SHAPES, points=1, engine=engine) if hasattr(engine, "softmax") else 1
            credit += check_gradients(MATRICES, [(2, 3), (2, 3)], points=1, engine=engine)
        assert credit == 2, f"seed {seed}\n{credit.reports[-1].text()}"


@pytest.mark.parametrize("name", right.NARROW)
def test_engines_of_float32_where_that_is_allowed(name):
    for seed in SEEDS:
        with check_context(seed):
            credit = check_gradients(ARRAYS, SHAPES[0], points=1, engine=right.NARROW[name], dtype="float32")
        assert credit == 1, f"seed {seed}\n{credit.reports[0].text()}"


@pytest.mark.parametrize("convention", right.KINKS)
def test_conventions_at_kinks(convention):
    """The slope of relu at 0, and which of two equal numbers is the largest, are only conventions."""
    engine = right.with_convention(*right.KINKS[convention])
    tied = np.array([[1.0, 2.0, 2.0], [0.5, -1.0, 0.5]])
    flat = np.array([[0.0, 1.0, -1.0], [2.0, 0.0, -0.5]])
    expressions = {
        "largest": lambda a, b: a.amax(-1) * 1.5,
        "relu": lambda a, b: b.relu() * a,
        "abs": lambda a, b: abs(b) * 2.0,
    }
    for seed in SEEDS:
        with check_context(seed):
            credit = check_gradients(expressions, [tied, flat], points=1, engine=engine)
        assert credit == 1, f"seed {seed}\n{credit.reports[0].text()}"


@pytest.mark.parametrize("name", right.FUNCTIONS)
def test_functions(name):
    function, reference, inputs = right.FUNCTIONS[name]
    for seed in SEEDS:
        with check_context(seed), np.errstate(all="ignore"):
            credit = check_function(function, reference, inputs, points=1)
        assert credit == 1, f"seed {seed}\n{credit.reports[0].text()}"


@pytest.mark.parametrize("name", right.BY_HAND)
def test_gradients_by_hand(name):
    function, expression, inputs = right.BY_HAND[name]
    for seed in SEEDS:
        with check_context(seed):
            credit = check_handwritten_gradient(function, expression, inputs, points=1)
        assert credit == 1, f"seed {seed}\n{credit.reports[0].text()}"
