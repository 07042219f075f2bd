"""Grade a course's submissions in this process, as a run does with workers: quick, and visible to a debugger."""

from __future__ import annotations

import glob
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from autograder.grading.run import Request, grade_class
from autograder.grading.submission.class_records import SubmissionRecord

ASSIGNMENT = "words"


class Here:
    """Takes the place of `WorkerPool`."""

    def __init__(self, function: Callable, workers: int, initializer: Callable, initargs: tuple, preload: tuple = ()):
        self.function = function
        initializer(*initargs)

    def run(self, tasks: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        for task in tasks:
            yield task, self.function(task)


class KeptHere:
    """Takes the place of `KeptPools`."""

    __call__ = staticmethod(Here)

    def close(self) -> None:
        pass


@contextmanager
def in_this_process() -> Iterator[None]:
    """Grade without workers while this is active."""
    with (
        mock.patch("autograder.grading.run.WorkerPool", Here),
        mock.patch("autograder.grading.workers.feedback_pages.WorkerPool", Here),
        mock.patch("autograder.grading.watching.watch.KeptPools", KeptHere),
        mock.patch("tempfile.tempdir", tempfile.tempdir),  # which a worker changes for good
    ):
        yield


def grade_all(course: Any, student: str = "*", **more: Any) -> dict[str, SubmissionRecord]:
    """The records by student."""
    with in_this_process():
        records = grade_class(Request(ASSIGNMENT, course.root, student, **more))
    return {record.student: record for record in records}


def grade(course: Any, student: str, **more: Any) -> SubmissionRecord:
    """The record of one student."""
    return grade_all(course, glob.escape(student), **more)[student]
