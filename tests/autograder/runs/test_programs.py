"""Is an expression recognized by what it does, and shown as it was written?"""

import numpy as np
import pytest

from autograder.runs.inputs import AwayFromZero, Between, Fixed, Traveling, cases_of
from autograder.runs.programs import Program, programs_of, shown_source
from autograder.runs.ways import operated
from autograder.student import LessonError, between, positive

FACTOR = 2.0
TABLE = {}


def test_shown_source_is_the_body_of_the_lambda():
    first, second = (lambda a, b: (a * b).sum()), (lambda a: (lambda c: c + a)(a))
    over_two_lines = lambda a: (  # noqa: E731
        a + 1
    )
    assert shown_source(first) == "(a * b).sum()"
    assert shown_source(second) == "(lambda c: c + a)(a)"
    assert shown_source(over_two_lines) == "a + 1"
    assert shown_source(eval("lambda a: a")) is None


def test_programs_may_use_fewer_inputs():
    programs = programs_of({"one": lambda a: a, "two": lambda a, b: a + b, "all": lambda *xs: xs[0]}, 2)
    assert [program.arguments for program in programs] == [("a",), ("a", "b"), ("xs[0]", "xs[1]")]
    with pytest.raises(LessonError):
        programs_of(lambda a, b, c: a, 2)


def twice(a):
    return a + a


def test_functions_around_the_operations_are_the_student_s():
    assert Program("", lambda a, b: operated("mul", twice(a), b), ()).functions() == ("twice",)


def identity(function):
    return Program("", function, ()).identity()


def test_identity_is_shared_by_equal_meaning_only():
    def times(n):
        return lambda a: a * n

    assert identity(lambda a: a * 2) == identity(lambda a: a * 2)
    assert identity(lambda a: a * 2) != identity(lambda a: a * 3)
    assert identity(lambda a: a.exp()) != identity(lambda a: a.tanh())
    assert identity(times(2)) == identity(times(2)) != identity(times(3))
    assert identity(lambda a: a * FACTOR) == identity(lambda a: a * FACTOR) is not None
    assert identity(lambda a, n=2: a * n) != identity(lambda a, n=3: a * n)
    assert identity(times(np.arange(2))) == identity(times(np.arange(2))) is not None
    assert len({identity(times(np.array(n))) for n in ([0, 1], [1, 0], [0.0, 1.0], [[0, 1]])}) == 4
    assert identity(times(np.array([None]))) is None
    assert identity(lambda a: a * TABLE["n"]) is None
    assert identity(lambda a: a * unknown) is None  # noqa: F821


def test_specs():
    (case,) = cases_of([(3, 4), 2.5, between(0, 1), positive((2,)), len])
    assert [type(spec) for spec in case] == [AwayFromZero, Fixed, Between, Between, Traveling]
    assert len(cases_of([[(3,), ()], [(2, 2), ()]])) == 2
    for faulty in ([], [[(3,)], [(3,), ()]], ["text"], [(1.5,)], [(-1,)]):
        with pytest.raises((LessonError, ValueError)):
            cases_of(faulty)
