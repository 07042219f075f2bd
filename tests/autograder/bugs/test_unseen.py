"""Mistakes that are not in the bank, in a third style of engine: all are caught, and no card is certain but wrong."""

import pytest

from autograder.student import check_gradients
from tests.autograder.bugs.planted import CHECKS
from tests.autograder.bugs.tape_engine import RULES, engine
from tests.autograder.bugs.unseen import UNSEEN


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("mistake", UNSEEN, ids=str)
def test_a_mistake_that_the_bank_does_not_hold(mistake):
    right = check_gradients(mistake.expressions, mistake.inputs, points=1, engine=engine())
    assert right == 1, right.reports[0].text()
    report = check_gradients(mistake.expressions, mistake.inputs, points=1, engine=mistake.engine()).reports[0]
    assert not report.passed
    assert len(report.bugs) != 1 or report.bugs[0] in mistake.bugs, report.text()
    assert not mistake.told or any(words in report.text() for words in mistake.told), report.text()
    if mistake.place != "backward":
        assert f"`{mistake.place}`" in report.diagnosis + report.place or mistake.bugs, report.text()


def test_more_than_half_are_told_their_cause():
    assert len(UNSEEN) >= 30
    assert sum(bool(mistake.told) for mistake in UNSEEN) > len(UNSEEN) / 2


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", sorted(set(CHECKS) & set(RULES) | {"engine", "broadcast", "batches"}))
def test_the_right_engine_passes_the_checks_of_the_other_engines(name):
    credit = check_gradients(CHECKS[name].expressions, CHECKS[name].inputs, points=1, engine=engine())
    assert credit == 1, credit.reports[0].text()
