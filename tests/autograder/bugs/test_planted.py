"""Is every bug of the bank detected and named when it is planted in engines of styles other than ours?"""

import pytest

from autograder.bugs.bank import BUGS
from autograder.runs.context import check_context
from autograder.student import check_gradients
from tests.autograder.bugs import planted

CASES = [(mistake, style) for mistake in planted.MISTAKES for style in mistake.styles]
NOT_FIRST = {
    # Another bug is named first: NumPy refuses all expressions alike, or the numbers add up to the same sum.
    ("broadcast_stretched_axes_forgotten", "", "closures"),
    ("broadcast_added_axes_forgotten", "", "closures"),
    ("saved_value_changed", "log", "closures"),
    ("saved_value_changed", "log", "functions"),
}


def report_of(mistake, style, seed=None):
    check = mistake.check
    with check_context(seed):
        credit = check_gradients(check.expressions, check.inputs, points=1, engine=planted.engine_of(mistake, style))
    return credit.reports[0]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize(("mistake", "style"), CASES, ids=str)
def test_bug_is_detected_and_named_first(mistake, style):
    report = report_of(mistake, style)
    assert not report.passed, "the bug was not seen"
    assert mistake.bug in report.bugs, report.text()
    if (mistake.bug, mistake.where, style) not in NOT_FIRST:
        assert report.bugs[0] == mistake.bug, report.text()


def test_at_least_95_of_100_are_named_first():
    assert len(NOT_FIRST) <= 0.05 * len(CASES)
    assert {(mistake.bug, mistake.where, style) for mistake, style in CASES} >= NOT_FIRST


def test_every_bug_that_gradients_show_is_planted_in_both_styles_where_it_can_be():
    assert {mistake.bug for mistake in planted.MISTAKES} == {entry.name for entry in BUGS}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
@pytest.mark.parametrize(("mistake", "style"), CASES[::7], ids=str)
def test_one_expression_alone_is_never_misdiagnosed_as_certain(mistake, style):
    for name, expression in mistake.check.expressions.items():
        engine = planted.engine_of(mistake, style)
        credit = check_gradients({name: expression}, mistake.check.inputs, points=1, engine=engine)
        bugs = credit.reports[0].bugs
        assert credit == 1 or len(bugs) != 1 or bugs == (mistake.bug,), f"{name} {bugs}"


@pytest.mark.slow
@pytest.mark.parametrize("style", planted.STYLES)
def test_right_engines_pass_every_check(style):
    for name, check in planted.CHECKS.items():
        assert check_gradients(check.expressions, check.inputs, points=1, engine=planted.STYLES[style]()) == 1, name
