"""Makes feedback pages for many students at once, with nbgrader's own converter in several processes.

They are made after the marks are in the gradebook, because they also show what graders have entered there. Making one
takes longer than grading, so a page that would be the same again stays: its last line says what it was made from.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from nbgrader.utils import temp_attrs

from autograder.files import files_below
from autograder.grading.converting import converted, in_one_line
from autograder.grading.course import Course, exactly, open_course
from autograder.grading.errors import LOCKED
from autograder.grading.gradebook.mark_writer import Entry, Marks
from autograder.grading.submission.assignments import Assignment
from autograder.grading.workers.early_forkserver import PRELOAD
from autograder.grading.workers.pool import Died, KeptPools, WorkerPool
from autograder.nbgrader_plugins.configuration import TEMPLATES

TRIES = 5
KILLED = "the process that made it was killed."
_course: Course | None = None


def write_feedback(
    course: Course, assignment: Assignment, students: Sequence[str], workers: int, pools: KeptPools | None = None
) -> list[str]:
    """Make the feedback pages of these students that are not as they should be. Returns a sentence for each failure,
    which affects no other.
    """
    made_from = _made_from(course, assignment, [it for it in students if glob.escape(it) == it])
    tasks = [
        (assignment.name, student, last_line)
        for student, last_line in made_from
        if not _are_made(course.folder("feedback", student, assignment.name), assignment, last_line)
    ]
    outcomes = (pools or WorkerPool)(feedback_in_worker, workers, open_worker, (course.root,), PRELOAD).run(tasks)
    problems = [(task[1], KILLED if isinstance(said, Died) else said) for task, said in outcomes if said]
    return [f"the feedback for {student} could not be made: {said}" for student, said in sorted(problems)]


def _made_from(course: Course, assignment: Assignment, students: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """The last line of each student's pages: a hash of what they show, and of how."""
    form = assignment.fingerprint, files_below(TEMPLATES)
    with course.gradebook() as gradebook:
        names = {student.id: (student.first_name, student.last_name) for student in gradebook.students}
    marks = Marks(course.coursedir.db_url, assignment)
    entries = marks.entries(students)
    marks.close()
    for student in students:
        notebooks = sorted(course.folder("autograded", student, assignment.name).glob("*.ipynb"))
        graded = [(path.name, path.stat().st_mtime_ns) for path in notebooks]
        shown = form, names.get(student), _rows(entries.get(student)), graded
        yield student, f"<!-- made from {hashlib.sha256(repr(shown).encode()).hexdigest()} -->\n".encode()


def _rows(entry: Entry | None) -> list[str]:
    """All that the gradebook has about a submission, in an order of its own: that of a database may change."""
    if entry is None:
        return []
    rows = [*entry.notebooks.values(), *entry.grades.values(), *entry.comments.values()]
    return sorted([repr((entry.id, entry.extension, entry.timestamp)), *map(repr, rows)])


def _are_made(folder: Path, assignment: Assignment, last_line: bytes) -> bool:
    pages = [folder / f"{notebook}.html" for notebook in assignment.notebooks]
    return all(page.is_file() and page.read_bytes().endswith(last_line) for page in pages)


def open_worker(course: Path) -> None:
    """Open the course in this process."""
    global _course
    _course = contextlib.ExitStack().enter_context(open_course(course))


def feedback_in_worker(task: tuple[str, str, bytes]) -> str:
    """Make one student's pages; retry if the gradebook is locked. Returns why there are none, or the empty string."""
    assert _course is not None
    assignment, student, last_line = task
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
    for page in () if reason else _course.folder("feedback", student, assignment).glob("*.html"):
        with open(page, "ab") as file:
            file.write(last_line)
    return in_one_line(reason)
