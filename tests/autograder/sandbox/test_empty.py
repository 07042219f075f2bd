"""An empty array of a submission is equal to nothing that is not empty, and otherwise an array like any other."""

import copy
import inspect

import numpy as np
import pytest

from autograder.sandbox.empty import EmptyArray, empty_arrays_kept
from autograder.sandbox.process.limits import Limits, Refused
from autograder.sandbox.sandbox import Sandbox

pytestmark = pytest.mark.sandbox

WANT = np.array([1.0, 2.0, 3.0])
ANSWERS = """
import numpy as np
class Holder:
    def __array__(self, *a, **k): return np.zeros((0, 1))
class Special(np.ndarray): pass
def wide(*a): return np.zeros((0, 1, 1, 1, 1))
def column(*a): return np.zeros((0, 1))
def flat(*a): return np.zeros(0)
def rows(*a): return np.zeros((0, 3))
def words(*a): return np.zeros((0, 1), object)
def held(*a): return Holder()
def special(*a): return np.zeros((0, 1)).view(Special)
def same(x): return x
def append(x): return np.append(x, 7.0)
def kind(x): return type(x).__name__
"""


@pytest.fixture(scope="module")
def answers():
    with Sandbox(Limits()) as sandbox:
        sandbox.execute(ANSWERS)
        yield sandbox.lookup


def all_are(condition):
    assert np.all(condition)


@pytest.mark.parametrize("name", ["wide", "column", "rows", "words", "held", "special"])
@pytest.mark.parametrize(
    "compare",
    [
        lambda got: all_are(np.allclose(got, WANT)),
        lambda got: all_are(np.allclose(WANT, got)),
        lambda got: all_are(np.allclose(got, WANT.tolist())),
        lambda got: all_are(np.allclose(got, 4.0)),
        lambda got: all_are(np.allclose(4, got)),
        lambda got: all_are(np.isclose(got, WANT)),
        lambda got: np.testing.assert_allclose(got, WANT),
        lambda got: np.testing.assert_allclose(got, 4.0),
        lambda got: np.testing.assert_array_equal(got, 4.0),
        lambda got: np.testing.assert_almost_equal(got, 4.0),
        lambda got: np.testing.assert_array_less(got, 4.0),
        lambda got: np.testing.assert_equal(got, WANT),
        lambda got: all_are(got == WANT),
        lambda got: all_are(WANT == got),  # noqa: SIM300
        lambda got: all_are(got == [1.0, 2.0, 3.0]),
        lambda got: all_are(np.logical_not(got != WANT)),
        lambda got: all_are(np.equal(got, WANT)),
        lambda got: all_are(np.array_equal(got, WANT)),
        lambda got: all_are(np.abs(got - WANT).sum() < 1e-9),
        lambda got: all_are(np.abs(np.asarray(got) - WANT).sum() < 1e-9),
        lambda got: all_are(np.abs(np.array(got, float) - WANT).sum() < 1e-9),
        lambda got: all_are(np.abs(np.array([got, got]) - WANT).sum() < 1e-9),
        lambda got: all_are(np.linalg.norm(WANT - got) < 1e-9),
        lambda got: all_are(abs(got - 4.0) < 1e-9),
        lambda got: all_are(np.abs(got / WANT - 1).sum() < 1e-9),
        lambda got: all_are((got * 1.0 + 0)[:, ..., None].T == WANT),
        lambda got: all_are(np.stack([got, got]) == WANT),
        lambda got: all_are(np.subtract.outer(got, WANT) == 0.0),
        lambda got: all_are(got == pytest.approx(4.0)),
        lambda got: all_are(pytest.approx(4.0) == got),
        lambda got: all_are(got == pytest.approx(WANT)),
    ],
    ids=lambda compare: inspect.getsource(compare).split("lambda got: ")[1].strip().rstrip(",").removeprefix("all_are"),
)
def test_an_empty_answer_is_equal_to_nothing_that_is_not_empty(answers, name, compare):
    with empty_arrays_kept(), pytest.raises((Refused, AssertionError, ValueError, TypeError)):
        compare(answers(name)())


@pytest.mark.parametrize(
    "use",
    [
        lambda got: got.shape == (0, 3) and got.size == 0 and len(got) == 0 and got.ndim == 2 and got.dtype == float,
        lambda got: np.allclose(got, np.zeros((0, 3))) and np.allclose(np.zeros((0, 3)), got, atol=1e-9),
        lambda got: np.testing.assert_allclose(got, np.zeros((0, 3))) is None,
        lambda got: np.testing.assert_array_equal(got, got) is None,
        lambda got: np.array_equal(got, np.zeros((0, 3))) and not np.array_equal(got, WANT),
        lambda got: np.all(got == np.zeros((0, 3))) and np.all(got[:, 0] == []),
        lambda got: got.tolist() == [] and list(got) == [] and list(got.flat) == [] and got.ravel().tolist() == [],
        lambda got: np.all(got > 0) and (got >= 0.0).all() and not (got < 0).any() and np.all(got % 2 == 0),
        lambda got: got.sum() == 0.0 and np.all(got.sum(axis=0) == np.zeros(3)) and got.sum(axis=1).shape == (0,),
        lambda got: (got @ np.ones((3, 2)) + np.ones(2)).shape == (0, 2) and (2 * got + 1).shape == (0, 3),
        lambda got: np.concatenate([got, np.ones((2, 3))]).sum() == 6.0,
        lambda got: np.allclose(np.concatenate([got, np.ones((2, 3))]), 1.0),
        lambda got: got == pytest.approx(np.zeros((0, 3))),
        lambda got: isinstance(got, np.ndarray) and np.isnan(np.array(got)).sum() == 0,
        lambda got: repr(got.tolist()) == "[]" and f"{got}" == "[]",
        lambda got: copy.deepcopy(got).shape == got.copy().shape == got.astype(int).shape == (0, 3),
        lambda got: max(got.sum(axis=1), default=None) is None,
        lambda got: {"a": got}["a"] is got and hash(got.tobytes()) == hash(b""),
        lambda got: np.result_type(got, np.float32) == np.float64 and got.T.shape == (3, 0),
        lambda got: np.subtract(1.0, np.ones((0, 3)), out=got).shape == (0, 3),
        lambda got: np.random.default_rng(1).normal(size=got.shape).shape == (0, 3),
    ],
    ids=lambda use: inspect.getsource(use).split("lambda got: ")[1].strip().rstrip(","),
)
def test_otherwise_an_empty_answer_is_an_array_like_any_other(answers, use):
    with empty_arrays_kept():
        assert use(answers("rows")())
    assert use(np.zeros((0, 3)))


def test_an_empty_answer_may_be_given_back(answers):
    rows = answers("rows")()
    assert type(rows) is EmptyArray
    assert answers("kind")(rows) == "ndarray"
    assert answers("same")(rows) is rows
    assert answers("append")(rows).tolist() == [7.0]
    assert answers("append")([rows][0]).tolist() == [7.0]
    assert answers("same")([rows, 1])[0].shape == (0, 3)


def test_numpy_s_conversions_are_as_they_were():
    before = np.array, np.asarray
    with empty_arrays_kept():
        assert np.array([[1, 2]], dtype=float, ndmin=3).shape == (1, 1, 2)
        assert type(np.asarray(np.zeros((0, 2)))) is np.ndarray
    assert (np.array, np.asarray) == before
