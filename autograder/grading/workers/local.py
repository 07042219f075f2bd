"""Grading in processes of this machine: each reads submissions where they lie and leaves results in the spool.

The process that starts a run imports this module only to name the work, so the judge is imported where it works.
"""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.grading.submission.assignments import Assignment, Earlier, UnusableError, read_submission
from autograder.grading.submission.result import ungraded
from autograder.grading.submission.trials import failures, keep_trials, kept_trials
from autograder.grading.workers.spool import Spool
from autograder.sandbox.process.isolation import isolation_available
from autograder.sandbox.process.limits import SandboxUnavailable

if TYPE_CHECKING:
    from autograder.grading.submission.worker import Workshop


@dataclass(frozen=True)
class Job:
    """What every worker of a run is told once."""

    assignment: Assignment
    spool: Spool
    course: Path
    ignore_failing_solution: bool = False


@dataclass(frozen=True)
class Task:
    """One submission: where it lies, and what people have said about it."""

    student: str
    folder: Path
    earlier: Earlier


@dataclass(frozen=True)
class Finished:
    """A task is done, and its result is in the spool. There is no result if `fault` says why this machine cannot go on,
    or if the task was `refused` because the assignment's own solution fails.
    """

    fault: str = ""
    refused: bool = False


_job: Job | None = None
_workshop: Workshop | None = None


def on_path(folder: Path) -> None:
    """Let a course's nbgrader_config.py name modules that lie beside it."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def open_worker(job: Job) -> None:
    """Prepare this process for all submissions that it will grade."""
    global _job, _workshop
    on_path(job.course)
    tempfile.tempdir = os.fspath(job.spool.work)  # what is left there by a process that was killed goes with the run
    _job, _workshop = job, None  # what can fail comes later: an exception here would look like the death of the process


def grade_in_worker(task: Task) -> Finished:
    """Grade one submission in a process that `open_worker` has prepared."""
    global _workshop
    if _job is None:
        raise RuntimeError("grade_in_worker needs open_worker first.")
    try:
        _workshop = _workshop or _opened(_job)
        if _workshop is None:
            return Finished(refused=True)
        try:
            submission = read_submission(task.folder, task.student, task.earlier)
        except UnusableError as error:
            _job.spool.put(ungraded(_job.assignment, task.student, "failed", str(error)), None)
        else:
            _job.spool.put(*_workshop.grade(submission))
    except SandboxUnavailable as error:
        return Finished(f"{str(error).rstrip('.')} (the trial of the solution)")
    except OSError as error:
        return Finished(f"{error.strerror or error} ({task.student})")
    return Finished()


def _opened(job: Job) -> Workshop | None:
    """The workshop of this process; None if the solution fails. The first process to ask judges the solution."""
    from autograder.grading.submission.trying_solutions import trials_of
    from autograder.grading.submission.worker import Workshop, prepare

    prepare(job.assignment)
    with job.spool.one_at_a_time():
        trials = kept_trials(job.spool.root, job.assignment)
        if trials is None:
            try:
                trials = trials_of(job.assignment)
                keep_trials(job.spool.root, job.assignment, trials)
            except SandboxUnavailable:
                if isolation_available():
                    raise  # without the trial, tests that have to run inside would cost points
                trials = {}  # each submission will say why
    if failures(trials) and not job.ignore_failing_solution:
        return None
    return Workshop(replace(job.assignment, trials=trials), job.spool.work)
