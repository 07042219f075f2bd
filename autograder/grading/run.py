"""Grades a whole class: finds what is already done, hands the rest to the workers, and takes over their results.

Knows nothing of terminals: the caller gets each record as soon as its mark is in the gradebook.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from shlex import quote
from typing import Any

from nbgrader.api import MissingEntry

from autograder.grading import moves
from autograder.grading.attempts import Kept, kept_in
from autograder.grading.course import (
    Course,
    CourseError,
    absent_students,
    generate_assignment,
    hidden_submissions,
    is_in_gradebook,
    misplaced_notebooks,
    open_course,
    require_source,
    submitted_students,
)
from autograder.grading.errors import in_words
from autograder.grading.gradebook.assignment_reader import is_released_as_usual, read_assignment
from autograder.grading.gradebook.mark_writer import Entry, Marks
from autograder.grading.report.notices import differences, notices, other_kernels
from autograder.grading.submission.assignments import Assignment, Earlier, UnusableError, read_submission
from autograder.grading.submission.class_records import NEEDS_A_LOOK, SubmissionRecord
from autograder.grading.submission.result import Result, ungraded
from autograder.grading.submission.standin import stand_in
from autograder.grading.submission.trials import failures, inside, keep_trials, kept_trials
from autograder.grading.text_ahead import text_ahead
from autograder.grading.workers.cluster_connection import Connection
from autograder.grading.workers.early_forkserver import PRELOAD
from autograder.grading.workers.feedback_pages import write_feedback
from autograder.grading.workers.local import Finished, Job, Task, grade_in_worker, on_path, open_worker
from autograder.grading.workers.pool import Died, KeptPools, WorkerPool
from autograder.grading.workers.spool import Spool
from autograder.nbgrader_plugins.times import seconds_late, shown_time
from autograder.notebooks.verdicts import CellVerdict, SolutionTrial
from autograder.sandbox.process.isolation import isolation_available
from autograder.sandbox.process.limits import SandboxUnavailable

BATCH, SECONDS = 32, 1.0  # how many results are written together, and how long a result waits for others
CANNOT_GO_ON = "This machine cannot continue: {}. What was graded is kept; fix this, then run the same command again."
HIDDEN = "the folder {} is left out, because its name begins with a dot. Rename it to have it graded."
NO_NAME = "the folder {} is left out, because its name is not UTF-8. Rename it to have it graded."
MISPLACED = "not graded: {} belongs in {}/. Move it there to have it graded."
SECOND = (
    "not graded: {}, because the one in {}/ is graded. If this is the right one, move it there; otherwise delete it."
)
NO_TRIALS = "The solution could not be judged: its process was killed, twice. All tests are judged outside."
NOT_GRADED = (
    "So nothing was graded. Correct the test or the solution in the source, run `nbgrader generate_assignment "
    "{assignment} --force`, and grade again; or grade as it is with --ignore-failing-solution."
)
UNDECIDED = (
    "So nobody knows where these tests have to run. Where an answer earns less outside of its process than inside, or "
    "nothing, the result inside counts, and is marked: a submission can forge it."
)
BETTER_BEFORE = "{}: the attempt has {:g} points and does not count: an earlier one has {:g}."
BEST = "best"  # the folder of attempts that are kept while later ones are tried
DIED = "The process that graded this submission was killed, twice. Other students' marks are not affected."


class FailingSolutionError(CourseError):
    """The assignment's own solution loses points, so nothing was graded."""


@dataclass(frozen=True)
class Request:
    """What to grade and how."""

    assignment: str
    course: Path
    student: str = "*"
    workers: int = 2
    unsafe: bool = False
    feedback: bool = False
    force: bool = False
    cluster: Connection | None = None
    ignore_failing_solution: bool = False
    pools: KeptPools | None = None


def grade_class(
    request: Request,
    on_start: Callable[[int], None] = lambda total: None,
    on_record: Callable[[SubmissionRecord], None] = lambda record: None,
    on_notice: Callable[[str], None] = lambda notice: None,
    on_remark: Callable[[str], None] = lambda remark: None,
    on_absent: Callable[[list[str]], None] = lambda students: None,
    on_warning: Callable[[str], None] = lambda warning: None,
) -> list[SubmissionRecord]:
    """Grade the submissions of one assignment in parallel. Raises `CourseError` for a request that cannot be met.

    `on_notice` is told what is wrong with the assignment itself, which may make its marks wrong, and with feedback
    pages. `on_remark` is told which tests run in the submission's process, `on_absent` who has handed in nothing,
    and `on_warning`, before anything is graded, that a changed lesson has not been built.
    """
    with opened_class(request) as opened:
        students = opened.require_students()
        for warning in text_ahead(opened.course, request.assignment):
            on_warning(warning)
        records = opened.grade(students, on_start, on_record, on_notice, on_remark)
        if back := opened.put_better_ones_back(records, on_notice):
            again = {record.student: record for record in opened.grade(back)}
            records = [again.get(record.student, record) for record in records]
        on_absent(absent_students(opened.course, request.assignment, request.student))
        if request.feedback:
            for notice in opened.write_feedback([record.student for record in records]):
                on_notice(notice)
    return records


@contextlib.contextmanager
def opened_class(request: Request, *, waiting: bool = False) -> Iterator[OpenClass]:
    """Open an assignment, and keep other runs from grading it. Raises `CourseError` if it cannot be graded here, or,
    unless the caller is `waiting` for submissions, if there are none.
    """
    require_isolation(request)
    with open_course(request.course, unsafe=request.unsafe) as course:
        opened = OpenClass(request, course, Spool.of(course.root, request.assignment))
        if not is_in_gradebook(course, request.assignment):
            require_source(course, request.assignment)
            if not waiting:
                opened.require_students()  # without any, nothing should be released, or a gradebook made
            generate_assignment(course, request.assignment)
        with opened.spool.held():
            opened.put_back_what_is_gone()
            yield opened


def require_isolation(request: Request) -> None:
    """Raise `CourseError` if submissions cannot be run in a sandbox here, and the request does not do without."""
    isolation = isolation_available()
    if not request.unsafe and not isolation:
        raise CourseError(
            "Submissions run only in a sandbox, and there is none on this machine: "
            f"{' '.join(isolation.description.split())} Or pass --unsafe-no-sandbox if you trust every submission."
        )


@dataclass(frozen=True)
class OpenClass:
    """An open assignment, whose submissions can be graded any number of times."""

    request: Request
    course: Course
    spool: Spool

    def students(self) -> list[str]:
        """The students who have a submission in the course directory and whom the request asks for."""
        return submitted_students(self.course, self.request.assignment, self.request.student)

    def require_students(self) -> list[str]:
        """These students. Raises `CourseError` if there are none."""
        students = self.students()
        if not students:
            where = self.course.folder("submitted", self.request.student, self.request.assignment)
            nothing = f"There are no submissions of {self.request.assignment!r}: nothing matches {where}."
            raise CourseError("\n".join([nothing, *self.left_out()]))
        return students

    def grade(
        self,
        students: Sequence[str],
        on_start: Callable[[int], None] = lambda total: None,
        on_record: Callable[[SubmissionRecord], None] = lambda record: None,
        on_notice: Callable[[str], None] = lambda notice: None,
        on_remark: Callable[[str], None] = lambda remark: None,
    ) -> list[SubmissionRecord]:
        """Grade the submissions of these students. Returns the records in the order of the students' names."""
        for sentence in self.left_out():
            on_notice(sentence)
        named = [student for student in students if has_a_name(student)]
        run = _Run(self.request, self.course, self.spool, named, on_record, on_notice, on_remark)
        for notice in notices(run.assignment, as_written=is_released_as_usual(self.course.app.config)):
            on_notice(notice)
        try:
            run.go(on_start)
        except OSError as error:
            raise CourseError(CANNOT_GO_ON.format(in_words(error))) from error
        finally:
            run.marks.close()
        return sorted(run.records, key=lambda record: record.student)

    def left_out(self) -> list[str]:
        """Sentences about what lies among the submissions but is not graded. They are safe to print on a terminal."""
        hidden = hidden_submissions(self.course, self.request.assignment)
        nameless = [student for student in self.students() if not has_a_name(student)]
        misplaced = misplaced_notebooks(self.course, self.request.assignment, self.request.student)
        sentences = [
            *(HIDDEN.format(name) for name in hidden),
            *(NO_NAME.format(os.fsencode(student)) for student in nameless),
            *((SECOND if taken else MISPLACED).format(path, folder) for path, folder, taken in misplaced),
        ]
        return ["".join(c if c.isprintable() else "?" for c in sentence) for sentence in sentences]

    def differences(self) -> list[str]:
        """Sentences about what an instructor has changed in the source but not yet in the gradebook."""
        assignment = read_assignment(self.course, self.request.assignment, unsafe=self.request.unsafe)
        return differences(assignment, as_written=is_released_as_usual(self.course.app.config))

    def kept(self, student: str) -> Kept:
        """The better attempt of a student, while a later one is tried."""
        return Kept(self.spool.root / BEST / student)

    def put_back_what_is_gone(self) -> None:
        """End the exchange of two attempts in which a run was killed: one is kept, and none is in its place."""
        for student, kept in kept_in(self.spool.root / BEST).items():
            target = self.course.folder("submitted", student, self.request.assignment)
            if not target.exists():
                kept.put_back(target)

    def put_better_ones_back(self, records: Iterable[SubmissionRecord], on_notice: Callable[[str], None]) -> list[str]:
        """Put an attempt in its place again that has earned more than the one that was tried after it. Returns the
        students, whose submissions have to be graded again.
        """
        back = []
        for record in records:
            kept = self.kept(record.student)
            if not kept.there or record.status == "not graded":
                continue
            if record.status in NEEDS_A_LOOK or record.counts < kept.earned:
                on_notice(BETTER_BEFORE.format(record.student, record.counts, kept.earned))
                kept.put_back(self.course.folder("submitted", record.student, record.assignment))
                back.append(record.student)
            kept.forget()
        return back

    def earned(self, student: str) -> float | None:
        """The points that count in the gradebook for a student's submission, or None if it has none."""
        with self.course.gradebook() as gradebook, contextlib.suppress(MissingEntry):
            found = gradebook.find_submission(self.request.assignment, student)
            return max(0.0, found.score - (found.late_submission_penalty or 0.0))
        return None

    def write_feedback(self, students: Sequence[str]) -> list[str]:
        """Make the feedback pages of these students. Returns a sentence for each that could not be made."""
        assignment = read_assignment(self.course, self.request.assignment, unsafe=self.request.unsafe)
        return write_feedback(self.course, assignment, students, self.request.workers, self.request.pools)


def has_a_name(student: str) -> bool:
    """Whether a gradebook can store the name. A folder from an old archive may be called anything."""
    try:
        student.encode()
    except UnicodeEncodeError:
        return False
    return True


@dataclass
class _Run:
    """The state of one run."""

    request: Request
    course: Course
    spool: Spool
    students: list[str]
    on_record: Callable[[SubmissionRecord], None]
    on_notice: Callable[[str], None]
    on_remark: Callable[[str], None]
    records: list[SubmissionRecord] = field(default_factory=list)
    pending: list[str] = field(default_factory=list)
    before: dict[str, tuple[str, Entry]] = field(default_factory=dict)  # results and marks of earlier gradings
    written: float = 0.0

    def __post_init__(self) -> None:
        self.assignment = read_assignment(self.course, self.request.assignment, unsafe=self.request.unsafe)
        self.marks = Marks(self.course.coursedir.db_url, self.assignment)

    def go(self, on_start: Callable[[int], None]) -> None:
        entries = self.marks.entries(self.students)
        kept = self.marks.kept(self.students)
        earlier = {student: entry.earlier() for student, entry in entries.items()}
        self.before = {student: (kept[student][1], entry) for student, entry in entries.items() if student in kept}
        todo = []
        on_start(len(self.students))
        for student in self.students:
            fingerprint = self._fingerprint(student, earlier.get(student))
            waiting = self._waiting(student, fingerprint, kept.get(student, ("", ""))[1])
            known = self._known(student, fingerprint, kept.get(student), entries.get(student))
            if waiting is not None:
                self._take(student)
            elif known is not None and not self.request.force:
                self._report(replace(self._record(known, entries[student]), unchanged=True))
            else:
                todo.append(Task(student, self._submitted(student), earlier.get(student, Earlier())))
        self._flush()
        if todo and self.request.cluster is not None:
            self.assignment = replace(self.assignment, trials=self._trials_for_cluster())
        for task, outcome in self._outcomes(todo):
            if isinstance(outcome, Died):
                self.spool.put(ungraded(self.assignment, task.student, "died", DIED), None)
            elif outcome.refused:
                raise self._refusal()
            elif outcome.fault:
                self._flush()
                raise CourseError(CANNOT_GO_ON.format(outcome.fault))
            self._take(task.student)
        self._flush()
        self._say_trials()

    def _trials_for_cluster(self) -> dict[str, SolutionTrial]:
        """The trials of the solutions, made on this machine: the cluster's workers get them with the assignment."""
        from autograder.grading.submission.trying_solutions import trials_of  # imports the judge

        trials: dict[str, SolutionTrial] | Died | None = kept_trials(self.spool.root, self.assignment)
        if trials is None:
            with contextlib.suppress(SandboxUnavailable):  # each submission will say so
                pool = WorkerPool(trials_of, 1, on_path, (self.course.root,), PRELOAD)
                ((_, trials),) = pool.run([self.assignment])
            if isinstance(trials, Died):
                self.on_notice(NO_TRIALS)
            elif trials is not None:
                keep_trials(self.spool.root, self.assignment, trials)
        found = trials if isinstance(trials, dict) else {}
        if failures(found) and not self.request.ignore_failing_solution:
            raise self._refusal()
        return found

    def _refusal(self) -> FailingSolutionError:
        advice = NOT_GRADED.format(assignment=quote(self.assignment.name))
        said = [*other_kernels(self.assignment), *failures(kept_trials(self.spool.root, self.assignment) or {}), advice]
        return FailingSolutionError("\n".join(said))

    def _say_trials(self) -> None:
        """Report what the trials of the solutions have found."""
        trials = kept_trials(self.spool.root, self.assignment) or {}
        failed = failures(trials)
        for said in [
            *(trial.fault for trial in trials.values() if trial.fault),
            *failed,
            *([UNDECIDED] if failed else []),
        ]:
            self.on_notice(said)
        for said in inside(trials):
            self.on_remark(said)

    def _outcomes(self, todo: list[Task]) -> Iterable[tuple[Task, Finished | Died]]:
        if not todo:
            return ()
        if self.request.cluster is not None:
            from autograder.grading.workers.cluster import grade_on_cluster

            return grade_on_cluster(self.request.cluster, self.assignment, self.spool, todo)
        job = Job(self.assignment, self.spool, self.course.root, self.request.ignore_failing_solution)
        pools = self.request.pools or WorkerPool
        return pools(grade_in_worker, self.request.workers, open_worker, (job,), PRELOAD).run(todo)

    def _submitted(self, student: str) -> Path:
        return self.course.folder("submitted", student, self.assignment.name)

    def _fingerprint(self, student: str, earlier: Earlier | None) -> str:
        try:
            return read_submission(self._submitted(student), student, earlier).fingerprint(self.assignment)
        except UnusableError:
            return ""

    def _waiting(self, student: str, fingerprint: str, kept: str) -> Result | None:
        """A result that an earlier run has made but not brought into the gradebook, if there is one."""
        result = self.spool.get(student)
        if result is None or (result.to_json() != kept and result.fingerprint == fingerprint != ""):
            return result
        if result.fingerprint == fingerprint and result.to_json() == kept:  # only the last step was left to do
            self.spool.place(student, self.course.folder("autograded", student, self.assignment.name))
        self.spool.remove(student)
        return None

    def _known(
        self, student: str, fingerprint: str, kept: tuple[str, str] | None, entry: Entry | None
    ) -> Result | None:
        """The result in the gradebook, or None if it is of another submission or incomplete."""
        if kept is None or entry is None or not fingerprint or kept[0] != fingerprint:
            return None
        result = Result.from_json(kept[1])
        folder = self.course.folder("autograded", student, self.assignment.name)
        there = all((folder / f"{name}.ipynb").is_file() for name in result.notebooks)
        return result if there and entry.has(result) else None

    def _take(self, student: str) -> None:
        self.pending.append(student)
        if len(self.pending) >= BATCH or time.monotonic() - self.written > SECONDS:
            self._flush()

    def _flush(self) -> None:
        """Put the notebooks of the pending results in place, write their marks, and remove them from the spool."""
        found = [result for student in self.pending if (result := self.spool.get(student)) is not None]
        results = [result for result in found if result.status != "not graded"]
        for result in found:
            if result.status == "not graded":  # what was there before stays
                self.spool.remove(result.student)
                about = SubmissionRecord(result.student, result.assignment, result.status, reason=result.reason)
                self._report(replace(about, seconds=result.seconds))
        for result in results:
            folder = self.course.folder("autograded", result.student, self.assignment.name)
            if result.status in NEEDS_A_LOOK:
                stand_in(self.assignment, result, folder)
            else:
                self.spool.place(result.student, folder)
        entries = self.marks.write(results)
        graded = [self._moved(result, self._record(result, entries[result.student])) for result in results]
        moves.add(self.spool.root / moves.NAME, [one.move for one in graded if one.move])
        for record in graded:
            self.spool.remove(record.student)
            self._report(record)
        self.pending.clear()
        self.written = time.monotonic()

    def _moved(self, result: Result, now: SubmissionRecord) -> SubmissionRecord:
        """The record, with what has moved if this same submission had another mark before."""
        text, entry = self.before.get(result.student, ("", None))
        before = Result.from_json(text) if text else None
        if before is None or entry is None or before.handed_in != result.handed_in or not result.handed_in:
            return now
        there = replace(before, cells=tuple(cell for cell in before.cells if cell.place in entry.grades))
        return replace(now, move=moves.move(self._record(there, entry), now, self.assignment.fingerprint))

    def _record(self, result: Result, entry: Entry) -> SubmissionRecord:
        return record(result, entry, self.assignment)

    def _report(self, found: SubmissionRecord) -> None:
        self.records.append(found)
        self.on_record(found)


def record(result: Result, entry: Entry, assignment: Assignment) -> SubmissionRecord:
    """The record of a submission, with its points from the gradebook."""
    handed_in = datetime.fromisoformat(result.timestamp) if result.timestamp else None
    cells = tuple(_cell_records(result, entry))
    penalties = [row["late_submission_penalty"] or 0.0 for row in entry.notebooks.values()]
    return SubmissionRecord(
        student=result.student,
        assignment=result.assignment,
        status=result.status,
        points=sum(cell.points or 0.0 for cell in cells),
        max_points=sum(cell.max_points for cell in cells),
        seconds=result.seconds,
        cells=cells,
        reason=result.reason,
        isolation=result.isolation,
        late_penalty=sum(penalties),
        handed_in=shown_time(handed_in) if handed_in else "",
        late_seconds=seconds_late(handed_in, assignment.due, entry.extension),
    )


def _cell_records(result: Result, entry: Entry) -> Iterator[CellVerdict]:
    """The verdicts with what people have entered in the gradebook."""
    for cell in result.cells:
        row: dict[str, Any] = entry.grades[cell.place]
        given = row["auto_score"] if row["manual_score"] is None else row["manual_score"]
        points = None if given is None else given + (row["extra_credit"] or 0.0)
        by_hand = bool(row["needs_manual_grade"]) and result.status not in NEEDS_A_LOOK
        yield replace(cell, points=points, by_hand=by_hand)


def read_records(course: Course, name: str) -> tuple[Assignment, list[SubmissionRecord]]:
    """Read an assignment and the records of its graded submissions, as the gradebook has them now."""
    assignment = read_assignment(course, name)
    marks = Marks(course.coursedir.db_url, assignment)
    try:
        kept = {student: Result.from_json(text) for student, (_, text) in marks.kept().items()}
        entries = marks.entries(sorted(kept))
    finally:
        marks.close()
    graded = [student for student in sorted(kept) if student in entries]
    return assignment, [record(kept[student], entries[student], assignment) for student in graded]
