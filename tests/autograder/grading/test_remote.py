"""A cluster worker, tested without a cluster: it has submissions graded by processes of its own."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from autograder.grading.course import open_course
from autograder.grading.gradebook.assignment_reader import read_assignment
from autograder.grading.submission.assignments import Assignment, read_submission
from autograder.grading.workers import cluster_worker
from autograder.grading.workers.cluster_process import GradedSubmission, Unread
from autograder.grading.workers.cluster_worker import ProcessDiedError, close_processes, grade_remotely, start_processes
from tests.autograder.grading.here import ASSIGNMENT
from tests.autograder.grading.test_faults import wait_for

pytestmark = pytest.mark.sandbox


@pytest.fixture(autouse=True)
def none_left() -> Iterator[None]:
    yield
    close_processes()


@pytest.fixture
def task(small_course: Any) -> dict[str, Any]:
    """An assignment and two submissions of it."""
    small_course.submit("ann", small_course.answered())
    small_course.submit("bob", small_course.answered(shout="return word"))
    with open_course(small_course.root) as course:
        assignment = read_assignment(course, ASSIGNMENT)
        submissions = {
            name: read_submission(course.folder("submitted", name, ASSIGNMENT), name) for name in ("ann", "bob")
        }
    return {"assignment": assignment, **submissions}


def graded(assignment: Assignment, *submissions: Any) -> list[GradedSubmission]:
    packed = [pickle.dumps(submission) for submission in submissions]
    return [pickle.loads(answer) for answer in grade_remotely(pickle.dumps((pickle.dumps(assignment), packed)))]


def points(answer: GradedSubmission) -> float:
    assert answer.result is not None
    return sum(cell.points or 0.0 for cell in answer.result.cells)


def test_answers_come_in_the_order_of_the_submissions_and_nothing_is_left_when_a_run_ends(task: dict[str, Any]) -> None:
    start_processes(1, checks=False)
    (process,) = cluster_worker._idle
    unread = Unread("cem", "The submission is larger than 200 MB.")
    answers = graded(task["assignment"], task["ann"], task["bob"], unread)
    assert [answer.result and answer.result.student for answer in answers] == ["ann", "bob", "cem"]
    assert [points(answer) for answer in answers] == [5, 2, 0]
    assert answers[0].grader == task["assignment"].grader
    assert sorted(answers[0].files) == ["strings.ipynb", "words.txt"]
    assert answers[2].result is not None
    assert answers[2].result.reason == unread.reason
    assert points(*graded(task["assignment"], task["ann"])) == 5
    assert cluster_worker._idle == [process], "it is used again"
    close_processes()
    wait_for(lambda: process.popen.returncode is not None)
    assert process.popen.returncode == 0


def test_a_process_that_was_killed_or_knows_another_assignment_is_replaced(task: dict[str, Any]) -> None:
    assert points(*graded(task["assignment"], task["ann"])) == 5
    (first,) = cluster_worker._idle
    first.popen.kill()
    first.popen.wait()
    assert points(*graded(task["assignment"], task["bob"])) == 2
    (second,) = cluster_worker._idle
    assert points(*graded(replace(task["assignment"], described="other"), task["bob"])) == 2
    assert len({first.popen.pid, second.popen.pid, cluster_worker._idle[0].popen.pid}) == 3
    wait_for(lambda: second.popen.returncode == 0)


def test_a_submission_whose_process_is_killed_is_said_to_be(task: dict[str, Any]) -> None:
    class KillsItsReader:
        def __reduce__(self) -> tuple[Any, ...]:
            return os._exit, (1,)

    with pytest.raises(ProcessDiedError):
        graded(task["assignment"], KillsItsReader())
    assert points(*graded(task["assignment"], task["bob"])) == 2


FORGOTTEN = "import autograder.grading.workers.cluster_process as it; it.FORGOTTEN = 0.2; it.main()"


def test_a_process_of_a_run_that_was_killed_ends_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_worker, "SERVE", FORGOTTEN)
    start_processes(1, checks=False)
    (process,) = cluster_worker._idle
    assert process.popen.wait(60) == 0
