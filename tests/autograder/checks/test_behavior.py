"""Does `check_engine` see and name the mistakes that values and gradients do not show?"""

import pytest

from autograder.bugs.bank import BUGS
from autograder.localize.probes import PROBES
from autograder.runs.errors import LessonError
from autograder.student import check_engine
from tests.autograder.bugs import planted

students, MISTAKES = planted.arrays, planted.BEHAVIORS


def report_of(engine, *behaviors, no_grad=None):
    credit = check_engine(*behaviors, points=len(behaviors), engine=engine, no_grad=no_grad or engine.no_grad)
    return credit.reports[0]


def test_a_right_engine_behaves():
    report = report_of(students.functions(), *PROBES)
    assert report.passed, report.text()
    assert report.bugs == ()


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_a_mistake_is_seen_where_it_shows_and_named(mistake):
    (entry,) = [entry for entry in BUGS if entry.name == mistake[0]]
    report = report_of(students.functions(mistake), *PROBES)
    wrong = {line.name for line in report.lines if not line.passed}
    assert entry.behavior in wrong
    if len(wrong) == 1:
        assert report.bugs == (entry.name,), report.text()
        assert entry.explanation in report.diagnosis
    alone = report_of(students.functions(mistake), entry.behavior)
    assert alone.bugs == (entry.name,), alone.text()


def test_every_bug_of_behavior_is_planted():
    assert {name for name, _ in MISTAKES} == {entry.name for entry in BUGS if entry.behavior}
    assert {entry.behavior for entry in BUGS if entry.behavior} == set(PROBES)


def test_an_engine_that_cannot_do_it_fails_with_a_reason():
    report = report_of(students.closures(), "freed after backward", no_grad=students.functions().no_grad)
    assert "TypeError" in report.lines[0].explanation
    assert report.bugs == ()


def test_hidden_lines_tell_nothing():
    from autograder.runs.context import check_context

    with check_context(1, hidden=True):
        report = report_of(students.functions(("graph_not_freed", "")), "freed after backward")
    assert not report.passed
    assert "backward()" not in report.lines[0].name + report.lines[0].explanation


def test_an_unknown_behavior_is_the_lessons_fault():
    with pytest.raises(LessonError, match="retained graph"):
        check_engine("politeness", points=1, engine=students.functions())


ENGINE = """
from contextlib import contextmanager

recording = [True]

@contextmanager
def no_grad():
    recording[0] = False
    yield
    recording[0] = True

class MiniTensor:
    def __init__(self, data, requires_grad=False):
        self.data, self.grad, self.requires_grad = data, None, requires_grad
    def __mul__(self, other):
        return MiniTensor(self.data * other.data, recording[0])
"""


@pytest.mark.sandbox
def test_probes_travel_into_the_sandbox():
    from autograder.sandbox.sandbox import Sandbox

    with Sandbox() as sandbox:
        sandbox.execute(ENGINE)
        engine, no_grad = sandbox.lookup("MiniTensor"), sandbox.lookup("no_grad")
        report = report_of(engine, "no_grad", no_grad=no_grad)
    assert not report.passed
    assert "inner no_grad" in report.lines[0].explanation, report.text()
