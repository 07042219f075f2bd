"""Is every bug found and named when it is planted in engines of styles other than ours?"""

import numpy as np
import pytest

from autograder.runs.context import check_context
from autograder.student import check_gradients
from tests.autograder import student_engines as students

SCALAR = {
    "a + b": lambda a, b: a + b,
    "a - b": lambda a, b: a - b,
    "a * b": lambda a, b: a * b,
    "a / b": lambda a, b: a / b,
    "-a": lambda a: -a,
    "a**3": lambda a: a**3,
    "tanh": lambda a: a.tanh(),
    "exp": lambda a: a.exp(),
    "relu": lambda a: a.relu(),
    "(a * b + a) ** 2": lambda a, b: (a * b + a) ** 2,
    "shared": lambda a, b: (a + b) * a + (a + b).tanh(),
    "early and late": lambda a, b: (lambda c: c + (c * b).tanh())(a * b),
    "diamond": lambda a, b: (lambda c: (c * b).relu() + c.exp() * c)(a * b),
}
CLOSURES = [
    *(("operands_swapped", operation) for operation in ("-", "*", "/", "**")),
    *(("upstream_ignored", operation) for operation in ("+", "-", "*", "/", "neg", "**", "tanh", "exp", "relu", "all")),
    *(("sign_lost", operation) for operation in ("-", "/", "neg")),
    ("exponent_not_lowered", "**"),
    *(("input_used_for_output", operation) for operation in ("tanh", "exp")),
    *(("assigned_not_accumulated", operation) for operation in ("+", "*", "-", "exp", "all")),
    *(("no_topological_order", form) for form in ("depth first", "breadth first")),
    ("visited_twice", "every path"),
    ("order_not_reversed", "not reversed"),
]
CLASSES = [
    *(("operands_swapped", operation) for operation in ("*", "**")),
    *(("upstream_ignored", operation) for operation in ("+", "*", "neg", "**", "tanh", "exp", "relu", "all")),
    ("sign_lost", "neg"),
    ("exponent_not_lowered", "**"),
    ("input_used_for_output", "all"),
    ("assigned_not_accumulated", "all"),
]
PENDING = [
    ("assigned_not_accumulated", "pending"),
    ("no_topological_order", "preorder, leaves in their place"),
    ("leaf_overwritten", ""),
]
ARRAYS = [
    ("operands_swapped", "*"),
    ("matmul_factors_exchanged", "@"),
    *(("upstream_ignored", operation) for operation in ("*", "@")),
    ("sign_lost", "-"),
    ("exponent_not_lowered", "**"),
    ("input_used_for_output", "tanh"),
    ("assigned_not_accumulated", "all"),
    ("broadcast_not_summed", "all"),
]
SQUARE = {
    "a + b * a": lambda a, b: a + b * a,
    "a @ b - b": lambda a, b: a @ b - b,
    "(a @ b).tanh()": lambda a, b: (a @ b).tanh(),
    "(a ** 3 * b).sum()": lambda a, b: (a**3 * b).sum(),
}
SHAPES = [[(3, 4), (4,)], [(4, 1), (3, 4, 3)]]
BROADCAST = {"a * b": lambda a, b: a * b, "a + b": lambda a, b: a + b, "(a - b).relu()": lambda a, b: (a - b).relu()}

PLANTED = [
    *((students.closures, mistake) for mistake in CLOSURES),
    *((students.function_classes, mistake) for mistake in CLASSES),
    *((students.pending_dict, mistake) for mistake in PENDING),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("style", "mistake"), PLANTED, ids=lambda value: getattr(value, "__name__", None) or str(value)
)
def test_scalar_bug_is_found_and_named(style, mistake):
    for seed in range(3):
        with check_context(seed):
            credit = check_gradients(SCALAR, [(), ()], points=13, engine=style(mistake))
        report = credit.reports[0]
        assert credit < 13, "the bug was not seen"
        assert report.bugs == (mistake[0],), f"seed {seed}\n{report.text()}"


@pytest.mark.slow
@pytest.mark.parametrize("mistake", ARRAYS, ids=str)
def test_array_bug_is_found_and_named(mistake):
    for seed in range(3):
        expressions, cases = (BROADCAST, SHAPES) if "broadcast" in mistake[0] else (SQUARE, [(3, 3), (3, 3)])
        with check_context(seed):
            credit = check_gradients(expressions, cases, points=4, engine=students.arrays(mistake))
        report = credit.reports[0]
        assert credit < 4
        assert report.bugs == (mistake[0],), f"seed {seed}\n{report.text()}"


@pytest.mark.slow
@pytest.mark.parametrize("style", [students.closures, students.function_classes, students.pending_dict])
def test_one_expression_alone_is_never_misdiagnosed_as_certain(style):
    table = {"closures": CLOSURES, "function_classes": CLASSES, "pending_dict": PENDING}[style.__name__]
    for mistake in table:
        for name, expression in SCALAR.items():
            credit = check_gradients({name: expression}, [(), ()], points=1, engine=style(mistake))
            bugs = credit.reports[0].bugs
            assert credit == 1 or len(bugs) != 1 or bugs == (mistake[0],), f"{mistake} {name} {bugs}"


def test_a_lost_gradient_may_be_the_fault_of_backward():
    engine = students.closures(("upstream_ignored", "tanh"))
    expressions = {"tanh of a product": lambda a, b: (a * b).tanh() * b}
    report = check_gradients(expressions, [(), ()], points=1, engine=engine).reports[0]
    assert report.bugs == ("upstream_ignored",), report.text()
    assert "in the rule of `tanh`, or where `backward` calls a rule, the gradient that arrives" in report.diagnosis
    assert "what `backward` passes to it" in report.hints[-1]


def test_a_quotient_is_not_blamed_on_a_power_that_nothing_shows():
    class Quotient(students.closures()):
        def __truediv__(self, other):
            return self._binary("/", np.divide, other, lambda a, b: b, lambda a, b: a)

    report = check_gradients({"1 / a": lambda a: 1.0 / a}, [()], points=1, engine=Quotient).reports[0]
    assert not report.passed
    assert "in the rule of `**`" not in report.text()


def test_an_example_is_of_the_operation_that_is_wrong():
    engine = students.closures(("input_used_for_output", "exp"))
    report = check_gradients({"exp": lambda a: a.exp()}, [()], points=1, engine=engine).reports[0]
    assert "(exp(x), not x)" in report.diagnosis
    assert "tanh" not in report.text()


def test_unknown_mistake_gets_no_diagnosis():
    class Odd(students.closures()):
        def tanh(self):
            return self._unary("tanh", np.tanh, lambda a, out: 0.9 - out * out)

    report = check_gradients({"tanh": lambda a: a.tanh()}, [()], points=1, engine=Odd).reports[0]
    assert not report.passed
    assert report.diagnosis == ""
