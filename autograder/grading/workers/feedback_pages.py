"""Makes feedback pages for many students at once, with nbgrader's own converter in several processes.

They are made after the marks are in the gradebook, because they also show what graders have entered there.
"""

from __future__ import annotations

import contextlib
import glob
import time
from collections.abc import Sequence
from pathlib import Path

from nbgrader.utils import temp_attrs

from autograder.grading.converting import converted, in_one_line
from autograder.grading.course import Course, exactly, open_course
from autograder.grading.errors import LOCKED
from autograder.grading.workers.early_forkserver import PRELOAD
from autograder.grading.workers.pool import Died, KeptPools, WorkerPool

TRIES = 5
KILLED = "the process that made it was killed."
_course: Course | None = None


def write_feedback(
    course: Path, assignment: str, students: Sequence[str], workers: int, pools: KeptPools | None = None
) -> list[str]:
    """Make the feedback pages of these students. Returns a sentence for each failure, which affects no other."""
    tasks = [(assignment, student) for student in students if glob.escape(student) == student]
    outcomes = (pools or WorkerPool)(feedback_in_worker, workers, open_worker, (course,), PRELOAD).run(tasks)
    problems = [(task[1], KILLED if isinstance(said, Died) else said) for task, said in outcomes if said]
    return [f"the feedback for {student} could not be made: {said}" for student, said in sorted(problems)]


def open_worker(course: Path) -> None:
    """Open the course in this process."""
    global _course
    _course = contextlib.ExitStack().enter_context(open_course(course))


def feedback_in_worker(task: tuple[str, str]) -> str:
    """Make one student's pages; retry if the gradebook is locked. Returns why there are none, or the empty string."""
    assert _course is not None
    assignment, student = task
    if not _course.folder("autograded", student, assignment).is_dir():
        return ""  # nothing was handed in, and the record says so
    from nbgrader.converters import GenerateFeedback  # and nbconvert, which the run itself does without

    converter = GenerateFeedback(coursedir=_course.coursedir, parent=_course.app)
    converter.force = True
    for attempt in range(TRIES):
        with temp_attrs(_course.coursedir, assignment_id=assignment, student_id=exactly(student)):
            reason = converted(converter)
        if LOCKED not in reason:
            break
        time.sleep(0.2 * 2**attempt)
    return in_one_line(reason)
