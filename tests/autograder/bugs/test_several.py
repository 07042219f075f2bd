"""Are two mistakes at once named, and one mistake in several rules, and is nothing guessed?"""

import pytest

from autograder.bugs.bank import bug
from autograder.bugs.bug import THE_RULE
from autograder.bugs.matching import Diagnosis, diagnose_all
from autograder.cards.check_report import Report
from autograder.runs.answers import Comparison, Outcome, Problem
from autograder.runs.errors import Raised
from autograder.runs.expected import expected_of
from autograder.runs.inputs import cases_of
from autograder.runs.programs import programs_of
from autograder.student import check_gradients
from tests.autograder.bugs import planted

TOGETHER = {"tanh of a product": lambda a, b: (a * b).tanh()}
LAYER = {"layer": lambda a, b: (a @ b).tanh().sum(0)}
THREE = {"three": lambda a, b: (a * b + a).tanh() * b.exp()}
SQUARE = [[(3, 3), (3, 3)]]
SWAPPED, INPUT_USED = ("operands_swapped", "mul"), ("input_used_for_output", "tanh")


@pytest.mark.slow
@pytest.mark.parametrize("style", planted.STYLES)
@pytest.mark.parametrize(
    ("mistakes", "expressions"),
    [
        ((SWAPPED, INPUT_USED), TOGETHER),
        ((("square_forgotten", "tanh"), ("matmul_not_transposed", "matmul")), LAYER),
    ],
    ids=["of a product", "in a layer"],
)
def test_two_mistakes_at_once_are_named(style, mistakes, expressions):
    engine = planted.STYLES[style](*mistakes)
    report = check_gradients(expressions, SQUARE, points=1, engine=engine).reports[0]
    assert set(report.bugs) == {name for name, _ in mistakes}, report.text()
    assert all(bug(name).explanation.removeprefix(THE_RULE) in report.place for name in report.bugs), report.text()


@pytest.mark.parametrize("style", planted.STYLES)
@pytest.mark.parametrize("where", [("mul", "tanh"), ("tanh", "exp"), ("add", "exp", "mul")], ids=str)
def test_a_mistake_in_several_rules_but_not_in_all_is_named(style, where):
    engine = planted.STYLES[style](*(("upstream_ignored", operation) for operation in where))
    report = check_gradients(THREE, SQUARE, points=1, engine=engine).reports[0]
    assert report.bugs == ("upstream_ignored",), report.text()


def evidence_of(expression, cases, runs_of, raised=None):
    (program,) = programs_of(expression, len(cases[0]))
    expected = expected_of(program, cases_of(cases), 0)
    runs = tuple(runs_of(entry) for entry in expected if runs_of is not None)
    return Outcome(program, expected, Comparison(Problem("wrong", "wrong"), runs, raised=raised))


def test_an_exception_alone_is_never_certain():
    error = Raised("ValueError", "operands could not be broadcast together with shapes (3,4) (4,2)")
    diagnosis = diagnose_all([evidence_of(lambda a, b: a @ b, [[(3, 4), (4, 2)]], None, raised=error)])
    assert diagnosis.certain is None


@pytest.mark.parametrize(("certain", "fitting"), [(True, 1), (False, 1), (False, 2)])
def test_only_a_certain_diagnosis_names_its_bug_in_a_report(certain, fitting):
    candidates = (bug("operands_swapped"), bug("sign_lost"))[:fitting]
    told = Diagnosis(candidates[0] if certain else None, candidates).sentence()
    assert Report("a check", (), diagnosis=told).certain == certain


def test_right_numbers_called_wrong_get_no_diagnosis():
    """No bug gives the right numbers, so none explains a verdict that has another reason."""
    entry = evidence_of(lambda a, b: (a * b).tanh(), [[(), ()]], lambda right: right.reference)
    diagnosis = diagnose_all([entry])
    assert diagnosis.certain is None
    assert diagnosis.sentence() == ""
