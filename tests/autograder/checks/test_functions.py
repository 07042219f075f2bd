"""Do checks of plain functions and of gradients by hand pass what is right, and say what is wrong with the rest?"""

import math

import numpy as np
import pytest

from autograder.runs.context import check_context
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


def restores_nothing(f, x, h=1e-5):
    gradient = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        x[index] += h
        up = f(x)
        x[index] -= 2 * h
        gradient[index] = (up - f(x)) / (2 * h)
    return gradient


def changes_its_input(f, x):
    gradient = by_differences(f, x)
    x += 1
    return gradient


def rounds_its_input(f, x):
    gradient = by_differences(f, x)
    x *= 1 + 1e-13
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
    "input rounded": (rounds_its_input, "`x` was changed by the function in its last digits"),
    "input changed, and wrong for that reason": (restores_nothing, "`x` was changed"),
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


def test_a_card_shows_a_message_without_a_space_at_its_end():
    def of_other_shapes(g):
        return np.ones((4, 3)) + np.ones(4)  # NumPy's message ends with a space

    text = check_function(of_other_shapes, lambda g: g.sum(axis=0), [(2, 3)], points=1).reports[0].text()
    assert "shapes (4,3) (4,)\n" in text


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
    "as a whole": (lambda x, y: (2 * x * (y + 1) ** 2, 2 * x**2 * (y + 1)), 4),
    "step by step": (lambda x, y: [2 * (x * y + x) * (y + 1), 2 * (x * y + x) * x], 4),
    "one path lost": (lambda x, y: (2 * (x * y + x) * y, 2 * (x * y + x) * x), 2),
    "only the first": (lambda x, y: (2 * x * (y + 1) ** 2, None), 2),
    "exchanged": (lambda x, y: (2 * x**2 * (y + 1), 2 * x * (y + 1) ** 2), 0),
    "zeros": (lambda x, y: (0.0, 0.0), 0),
    "one missing": (lambda x, y: (2 * x * (y + 1) ** 2,), 0),
    "one too many": (lambda x, y: (2 * x * (y + 1) ** 2, 2 * x**2 * (y + 1), 0.0), 0),
    "number": (lambda x, y: 0.0, 0),
    "raises": (lambda x, y: (2 * x * (y + 1) ** 2, 1 / 0), 0),
    "central differences": (
        lambda x, y: tuple(
            (product_and_sum(x + h, y + k) - product_and_sum(x - h, y - k)) / 2e-5 for h, k in ((1e-5, 0), (0, 1e-5))
        ),
        0,
    ),
}


def test_inputs_that_two_gradients_share_are_shown_once():
    credit = check_handwritten_gradient(lambda x, y: (0.0, 0.0), product_and_sum, [(), ()], points=4)
    assert credit.reports[0].text().count("input x") == 1


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize(("function", "points"), HANDWRITTEN.values(), ids=HANDWRITTEN)
def test_gradients_by_hand(function, points, hidden):
    """Each gradient is worth its share if all calls gave as many gradients as there are arguments."""
    for seed in range(5):
        with check_context(seed, hidden=hidden):
            credit = check_handwritten_gradient(function, product_and_sum, [(), ()], points=4)
        assert credit == points, credit.reports[0].text()


@pytest.mark.parametrize(
    ("first", "points"), [(lambda x: 2 * abs(x), 2), (lambda x: 2 * x if x > 0 else 1 / 0, 0), (lambda x: 2 * x, 4)]
)
def test_a_gradient_has_to_be_right_for_all_inputs(first, points):
    cases = [[between(0.5, 2.0), ()], [between(-2.0, -0.5), ()]]
    function = lambda x, y: (first(x) * (y + 1) ** 2, 2 * x**2 * (y + 1))  # noqa: E731
    assert check_handwritten_gradient(function, product_and_sum, cases, points=4) == points


def test_a_card_names_the_gradient_that_is_wrong():
    with check_context(1):
        credit = check_handwritten_gradient(HANDWRITTEN["one path lost"][0], product_and_sum, [(), ()], points=4)
    (report,) = credit.reports
    assert [(line.name, line.status) for line in report.lines] == [("x", "wrong"), ("y", "right")]
    assert report.message.startswith("x: the gradient with respect to x")


def test_a_known_mistake_in_a_gradient_by_hand_is_named():
    def neuron(w, x):
        return 1 - (w * x) ** 2, w * (1 - math.tanh(w * x) ** 2)

    def right_for_w(w, x):
        return x * (1 - (w * x) ** 2), w * (1 - (w * x) ** 2)

    with check_context(1):
        credits = [
            check_handwritten_gradient(by_hand, lambda w, x: (w * x).tanh(), [(), ()], points=2)
            for by_hand in (right_for_w, neuron)
        ]
    named, unknown = (credit.reports[0] for credit in credits)
    assert named.bugs == ("input_used_for_output",)
    assert "`tanh`" in named.diagnosis
    assert len(named.hints) == 2, "there is no rule to look at"
    assert not unknown.bugs


def test_a_card_of_a_gradient_by_hand_speaks_of_no_backward():
    with check_context(1):
        credit = check_handwritten_gradient(
            lambda x, y: (2 * (x * y + x) * (y + 1), x), product_and_sum, [(), ()], points=2
        )
    (report,) = credit.reports
    assert report.bugs == ("upstream_ignored",)
    assert "`*`" in report.diagnosis
    assert "backward" not in report.text()


@pytest.mark.parametrize(
    ("by_hand", "expression"),
    [
        (lambda x, y: (1 / (x + y), -x / (x + y) ** 2), lambda x, y: x / (x + y)),
        (lambda x, y: (y, x), lambda x, y: x * y + x),
        (lambda x, y: (y, x + y), lambda x, y: (x + y) * y),
        (lambda x, y: (2 * (x * y + x) * y, 2 * (x * y + x) * x), lambda x, y: (x * y + x) ** 2),
    ],
)
def test_a_use_that_was_forgotten_is_said_without_words_of_an_engine(by_hand, expression):
    with check_context(1):
        (report,) = check_handwritten_gradient(by_hand, expression, [(), ()], points=2).reports
    assert "used more than once" in report.diagnosis
    assert not any(word in report.diagnosis for word in ("+=", "node", "topological", "treated as a constant"))


def test_a_function_that_changes_its_inputs_earns_nothing():
    def careless(x, y):
        gradients = (2 * x, 2 * y)
        x += 1
        return gradients

    inputs = [(3,), (3,)]
    assert check_handwritten_gradient(careless, lambda x, y: (x * x + y * y).sum(), inputs, points=4) == 0


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


def test_sums_in_another_order_are_right_however_much_cancels():
    """Regression: arguments were disturbed as a whole, which hardly moves a sum that nearly cancels."""
    numbers = np.random.default_rng(0).normal(size=64)
    numbers[-1] = -numbers[:-1].sum()
    credit = check_function(lambda x: np.sort(x).sum(), lambda x: np.cumsum(x)[-1], [numbers], points=1)
    assert float(credit) == 1.0
