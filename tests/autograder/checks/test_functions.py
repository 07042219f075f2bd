"""Do checks of plain functions and of gradients by hand pass what is right, and say what is wrong with the rest?"""

import math

import numpy as np
import pytest

from autograder.checks.context import check_context
from autograder.student import LessonError, between, check_function, check_handwritten_gradient, positive


def cubes(x):
    return (x**3).sum()


def by_differences(f, x, h=1e-5):
    x = np.array(x, dtype=float)
    gradient = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[index] += h
        down[index] -= h
        gradient[index] = (f(up) - f(down)) / (2 * h)
    return gradient


def changes_its_input(f, x):
    gradient = by_differences(f, x)
    x += 1
    return gradient


def unfinished(f, x):
    raise NotImplementedError


def slope(f, x):
    return 3 * x**2


CASES = [[cubes, (3,)], [cubes, (2, 3)], [cubes, ()]]
WRONG = {
    "stub": (unfinished, "not written yet"),
    "zeros": (lambda f, x: np.zeros(np.shape(x)), "expected"),
    "None": (lambda f, x: None, "None"),
    "wrong shape": (lambda f, x: np.zeros(7), "wrong shape: expected (3,), got (7,)"),
    "input changed": (changes_its_input, "`x` was changed"),
    "a list": (lambda f, x: [1.0], "list"),
    "text": (lambda f, x: "3", "str"),
    "nan": (lambda f, x: x * math.nan, "nan"),
    "error": (lambda f, x: 1 / 0, "ZeroDivisionError"),
    "exit": (lambda f, x: exit(0), "SystemExit"),
    "no function": (3, "TypeError"),
}


def test_numerical_gradient_passes():
    for seed in range(5):
        with check_context(seed):
            assert check_function(by_differences, slope, CASES, tolerance=1e-7, points=2) == 2


@pytest.mark.parametrize(("function", "said"), WRONG.values(), ids=WRONG)
def test_wrong_functions_get_nothing_and_a_reason(function, said):
    credit = check_function(function, slope, CASES, tolerance=1e-7, points=2)
    assert credit == 0
    assert said in credit.reports[0].text()
    with check_context(1, graded=True, hidden=True):
        secret = check_function(function, slope, CASES, tolerance=1e-7, points=2).reports[0]
    assert "input x" not in secret.text()
    assert "expected" not in secret.text()


def test_tolerance_follows_from_conditioning():
    arguments = [between(1.0, 2.0), between(1e-9, 2e-9)]
    assert check_function(lambda x, d: (x + d) - x, lambda x, d: d, arguments, points=1) == 0
    assert check_function(lambda x, d: 1e9 * ((x + d) - x), lambda x, d: 1e9 * ((x + d) - x), arguments, points=1) == 1
    assert check_function(lambda x: x * x * x, lambda x: x**3, [(4,)], points=1) == 1


@pytest.mark.parametrize(
    "pair",
    [
        (lambda a, b: {"sum": a + b, "names": ["a", "b"]}, True),
        (lambda a, b: {"sum": a + b, "names": ["a", "c"]}, False),
        (lambda a, b: {"sum": a + b}, False),
        (lambda a, b: {"sum": a - b, "names": ["a", "b"]}, False),
        (lambda a, b: (a + b, "a"), False),
    ],
)
def test_structures_are_compared(pair):
    function, right = pair
    credit = check_function(function, lambda a, b: {"sum": a + b, "names": ("a", "b")}, [(), (3,)], points=1)
    assert (credit == 1) is right


def product_and_sum(x, y):
    return (x * y + x) ** 2


HANDWRITTEN = {
    "as a whole": (lambda x, y: (2 * x * (y + 1) ** 2, 2 * x**2 * (y + 1)), True),
    "step by step": (lambda x, y: [2 * (x * y + x) * (y + 1), 2 * (x * y + x) * x], True),
    "one path lost": (lambda x, y: (2 * (x * y + x) * y, 2 * (x * y + x) * x), False),
    "exchanged": (lambda x, y: (2 * x**2 * (y + 1), 2 * x * (y + 1) ** 2), False),
    "zeros": (lambda x, y: (0.0, 0.0), False),
    "one missing": (lambda x, y: (2 * x * (y + 1) ** 2,), False),
    "number": (lambda x, y: 0.0, False),
    "central differences": (
        lambda x, y: tuple(
            (product_and_sum(x + h, y + k) - product_and_sum(x - h, y - k)) / 2e-5 for h, k in ((1e-5, 0), (0, 1e-5))
        ),
        False,
    ),
}


@pytest.mark.parametrize(("function", "right"), HANDWRITTEN.values(), ids=HANDWRITTEN)
def test_gradients_by_hand(function, right):
    for seed in range(5):
        with check_context(seed):
            credit = check_handwritten_gradient(function, product_and_sum, [(), ()], points=3)
        assert (credit == 3) is right, credit.reports[0].text()


def test_one_input_needs_no_tuple():
    assert check_handwritten_gradient(lambda x: 1 / x, lambda x: x.log(), [positive()], points=1) == 1
    assert check_handwritten_gradient(lambda x: 2 * x, lambda x: (x**2).sum(), [(3,)], points=1) == 1


def test_by_hand_needs_a_number_to_differentiate():
    with pytest.raises(LessonError):
        check_handwritten_gradient(lambda x: x, lambda x: x * 2, [(3,)], points=1)


def test_faulty_reference_is_the_lessons_fault():
    with pytest.raises(LessonError):
        check_function(lambda x: x, lambda x: 1 / 0, [()], points=1)


def test_remote_function_is_called_once_with_its_functions():
    class Handle:
        calls = 0

        def __run_remotely__(self, function, *arguments):
            Handle.calls += 1
            return function(by_differences, *arguments)

    assert check_function(Handle(), slope, CASES, tolerance=1e-7, points=1) == 1
    assert Handle.calls == 1
