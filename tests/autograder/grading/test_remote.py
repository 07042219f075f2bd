"""A cluster worker, tested without a cluster: it has submissions graded by processes that it shares."""

from __future__ import annotations

import os
import pickle
import signal
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from autograder.grading.course import open_course
from autograder.grading.gradebook.assignment_reader import read_assignment
from autograder.grading.submission.assignments import Assignment, read_submission
from autograder.grading.workers import cluster_worker
from autograder.grading.workers.cluster_forkserver import GradedSubmission, Unread
from autograder.grading.workers.cluster_worker import ServerDiedError, close_servers, grade_remotely, start_servers
from tests.autograder.grading.here import ASSIGNMENT
from tests.autograder.grading.test_faults import wait_for

pytestmark = pytest.mark.sandbox


@pytest.fixture
def run() -> Iterator[str]:
    name = uuid.uuid4().hex
    yield name
    close_servers(name)


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


def graded(run: str, assignment: Assignment, *submissions: Any) -> list[GradedSubmission]:
    packed = [pickle.dumps(submission) for submission in submissions]
    return [pickle.loads(answer) for answer in grade_remotely(pickle.dumps((run, pickle.dumps(assignment), packed)))]


def points(answer: GradedSubmission) -> float:
    assert answer.result is not None
    return sum(cell.points or 0.0 for cell in answer.result.cells)


def is_over(process: int) -> bool:
    """Whether a process has ended. A zombie counts as ended."""
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_answers_come_in_the_order_of_the_submissions_and_nothing_is_left_when_a_run_ends(
    run: str, task: dict[str, Any]
) -> None:
    start_servers(run, 2, checks=False)
    parent = cluster_worker._runs[run].parent
    assert parent is not None
    unread = Unread("cem", "The submission is larger than 200 MB.")
    answers = graded(run, task["assignment"], task["ann"], task["bob"], unread)
    assert [answer.result and answer.result.student for answer in answers] == ["ann", "bob", "cem"]
    assert [points(answer) for answer in answers] == [5, 2, 0]
    assert answers[0].grader == task["assignment"].grader
    assert sorted(answers[0].files) == ["strings.ipynb", "words.txt"]
    assert answers[2].result is not None
    assert answers[2].result.reason == unread.reason
    close_servers(run)
    wait_for(lambda: parent.returncode is not None and not cluster_worker._path(run).exists())
    assert parent.returncode == 0
    close_servers(run)


def test_processes_that_were_killed_cost_what_they_graded_and_are_replaced(run: str, task: dict[str, Any]) -> None:
    start_servers(run, 2, checks=False)
    parent = cluster_worker._runs[run].parent
    assert parent is not None
    assert points(*graded(run, task["assignment"], task["ann"])) == 5
    with open(f"/proc/{parent.pid}/task/{parent.pid}/children") as file:
        children = [int(number) for number in file.read().split()]
    assert len(children) == 2
    parent.kill()
    parent.wait()
    assert points(*graded(run, task["assignment"], task["bob"])) == 2, "those that it has forked grade on"
    for process in children:
        os.kill(process, signal.SIGKILL)
    wait_for(lambda: all(map(is_over, children)))
    assert points(*graded(run, task["assignment"], task["ann"])) == 5
    assert cluster_worker._runs[run].parent not in (None, parent)


def test_a_submission_whose_process_is_killed_is_said_to_be(run: str, task: dict[str, Any]) -> None:
    start_servers(run, 1, checks=False)

    class KillsItsReader:
        def __reduce__(self) -> tuple[Any, ...]:
            return os._exit, (1,)

    with pytest.raises(ServerDiedError):
        graded(run, task["assignment"], KillsItsReader())
    assert points(*graded(run, task["assignment"], task["bob"])) == 2


def test_workers_of_a_machine_share_the_process_that_others_are_forked_from(run: str) -> None:
    start_servers(run, 1, checks=False)
    first = cluster_worker._runs.pop(run)
    start_servers(run, 1, checks=False)  # as another worker would
    second = cluster_worker._runs[run]
    assert first.parent is not None
    assert second.parent is None
    assert second.idle[0].alive
    first.close(cluster_worker._path(run))


def test_a_run_that_was_killed_is_cleared_away_by_the_next(run: str, monkeypatch: pytest.MonkeyPatch) -> None:
    start_servers(run, 1, checks=False)
    parent = cluster_worker._runs[run].parent
    assert parent is not None
    monkeypatch.setattr(cluster_worker, "FORGOTTEN", -1.0)
    other = uuid.uuid4().hex
    try:
        start_servers(other, 1, checks=False)
        assert run not in cluster_worker._runs
        wait_for(lambda: is_over(parent.pid) and not cluster_worker._path(run).exists())
    finally:
        close_servers(other)


def test_a_run_that_was_killed_is_cleared_away_by_itself_but_not_while_it_grades(
    run: str, task: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster_worker, "LOOKS", 0.05)
    start_servers(run, 2, checks=False)
    parent = cluster_worker._runs[run].parent
    assert parent is not None
    with cluster_worker._server(run) as server:
        monkeypatch.setattr(cluster_worker, "FORGOTTEN", 0.2)
        time.sleep(1.0)  # while a caller waits for an answer, nothing is forgotten
        assert run in cluster_worker._runs
        assert server.alive
    wait_for(lambda: run not in cluster_worker._runs)
    wait_for(lambda: is_over(parent.pid) and not cluster_worker._path(run).exists())
    assert points(*graded(run, task["assignment"], task["ann"])) == 5, "a run that goes on gets new processes"
