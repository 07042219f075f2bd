"""A run on a real Dask cluster of this machine's processes, also when it loses workers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from autograder.grading.courses import CourseError
from tests.autograder.grading.here import grade_all

distributed = pytest.importorskip("distributed", reason="install it with `pip install 'mini-autograd-course[cluster]'`")
pytestmark = [pytest.mark.sandbox, pytest.mark.filterwarnings("ignore")]

# The configuration travels with the assignment, so this code runs where a submission is graded.
POISON = """
import os, signal
from nbgrader.preprocessors import NbGraderPreprocessor


class Poison(NbGraderPreprocessor):
    def preprocess(self, nb, resources):
        if resources["nbgrader"]["student"] == "poison":
            os.kill(os.getppid(), signal.SIGKILL)  # the worker of the cluster
        if resources["nbgrader"]["student"] == "venom":
            os.kill(os.getpid(), signal.SIGKILL)  # the process in which it grades
        return nb, resources


c.Autograde.sanitize_preprocessors = [
    Poison, "nbgrader.preprocessors.ClearOutput", "nbgrader.preprocessors.DeduplicateIds",
    "nbgrader.preprocessors.OverwriteKernelspec", "nbgrader.preprocessors.OverwriteCells",
    "nbgrader.preprocessors.CheckCellMetadata",
]
"""


@pytest.fixture
def cluster() -> Iterator[str]:
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, processes=True) as started:
        yield started.scheduler_address


def test_workers_that_die_cost_one_retry_and_nobody_else(small_course: Any, cluster: str) -> None:
    path = small_course.root / "nbgrader_config.py"
    path.write_text(path.read_text() + POISON)
    marks = {"ann": 5, "bob": 2, "poison": 0, "venom": 0, "cem": 5, "dan": 0}
    for student, mark in marks.items():
        honest = small_course.answered(shout="return word.upper()" if mark == 5 else "return word")
        small_course.submit(student, b"no notebook" if student == "dan" else honest)
    records = grade_all(small_course, cluster=cluster)
    assert {name: record.points for name, record in records.items()} == marks
    assert {name: record.status for name, record in records.items()} == {
        "ann": "graded",
        "bob": "graded",
        "poison": "died",
        "venom": "died",
        "cem": "graded",
        "dan": "unreadable",
    }
    assert "HIDDEN" not in "".join(cell.get("outputs", [{}]).__repr__() for cell in small_course.graded("ann").cells)
    again = grade_all(small_course, student="[a-d]*", cluster=cluster)
    assert all(record.unchanged for record in again.values())
    here = grade_all(small_course, student="[a-d]*", force=True)
    assert {name: record.cells for name, record in here.items()} == {name: records[name].cells for name in here}


def test_no_cluster_is_said_in_one_sentence(small_course: Any) -> None:
    small_course.submit("ann", small_course.answered())
    with pytest.raises(CourseError, match="No Dask cluster answers at tcp"):
        grade_all(small_course, cluster="tcp://127.0.0.1:9")
