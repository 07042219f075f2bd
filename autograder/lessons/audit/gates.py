"""The gates: what a lesson must pass before a student sees it. Each gate judges one variant of the lesson's notebook.

A gate gives a `Finding`. The judge itself does the grading, in a sandbox if the machine has one: a gate that graded in
another way would not show what marks students will get.
"""

from __future__ import annotations

import copy
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from nbformat import NotebookNode

from autograder.judge.seeds import seed_of
from autograder.lessons.audit import variants
from autograder.lessons.audit.finding import Finding
from autograder.lessons.audit.kernel_run import crashes, failures, run_in_kernel, slowest_check, unanswered, validated
from autograder.lessons.audit.passed_gates import PassedGates, fingerprint_of
from autograder.lessons.audit.strength import AskedProgram, strength_of
from autograder.lessons.builder.assignments import parted
from autograder.lessons.builder.cases import checks_of
from autograder.lessons.builder.lesson_files import FURTHER, LessonTextError, files_beside, place_files
from autograder.lessons.builder.notebook import assemble, styles
from autograder.lessons.builder.rules_of_tests import gradient_checks
from autograder.lessons.mistakes.signatures import are_current, told_apart
from autograder.lessons.release import ReleaseError, release_notebook, verify_helpers
from autograder.notebooks.cells import grade_id, is_code_solution, is_test, points_of
from autograder.notebooks.regions import without_marks
from autograder.runs.context import CheckContext, listening

Judge = Callable[..., Any]
"""`judge(notebook, source, folder, secret)`: the verdict on a notebook; the secret decides the random inputs. With
`points_only=True` nobody looks at the outputs."""

SECRETS = (b"audit 0", b"audit 1")
DRAWS = 10  # of random inputs; right solutions must get the same marks on each


@dataclass
class Lesson:
    """A lesson on its way through the gates."""

    text: Path
    course: Path
    judge: Judge
    folder: Path
    source: NotebookNode = field(default_factory=NotebookNode)
    checks: list[AskedProgram] = field(default_factory=list)  # of the solved notebook, once it has been judged
    drawing: set[str] | None = None  # the test cells whose checks draw inputs, once it has earned full marks
    passed: PassedGates | None = None
    fingerprint: str = ""

    @cached_property
    def solved_run(self) -> NotebookNode:
        """The notebook of a student who has solved everything, with the outputs of a real kernel."""
        return run_in_kernel(variants.solved_release(self.source), self.folder)

    @property
    def tests(self) -> dict[str, float]:
        """grade_id -> points of every test cell."""
        return points_of_tests(self.source)

    @cached_property
    def further(self) -> NotebookNode | None:
        """The notebook of *Further*, if that is an assignment of its own. Raises LessonTextError."""
        return parted(self.source, self.text).get(f"{self.text.stem}{FURTHER}")

    @property
    def gradient_tests(self) -> list[str]:
        """The test cells that check gradients, in their source or in a check on random inputs beside the text."""
        drawing = {f"test_{name}" for name, check in checks_of(self.text).items() if check.drawn}
        cells = [cell for cell in self.source.cells if is_test(cell)]
        return [grade_id(cell) for cell in cells if grade_id(cell) in drawing or gradient_checks(cell.source)]


def audit_lesson(
    text: Path, course: Path, judge: Judge, parts: Sequence[Part] | None = None, passed: PassedGates | None = None
) -> Iterator[Finding]:
    """Run every gate on a lesson, or the gates of some parts. If the lesson cannot be built, skip the rest. A gate in
    `RESTS` does not run again if it has `passed` before with the same fingerprint.
    """
    with tempfile.TemporaryDirectory(prefix="audit-") as name:
        lesson = Lesson(text, course, judge, Path(name), passed=passed)
        building = finding_of(lesson, BUILD, builds)
        yield building
        if not building.passed:
            return
        fingerprint = lesson.fingerprint = fingerprint_of(text, course, lesson.source)
        for gate, function in (each for part in (parts or PARTS) for each in part(lesson)):
            note = passed.note(text.stem, gate, fingerprint) if passed and gate in RESTS else None
            if note is None:
                yield replace(finding_of(lesson, gate, function), fingerprint=fingerprint)
            else:
                yield Finding(text.stem, gate, note=note, fingerprint=fingerprint, kept=True)


def finding_of(lesson: Lesson, gate: str, function: Gate) -> Finding:
    """Run one gate."""
    started = time.perf_counter()
    note: str = ""
    problems: tuple[str, ...] = ()
    try:
        note, problems = function(lesson)
    except Exception as error:  # a gate that breaks must fail, and must not hide the other gates
        problems = (f"the gate itself failed: {type(error).__name__}: {error}",)
    return Finding(lesson.text.stem, gate, tuple(problems), note, round(time.perf_counter() - started, 2))


def points_of_tests(source: NotebookNode) -> dict[str, float]:
    """grade_id -> points of every test cell of a notebook."""
    return {grade_id(cell): points_of(cell) for cell in source.cells if is_test(cell)}


Result = tuple[str, tuple[str, ...]]
Gate = Callable[[Lesson], Result]
Part = Callable[[Lesson], Iterator[tuple[str, Gate]]]
BUILD = "text keeps the rules"  # before all others, which need the source
TEN_SEEDS = "solved: the same marks for ten seeds"
EVERY_CELL_RUNS = "solved: every cell runs"
VALIDATE_PASSES = "solved: Validate passes"
NOTHING_CRASHES = "unsolved: nothing crashes"
FURTHER_ALONE = "further: runs by itself, full marks"
RESTS = {TEN_SEEDS, EVERY_CELL_RUNS, VALIDATE_PASSES, NOTHING_CRASHES, FURTHER_ALONE}
"""The gates that take longest. They need not run again for an unchanged lesson that passed them."""


def judged(lesson: Lesson) -> Iterator[tuple[str, Gate]]:
    """The gates that ask the judge."""
    yield "solved: full marks", solved_gets_full_marks
    yield TEN_SEEDS, same_marks_for_all_draws
    yield "every bug that applies costs points", bugs_cost_points
    for style, solutions in sorted(styles(lesson.text).items()):
        yield f"style {style}: full marks", partial(style_gets_full_marks, solutions=solutions)
    yield "unsolved: no marks", stubs_earn_nothing
    yield "zeros: no marks for gradients", lambda lesson: earns_nothing(lesson, variants.zeroed(lesson.source))
    yield "random: no marks for gradients", lambda lesson: earns_nothing(lesson, variants.randomized(lesson.source))


def run(lesson: Lesson) -> Iterator[tuple[str, Gate]]:
    """The gates that run what a student gets."""
    yield "release hides what it must", release_hides
    yield "cards can name the mistakes", mistakes_are_told_apart
    yield EVERY_CELL_RUNS, every_cell_runs
    yield VALIDATE_PASSES, validate_passes
    yield NOTHING_CRASHES, stubs_do_not_crash
    if lesson.further is not None:
        yield FURTHER_ALONE, partial(further_stands_alone, further=lesson.further)


PARTS: tuple[Part, ...] = (run, judged)
"""The gates of a lesson, in parts that do not depend on each other."""


def builds(lesson: Lesson) -> Result:
    """The rules of the text: ids, points, regions, tags, hints, quiz, lead-ins. Also gathers its files."""
    try:
        lesson.source = assemble(lesson.text)
        place_files(lesson.text, lesson.course, lesson.folder)
        _ = lesson.further
    except LessonTextError as error:
        return "", (str(error),)
    if not lesson.tests:
        nothing = "no cell gives points, so the gates have nothing to judge; add an exercise or a quiz"
        return "", (f"{lesson.text.name}: {nothing}",)
    return f"{len(lesson.tests)} test cells, {sum(lesson.tests.values()):g} points", ()


def release_hides(lesson: Lesson) -> Result:
    """No solution, hidden test, hint or quiz answer can be read in the student's version, or in its helpers."""
    try:
        release_notebook(lesson.source)
        verify_helpers(lesson.source, files_beside(lesson.text, lesson.course))
    except ReleaseError as error:
        return "", (str(error),)
    return "", ()


def mistakes_are_told_apart(lesson: Lesson) -> Result:
    """The signatures of the listed mistakes fit what lies beside the lesson. The note counts them."""
    if not are_current(lesson.text):
        return "", (f"the signatures are older than the lesson: run `autograder build {lesson.text.stem[:2]}`",)
    return told_apart(lesson.text).note, ()


def every_cell_runs(lesson: Lesson) -> Result:
    """A student's solved notebook in a real kernel: no cell fails, not even a demonstration, and each prediction has a
    verdict.
    """
    failed = (*failures(lesson.solved_run), *unanswered(lesson.solved_run))
    if lesson.passed and not failed:
        lesson.passed.keep_run(lesson.text.stem, lesson.fingerprint, lesson.solved_run)
    return slowest_check(lesson.solved_run), failed


def validate_passes(lesson: Lesson) -> Result:
    """nbgrader's Validate, which sees the visible tests only, has no complaint about a student's solved notebook."""
    points = {grade_id(cell): validated(cell) for cell in lesson.solved_run.cells if is_test(cell)}
    complaints = [(name, lesson.tests[name], found) for name, found in points.items() if found < lesson.tests[name]]
    where = "on a laptop, where hidden tests do not run"
    return "", tuple(f"{name}: {found:g} of {given:g} points {where}" for name, given, found in complaints)


def stubs_do_not_crash(lesson: Lesson) -> Result:
    """The student's version in a real kernel: cells fail only because a solution is missing."""
    return "", tuple(crashes(run_in_kernel(release_notebook(lesson.source), lesson.folder)))


def further_stands_alone(lesson: Lesson, further: NotebookNode) -> Result:
    """Solved, the notebook of *Further* needs nothing of the core but what it begins with: in a kernel every cell runs,
    and the judge gives all points.
    """
    ran = run_in_kernel(variants.solved_release(further), lesson.folder)
    tests = points_of_tests(further)
    verdict = lesson.judge(variants.solved(further), further, lesson.folder, SECRETS[0], points_only=True)
    given = {cell.grade_id: cell.points for cell in verdict.cells}
    lost = [
        f"{name}: {given.get(name, 0):g} of {most:g} points" for name, most in tests.items() if given.get(name) != most
    ]
    return f"{sum(tests.values()):g} points", (*failures(ran), *unanswered(ran), *lost)


def full_marks(lesson: Lesson, notebook: NotebookNode, points_only: bool = True) -> Result:
    """The judge gives every test cell its points."""
    given = _judged(lesson, notebook, points_only=points_only)
    problems = [f"{name}: the judge gave no verdict" for name in lesson.tests if name not in given]
    lost = [name for name, points in lesson.tests.items() if name in given and _differs(given[name], points)]
    said = _judged(lesson, _nothing_hidden(notebook)) if lost else {}
    for name in lost:
        points = f"{given[name].points:g} of {lesson.tests[name]:g} points."
        problems.append(f"{name}: {points} {(said.get(name) or given[name]).message}".strip())
    return f"{sum(cell.points for cell in given.values()):g} points", tuple(problems)


def _differs(cell: Any, points: float) -> bool:
    return abs(cell.points - points) > 1e-9 or cell.max_points != points


def _nothing_hidden(notebook: NotebookNode) -> NotebookNode:
    """The same notebook without the edges of hidden tests: its author may read what they say."""
    shown = copy.deepcopy(notebook)
    for cell in filter(is_test, shown.cells):
        cell.source = without_marks(cell.source)
    return shown


def solved_gets_full_marks(lesson: Lesson) -> Result:
    """The judge gives the instructor's solutions all points. Keeps what the checks asked, for later gates."""
    cells = {seed_of(SECRETS[0], name): name for name in lesson.tests}
    drawing: set[str] = set()

    def keep(context: CheckContext, asked: Any) -> None:
        cell = cells.get(context.seed or 0, "")
        drawing.add(cell)
        lesson.checks += [AskedProgram(cell, program, expected) for program, expected in asked]

    lesson.checks.clear()
    with listening(keep):
        note, problems = full_marks(lesson, variants.solved(lesson.source), points_only=False)
    lesson.drawing = None if problems else drawing  # a cell that failed may not have come to its check
    return note, problems


def same_marks_for_all_draws(lesson: Lesson) -> Result:
    """Luck decides nothing: right solutions get the same marks with other random inputs.

    Every test cell that draws inputs runs several times in its place, each time with another seed. To the others the
    seed makes no difference.
    """
    if lesson.drawing is None:
        return "", ("not tried, because the solution does not get full marks",)
    drawing = lesson.drawing
    note = f"{DRAWS} seeds for {len(drawing)} of {len(lesson.tests)} cells"
    if not drawing:
        return note, ()
    again = DRAWS - 1  # one draw has earned full marks already
    notebook, copies = variants.drawn_again(lesson.source, again, drawing)
    given = _judged(lesson, notebook, SECRETS[1])
    points = {**lesson.tests, **{copied: lesson.tests[name] for copied, name in copies.items()}}
    wrong = [name for name in points if name not in given or given[name].points != points[name]]
    return note, tuple(f"{name}: the marks change with the random inputs" for name in wrong)


def bugs_cost_points(lesson: Lesson) -> Result:
    """The mutation score is 100 %: each bug of the bank that applies to an exercise is noticed by its checks."""
    found = strength_of(lesson.checks, writes_backward=any(map(_writes_backward, lesson.source.cells)))
    return f"{found.applied} pairs of bug and operation", tuple(map(str, found.survivors))


def _writes_backward(cell: NotebookNode) -> bool:
    return is_code_solution(cell) and "def backward(self" in cell.source


def style_gets_full_marks(lesson: Lesson, solutions: Mapping[str, str]) -> Result:
    """The judge also gives full marks to these exercises in another style."""
    return full_marks(lesson, variants.styled(lesson.source, solutions))


def stubs_earn_nothing(lesson: Lesson) -> Result:
    """An untouched notebook gets no points from the judge, and fails only because a solution is missing."""
    notebook = variants.stubbed(lesson.source)
    given = _judged(lesson, notebook)
    return "", (*_with_points(given, list(lesson.tests)), *crashes(notebook, tests=False))


def earns_nothing(lesson: Lesson, notebook: NotebookNode) -> Result:
    """No exercise on gradients gives a point, although every solution cell ran."""
    given = _judged(lesson, notebook)
    broken = failures(notebook, among=is_code_solution)
    return f"{len(lesson.gradient_tests)} test cells", (*broken, *_with_points(given, lesson.gradient_tests))


def _judged(
    lesson: Lesson, notebook: NotebookNode, secret: bytes = SECRETS[0], points_only: bool = True
) -> dict[str, Any]:
    verdict = lesson.judge(notebook, lesson.source, lesson.folder, secret, points_only=points_only)
    return {cell.grade_id: cell for cell in verdict.cells}


def _with_points(given: dict[str, Any], names: list[str]) -> tuple[str, ...]:
    missing = [f"{name}: the judge gave no verdict" for name in names if name not in given]
    won = [
        f"{name}: {given[name].points:g} of {given[name].max_points:g} points for nothing"
        for name in names
        if name in given and given[name].points > 0
    ]
    return (*missing, *won)
